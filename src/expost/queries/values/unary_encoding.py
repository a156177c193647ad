"""Unary encoding: a bit per value of the domain, each with its own noise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import shorten
from expost.domains import FiniteSet
from expost.errors import InvalidInput, at, did_you_mean
from expost.files.reading import NumberText, members, text
from expost.numbers import ExactLike, Nats, decimal_text
from expost.queries._likelihood import (
    BitProbabilities,
    FiniteLikelihood,
    LazyResponses,
    Pairwise,
    two_weights,
)
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.sampling import Pmf, digits

__all__ = ["NoisyBits", "UnaryEncoding", "unary_encoding"]

VARIANTS = ("symmetric", "optimized")

# A draw takes time that grows with the square of this: near a second at the limit.
_MOST_VALUES = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class UnaryEncoding(QueryWithEpsilon):
    r"""A one at the true value and zeros elsewhere, with every bit flipped independently.

    .. math:: P[y_i = 1 \mid x] = p \text{ if } i = x, \text{ else } q, \quad
              \frac{p\,(1 - q)}{(1 - p)\,q} = e^\varepsilon

    Symmetric: p = 1 - q (basic RAPPOR, Erlingsson et al. 2014). Optimized: p = 1/2, which gives
    frequency estimates the least variance (OUE, Wang et al. 2017).
    """

    kind: ClassVar[str] = "unary_encoding"
    variant: str
    epsilon: Fraction

    def __post_init__(self) -> None:
        with at("variant"):
            if text(self.variant) not in VARIANTS:
                hint = did_you_mean(self.variant, VARIANTS)
                raise InvalidInput(
                    f"must be one of {', '.join(VARIANTS)}, not {shorten(repr(self.variant))}{hint}"
                )
        super().__post_init__()

    def __repr__(self) -> str:
        return f"UnaryEncoding({self.variant}, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return "a noisy bit for each value"

    def tree(self) -> dict[str, Any]:
        return {"variant": self.variant, "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> UnaryEncoding:
        return cls(**members(fields, required=("variant", "epsilon")))

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) > _MOST_VALUES:
            raise InvalidInput(
                f"got {len(domain)} values; expected at most {_MOST_VALUES}. Try local_hashing, "
                "which has no such limit"
            )
        if self.variant == "symmetric":
            # Two bits tell two values apart, so each has half of epsilon.
            heavy, light = two_weights(self.epsilon / 2)
            return _UnaryLikelihood(domain, heavy**2, light**2, (light, heavy), (heavy, light))
        heavy, light = two_weights(self.epsilon)
        other, true = (2 * heavy, 2 * light), (heavy + light, heavy + light)
        return _UnaryLikelihood(domain, heavy, light, true, other)


class _UnaryLikelihood(Pairwise):
    """Responses are bit strings, indexed as binary numbers; each supports its ones."""

    def __init__(
        self,
        domain: FiniteSet,
        heavy: int,
        light: int,
        true: tuple[int, int],
        other: tuple[int, int],
    ) -> None:
        super().__init__(domain, heavy, light)
        self._true, self._other = true, other
        self.responses = LazyResponses(1 << len(domain), self._text, self.position)

    @property
    def least_loss(self) -> Nats:
        return Nats()  # all zeros support no value

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction]:
        total = sum(self._true)
        return Fraction(self._true[1], total), Fraction(self._other[1], total)

    @property
    def bits(self) -> BitProbabilities:
        true_bit, other_bit = self.support_probabilities
        only_true, only_other = true_bit * (1 - other_bit), other_bit * (1 - true_bit)
        return BitProbabilities(true_bit, other_bit, only_true, only_other, independent=True)

    def _text(self, position: int) -> str:
        return format(position, f"0{len(self.domain)}b")

    def position(self, response: Any) -> int | None:
        if not isinstance(response, str) or isinstance(response, NumberText):
            return None
        bits = re.fullmatch("[01]+", response) and len(response) == len(self.domain)
        return int(response, 2) if bits else None

    def pmf(self, index: int) -> Pmf:
        return NoisyBits(len(self.domain), index, self._true, self._other)

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        return np.asarray(np.frombuffer(self._text(position).encode(), dtype=np.uint8) == ord("1"))

    def separating_response(self, value: int, other: int) -> int:
        return 1 << (len(self.domain) - 1 - value)


class NoisyBits(Pmf):
    """Independent bits: one of them has different weights (zero, one).

    A position is the value of the bits in base two; the first bit counts most.
    """

    __slots__ = ("_base", "_ones", "_zeros", "total")

    def __init__(
        self, size: int, spike: int, true: tuple[int, int], other: tuple[int, int]
    ) -> None:
        self._base = sum(true)
        assert self._base == sum(other), "the totals of the two kinds of bits are equal"
        weights = [true if i == spike else other for i in range(size)]
        self._zeros, self._ones = zip(*weights, strict=True)
        self.total = self._base**size

    def pick(self, uniform: int) -> int:
        shares = digits(uniform, self._base, len(self._zeros))
        bits = ["01"[share >= zero] for share, zero in zip(shares, self._zeros, strict=True)]
        return int("".join(bits), 2)

    def weight(self, position: int) -> int:
        weight = 1
        for weights in zip(reversed(self._zeros), reversed(self._ones), strict=True):
            position, bit = divmod(position, 2)
            weight *= weights[bit]
        return weight


def unary_encoding(*, variant: str = "optimized", epsilon: ExactLike) -> UnaryEncoding:
    """Ask for a string of noisy bits, one per value of the domain, in its order.

    Args:
        variant: ``"symmetric"`` (SUE, basic RAPPOR) or ``"optimized"`` (OUE), whose estimates have
            less variance.
        epsilon: The guarantee of the query in nats, exact as written.

    >>> unary_encoding(epsilon="1")
    UnaryEncoding(optimized, epsilon=1)
    """
    return UnaryEncoding(variant, read_epsilon(epsilon))

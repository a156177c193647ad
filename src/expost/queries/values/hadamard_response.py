"""Hadamard response: a column of a Hadamard matrix, likelier where the value's row has +1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput, at
from expost.files.reading import members, read_integer
from expost.numbers import ExactLike, Nats, decimal_text
from expost.queries._likelihood import FiniteLikelihood, Pairwise, two_weights
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.sampling import Pmf

__all__ = ["HadamardResponse", "SignedColumns", "hadamard_response"]


@dataclass(frozen=True, eq=False, repr=False)
class HadamardResponse(QueryWithEpsilon):
    r"""A column c of the Sylvester matrix H of order K; value i is row i + 1.

    .. math:: P[c \mid i] = \frac{e^{\varepsilon 1[H_{i+1, c} = 1]}}{(e^\varepsilon + 1)\, K/2},
              \quad H_{r, c} = (-1)^{\text{number of common ones of } r \text{ and } c}

    (Acharya, Sun and Zhang 2019.)
    """

    kind: ClassVar[str] = "hadamard_response"
    order: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        with at("order"):
            order = read_integer(self.order, at_least=2)
            if order & (order - 1):
                raise InvalidInput(f"must be a power of 2, not {order:,}")
        object.__setattr__(self, "order", order)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"HadamardResponse(order {self.order}, epsilon={decimal_text(self.epsilon)})"

    def tree(self) -> dict[str, Any]:
        return {"order": float(self.order), "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> HadamardResponse:
        return cls(**members(fields, required=("order", "epsilon")))

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if self.order <= len(domain):
            raise InvalidInput(
                f"got {self.order:,}; expected above the number of values, {len(domain):,}", "order"
            )
        return _HadamardLikelihood(domain, self.order, *two_weights(self.epsilon))


class _HadamardLikelihood(Pairwise):
    """Responses are column indices; each supports the rows where it has +1."""

    def __init__(self, domain: FiniteSet, order: int, heavy: int, light: int) -> None:
        super().__init__(domain, heavy, light)
        self._order = order
        self.responses = range(order)

    @property
    def least_loss(self) -> Nats:
        return Nats()  # the first column has +1 in every row

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction]:
        # Any two rows agree in half of the columns, and in half of those both have +1.
        return Fraction(self._heavy, self._heavy + self._light), Fraction(1, 2)

    def pmf(self, index: int) -> Pmf:
        return SignedColumns(self._order, index + 1, self._heavy, self._light)

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        rows = np.arange(1, len(self.domain) + 1, dtype=np.uint32)
        # No row has more bits, so higher bits of the column have no ones in common with a row.
        common = rows & np.uint32(position & 0xFFFFFFFF)
        return np.asarray(np.bitwise_count(common) & 1 == 0)

    def separating_response(self, value: int, other: int) -> int:
        # A one only in the other row; or one in both rows, and one only in the value's row.
        row, other_row = value + 1, other + 1
        return _lowest(other_row & ~row) or _lowest(row & other_row) | _lowest(row & ~other_row)


class SignedColumns(Pmf):
    """Columns of a Sylvester matrix: heavy where a row, not the first, has +1, light where -1."""

    __slots__ = ("_heavy", "_light", "_order", "_row", "total")

    def __init__(self, order: int, row: int, heavy: int, light: int) -> None:
        self._order, self._row = order, row
        self._heavy, self._light = heavy, light
        self.total = order // 2 * (heavy + light)

    def pick(self, uniform: int) -> int:
        limit = self._order // 2 * self._heavy
        odd = int(uniform >= limit)
        # Products, not branches: both candidates are computed.
        index = (1 - odd) * (uniform // self._heavy) + odd * ((uniform - limit) // self._light)
        # The other bits of the column are free, and that at the row's lowest one sets the sign.
        free = _lowest(self._row) - 1
        column = (index & free) | (index & ~free) << 1
        return column | (free + 1) * (odd ^ _parity(column & self._row))

    def weight(self, position: int) -> int:
        return self._light if _parity(position & self._row) else self._heavy


def _lowest(bits: int) -> int:
    """Return the lowest one-bit of an integer, or zero."""
    return bits & -bits


def _parity(bits: int) -> int:
    return bits.bit_count() % 2


def hadamard_response(*, order: int, epsilon: ExactLike) -> HadamardResponse:
    """Ask for a column of a Hadamard matrix.

    Args:
        order: The order of the matrix: a power of 2 above the number of values.
        epsilon: The guarantee of the query in nats, exact as written.

    >>> hadamard_response(order=8, epsilon="1")
    HadamardResponse(order 8, epsilon=1)
    """
    return HadamardResponse(order, read_epsilon(epsilon))

"""Local hashing: values are hashed into buckets, and the response is the bucket with noise."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import shorten
from expost.domains import Domain, FiniteSet
from expost.errors import InvalidInput, at, read_at
from expost.files.canonical import canonical_bytes, value_tree
from expost.files.reading import members, read_integer, text
from expost.numbers import ExactLike, Nats, decimal_text, read_only
from expost.queries._identity_cache import IdentityCache
from expost.queries._likelihood import FiniteLikelihood, Pairwise, two_weights
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.sampling import Pmf, Spiked

__all__ = ["LocalHashing", "local_hashing"]


@dataclass(frozen=True, slots=True)
class BucketHash:
    """A hash from values to buckets: part of the query, and so public."""

    #: Hexadecimal digits.
    seed: str
    buckets: int

    def __post_init__(self) -> None:
        with at("seed"):
            seed = text(self.seed).lower()
            if not re.fullmatch("([0-9a-f]{2}){1,64}", seed):
                raise InvalidInput(
                    "must be 1 to 64 bytes in hexadecimal digits, two for each, not "
                    f"{shorten(repr(seed))}"
                )
        buckets = read_at("buckets", read_integer, self.buckets, at_least=2)
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "buckets", buckets)

    def of(self, domain: FiniteSet) -> NDArray[np.int64]:
        """Return the bucket of each value: sha256(seed ‖ canonical value), 8 bytes, mod buckets."""
        seed = bytes.fromhex(self.seed)
        texts = _texts_by_domain.get(domain, domain, lambda: _canonical_values(domain))
        digests = b"".join([hashlib.sha256(seed + text).digest() for text in texts])
        first = np.frombuffer(digests, dtype=">u8").reshape(len(texts), -1)[:, 0]
        return read_only((first % self.buckets).astype(np.int64))


def _canonical_values(domain: FiniteSet) -> list[bytes]:
    return [canonical_bytes(value_tree(value)) for value in domain.values]


_texts_by_domain: IdentityCache[list[bytes]] = IdentityCache(len, max_size=1 << 20)


# Hashing takes longer than anything else, and is the same for every epsilon.
_buckets_by_hash: IdentityCache[NDArray[np.int64]] = IdentityCache(len, max_size=1 << 22)


@dataclass(frozen=True, eq=False, repr=False)
class LocalHashing(QueryWithEpsilon):
    r"""Randomized response about the bucket h(x) of a value, among g buckets.

    .. math:: P[y \mid x] = e^{\varepsilon 1[h(x) = y]} / (e^\varepsilon + g - 1)

    With about e^epsilon + 1 buckets it is optimal (OLH, Wang et al. 2017). Every subject needs a
    seed of their own, drawn without looking at their value.
    """

    kind: ClassVar[str] = "local_hashing"
    hash: BucketHash
    epsilon: Fraction

    def __repr__(self) -> str:
        return f"LocalHashing({self.hash.buckets} buckets, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return f"which of {self.hash.buckets} buckets the value is hashed to"

    def tree(self) -> dict[str, Any]:
        seed, buckets = self.hash.seed, float(self.hash.buckets)
        return {"seed": seed, "buckets": buckets, "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> LocalHashing:
        return local_hashing(**members(fields, required=("seed", "buckets", "epsilon")))

    def work(self, domain: Domain) -> int:
        return len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        buckets = _buckets_by_hash.get(self.hash, domain, lambda: self.hash.of(domain))
        return _HashedLikelihood(domain, self.hash.buckets, buckets, *two_weights(self.epsilon))


class _HashedLikelihood(Pairwise):
    """Responses are buckets; each supports the values in it."""

    def __init__(
        self, domain: FiniteSet, count: int, buckets: NDArray[np.int64], heavy: int, light: int
    ) -> None:
        super().__init__(domain, heavy, light)
        self._buckets = buckets
        self.responses = range(count)

    @cached_property
    def least_loss(self) -> Nats:
        # An empty bucket supports no value. One exists if there are more buckets than values.
        count = len(self.responses)
        full = count <= len(self.domain) and len(np.unique(self._buckets)) == count
        return self.epsilon if full else Nats()

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction]:
        total = self._heavy + (len(self.responses) - 1) * self._light
        return Fraction(self._heavy, total), Fraction(self._light, total)

    @property
    def collision_probability(self) -> Fraction:
        return Fraction(1, len(self.responses))

    def pmf(self, index: int) -> Pmf:
        return Spiked(len(self.responses), int(self._buckets[index]), self._heavy, self._light)

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        return np.asarray(self._buckets == position)

    def separated_from(self, value: int) -> NDArray[np.bool_]:
        return np.asarray(self._buckets != self._buckets[value])

    def separating_response(self, value: int, other: int) -> int:
        return int(self._buckets[value])


def local_hashing(*, seed: str, buckets: int, epsilon: ExactLike) -> LocalHashing:
    """Ask for the bucket of a value with noise; the seed of the hash has hexadecimal digits.

    Args:
        seed: The seed of the hash, in hexadecimal digits; a different one for each subject.
        buckets: The number of responses, from 2 on.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> local_hashing(seed="5eed", buckets=4, epsilon="1")
    LocalHashing(4 buckets, epsilon=1)
    """
    return LocalHashing(BucketHash(seed, buckets), read_epsilon(epsilon))

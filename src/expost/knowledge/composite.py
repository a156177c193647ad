"""Several objects together: a joint belief, and what the responses of some say about all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from expost.domains import FiniteSet, Value
from expost.errors import InvalidInput, at, expect
from expost.knowledge.belief import Belief, exact_likelihoods
from expost.knowledge.statement import Statement
from expost.transcript import Transcript

__all__ = ["Composite"]

_MOST = 1 << 20


@dataclass(frozen=True, init=False, repr=False)
class Composite:
    """The combinations of the values of several objects, such as subjects who are related.

    The loss of a transcript bounds what it says about any statement on all of them, as long as the
    responses depend on the others only through the one who was asked (paper, section 3.2).

    >>> import expost as xp
    >>> answer = xp.FiniteSet(["yes", "no"])
    >>> twins = Composite(ann=answer, bob=answer)
    >>> alike = twins.belief({("yes", "yes"): "0.1", ("no", "no"): "0.9"})
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> after = twins.updated(alike, ann=xp.Transcript(answer).add(query, 0))
    >>> twins.marginal(after, "bob").probability("yes")
    Fraction(1, 4)
    """

    names: tuple[str, ...]
    parts: tuple[FiniteSet, ...]
    domain: FiniteSet
    """A point for each combination: the positions of its values in their domains."""

    def __init__(self, **parts: FiniteSet) -> None:
        if not parts:
            raise InvalidInput("name at least one object with its domain")
        for name, part in parts.items():
            with at(name):
                expect(part, FiniteSet, "a FiniteSet")
        sizes = [range(len(part)) for part in parts.values()]
        if math.prod(map(len, sizes)) > _MOST:
            raise InvalidInput(f"there are more than {_MOST:,} combinations")
        object.__setattr__(self, "names", tuple(parts))
        object.__setattr__(self, "parts", tuple(parts.values()))
        rows = list(itertools.product(*sizes))
        object.__setattr__(self, "domain", FiniteSet(rows, names=list(parts)))

    def __repr__(self) -> str:
        return f"Composite({', '.join(self.names)}: {len(self.domain):,} combinations)"

    @property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """The combinations, in the order of the domain."""
        return tuple(itertools.product(*(part.values for part in self.parts)))

    def belief(self, probabilities: Mapping[tuple[Any, ...], Any]) -> Belief:
        """A belief from the probabilities of combinations; missing ones have probability 0."""
        expect(probabilities, Mapping, "a mapping from combinations to probabilities")
        with at("probabilities"):
            by_place = {}
            for index, combination in enumerate(probabilities):
                place = self._locate(combination)
                if place is None or place in by_place:
                    reason = "is not a combination of values" if place is None else "comes twice"
                    raise InvalidInput(reason, f"[{index}]")
                by_place[place] = probabilities[combination]
        return Belief(self.domain, by_place)

    def _locate(self, combination: Any) -> tuple[int, ...] | None:
        if not isinstance(combination, tuple) or len(combination) != len(self.parts):
            return None
        places = [p.locate(value) for p, value in zip(self.parts, combination, strict=True)]
        inside = tuple(place for place in places if place is not None)
        return inside if len(inside) == len(places) else None

    def independent(self, **beliefs: Belief) -> Belief:
        """The belief under which the objects are independent, from a belief about each."""
        if set(beliefs) != set(self.names):
            raise InvalidInput(f"give a belief for each of {', '.join(self.names)}")
        for name, part in zip(self.names, self.parts, strict=True):
            with at(name):
                expect(beliefs[name], Belief, "a Belief")
                if beliefs[name].domain != part:
                    raise InvalidInput("has another domain")
        weights = itertools.product(*(beliefs[name].weights for name in self.names))
        return Belief.from_weights(self.domain, list(map(math.prod, weights)))

    def marginal(self, belief: Belief, name: str) -> Belief:
        """What a joint belief says about one object."""
        index, sums = self._index(name), [0] * len(self._part(name))
        self._check(belief)
        for place, weight in zip(self.domain.values, belief.weights, strict=True):
            assert isinstance(place, tuple)
            sums[int(place[index])] += weight
        return Belief.from_weights(self._part(name), sums)

    def statement(self, says: Callable[..., Any]) -> Statement:
        """A statement about all objects, as a function of their values by name.

        >>> twins = Composite(ann=FiniteSet([0, 1]), bob=FiniteSet([0, 1]))
        >>> twins.statement(lambda ann, bob: ann == bob)
        Statement(about 4 values)
        """
        return Statement(
            self.domain,
            [says(**dict(zip(self.names, values, strict=True))) for values in self.values],
        )

    def updated(self, belief: Belief, **transcripts: Transcript) -> Belief:
        """The belief after the responses of some objects, with a transcript for each of these."""
        self._check(belief)
        for name, transcript in transcripts.items():
            index = self._index(name)
            with at(name):
                expect(transcript, Transcript, "a transcript")
                if transcript.domain != self._part(name):
                    raise InvalidInput("has another domain")
            likelihoods = exact_likelihoods(transcript)
            places = (place for place in self.domain.values if isinstance(place, tuple))
            belief = belief.given([likelihoods[int(place[index])] for place in places])
        return belief

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise InvalidInput(f"unknown object; there are {', '.join(self.names)}")
        return self.names.index(name)

    def _part(self, name: str) -> FiniteSet:
        return self.parts[self._index(name)]

    def _check(self, belief: Belief) -> None:
        expect(belief, Belief, "a Belief")
        if belief.domain != self.domain:
            raise InvalidInput("the belief is not about these objects")

"""Beliefs: exact priors over a finite domain, and Bayes' rule.

Probabilities are integer weights up to a common factor, and so are likelihoods. So a posterior is
exact, whatever the number of responses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_number
from expost.domains import Domain, FiniteSet, Value, require_finite
from expost.errors import InvalidInput, at, expect, read_at, unknown_name
from expost.files.reading import as_list, read_list
from expost.knowledge._statement import Statement, locate_all, read_probability
from expost.numbers import exact, read_only
from expost.tally import Summand
from expost.transcript import Transcript

__all__ = [
    "MISS",
    "Belief",
    "Composite",
    "check_same_domain",
    "exact_likelihoods",
    "likelihoods_on",
    "read_amount",
]

#: The largest distance from one of the sum of probabilities, if some of them are floats.
MISS = Fraction(1, 10**9)

_MOST_BITS = 8000
#: In bits, for the likelihoods of all values: a gigabyte.
_MOST_MEMORY = 1 << 33


@dataclass(frozen=True, init=False, repr=False)
class Belief:
    """A belief of an observer about a subject: exact probabilities on a finite domain.

    ``probabilities`` is a mapping from values to probabilities, in which missing values have
    probability 0; or a list in the order of the domain. Decimals and fractions are exact as
    written and must sum to one. Floats may miss it by 1e-9 and are scaled.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> before = Belief(smokes, {"no": "2/3", "yes": "1/3"})
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> after = before.updated(xp.Transcript(smokes).add(query, 1))
    >>> before.probability("yes"), after.probability("yes")
    (Fraction(1, 3), Fraction(3, 5))
    """

    domain: FiniteSet
    #: A non-negative integer per value, in lowest terms: the probabilities times their total.
    weights: tuple[int, ...]

    def __init__(self, domain: FiniteSet, probabilities: Any) -> None:
        entries, loose = _entries(domain, probabilities, "probabilities")
        miss = sum(entries, start=Fraction(0)) - 1
        if abs(miss) > (MISS if loose else 0):
            direction = "above" if miss > 0 else "below"
            raise InvalidInput(f"sum to {_shown(abs(miss))} {direction} 1", "probabilities")
        vars(self).update(
            domain=domain, weights=_reduce_weights(_scale_to_integers(entries, "probabilities"))
        )

    @classmethod
    def uniform(cls, domain: FiniteSet) -> Belief:
        """Return the belief in which all values are equally likely.

        >>> Belief.uniform(FiniteSet(["never", "sometimes", "often"])).probability("often")
        Fraction(1, 3)
        """
        expect(domain, FiniteSet, "a FiniteSet (RecordBelief is for Attributes)")
        return cls.from_weights(domain, [1] * len(domain))

    @classmethod
    def from_counts(cls, domain: FiniteSet, counts: Any) -> Belief:
        """Return the belief in which each value is as likely as its share of the counts.

        Counts need not be whole numbers. They are given like ``probabilities``.

        >>> Belief.from_counts(FiniteSet(["no", "yes"]), {"no": 30, "yes": 10}).probability("yes")
        Fraction(1, 4)
        """
        entries, _ = _entries(domain, counts, "counts")
        if not any(entries):
            raise InvalidInput("sum to zero", "counts")
        return cls.from_weights(domain, _scale_to_integers(entries, "counts"))

    @classmethod
    def from_weights(cls, domain: FiniteSet, weights: Sequence[int]) -> Belief:
        """Return the belief with probabilities in proportion to these integers, of any size."""
        assert len(weights) == len(domain)
        assert min(weights) >= 0 < max(weights)
        belief = cls.__new__(cls)
        vars(belief).update(domain=domain, weights=_reduce_weights(weights))
        return belief

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        return f"Belief({len(self)} value{'s' if len(self) > 1 else ''})"

    @cached_property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    def probability(self, value: Any) -> Fraction:
        """Return the exact probability of a value."""
        position = self.domain.locate(value)
        if position is None:
            raise InvalidInput("is not a value of the domain")
        return Fraction(self.weights[position], self.total)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The probabilities in the order of the domain, each rounded to the nearest double."""
        return read_only(np.array([weight / self.total for weight in self.weights]))

    def updated(self, transcript: Transcript) -> Belief:
        r"""Return the belief after the responses of a transcript, by Bayes' rule.

        .. math:: Q(x \mid y) \propto P[y \mid x] \, Q(x)

        It is exact, because the likelihoods are integers. (Paper, section 2.1.)
        """
        check_same_domain(transcript, Transcript, "a transcript", self.domain, "belief")
        return self.posterior(exact_likelihoods(transcript))

    def posterior(self, likelihoods: Sequence[int]) -> Belief:
        """Return the belief after an observation with these likelihoods, up to a factor."""
        weights = [q * likelihood for q, likelihood in zip(self.weights, likelihoods, strict=True)]
        if not any(weights):
            raise InvalidInput("no value that is held possible can have given these responses")
        return Belief.from_weights(self.domain, weights)

    def confidence(self, statement: Statement) -> Fraction:
        """Return the probability of a statement, exactly."""
        check_same_domain(statement, Statement, "a Statement", self.domain, "belief")
        pairs = zip(self.weights, statement.probabilities, strict=True)
        return sum((weight * p for weight, p in pairs if p), start=Fraction(0)) / self.total

    def check(
        self, event: Statement, probability: Any, *, condition: Statement | None = None
    ) -> None:
        """Refuse the belief if it contradicts what is known: Pr(event), or Pr(event | condition).

        (Paper, section 2.1, the properties 2 and 3 of a belief.)

        >>> coin = FiniteSet(["heads", "tails"])
        >>> Belief.uniform(coin).check(Statement(coin, "value == 'heads'"), "1/2")
        """
        expected = read_at("probability", read_probability, probability)
        actual = self.confidence(event)
        if condition is not None:
            if not (event.is_predicate and condition.is_predicate):
                reason = "a condition needs statements that are true or false of each value"
                raise InvalidInput(reason)
            condition_probability = self.confidence(condition)
            if condition_probability == 0:
                raise InvalidInput("the belief rules out what is given")
            actual = self.confidence(event & condition) / condition_probability
        if actual != expected:
            shown = f"{_shown(actual, 6)} here, not {_shown(expected, 6)}"
            raise InvalidInput(f"the belief has {shown}")


def check_same_domain(
    candidate: Any, kind: type[Transcript | Statement], expected: str, domain: Domain, prior: str
) -> None:
    """Refuse what is no transcript or statement, or one on another domain than that of a prior."""
    expect(candidate, kind, expected)
    if candidate.domain != domain:
        name = kind.__name__.lower()
        raise InvalidInput(f"the {name} and the {prior} have different domains")


def exact_likelihoods(transcript: Transcript) -> tuple[int, ...]:
    """Return Pr(responses | value) for every value of a finite set, exactly, up to a factor."""
    reason = "exact likelihoods need a finite set, not records or a box"
    return likelihoods_on(require_finite(transcript.domain, reason), transcript.tally)


def likelihoods_on(domain: FiniteSet, tally: Iterable[Summand]) -> tuple[int, ...]:
    """Return Pr(responses | value) of a tally, for every value of a finite set, likewise."""
    factors = [(part.query.on(domain).weights(part.position), part.times) for part in tally]
    # Values with equal weights throughout share one product, and there are often few such classes.
    label, first = np.zeros(len(domain), dtype=np.intp), np.zeros(1, dtype=np.intp)
    for weights, _ in factors:
        _, code = np.unique(weights, return_inverse=True)
        joint = label * (int(code.max()) + 1) + code
        _, first, label = np.unique(joint, return_index=True, return_inverse=True)
    bits = sum(int(weights.max()).bit_length() * times for weights, times in factors)
    if bits * len(first) > _MOST_MEMORY:
        raise InvalidInput("too many responses for exact likelihoods on so many values")
    products = [1] * len(first)
    for weights, times in factors:
        pairs = zip(products, weights[first].tolist(), strict=True)
        products = [product * int(weight) ** times for product, weight in pairs]
    common = math.gcd(*products) or 1
    products = [product // common for product in products]
    return tuple(products[code] for code in label.tolist())


def _reduce_weights(weights: Sequence[int]) -> tuple[int, ...]:
    common = math.gcd(*weights)
    return tuple(weight // common for weight in weights)


def _entries(domain: FiniteSet, values_or_mapping: Any, name: str) -> tuple[list[Fraction], bool]:
    """Return a number for every value, and whether some of them were floats."""
    expect(domain, FiniteSet, "a FiniteSet (RecordBelief is for Attributes)")
    with at(name):
        if isinstance(values_or_mapping, Mapping):
            result = [Fraction(0)] * len(domain)
            entries: list[Any] = list(values_or_mapping.values())
            positions_seen: set[int] = set()
            for index, position in enumerate(locate_all(domain, values_or_mapping)):
                with at(f"[{index}]"):
                    if position in positions_seen:
                        raise InvalidInput("appears twice")
                    positions_seen.add(position)
                    result[position] = read_amount(entries[index])
        else:
            entries = as_list(values_or_mapping)
            if len(entries) != len(domain):
                raise InvalidInput(f"{len(entries)} numbers for {len(domain)} values")
            result = read_list(entries, read_amount)
    return result, any(isinstance(entry, (float, np.floating)) for entry in entries)


def read_amount(entry: Any) -> Fraction:
    """Read an exact number that is not negative."""
    amount = exact(entry)
    if amount < 0:
        raise InvalidInput("must not be negative")
    return amount


def _scale_to_integers(entries: Sequence[Fraction], name: str) -> list[int]:
    """Return integers in the same proportions."""
    denominator = 1
    for entry in entries:
        denominator = math.lcm(denominator, entry.denominator)
        if denominator.bit_length() > _MOST_BITS:
            raise InvalidInput(f"the common denominator has more than {_MOST_BITS} bits", name)
    return [entry.numerator * (denominator // entry.denominator) for entry in entries]


def _shown(share: Fraction, digits: int = 3) -> str:
    return str(share) if share.denominator < 10**6 else f"about {format_number(share, digits)}"


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
    #: A point for each combination: the positions of its values in their domains.
    domain: FiniteSet

    def __init__(self, **parts: FiniteSet) -> None:
        if not parts:
            raise InvalidInput("name at least one object with its domain")
        for name, part in parts.items():
            expect(part, FiniteSet, "a FiniteSet", name)
        if math.prod(map(len, parts.values())) > _MOST:
            raise InvalidInput(f"there are more than {_MOST:,} combinations")
        vars(self).update(names=tuple(parts), parts=tuple(parts.values()))
        vars(self).update(domain=FiniteSet(list(self._combinations()), names=self.names))

    def __repr__(self) -> str:
        return f"Composite({', '.join(self.names)}: {len(self.domain):,} combinations)"

    def _combinations(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*(range(len(part)) for part in self.parts))

    @property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """The combinations, in the order of the domain."""
        return tuple(itertools.product(*(part.values for part in self.parts)))

    def belief(self, probabilities: Mapping[tuple[Any, ...], Any]) -> Belief:
        """Return a belief from probabilities of combinations; missing ones get 0."""
        expect(probabilities, Mapping, "a mapping from combinations to probabilities")
        with at("probabilities"):
            by_place = {}
            for index, combination in enumerate(probabilities):
                positions = self._locate(combination)
                if positions is None:
                    raise InvalidInput("is not a combination of values", f"[{index}]")
                if positions in by_place:
                    raise InvalidInput("appears twice", f"[{index}]")
                by_place[positions] = probabilities[combination]
        return Belief(self.domain, by_place)

    def _locate(self, combination: Any) -> tuple[int, ...] | None:
        if not isinstance(combination, tuple) or len(combination) != len(self.parts):
            return None
        positions = [p.locate(value) for p, value in zip(self.parts, combination, strict=True)]
        inside = tuple(position for position in positions if position is not None)
        return inside if len(inside) == len(positions) else None

    def independent(self, **beliefs: Belief) -> Belief:
        """Return the belief under which the objects are independent, from a belief about each."""
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
        """Return the belief about one object."""
        index, sums = self._index(name), [0] * len(self._part(name))
        self._check(belief)
        for positions, weight in zip(self._combinations(), belief.weights, strict=True):
            sums[positions[index]] += weight
        return Belief.from_weights(self._part(name), sums)

    def statement(self, says: Callable[..., Any]) -> Statement:
        """Return a statement about all objects, as a function of their values by name.

        >>> twins = Composite(ann=FiniteSet([0, 1]), bob=FiniteSet([0, 1]))
        >>> twins.statement(lambda ann, bob: ann == bob)
        Statement(about 4 values)
        """
        rows = (dict(zip(self.names, values, strict=True)) for values in self.values)
        return Statement(self.domain, [says(**row) for row in rows])

    def updated(self, belief: Belief, **transcripts: Transcript) -> Belief:
        """Return the belief after responses, given by a transcript for each object asked."""
        self._check(belief)
        for name, transcript in transcripts.items():
            index = self._index(name)
            with at(name):
                expect(transcript, Transcript, "a transcript")
                if transcript.domain != self._part(name):
                    raise InvalidInput("has another domain")
            likelihoods = exact_likelihoods(transcript)
            belief = belief.posterior(
                [likelihoods[positions[index]] for positions in self._combinations()]
            )
        return belief

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise InvalidInput(unknown_name("object", name, self.names))
        return self.names.index(name)

    def _part(self, name: str) -> FiniteSet:
        return self.parts[self._index(name)]

    def _check(self, belief: Belief) -> None:
        expect(belief, Belief, "a Belief")
        if belief.domain != self.domain:
            raise InvalidInput("the belief is not about these objects")

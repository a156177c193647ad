"""The examples of the paper, and two of its remarks, in exact numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from expost.domains import FiniteSet
from expost.filters._bayesian import BayesianFilter
from expost.loss import Odometer
from expost.queries import Channel, Query, channel, randomized_response
from expost.transcript import Transcript

__all__ = ["Figure", "Step", "figures", "power", "running_example"]

TENTHS = FiniteSet(range(11))
BUDGET = Fraction(9, 4)


@dataclass(frozen=True, slots=True)
class Step:
    """A query of the running example, whether it was accepted, and L after its response."""

    exponent: int
    accepted: bool
    response: int
    ratio: Fraction


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is printed in the paper, and its exact value."""

    what: str
    printed: str
    exact: str
    value: float


def power(exponent: int) -> Channel:
    """The query about X^i in the running example: Pr(1 | x) = 0.2 (x/10)^i + 0.4."""
    ones = [Fraction(2, 5) + Fraction(1, 5) * Fraction(x, 10) ** exponent for x in range(11)]
    return channel([[1 - p, p] for p in ones])


def running_example() -> list[Step]:
    """Example 3: X, X², … until a filter with the budget 2 ln 3/2 refuses.

    >>> [str(step.ratio) for step in running_example() if step.accepted]
    ['3/2', '55/48', '3/2', '9/4']
    """
    guard = BayesianFilter(ratio=BUDGET)
    odometer = Odometer(Transcript(TENTHS, guard))
    steps = []
    for exponent, response in ((1, 1), (2, 0), (3, 1), (4, 1), (5, 1)):
        accepted = guard.accepts(odometer, power(exponent))
        if accepted:
            odometer = odometer.add(power(exponent), response)
        steps.append(Step(exponent, accepted, response, _ratio(odometer)))
    return steps


def _ratio(odometer: Odometer) -> Fraction:
    """L = e^loss."""
    ratio = odometer.exact_loss.ratio
    assert ratio is not None, "no probability is zero here"
    return ratio


def _after(domain: FiniteSet, exchanges: Sequence[tuple[Query, int]]) -> Odometer:
    odometer = Odometer(Transcript(domain))
    for query, response in exchanges:
        odometer = odometer.add(query, response)
    return odometer


def figures() -> list[Figure]:
    """The printed numbers of the examples beside the exact ones."""
    coin = randomized_response(epsilon=1)
    second = [(power(1), 1), (power(2), 0), (power(3), 1)]
    balanced = _after(FiniteSet([0, 1]), [(coin, response) for response in (0, 1, 1, 0)])
    found = [
        _figure("Example 1: the loss after 0, 1, 1, 0", "0", balanced, in_nats=True),
        _figure(
            "Example 2: L after 1, 0, 1 to X, X², X³",
            "1.5",
            _after(TENTHS, second),
        ),
        *(
            Figure(f"Example 2: Pr(1, 0, 1 | x = {x})", printed, str(chance), float(chance))
            for x, printed in ((0, "0.096"), (1, "0.101"), (2, "0.109"), (10, "0.144"))
            for chance in [_chance(x, second)]
        ),
    ]
    steps = running_example()
    for step, printed in zip(steps, ("1.50", "1.15", "1.50", "2.25"), strict=False):
        text = f"Example 3: L after {step.response} to X^{step.exponent}"
        found.append(Figure(text, printed, str(step.ratio), float(step.ratio)))
    refused = "refused" if not steps[-1].accepted else "accepted"
    found.append(Figure("Example 3: X^5", "refused", refused, float(steps[-1].accepted)))
    return found + _remarks()


def _chance(x: int, exchanges: Sequence[tuple[Query, int]]) -> Fraction:
    """Pr(responses | x)."""
    pmfs = ((query.on(TENTHS).pmf(x), response) for query, response in exchanges)
    return math.prod((pmf.probability(response) for pmf, response in pmfs), start=Fraction(1))


def _figure(what: str, printed: str, odometer: Odometer, *, in_nats: bool = False) -> Figure:
    ratio = _ratio(odometer)
    if in_nats:
        return Figure(what, printed, str(odometer.exact_loss), odometer.exact_loss.nearest)
    return Figure(what, printed, str(ratio), float(ratio))


def _remarks() -> list[Figure]:
    """Small counterexamples to two sentences of section 4.2 that do not hold in general."""
    three = FiniteSet(range(3))
    first = channel(_two([Fraction(2, 3), Fraction(1, 3), Fraction(1, 2)]))
    second = channel(_two([Fraction(1, 2), Fraction(1, 2), Fraction(2, 3)]))
    full = _after(three, [(first, 1)])
    accepted = BayesianFilter(ratio=2).accepts(full, second)
    before = channel(_two([Fraction(1, 2), Fraction(49, 100), Fraction(1, 10)]))
    then = channel(_two([Fraction(1, 5), Fraction(4, 5), Fraction(3, 10)]))
    rising = _after(three, [(before, 1)]), _after(three, [(before, 1), (then, 1)])
    return [
        Figure(
            "Section 4.2: one more query when the loss equals the budget",
            "never accepted",
            "accepted" if accepted else "refused",
            float(accepted),
        ),
        _figure("Section 4.2: L before a response that is likelier elsewhere", "5", rising[0]),
        _figure("Section 4.2: L after it", "less", rising[1]),
    ]


def _two(ones: Sequence[Fraction]) -> list[list[Fraction]]:
    return [[1 - p, p] for p in ones]

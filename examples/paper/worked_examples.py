"""The examples of the paper, and two of its remarks, in exact numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from expost.cli.demo import TENTHS, power_query, ratio_of, running_example
from expost.domains import FiniteSet
from expost.filters._bayesian import BayesianFilter
from expost.loss import Odometer
from expost.queries import Query, channel, randomized_response
from expost.transcript import Transcript

__all__ = ["PrintedNumber", "power_query", "printed_numbers", "running_example"]


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number as it is printed in the paper, and its exact value."""

    claim: str
    printed: str
    exact: str
    value: float


def _after(domain: FiniteSet, exchanges: Sequence[tuple[Query, int]]) -> Odometer:
    odometer = Odometer(Transcript(domain))
    for query, response in exchanges:
        odometer = odometer.add(query, response)
    return odometer


def printed_numbers() -> list[PrintedNumber]:
    """Return the printed numbers of the examples beside the exact ones."""
    coin = randomized_response(epsilon=1)
    second = [(power_query(1), 1), (power_query(2), 0), (power_query(3), 1)]
    balanced = _after(FiniteSet([0, 1]), [(coin, response) for response in (0, 1, 1, 0)])
    numbers = [
        _printed_loss("Example 1: the loss after 0, 1, 1, 0", "0", balanced, in_nats=True),
        _printed_loss(
            "Example 2: L after 1, 0, 1 to X, X², X³",
            "1.5",
            _after(TENTHS, second),
        ),
        *(
            PrintedNumber(f"Example 2: Pr(1, 0, 1 | x = {x})", printed, str(chance), float(chance))
            for x, printed in ((0, "0.096"), (1, "0.101"), (2, "0.109"), (10, "0.144"))
            for chance in [_chance(x, second)]
        ),
    ]
    steps = running_example()
    for step, printed in zip(steps, ("1.50", "1.15", "1.50", "2.25"), strict=False):
        text = f"Example 3: L after {step.response} to X^{step.exponent}"
        numbers.append(PrintedNumber(text, printed, str(step.ratio), float(step.ratio)))
    refused = "refused" if not steps[-1].accepted else "accepted"
    numbers.append(PrintedNumber("Example 3: X^5", "refused", refused, float(steps[-1].accepted)))
    return numbers + _remarks()


def _chance(x: int, exchanges: Sequence[tuple[Query, int]]) -> Fraction:
    """Return Pr(responses | x)."""
    pmfs = ((query.on(TENTHS).pmf(x), response) for query, response in exchanges)
    return math.prod((pmf.probability(response) for pmf, response in pmfs), start=Fraction(1))


def _printed_loss(
    claim: str, printed: str, odometer: Odometer, *, in_nats: bool = False
) -> PrintedNumber:
    ratio, loss = ratio_of(odometer), odometer.exact_loss
    if in_nats:
        return PrintedNumber(claim, printed, str(loss), loss.nearest)
    return PrintedNumber(claim, printed, str(ratio), float(ratio))


def _remarks() -> list[PrintedNumber]:
    """Return small counterexamples to two sentences of section 4.2 that do not hold in general."""
    three = FiniteSet(range(3))
    first = channel(_two([Fraction(2, 3), Fraction(1, 3), Fraction(1, 2)]))
    second = channel(_two([Fraction(1, 2), Fraction(1, 2), Fraction(2, 3)]))
    full = _after(three, [(first, 1)])
    accepted = BayesianFilter(ratio=2).accepts(full, second)
    before = channel(_two([Fraction(1, 2), Fraction(49, 100), Fraction(1, 10)]))
    then = channel(_two([Fraction(1, 5), Fraction(4, 5), Fraction(3, 10)]))
    rising = _after(three, [(before, 1)]), _after(three, [(before, 1), (then, 1)])
    return [
        PrintedNumber(
            "Section 4.2: one more query when the loss equals the budget",
            "never accepted",
            "accepted" if accepted else "refused",
            float(accepted),
        ),
        _printed_loss(
            "Section 4.2: L before a response that is likelier elsewhere", "5", rising[0]
        ),
        _printed_loss("Section 4.2: L after it", "less", rising[1]),
    ]


def _two(ones: Sequence[Fraction]) -> list[list[Fraction]]:
    return [[1 - p, p] for p in ones]

"""``expost demo``: the running example of the paper, then four ways to spend a budget."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import click
import numpy as np

from expost._format import format_fixed
from expost.cli._options import file_option
from expost.cli._outputs import Result, check_output, prints_result
from expost.domains import FiniteSet
from expost.files.kinds import PICTURE
from expost.filters._basic import BasicFilter
from expost.filters._bayesian import BayesianFilter
from expost.filters._filter import Filter
from expost.knowledge import Belief
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import Channel, Query, channel, perturbation, randomized_response
from expost.report._comparison import basic_prefix
from expost.report._figures import odometer_chart
from expost.report._plot import save_chart
from expost.sampling import InsecureSource
from expost.session import Session
from expost.transcript import Transcript

__all__ = [
    "TENTHS",
    "ExampleStep",
    "command",
    "power_query",
    "ratio_of",
    "running_example",
    "simulate_designs",
]

#: The domain of the running example: tenths of the largest value.
TENTHS = FiniteSet(range(11))

BUDGET = Nats.budget(epsilon=2)
EPSILON = "0.4"
SUBJECTS = 40
FACTS = ("smokes", "drinks", "exercises")
#: Which facts hold, a row per value.
HOLDS = np.array(list(itertools.product((0, 1), repeat=3)))
VALUES = FiniteSet([dict(zip(FACTS, holds, strict=True)) for holds in HOLDS.tolist()])
SIGNS = 2 * HOLDS - 1
LABELS = {
    "basic": "basic composition, epsilon 0.4 each",
    "basic_at_best": "the same at its best: once, epsilon 2",
    "filter": "Bayesian filter, epsilon 0.4 each",
    "one_shot": "all three facts, once, epsilon 2",
}


@dataclass(frozen=True, slots=True)
class ExampleStep:
    """A query of the running example, whether it was accepted, and L after its response."""

    exponent: int
    accepted: bool
    response: int
    ratio: Fraction


def power_query(exponent: int) -> Channel:
    """Return the query about X^i in the running example: Pr(1 | x) = 0.2 (x/10)^i + 0.4."""
    ones = [Fraction(2, 5) + Fraction(1, 5) * Fraction(x, 10) ** exponent for x in range(11)]
    return channel([[1 - p, p] for p in ones])


def running_example() -> list[ExampleStep]:
    """Ask about X, X², … until a filter with the budget 2 ln 3/2 refuses (Example 3 of the paper).

    >>> [str(step.ratio) for step in running_example() if step.accepted]
    ['3/2', '55/48', '3/2', '9/4']
    """
    filter_ = BayesianFilter(ratio=Fraction(9, 4))
    odometer = Odometer(Transcript(TENTHS, filter_))
    steps = []
    for exponent, response in ((1, 1), (2, 0), (3, 1), (4, 1), (5, 1)):
        accepted = filter_.accepts(odometer, power_query(exponent))
        if accepted:
            odometer = odometer.add(power_query(exponent), response)
        steps.append(ExampleStep(exponent, accepted, response, ratio_of(odometer)))
    return steps


def ratio_of(odometer: Odometer) -> Fraction:
    """Return L = e^loss of a transcript in which no probability is zero."""
    ratio = odometer.exact_loss.ratio
    assert ratio is not None, "no probability is zero here"
    return ratio


@click.command("demo")
@file_option("--out", "PICTURE", "File for a picture (.png, .svg or .pdf). Default: no picture.")
@click.option("--seed", type=int, default=3, help="Seed of the simulated subjects, an integer.")
@prints_result
def command(out: Path | None, seed: int) -> Result:
    """Show the idea in a minute.

    Print an example from the paper, then what four designs reveal with the same budget.
    """
    check_output(out, PICTURE)
    steps = running_example()
    designs = simulate_designs(seed)
    measured = {name: _measure(odometers) for name, odometers in designs.items()}
    guarded = designs["filter"][0]
    lines = [*_describe_example(steps), *_describe_designs(measured, guarded)]
    if out is not None:
        chart = odometer_chart(guarded, guarded.history)
        save_chart(chart, out, alt="The loss of one subject after each response.")
        lines += ["", f"The picture is in {out}."]
    tree = {
        "example": [step.accepted for step in steps],
        "subjects": SUBJECTS,
        **measured,
        "picture": None if out is None else str(out),
    }
    return Result(tree, lines)


def _describe_example(steps: Sequence[ExampleStep]) -> Iterator[str]:
    yield "1. A budget that lasts (Example 3 of the paper)"
    yield ""
    yield "A value between 0 and 10 is queried about X, X², X³, …; every query is ln 3/2-LDP."
    yield "The budget is 2 ln 3/2. Basic composition would stop after two queries."
    yield ""
    yield f"{'query':<7}{'decision':<11}{'response':<10}{'e^loss':<8}budget"
    for step in steps:
        decision = "accepted" if step.accepted else "refused"
        response = step.response if step.accepted else ""
        ratio = format_fixed(float(step.ratio), 4) if step.accepted else ""
        yield f"X^{step.exponent:<5}{decision:<11}{response:<10}{ratio:<8}2.25"
    yield ""
    yield "The fourth query is accepted: after it, e^loss is exactly 2.25, the budget."
    yield ""


def simulate_designs(seed: int) -> dict[str, list[Odometer]]:
    """Simulate the people of each design."""
    # In the last one, by symmetry, every answer is equally telling.
    once = Odometer(Transcript(VALUES)).add(randomized_response(epsilon="2"), VALUES.values[0])
    return {
        "basic": _simulate_subjects(BasicFilter.of(BUDGET), EPSILON, seed),
        "basic_at_best": _simulate_subjects(BasicFilter.of(BUDGET), "2", seed),
        "filter": _simulate_subjects(BayesianFilter.of(BUDGET), EPSILON, seed),
        "one_shot": [once],
    }


def _simulate_subjects(filter_: Filter, epsilon: str, seed: int) -> list[Odometer]:
    """Ask simulated people for new scores until the filter refuses one."""
    odometers = []
    for subject in range(SUBJECTS):
        generator = np.random.default_rng([seed, subject])
        value = VALUES.values[int(generator.integers(len(VALUES)))]
        source = InsecureSource(int(generator.integers(2**62)))
        session = Session(VALUES, value, filter=filter_, source=source)
        for query in _draw_scores(generator, epsilon):
            if not session.decide(query).accepted:
                break
            session.ask(query)
        odometers.append(session.odometer)
    return odometers


def _draw_scores(generator: np.random.Generator, epsilon: str) -> Iterator[Query]:
    """Draw scores from -1 to 1 that weigh the facts at random, with an intercept."""
    while True:
        weights = generator.uniform(-1, 1, len(FACTS) + 1)
        scores = (SIGNS @ weights[1:] + weights[0]) / np.abs(weights).sum()
        scores = scores.clip(-1, 1)  # rounding may lead outside
        yield perturbation(scores, range=(-1, 1), epsilon=epsilon)


def _measure(odometers: list[Odometer]) -> dict[str, float]:
    """Count the answers, and how often the best guess about a fact is right afterwards."""
    uniform = Belief.uniform(VALUES)
    holds = [uniform.updated(odometer.transcript).probabilities @ HOLDS for odometer in odometers]
    return {
        "answered": float(np.mean([len(odometer) for odometer in odometers])),
        "right": float(np.mean([np.maximum(share, 1 - share).mean() for share in holds])),
    }


def _describe_designs(measured: dict[str, dict[str, float]], odometer: Odometer) -> Iterator[str]:
    basic = basic_prefix(odometer, BUDGET)
    yield "2. Questions that were not known in advance"
    yield ""
    yield "A person smokes or not, drinks or not, exercises or not. One after the other,"
    yield "analysts query scores that weigh these facts differently, each with epsilon"
    yield f"{EPSILON}. The budget is {BUDGET}. For one simulated person:"
    yield ""
    yield f"Basic composition stops after {basic} responses."
    yield f"The Bayesian filter stops after {len(odometer)} responses."
    yield ""
    yield f"For {SUBJECTS} simulated subjects, with the same guarantee in each row. The last"
    yield "column is how often the best guess about a fact is right:"
    yield ""
    yield f"{'':<37}  answered  right about a fact"
    for name, label in LABELS.items():
        answered, right = measured[name].values()
        yield f"{label:<37}  {answered:>8.1f}  {100 * right:>16.1f} %"
    yield f"{'guessing':<37}  {0:>8.1f}  {50:>16.1f} %"
    yield ""
    yield "More responses do not always reveal more: under basic composition, one response"
    yield "at epsilon 2 is better than five at 0.4. The filter is better than both. But if"
    yield "you know in advance that you need the facts themselves, ask for them once. The"
    yield "filter is for questions that come up during the study. Repeating one yes/no"
    yield "question is never better than asking it once, at the full budget."

"""The pictures of docs/explanation/knowledge.md: ``python docs/figures/knowledge.py``."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import expost as xp
from expost._format import format_percent
from expost.report._chart import Chart, svg_file
from expost.report._figures import confidence_chart
from expost.report._palette import ALLOWED, BASIC, REALIZED

STATIC = Path(__file__).parent.parent / "_static"

AGES = xp.FiniteSet([{"age": age} for age in range(20, 90, 10)])
HOLDS = xp.knowledge.Belief.from_counts(AGES, [20, 19, 18, 14, 10, 8, 6])
OLD = xp.knowledge.Statement(AGES, "age >= 60")
SCORES = [[0, 1, 2, 3, 4, 5, 6], [0, 0, 6, 6, 0, 0, 0], [0, 0, 0, 0, 6, 6, 6]]
ASKED = [xp.perturbation(scores, range=(0, 6), epsilon="0.25") for scores in SCORES]
"""About age in three ways: the age itself, whether it is around 45, whether it is 60 or more."""
BUDGET = "2"
PEOPLE, QUERIES = 2000, 40
NARROW = 424
"""Pixels, of pictures for a phone."""


def allowed(before: str, epsilon: str) -> xp.numbers.Enclosure:
    return xp.knowledge.allowed_confidence(Fraction(before), xp.numbers.Nats(Fraction(epsilon)))


def scale_of(title: str, before: str, epsilon: str) -> tuple[str, Chart]:
    """What an epsilon allows someone who was so sure before."""
    ends = allowed(before, epsilon)
    return title, confidence_chart(float(before), None, ends.lower, ends.upper)


def by_confidence() -> str:
    """What an epsilon of 2 allows, from where one starts."""
    return svg_file(
        *(
            scale_of(f"someone who was {format_percent(float(before))} sure", before, "2")
            for before in ("0.01", "0.23", "0.5", "0.9")
        ),
        alt="Four scales from 0 to 100 %: what an epsilon of 2 allows, from where one starts.",
        width=NARROW,
    )


def by_epsilon() -> str:
    """What different epsilons allow someone who was 23 % sure."""
    return svg_file(
        *(scale_of(f"an epsilon of {e}", "0.23", e) for e in ("0.1", "0.5", "1", "2", "4")),
        alt="Five scales from 0 to 100 %: what epsilons allow someone who was 23 % sure.",
        width=NARROW,
    )


def afterwards() -> tuple[list[float], list[int]]:
    """How sure of a statement someone ends up, over many simulated people, and who it is about."""
    source = np.random.default_rng(5)
    chosen = source.choice(len(AGES), size=PEOPLE, p=HOLDS.probabilities)
    result, answered = [], []
    for number, place in enumerate(chosen):
        session = xp.Session(
            AGES,
            value=AGES.values[place],
            filter=xp.BayesianFilter(epsilon=BUDGET),
            source=xp.sampling.InsecureSource(number),
        )
        for query in itertools.islice(itertools.cycle(ASKED), QUERIES):
            if session.decide(query).accepted:
                session.ask(query)
        answered.append(len(session.transcript))
        result.append(float(xp.knowledge.confidence(HOLDS.updated(session.transcript), OLD)))
    return result, answered


def what_happens() -> Figure:
    """Where confidence really ends up, beside what the budget allows."""
    after, answered = afterwards()
    before = xp.knowledge.confidence(HOLDS, OLD)
    limits = xp.knowledge.allowed_confidence(before, xp.numbers.Nats(Fraction(BUDGET)))
    ends = limits.lower, limits.upper
    figure = Figure(figsize=(8, 4.1), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(*ends, color=ALLOWED, label="allowed by the budget")
    axes.hist(
        after, bins=np.linspace(*ends, 36).tolist(), color=REALIZED, label="after all answers"
    )
    axes.axvline(
        float(before), color=BASIC, linewidth=2.5, label=f"before: {format_percent(float(before))}"
    )
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("confidence that a person is 60 or older")
    axes.set_ylabel("people")
    asked = f"{min(answered)} to {max(answered)} queries each"
    axes.set_title(f"{PEOPLE:,} simulated people, a budget of {BUDGET}, {asked}")
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


if __name__ == "__main__":
    (STATIC / "epsilon_of_2.svg").write_text(by_confidence(), encoding="utf-8")
    (STATIC / "epsilons.svg").write_text(by_epsilon(), encoding="utf-8")
    what_happens().savefig(STATIC / "learned.png", dpi=110, metadata={"Software": None})

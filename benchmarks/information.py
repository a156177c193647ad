"""The information in answers at a given budget, and the count of accepted queries.

The paper's linear stream: x in [-1, 1]^9, random regressions θ₀ + θ·x with ‖θ‖₁ = 1, answered with
one bit each. A bit with Pr(1) = p, whose slope in the score is c = tanh(ε/2)/2, has the Fisher
information c²/(p(1 - p)) · θθᵀ about x. That of a whole transcript is the expected sum over what
was answered, also where a filter decides what is: the scores of the answers are a martingale. It
is taken at x = 0, the value of the paper's experiment. There the matrix, averaged over streams, is
a multiple of the identity, as no coordinate and no sign is preferred, so that its trace says all:
the least variance of an unbiased estimate from many such subjects is inversely proportional to it.

Compared at the same budget:

- the Bayesian filter, until it first refuses a query of the stream, at several ε per query;
- basic composition at the same ε, and at its best one: n queries of ε_g/n each, for the best n;
- a one-shot design, for those who know beforehand that it is the coordinates that they want: one
  coordinate, drawn at random, asked about once at the full budget. Its trace is tanh²(ε_g/2).

    python -m benchmarks.information docs/_static/information.png
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.report._palette import BASIC, GREY, PALE, REALIZED

BUDGETS = (1, 2, 4)
SHARES = (10, 5, 2)
"""Queries have ε_g/n, for these n."""
RUNS = 200
DRAWS = 20_000
"""Of regressions, for basic composition, which needs no answers to know when it stops."""
DIMENSION = 9

Thetas = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """Queries accepted in some runs, and the trace of the information in their answers."""

    accepted: Sequence[int]
    traces: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.accepted)

    @property
    def information(self) -> float:
        return statistics.fmean(self.traces)

    @property
    def error(self) -> float:
        """The standard error of the information."""
        return statistics.stdev(self.traces) / math.sqrt(len(self.traces))


def regressions(generator: np.random.Generator, count: int) -> Thetas:
    """Intercept and weights of random ones, a row each."""
    thetas = generator.uniform(-1, 1, (count, DIMENSION + 1))
    return np.asarray(thetas / np.abs(thetas).sum(axis=1, keepdims=True))


def query_of(theta: Thetas, epsilon: Fraction) -> xp.queries.Query:
    intercept, *weights = theta.tolist()
    return xp.linear(weights, intercept=intercept, range=(-1, 1), epsilon=epsilon)


def traces(thetas: Thetas, epsilon: Fraction) -> Thetas:
    """Compute the trace of the Fisher information at x = 0 in an answer to each regression."""
    slope = math.tanh(epsilon / 2) / 2
    p = 0.5 + slope * thetas[:, 0]
    return np.asarray(slope**2 / (p * (1 - p)) * (thetas[:, 1:] ** 2).sum(axis=1))


def subject(budget: int, share: int, index: int) -> tuple[int, float]:
    """Ask one subject at x = 0 until the filter refuses; return the answers and the information."""
    generator = np.random.default_rng([budget, share, index])
    source = xp.sampling.InsecureSource(int(generator.integers(2**62)))
    box, filter_ = xp.Box([(-1, 1)] * DIMENSION), xp.BayesianFilter(epsilon=budget)
    session = xp.Session(box, [0] * DIMENSION, filter=filter_, source=source)
    epsilon, information = Fraction(budget, share), 0.0
    while True:
        thetas = regressions(generator, 1)
        query = query_of(thetas[0], epsilon)
        if not session.decide(query).accepted:
            return len(session.transcript), information
        session.ask(query)
        information += traces(thetas, epsilon).item()


def filtered(budget: int, share: int, runs: int = RUNS, workers: int = 1) -> Measured:
    """Measure subjects under the Bayesian filter, at ε_g/share per query."""
    arguments = repeat(budget, runs), repeat(share, runs), range(runs)
    if workers == 1:
        outcomes = list(map(subject, *arguments))
    else:
        with ProcessPoolExecutor(workers) as pool:
            outcomes = list(pool.map(subject, *arguments))
    accepted, information = zip(*outcomes, strict=True)
    return Measured(accepted, information)


def basic(budget: int, count: int, draws: int = DRAWS) -> Measured:
    """Measure this many queries of the stream, at an equal part of the budget each."""
    # All answers have the same information on average, so one of them is drawn many times.
    thetas = regressions(np.random.default_rng([budget, count]), draws)
    information = count * traces(thetas, Fraction(budget, count))
    return Measured([count] * draws, information.tolist())


def basic_at_best(budget: int, draws: int = DRAWS) -> Measured:
    """Measure basic composition with the most informative count of queries."""
    return max(
        (basic(budget, n, draws) for n in range(1, 9)), key=lambda measured: measured.information
    )


def one_shot(budget: int) -> float:
    """Return the information in one random coordinate at the full budget."""
    return math.tanh(budget / 2) ** 2


def run(picture: str | None = None) -> bool:
    """Print the table, and draw the first share. There is no limit to miss."""
    print("The paper's linear stream: accepted queries (medians), and the trace of the Fisher")
    print(f"information at the centre of the box (means of {RUNS} runs ± standard error).")
    print("| budget | ε | accepted: basic | filter | information: basic, same ε | filter", end="")
    print(" | × basic, same ε | × basic at its best | × one-shot |")
    print("|---|---|---|---|---|---|---|---|---|")
    compared = []
    for budget in BUDGETS:
        best, shot = basic_at_best(budget), one_shot(budget)
        for share in SHARES:
            same, filtered_subjects = (
                basic(budget, share),
                filtered(budget, share, workers=os.cpu_count() or 1),
            )
            times = filtered_subjects.information / same.information
            error, mean = filtered_subjects.error, filtered_subjects.information
            print(
                f"| {budget} | {budget / share:g} | {share} | {filtered_subjects.median:g} "
                f"| {same.information:.4f} | {mean:.4f} ± {error:.4f} | {times:.1f} "
                f"| {mean / best.information:.2f} ± {error / best.information:.2f} "
                f"| {mean / shot:.2f} |",
                flush=True,
            )
            if share == SHARES[0]:
                compared.append((same, best, filtered_subjects, Measured([1], [shot])))
        print(
            f"  budget {budget}: basic at its best asks {best.median:g} at ε = "
            f"{budget / best.median:g} and tells {best.information:.4f} ± {best.error:.4f}; "
            f"one random coordinate, once, tells {shot:.4f}"
        )
    if picture is not None:
        draw(compared, picture)
    return True


def draw(compared: Sequence[Sequence[Measured]], path: str) -> None:
    """Draw the information of four designs per budget, as a multiple of basic composition's."""
    from matplotlib.figure import Figure

    designs = (
        ("basic composition, ε = budget/10", PALE),
        ("basic composition at its best ε", BASIC),
        ("Bayesian filter, ε = budget/10", REALIZED),
        ("one random coordinate, asked once", GREY),
    )
    figure = Figure(figsize=(7, 3.9), layout="constrained")
    axes = figure.subplots()
    for design_index, (label, color) in enumerate(designs):
        positions = [
            budget_index + 0.2 * (design_index - 1.5) for budget_index in range(len(compared))
        ]
        heights = [
            measured[design_index].information / measured[1].information for measured in compared
        ]
        bars = axes.bar(positions, heights, 0.18, color=color, label=label)
        axes.bar_label(bars, fmt="{:.2g}", fontsize=9, padding=2)
    axes.set_xticks(range(len(compared)), [f"budget {budget}" for budget in BUDGETS])
    axes.tick_params(axis="x", length=0)
    axes.margins(y=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("information, in multiples of basic composition at its best", fontsize=11)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    run(*sys.argv[1:])

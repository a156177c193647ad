"""Questions on a box, asked on after the budget is used up: how long each takes, refused or not.

Streams of random regressions over [-1, 1]^d, smooth logistic ones and linear ones, are put to a
session. Nobody who waits for an answer is told by the clock whether it will be a refusal if both
take about as long. What would fit instead is worked out only if it is asked for, and timed apart.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import expost as xp
from benchmarks.cases import QUICK
from benchmarks.timing import once, timed
from expost.sampling import InsecureSource

__all__ = ["run"]

ASKED = 200
BUDGETS = (1, 2, 4)
SECONDS = 0.25  # the 99th percentile
TIMES_MEDIAN = 10.0
PATIENCE = 30.0  # seconds for a stream; one that takes longer is broken off, and said to be


@dataclass(frozen=True)
class Stream:
    """Regressions of one kind, each with the same epsilon."""

    link: str
    d: int
    epsilon: str

    def __str__(self) -> str:
        return f"{self.link}, d = {self.d}, ε = {self.epsilon}"

    def queries(self, seed: int) -> Iterator[xp.queries.Query]:
        generator = np.random.default_rng([seed, self.d])
        kind = xp.logistic if self.link == "logistic" else xp.linear
        for _ in range(ASKED):
            intercept, *weights = generator.uniform(-1, 1, self.d + 1).tolist()
            yield kind(weights, intercept=intercept, epsilon=self.epsilon)


@dataclass(frozen=True)
class Asked:
    """One question, and what became of it."""

    seconds: float
    refused: bool
    undecided: bool = False


def run() -> bool:
    """Whether every stream keeps both limits."""
    streams = [Stream("linear", 9, "0.1"), Stream("linear", 30, "0.1"), Stream("linear", 30, "0.5")]
    streams += [Stream("logistic", 9, "0.1"), Stream("logistic", 30, "0.1")]
    print(f"{ASKED} questions on a budget of {BUDGETS}: 99th percentile against {SECONDS:g} s,")
    print(f"and against {TIMES_MEDIAN:g} medians")
    print(
        f"  {'':<26}{'median':>9}{'99 %':>9}{'worst':>9}{'limit':>8}{'medians':>9}"
        f"{'refused':>9}{'undecided':>11}{'what fits':>11}{'broken off':>12}"
    )
    _ask_all(streams[0], 0, 1)  # so that nothing is compiled or read from the disk later
    kept = [_row(stream) for stream in streams]
    return all(kept)


def _row(stream: Stream) -> bool:
    asked: list[Asked] = []
    fitting: list[float] = []
    broken_off = 0
    for budget in BUDGETS[: 1 if QUICK else None]:
        for seed in range(1, 2 if QUICK else 4):
            found, seconds = _ask_all(stream, seed, budget)
            asked += found
            fitting += seconds
            broken_off += len(found) < ASKED
    seconds = [one.seconds for one in asked]
    middle, high = statistics.median(seconds), float(np.quantile(seconds, 0.99))
    ratios = high / SECONDS, high / middle / TIMES_MEDIAN
    refused, undecided = (
        statistics.mean(getattr(one, name) for one in asked) for name in ("refused", "undecided")
    )
    times = "".join(f"{1000 * time:>6.1f} ms" for time in (middle, high, max(seconds)))
    fits = f"{1000 * max(fitting):>8.0f} ms" if fitting else f"{'':>11}"
    print(
        f"  {stream!s:<26}{times}{ratios[0]:>6.2f} ×{ratios[1]:>7.2f} ×"
        f"{refused:>9.0%}{undecided:>11.1%}{fits}{broken_off:>12}",
        flush=True,
    )
    return max(ratios) <= 1 and not broken_off


def _ask_all(stream: Stream, seed: int, budget: int) -> tuple[list[Asked], list[float]]:
    """What became of every question, and the seconds to know what would fit after the last one."""
    generator = np.random.default_rng([seed, budget])
    session = xp.Session(
        xp.Box([(-1, 1)] * stream.d),
        generator.uniform(-1, 1, stream.d).tolist(),
        filter=xp.BayesianFilter(epsilon=budget),
        source=InsecureSource(seed),
    )
    asked, refusal = [], None
    for query in stream.queries(seed):
        answer, seconds = timed(partial(_ask, session, query))
        refusal = answer or refusal
        asked.append(Asked(seconds, answer is not None, answer is not None and answer.undecided))
        if sum(one.seconds for one in asked) > PATIENCE:
            break
    return asked, [once(lambda: refusal.fits)] if refusal else []


def _ask(session: xp.Session, query: xp.queries.Query) -> xp.BudgetExceeded | None:
    try:
        session.ask(query)
    except xp.BudgetExceeded as refusal:
        return refusal
    return None

"""The effect of a filter on estimates of a group: a table and a figure.

Every subject has a score of 0, 1/2 or 1 and is asked the same one-bit query again and again, until
a filter refuses. Those who go on are no random part of the group, so that means go astray. What
the means come to for very many subjects is worked out exactly, response by response; the
likeliest distribution is simulated:

    python -m benchmarks.filtered_means docs/_static/filtered_means.png
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.report._palette import GREEN, INK, OCHRE, PURPLE, REALIZED

SCORES = np.array([0.0, 0.5, 1.0])
DOMAIN = xp.FiniteSet(range(3))
QUERY = xp.perturbation(SCORES, epsilon="0.5")
CASES = ((2, 20, (0.0, 0.5, 0.5)), (4, 80, (0.05, 0.35, 0.6)))
"""Budgets, rounds, and the shares of the scores."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Shares = tuple[float, ...]


@dataclass(frozen=True)
class Means:
    """What estimates of the mean come to for very many subjects, after some rounds."""

    last_round: float
    """It is also the true mean of those who are left."""
    pooled: float
    per_subject: float


def _chances() -> Floats:
    """Return the probability of the high response for each score."""
    likelihood = QUERY.on(DOMAIN)
    return np.array([float(likelihood.pmf(x).probability(1)) for x in range(len(SCORES))])


def accepted(budget: int, rounds: int) -> Flags:
    """Return whether the filter accepts the query, by the counts of high and low responses."""
    filter_ = xp.BayesianFilter(epsilon=budget)
    result = np.zeros((rounds + 1, rounds + 1), dtype=np.bool_)
    after_highs = xp.Odometer(xp.Transcript(DOMAIN))
    for high in range(rounds):
        odometer = after_highs
        for low in range(rounds - high):
            result[high, low] = bool(filter_.decide(odometer, QUERY))
            odometer = odometer.add(QUERY, 0)
        after_highs = after_highs.add(QUERY, 1)
    return result


def expected(budget: int, rounds: int, shares: Shares) -> list[Means]:
    """Compute the means after every round from the probability of every count of responses."""
    accepts, chances = accepted(budget, rounds), _chances()[:, None, None]
    low, high = (float(QUERY.meaning(DOMAIN).estimate(end)) for end in (0, 1))
    counts = np.arange(rounds + 1)
    answer_counts = np.maximum(1, counts[:, None] + counts)
    subjects = np.zeros((3, rounds + 1, rounds + 1))
    subjects[:, 0, 0] = shares
    result, answers, highs = [], 0.0, 0.0
    for _ in range(rounds):
        going = subjects * accepts
        up = going * chances
        subjects = subjects - going
        subjects[:, 1:, :] += up[:, :-1, :]
        subjects[:, :, 1:] += (going - up)[:, :, :-1]
        answers, highs = answers + going.sum(), highs + up.sum()
        of_each = float((subjects.sum(axis=0) * counts[:, None] / answer_counts).sum())
        shares_of_high = (float(up.sum() / going.sum()), float(highs / answers), of_each)
        result.append(Means(*(low + (high - low) * share for share in shares_of_high)))
    return result


def simulate(
    budget: int, rounds: int, shares: Shares, subjects: int, seed: int
) -> tuple[Flags, Flags]:
    """Simulate which subjects were asked, and which answered high, with a row per round."""
    generator = np.random.default_rng(seed)
    chances = _chances()[generator.choice(3, subjects, p=shares)]
    accepts = accepted(budget, rounds)
    highs, lows = np.zeros((2, subjects), dtype=np.int64)
    answered, high = np.zeros((2, rounds, subjects), dtype=np.bool_)
    for r in range(rounds):
        answered[r] = accepts[highs, lows]
        high[r] = answered[r] & (generator.random(subjects) < chances)
        highs += high[r]
        lows += answered[r] & ~high[r]
    return answered, high


def estimate(answered: Flags, high: Flags) -> xp.estimation.Distribution:
    """Estimate the distribution by maximum likelihood."""
    round_, subject = np.nonzero(answered)
    table = {
        "subject": subject,
        "query": ["q"] * len(subject),
        "response": high[round_, subject].astype(np.int64),
    }
    return xp.estimation.estimate_distribution(xp.Answers(DOMAIN, {"q": QUERY}, table))


def table(subjects: int = 20_000, runs: int = 5) -> None:
    print("| budget, rounds | truth | last round | pooled | per subject | likeliest | bound |")
    print("|---|---|---|---|---|---|---|")
    for budget, rounds, shares in CASES:
        means = expected(budget, rounds, shares)[-1]
        means_of_runs = [
            estimate(*simulate(budget, rounds, shares, subjects, seed)).mean(SCORES)
            for seed in range(runs)
        ]
        error = np.std(means_of_runs, ddof=1) / math.sqrt(runs)
        naive = f"{means.last_round:.3f} | {means.pooled:.3f} | {means.per_subject:.3f}"
        simulated = f"{np.mean(means_of_runs):.4f} ± {error:.4f}"
        bound = f"± {math.tanh(budget / 4):.3f}"
        print(f"| {budget}, {rounds} | {SCORES @ shares:.3f} | {naive} | {simulated} | {bound} |")


def draw(path: str, subjects: int = 20_000) -> None:
    from matplotlib.figure import Figure

    budget, rounds, shares = CASES[1]
    means = expected(budget, rounds, shares)
    answered, high = simulate(budget, rounds, shares, subjects, seed=1)
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(float(SCORES @ shares), color=INK, linewidth=1.2, linestyle="--", label="truth")
    for name, label, color, line in (
        ("per_subject", "a mean per subject, averaged", OCHRE, "-."),
        ("pooled", "all responses so far", GREEN, ":"),
        ("last_round", "the responses of the round", PURPLE, "-"),
    ):
        values = [getattr(mean_of_round, name) for mean_of_round in means]
        axes.plot(range(1, rounds + 1), values, line, color=color, linewidth=2, label=label)
    at = [2, *range(5, rounds + 1, 5)]
    distributions = [estimate(answered[:r], high[:r]) for r in at]
    errors = [
        2 * distribution.intervals(SCORES, repetitions=50).standard_error[0]
        for distribution in distributions
    ]
    axes.errorbar(
        at, [distribution.mean(SCORES) for distribution in distributions], errors,
        color=REALIZED, fmt="o", markersize=5, linewidth=1.2, capsize=2,
        label=f"likeliest distribution, {subjects:,} subjects",
    )  # fmt: skip
    axes.set_xlabel("rounds")
    axes.set_ylabel("estimated mean of the score")
    axes.set_xlim(0, rounds + 1)
    axes.set_ylim(0.5, 0.95)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    figure.savefig(path, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    table()
    for path in sys.argv[1:]:
        draw(path)

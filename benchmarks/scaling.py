"""Certified losses on boxes: longer transcripts, and decisions at the limit."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

import expost as xp
from benchmarks.instances import Instance, draw, replay
from benchmarks.solver_cases import QUICK
from benchmarks.timing import once, timed

UNDECIDED_LIMIT = 0.01


def run() -> bool:
    return all([_transcripts(), _decisions()])


def _transcripts() -> bool:
    """Whether linear transcripts, which are the easy ones, always reach the gap."""
    steep = partial(draw, "steep", "logistic", d=9, scale=10)
    smooth = partial(draw, "smooth", "logistic", d=9, scale=1)
    linear = partial(draw, "linear", "linear", d=20, scale=10)
    rows = [(steep, 10, 12), (steep, 20, 12), (steep, 30, 12), (steep, 40, 8)]
    rows += [(smooth, 20, 12), (smooth, 40, 12), (linear, 50, 5)]
    print("certified losses to a gap of 0.01, times as multiples of the first row")
    print(f"  {'':<22}{'median':>10}{'worst':>10}{'missed':>10}{'largest gap':>14}")
    base, reached = 0.0, True
    for family, n, seeds in rows:
        if QUICK and n == 40:
            continue
        instances = [family(n=n, seed=seed) for seed in range(1, seeds + 1)]
        losses = [
            xp.realized_loss(instance.transcript(), gap=instance.gap) for instance in instances
        ]
        times = [_seconds(instance) for instance in instances]
        base = base or statistics.median(times)
        gaps = [loss.upper - loss.lower for loss in losses]
        missed = sum(
            gap > instance.gap + 1e-9 for gap, instance in zip(gaps, instances, strict=True)
        )
        reached &= family is not linear or not missed
        label = f"{instances[0].family}, d = {len(instances[0].lower)}, n = {n}"
        print(
            f"  {label:<22}{statistics.median(times) / base:>8.1f} ×{max(times) / base:>8.1f} ×"
            f"{f'{missed} of {seeds}':>10}{max(gaps):>14.4f}",
            flush=True,
        )
    return reached


def _seconds(instance: Instance) -> float:
    exchanges = instance.exchanges()
    solve = partial(xp.realized_loss, gap=instance.gap)
    first = once(partial(solve, replay(exchanges)))
    return min([first, *(once(partial(solve, replay(exchanges))) for _ in range(5) if first < 0.1)])


def _decisions() -> bool:
    """Budgets within 0.02 of the loss that one more query can reach."""
    decisions: list[xp.filters.Decision] = []
    solving, deciding = [], []
    for seed in range(1, 5 if QUICK else 21):
        longer = draw("smooth", "logistic", n=41, d=9, scale=1, seed=seed)
        query = longer.questions[-1].query()
        transcript = longer.first(40).transcript()
        after = [transcript.add(query, response) for response in (0, 1)]
        losses, seconds = timed(partial(_losses, after))
        solving.append(seconds)
        limit = max((loss.lower + loss.upper) / 2 for loss in losses)
        for offset in np.random.default_rng(seed).uniform(-0.02, 0.02, 10):
            filter_ = xp.BayesianFilter(epsilon=f"{limit + offset:.9f}")
            odometer = xp.Odometer(transcript)
            decision, seconds = timed(partial(filter_.decide, odometer, query))
            decisions.append(decision)
            deciding.append(seconds)
    share = statistics.mean(decision.undecided for decision in decisions)
    accepted = statistics.mean(decision.accepted for decision in decisions)
    cost = statistics.mean(deciding) / statistics.mean(solving)
    print("decisions within 0.02 of the limit after 40 smooth logistic queries, d = 9")
    print(f"  undecided {share:.1%} of {len(decisions)} (limit {UNDECIDED_LIMIT:.0%}), ", end="")
    print(f"accepted {accepted:.0%}; one takes {cost:.2f} × the two losses that it is about")
    return share <= UNDECIDED_LIMIT


def _losses(transcripts: list[xp.Transcript]) -> list[xp.numbers.Enclosure]:
    return [xp.realized_loss(transcript, gap=0.01) for transcript in transcripts]

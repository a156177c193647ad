"""The paper's solver compared with ours: nodes and time to an equal gap, on few queries.

Its δ = 0.01 is for either side, so ours is asked for a gap of 0.02. Its times are those of a plain
program in Python that solves ten or twenty linear programs per node; nodes are the fairer measure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from examples.paper.health import PRINTED_LOSSES

import expost as xp
from benchmarks.instances import Instance, draw, health_table, replay
from benchmarks.peers.paper import DELTA, Found, branch_and_bound
from benchmarks.ratios import Ratio, median
from benchmarks.solver_cases import QUICK
from benchmarks.timing import best
from expost.loss._on_box import BoxLogLikelihood
from expost.solver import BoxSpread, Effort

__all__ = ["Comparison", "compare", "run"]

# Seconds for each of the two sides of a loss.
PATIENCE = 1.0 if QUICK else 6.0
SEEDS = (1,) if QUICK else (1, 2)
ROUNDING = 1e-9
LOOSE = (0.06, 0.07)


@dataclass(frozen=True)
class Comparison:
    """Two enclosures of one loss, and what each of them took."""

    label: str
    theirs: tuple[Found, Found]
    ours: xp.numbers.Enclosure
    our_nodes: int
    our_seconds: float

    @property
    def their_loss(self) -> xp.numbers.Enclosure:
        high, low = self.theirs
        return xp.numbers.Enclosure(-high.value - low.value, -high.bound - low.bound)

    @property
    def finished(self) -> bool:
        return all(side.finished for side in self.theirs)

    @property
    def nodes(self) -> Ratio:
        """How many times as many nodes they need."""
        theirs = sum(side.nodes for side in self.theirs)
        return Ratio(theirs / max(1, self.our_nodes), not self.finished)

    @property
    def seconds(self) -> Ratio:
        return Ratio(
            sum(side.seconds for side in self.theirs) / self.our_seconds, not self.finished
        )

    @property
    def contradiction(self) -> str:
        """What is wrong if one of the two proves a loss that the other one excludes."""
        theirs, ours = self.their_loss, self.ours
        if max(theirs.lower, ours.lower) <= min(theirs.upper, ours.upper) + ROUNDING:
            return ""
        return f"theirs {theirs.lower:.6f} to {theirs.upper:.6f}, ours {ours}"


def compare(
    label: str, instance: Instance, *, delta: float = DELTA, seconds: float = math.inf
) -> Comparison:
    """Both on one instance, all of whose coordinates are taken as real: the paper has no others."""
    instance = _real(instance)
    high, low = (branch_and_bound(instance, s, delta=delta, seconds=seconds) for s in (1, -1))
    exchanges = instance.exchanges()
    solve = partial(xp.realized_loss, gap=2 * delta)
    loss = solve(replay(exchanges))
    seconds = best(lambda: solve(replay(exchanges)), runs=5)
    return Comparison(label, (high, low), loss, _our_nodes(instance, 2 * delta), seconds)


def _real(instance: Instance) -> Instance:
    return replace(instance, integer=np.zeros_like(instance.integer))


def _our_nodes(instance: Instance, gap: float) -> int:
    # ``progress`` speaks up every few hundred nodes only; here there are often fewer.
    transcript = instance.transcript()
    box = instance.box
    search = BoxSpread(BoxLogLikelihood.of(box, transcript.exchanges).terms, box)
    search.narrow(Effort(gap=gap))
    return search.nodes


def run() -> bool:
    print("\nthe paper's own solver: how many times as many nodes, and how many times as long")
    compared = []
    for label, instance in _cases():
        compared.append(compare(label, instance, seconds=PATIENCE))
        print(f"  {label:<24} nodes {compared[-1].nodes}, time {compared[-1].seconds}", flush=True)
    health = [compare("health table", instance) for instance in health_table()]
    _summarize([*compared, *health])
    _print_health(health)
    contradictions = [comparison for comparison in [*compared, *health] if comparison.contradiction]
    for comparison in contradictions:
        print(f"    CONTRADICTION, {comparison.label}: {comparison.contradiction}")
    return not contradictions


def _cases() -> Iterable[tuple[str, Instance]]:
    steep = partial(draw, "steep", "logistic", scale=10)
    smooth = partial(draw, "smooth", "logistic", scale=1)
    linear = partial(draw, "linear", "linear", scale=10)
    families = [
        *((steep, n, 9) for n in (1, 2, 4, 10)),
        *((steep, n, 2) for n in (2, 4, 10)),
        *((smooth, n, 9) for n in (2, 3, 10)),
        *((linear, n, 9) for n in (10, 20)),
    ]
    for family, n, d in families:
        for seed in SEEDS:
            instance = family(n=n, d=d, seed=seed)
            yield f"{instance.family}, d = {d}, n = {n}", instance


def _summarize(compared: list[Comparison]) -> None:
    print(f"  {'medians':<24}{'their nodes':>12}{'ours':>7}{'nodes':>12}{'time':>14}  finished")
    for label in dict.fromkeys(comparison.label for comparison in compared):
        same = [comparison for comparison in compared if comparison.label == label]
        theirs = np.median([sum(side.nodes for side in comparison.theirs) for comparison in same])
        ours = np.median([comparison.our_nodes for comparison in same])
        nodes, seconds = (
            median([comparison.nodes for comparison in same]),
            median([comparison.seconds for comparison in same]),
        )
        done = sum(comparison.finished for comparison in same)
        widest = max(comparison.their_loss.upper - comparison.ours.lower for comparison in same)
        print(
            f"  {label:<24}{theirs:>12,.0f}{ours:>7,.0f}{nodes!s:>12}{seconds!s:>14}"
            f"  {done} of {len(same)}, at most {widest:.2f} above"
        )


def _print_health(health: list[Comparison]) -> None:
    """Print by how much the bounds of the health table exceed the loss."""
    table = [_real(instance) for instance in health_table()]
    # There hours of sleep are 0 or 12.
    printed = np.array(
        [
            PRINTED_LOSSES[*comparison.responses[:3], 12 * comparison.responses[3]]
            for comparison in table
        ]
    )
    certain = np.array(
        [xp.realized_loss(comparison.transcript(), gap=0.001).lower for comparison in table]
    )
    bounds = {
        "printed": printed,
        f"δ = {DELTA}": np.array([comparison.their_loss.upper for comparison in health]),
    }
    for delta in () if QUICK else LOOSE:
        bounds[f"δ = {delta}"] = np.array([_upper(comparison, delta) for comparison in table])
    # The loop of the print ends at once: it returns the bounds without any branching.
    bounds["not branched"] = np.array([_upper(comparison, math.inf) for comparison in table])
    for name, upper in bounds.items():
        above, off = upper - certain, abs(upper - printed)
        print(
            f"  health, {name:<14}{above.min():>8.3f} to {above.max():.3f} above the loss,"
            f" {off.min():.3f} to {off.max():.3f} off the print"
        )


def _upper(instance: Instance, delta: float) -> float:
    return -math.fsum(branch_and_bound(instance, s, delta=delta).bound for s in (1, -1))

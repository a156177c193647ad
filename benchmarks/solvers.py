"""Certified losses on boxes, compared with general solvers on one thread at equal tolerance.

Gurobi and SCIP are given the better of two formulations, with tight bounds on all variables, and
only their search is timed, not the building of a model; ours is timed on queries that were used
before, and once more from the text of a file to the loss. SciPy's searches certify nothing; they
show what that costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import expost as xp
from benchmarks import solvers_plot
from benchmarks.instances import Instance, replay
from benchmarks.peers import gurobi, scip
from benchmarks.peers.answer import Answer, ask
from benchmarks.peers.uncertified import SEARCHES, search
from benchmarks.ratios import Ratio, median
from benchmarks.solver_cases import QUICK, Case, cases
from benchmarks.timing import once

# Seconds for each of the two sides of a loss.
PATIENCE = {"Gurobi": 4.0, "SCIP": 2.0} if QUICK else {"Gurobi": 30.0, "SCIP": 15.0}
# By how much peers may break a constraint, by their own account, and what doubles lose.
FEASIBILITY = 1e-6
ROUNDING = 1e-9
RUNS, ENOUGH = 7, 1.0


@dataclass(frozen=True)
class Outcome:
    """Everybody's answer to one instance."""

    case: Case
    instance: Instance
    loss: xp.numbers.Enclosure
    seconds: float
    from_file: float
    peers: dict[str, Answer] = field(default_factory=dict)
    searches: dict[str, Answer] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        return self.loss.upper - self.loss.lower <= self.instance.gap + ROUNDING

    def ratio(self, peer: str) -> Ratio:
        """Return how many times slower a peer is; 0 if our search failed."""
        if not self.reached:
            return Ratio(0.0)
        answer = self.peers[peer]
        return Ratio(answer.seconds / self.seconds, not answer.finished)

    def ratio_from_file(self, peer: str) -> Ratio:
        """Return the ratio if we read a file, and the peer only searches."""
        ratio = self.ratio(peer)
        return Ratio(ratio.value * self.seconds / self.from_file, ratio.at_least)

    @property
    def proven(self) -> float:
        """The largest loss that two points in the box prove."""
        answers = (*self.peers.values(), *self.searches.values())
        return max([self.loss.lower, *(answer.proven for answer in answers)])

    def contradictions(self) -> list[str]:
        found = []
        if self.loss.upper < self.proven - ROUNDING:
            found.append(f"ours: {self.loss.upper:.6f} is below a proven {self.proven:.6f}")
        allowance = 2 * len(self.instance) * FEASIBILITY
        for name, answer in self.peers.items():
            if answer.bound < self.proven - allowance:
                found.append(f"{name}: {answer.bound:.6f} is below a proven {self.proven:.6f}")
        return found


def run() -> bool:
    print("certified losses beside general solvers: how many times slower they are")
    outcomes = [outcome for case in cases() for outcome in _compare(case)]
    _summarize(outcomes)
    solvers_plot.save(
        {
            peer: [
                (outcome.case.label, outcome.ratio(peer))
                for outcome in outcomes
                if peer in outcome.peers and outcome.reached
            ]
            for peer in PATIENCE
        }
    )
    sound = not any("ours" in line for outcome in outcomes for line in outcome.contradictions())
    return _targets(outcomes) and sound


def _compare(case: Case) -> list[Outcome]:
    outcomes = []
    for index, instance in enumerate(case.instances):
        outcome = _ours(case, instance)
        if index < case.for_gurobi:
            outcome.peers["Gurobi"] = ask(instance, gurobi.solve, gurobi.FORMS, PATIENCE["Gurobi"])
        if index < case.for_scip:
            outcome.peers["SCIP"] = ask(instance, scip.solve, scip.FORMS, PATIENCE["SCIP"])
        if index == 0:
            outcome.searches.update({name: search(instance, name) for name in SEARCHES})
        outcomes.append(outcome)
        print(f"  {case.label:<24} {_line(outcome)}", flush=True)
        for contradiction in outcome.contradictions():
            print(f"    CONTRADICTION, {contradiction}", flush=True)
    return outcomes


def _ours(case: Case, instance: Instance) -> Outcome:
    solve = partial(xp.realized_loss, gap=instance.gap)
    exchanges = instance.exchanges()
    loss = solve(replay(exchanges))
    times: list[float] = []
    while len(times) < RUNS and sum(times) < ENOUGH:
        # The queries are ready, as the peers' models are, but each time in a new transcript.
        times.append(once(partial(solve, replay(exchanges))))
    document = replay(exchanges).to_json()
    from_file: list[float] = []
    while len(from_file) < RUNS and sum(from_file) < ENOUGH:
        from_file.append(once(lambda: solve(xp.Transcript.from_json(document))))
    return Outcome(case, instance, loss, min(times), min(from_file))


def _line(outcome: Outcome) -> str:
    parts = [
        f"loss {outcome.loss.upper:.4f}",
        f"from the file {outcome.from_file / outcome.seconds:.1f} ×",
    ]
    for name, answer in outcome.peers.items():
        gap = "" if answer.finished else f", gap {answer.bound - outcome.proven:.2g}"
        parts.append(f"{name} {outcome.ratio(name)} ({answer.form}{gap})")
    if not outcome.reached:
        parts.append(f"OURS STOPPED at gap {outcome.loss.upper - outcome.loss.lower:.2g}")
    return "; ".join(parts)


def _summarize(outcomes: list[Outcome]) -> None:
    print(f"\n  {'medians':<24}{'ours':>12}{'Gurobi':>14}{'SCIP':>14}   SciPy, uncertified")
    for label in dict.fromkeys(outcome.case.label for outcome in outcomes):
        of_case = [outcome for outcome in outcomes if outcome.case.label == label]
        ours = median([Ratio(outcome.seconds) for outcome in of_case]).value
        row = f"  {label:<24}{1000 * ours:>9.2f} ms"
        for peer in PATIENCE:
            ratios = [outcome.ratio(peer) for outcome in of_case if peer in outcome.peers]
            row += f"{median(ratios)!s:>14}" if ratios else f"{'':>14}"
        print(f"{row}   {_searches(of_case[0])}")


def _searches(outcome: Outcome) -> str:
    shown = []
    for name, answer in outcome.searches.items():
        short = outcome.proven - answer.proven
        verdict = f"WRONG by {short:.3f}" if short > outcome.instance.gap else "right"
        shown.append(f"{name} {Ratio(answer.seconds / outcome.seconds)} {verdict}")
    return ", ".join(shown)


def _targets(outcomes: list[Outcome]) -> bool:
    steep = [
        outcome
        for outcome in outcomes
        if outcome.instance.family == "steep"
        and len(outcome.instance) in range(10, 26)
        and "Gurobi" in outcome.peers
    ]
    finished = [
        outcome.ratio("SCIP")
        for outcome in outcomes
        if "SCIP" in outcome.peers and outcome.peers["SCIP"].finished
    ]
    health = [outcome for outcome in outcomes if outcome.instance.family == "health"]
    targets = [
        (
            "Gurobi, median of steep n = 10 to 25",
            median([outcome.ratio("Gurobi") for outcome in steep]),
            100,
        ),
        (
            "the same, ours from file to loss",
            median([outcome.ratio_from_file("Gurobi") for outcome in steep]),
            200,
        ),
        ("SCIP, least where it finishes", min(finished, default=Ratio(math.inf)), 100),
        ("Gurobi, the whole health table", _together(health, "Gurobi"), 40),
    ]
    print()
    for name, ratio, limit in targets:
        verdict = "pass" if ratio.value >= limit else "FAIL"
        print(f"  {verdict}  {name:<38}{ratio!s:>12}   (target {limit} ×)")
    return all(ratio.value >= limit for _, ratio, limit in targets)


def _together(outcomes: list[Outcome], peer: str) -> Ratio:
    if not all(outcome.reached for outcome in outcomes):
        return Ratio(0.0)
    theirs = sum(outcome.peers[peer].seconds for outcome in outcomes)
    stopped = not all(outcome.peers[peer].finished for outcome in outcomes)
    return Ratio(theirs / sum(outcome.seconds for outcome in outcomes), stopped)

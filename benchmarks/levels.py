"""Decisions at a level of protection, compared with decisions about the person as a whole.

One subject who was asked at 520 steps, about an attribute that changes, alone and tied to one that
does not; and a panel that is asked two questions at each of 52 steps.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable

import expost as xp
from expost.errors import LargeBudgetWarning
from expost.filters import EVERYTHING, Level, PureFilter
from expost.queries import Query

STEPS, ROUNDS, SUBJECTS, WEEKS = 520, 9, 20_000, 52
ONE, MANY = 3.0, 2.0
DOMAIN = xp.Attributes(
    region=["north", "south"], smokes=xp.changing(["no", "yes"]), pain=xp.changing([0, 1])
)
COIN = xp.randomized_response(epsilon="0.25")
LEVELS: dict[str, Level] = {
    "one step": xp.steps(1),
    "four steps": xp.steps(4),
    "one attribute": xp.attributes(1),
}


def run() -> bool:
    print("levels of protection; × decisions about the person as a whole")
    within_limits = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeBudgetWarning)
        for name, ask in (("alone", _alone), ("tied to a constant", _tied)):
            whole = one_subject(EVERYTHING, ask)
            ratios = {level: one_subject(LEVELS[level], ask) / whole for level in LEVELS}
            within_limits &= ratios["one step"] <= ONE
            print(f"  {STEPS} steps, {name}: {1e3 * whole:.2f} ms; {_list(ratios)} (limit {ONE:g})")
        for kind in (xp.BayesianFilter, xp.SimplifiedFilter, xp.BasicFilter):
            whole = many_subjects(kind, EVERYTHING)
            ratios = {level: many_subjects(kind, LEVELS[level]) / whole for level in LEVELS}
            within_limits &= ratios["one step"] <= MANY
            print(f"  panel, {kind.kind}: {whole:.2f} s; {_list(ratios)} (limit {MANY:g})")
    return within_limits


def _list(ratios: dict[str, float]) -> str:
    return ", ".join(f"{level} {ratio:.2f} ×" for level, ratio in ratios.items())


def _alone(step: int) -> Query:
    return COIN.about("smokes", at=step)


def _tied(step: int) -> Query:
    return COIN.about("region", "smokes", at=step)


def one_subject(level: Level, ask: Callable[[int], Query]) -> float:
    """Measure the median seconds of a decision and of recording the response."""
    filter_ = xp.BayesianFilter(epsilon=1000, protects=level)
    odometer = xp.Odometer(xp.Transcript(DOMAIN, filter_))
    for step in range(1, STEPS + 1):
        odometer = odometer.add_position(ask(step), step % 2)
    filter_.decide(odometer, ask(STEPS + 1))
    seconds = []
    for step in range(STEPS + 1, STEPS + 1 + ROUNDS):
        start = time.process_time()
        filter_.decide(odometer, ask(step))
        odometer = odometer.add_position(ask(step), 0)
        odometer.at_level(level).loss  # noqa: B018  # which the next decision needs
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def many_subjects(kind: type[PureFilter], level: Level) -> float:
    """Measure the seconds of a panel that decides and records all weeks."""
    panel = xp.Panel(DOMAIN, filter=kind(1000, protects=level), subjects=range(SUBJECTS))
    answers = {name: [DOMAIN[name].values.values[0]] * SUBJECTS for name in ("smokes", "pain")}
    start = time.process_time()
    for step in range(1, WEEKS + 1):
        for name, responses in answers.items():
            panel.record(COIN.about(name, at=step), responses)
    return time.process_time() - start


if __name__ == "__main__":
    raise SystemExit(not run())

"""Thousands of consecutive decisions, compared with OpenDP's privacy filter.

Both check, sample and record one randomized response of epsilon 0.1 at a time on a budget that
never runs out. Ours is also shown where it is hardest: at the very edge of a budget, where doubles
cannot decide once a thousand errors have added up and rationals must, and with queries that are
all different.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

import opendp.prelude as dp

import expost as xp
from benchmarks.timing import best
from expost.queries import Query

# Rationals take over after some nine hundred exchanges at the edge: growth is of what comes after.
SIZES = (2000, 4000, 8000)
# Linear is a factor of two for twice the queries, quadratic four.
LIMIT = 2.8


def ask_all(size: int) -> None:
    session = xp.Session(xp.FiniteSet([0, 1]), 1, filter=xp.BayesianFilter(9999))
    query = xp.randomized_response(epsilon="0.1")
    for _ in range(size):
        session.ask(query)


def ask_different(size: int) -> None:
    session = xp.Session(xp.FiniteSet([0, 1]), 1, filter=xp.BayesianFilter(9999))
    for index in range(size):
        session.ask(xp.randomized_response(epsilon=Fraction(1, 10 + index)))


def walk_along_the_edge(size: int) -> None:
    filter_ = xp.BayesianFilter(epsilon=1)
    query: Query = xp.randomized_response(epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    for _ in range(size):
        # Always towards the limit; one step back when it is met.
        response = 1 if filter_.decide(odometer, query).accepted else 0
        odometer = odometer.add(query, response)


def ask_opendp(size: int) -> None:
    dp.enable_features("contrib", "honest-but-curious")
    query = dp.m.make_randomized_response_bool(0.52497918747894)
    odometer = dp.c.make_fully_adaptive_composition(
        query.input_domain, query.input_metric, query.output_measure
    )
    answer = dp.c.make_privacy_filter(odometer, d_in=1, d_out=9999.0)(True)
    for _ in range(size):
        answer(query)


CASES: dict[str, Callable[[int], None]] = {
    "expost, budget to spare": ask_all,
    "expost, all different": ask_different,
    "expost, along the edge": walk_along_the_edge,
    "OpenDP, budget to spare": ask_opendp,
}


def run() -> bool:
    print(f"consecutive decisions; growth is for twice as many (2 is linear, last limit {LIMIT:g})")
    times = {}
    for name, action in CASES.items():
        action(10)
        runs = 1 if "OpenDP" in name else 3
        times[name] = [best(partial(action, size), runs) for size in SIZES]
    base = times["expost, budget to spare"]
    print(f"  {'':<26}" + "".join(f"{f'n = {n}':>12}" for n in SIZES) + f"{'growth':>16}")
    linear = True
    for name, row in times.items():
        growth = [later / earlier for earlier, later in pairwise(row)]
        linear &= "OpenDP" in name or growth[-1] <= LIMIT
        ratios = "".join(f"{time / unit:>10.1f} ×" for time, unit in zip(row, base, strict=True))
        print(f"  {name:<26}{ratios}   " + ", ".join(f"{factor:.2f}" for factor in growth))
    return linear

"""Decisions about records, compared with a bare NumPy elimination of the same tables.

Thirty attributes of ten values and 200 exchanges; and 520 weeks of one attribute that changes at
most three times.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.loss import log_likelihood
from expost.numbers import Nats

ATTRIBUTES, VALUES, EXCHANGES = 30, 10, 200
NAMES = [f"a{i:02}" for i in range(ATTRIBUTES)]
EPSILON = "0.1"
SCOPES: dict[str, list[tuple[str, ...]]] = {
    "singles": [(name,) for name in NAMES],
    "chain": list(pairwise(NAMES)),
    "triples": [tuple(NAMES[i : i + 3]) for i in range(0, ATTRIBUTES - 2, 2)],
}
PLAIN, EXACT, WEEKS = 1.0, 10.0, 10.0
Floats = NDArray[np.float64]


def run() -> bool:
    print("records, medians of processor time; × a bare NumPy elimination, × a plain decision")
    within_limits = True
    for name, scopes in SCOPES.items():
        plain, exact, bare = decisions(scopes)
        met = plain <= PLAIN * bare and exact <= EXACT * plain
        within_limits &= met
        print(
            f"  {name:<9} {1e3 * plain:.2f} ms a decision, {plain / bare:.1f} × (limit {PLAIN:g}); "
            f"exact {1e3 * exact:.1f} ms, {exact / plain:.1f} × (limit {EXACT:g})"
        )
    ours, bare = weeks()
    print(f"  520 weeks {1e3 * ours:.1f} ms from the start, {ours / bare:.1f} × (limit {WEEKS:g})")
    return within_limits and ours <= WEEKS * bare


def decisions(scopes: list[tuple[str, ...]]) -> tuple[float, float, float]:
    """Measure the seconds of a plain decision, an exact one, and a bare elimination."""
    generator = random.Random(1)
    domain = xp.Attributes({name: list(range(VALUES)) for name in NAMES})
    queries = [xp.randomized_response(epsilon=EPSILON).about(*scope) for scope in scopes]
    odometer = xp.Odometer(xp.Transcript(domain))
    tables = {scope: np.zeros((VALUES,) * len(scope)) for scope in scopes}
    plain, exact, bare = [], [], []
    for exchange in range(EXCHANGES):
        query = generator.choice(queries)
        plain.append(seconds(partial(odometer.worst_after, query, 1, Nats.budget("3"))))
        if exchange >= EXCHANGES - 20:
            worst = odometer.worst_after(query, 1, Nats.budget("3"))
            assert worst.exact is not None
            exact.append(seconds(worst.exact))
            bare.append(seconds(partial(eliminate, tables, query.names)))
        position = generator.randrange(VALUES ** len(query.names))
        tables[query.names].ravel()[position] += float(EPSILON)
        odometer = odometer.add_position(query, position)
    return statistics.median(plain[-50:]), statistics.median(exact), statistics.median(bare)


def eliminate(tables: dict[tuple[str, ...], Floats], target: tuple[str, ...]) -> list[Floats]:
    """Compute the extreme sums for every combination of a target, without rounding care."""
    results = []
    for sign in (1, -1):
        waiting = [(scope, sign * table) for scope, table in tables.items()]
        for name in NAMES:
            if name in target:
                continue
            with_name = [table_of_scope for table_of_scope in waiting if name in table_of_scope[0]]
            if not with_name:
                continue
            axes = sorted({other for scope, _ in with_name for other in scope})
            total = sum(broadcast(scope, table, axes) for scope, table in with_name)
            waiting = [
                table_of_scope for table_of_scope in waiting if name not in table_of_scope[0]
            ]
            remaining = tuple(other for other in axes if other != name)
            waiting.append((remaining, np.max(total, axis=axes.index(name))))
        axes = sorted(target)
        left_over = [broadcast(scope, table, axes) for scope, table in waiting]
        results.append(np.asarray(sign * sum(left_over)))
    return results


def broadcast(scope: tuple[str, ...], table: Floats, axes: list[str]) -> Floats:
    return table.reshape([VALUES if axis in scope else 1 for axis in axes])


def weeks() -> tuple[float, float]:
    """Measure the seconds of the loss of 520 weeks, and of the bare recursion."""
    generator, changes = random.Random(2), 3
    domain = xp.Attributes(x=xp.changing(list(range(VALUES)), times=changes))
    query = xp.randomized_response(epsilon=EPSILON)
    transcript, tables = xp.Transcript(domain), []
    for week in range(1, 521):
        response = generator.randrange(VALUES)
        transcript = transcript.add(query.about("x", at=week), response)
        tables.append(np.where(np.arange(VALUES) == response, float(EPSILON), 0.0))
    bounds = xp.realized_loss(transcript)  # so that queries are set up for both
    total = [sweep(tables, sign, changes) for sign in (1, -1)]
    assert abs(total[0] + total[1] - bounds.upper) < 1e-6
    ours = min(seconds(lambda: loss_in_doubles(transcript)) for _ in range(3))
    bare = min(
        seconds(lambda: [sweep(tables, sign, changes) for sign in (1, -1)]) for _ in range(3)
    )
    return ours, bare


def loss_in_doubles(transcript: xp.Transcript) -> xp.numbers.Enclosure:
    """Compute the loss in doubles, as decisions do."""
    return log_likelihood(transcript.domain, transcript.exchanges).loss(xp.solver.Effort())


def sweep(tables: list[Floats], sign: int, changes: int) -> float:
    state = np.zeros((VALUES, changes + 1))
    for table in tables:
        moved = state.copy()
        np.maximum(moved[:, 1:], state[:, :-1].max(axis=0), out=moved[:, 1:])
        state = moved + sign * table[:, None]
    return float(state.max())


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start

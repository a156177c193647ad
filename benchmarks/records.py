"""Records: decisions beside a bare NumPy elimination of the same tables, in the same run.

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
    kept = True
    for name, scopes in SCOPES.items():
        plain, exact, bare = decisions(scopes)
        met = plain <= PLAIN * bare and exact <= EXACT * plain
        kept &= met
        print(
            f"  {name:<9} {1e3 * plain:.2f} ms a decision, {plain / bare:.1f} × (limit {PLAIN:g}); "
            f"exact {1e3 * exact:.1f} ms, {exact / plain:.1f} × (limit {EXACT:g})"
        )
    ours, bare = weeks()
    print(f"  520 weeks {1e3 * ours:.1f} ms from the start, {ours / bare:.1f} × (limit {WEEKS:g})")
    return kept and ours <= WEEKS * bare


def decisions(scopes: list[tuple[str, ...]]) -> tuple[float, float, float]:
    """Seconds of a plain decision, of an exact one, and of a bare elimination."""
    generator = random.Random(1)
    domain = xp.Attributes({name: list(range(VALUES)) for name in NAMES})
    queries = [xp.randomized_response(epsilon=EPSILON).about(*scope) for scope in scopes]
    odometer = xp.Odometer(xp.Transcript(domain))
    tables = {scope: np.zeros((VALUES,) * len(scope)) for scope in scopes}
    plain, exact, bare = [], [], []
    for number in range(EXCHANGES):
        query = generator.choice(queries)
        plain.append(seconds(partial(odometer.worst_after, query, 1, Nats.budget("3"))))
        if number >= EXCHANGES - 20:
            worst = odometer.worst_after(query, 1, Nats.budget("3"))
            assert worst.exact is not None
            exact.append(seconds(worst.exact))
            bare.append(seconds(partial(eliminated, tables, query.names)))
        place = generator.randrange(VALUES ** len(query.names))
        tables[query.names].ravel()[place] += float(EPSILON)
        odometer = odometer.answered(query, place)
    return statistics.median(plain[-50:]), statistics.median(exact), statistics.median(bare)


def eliminated(tables: dict[tuple[str, ...], Floats], target: tuple[str, ...]) -> list[Floats]:
    """The largest and the smallest sums for every combination of a target, without any care."""
    results = []
    for sign in (1, -1):
        waiting = [(scope, sign * table) for scope, table in tables.items()]
        for name in NAMES:
            if name in target:
                continue
            own = [each for each in waiting if name in each[0]]
            if not own:
                continue
            axes = sorted({other for scope, _ in own for other in scope})
            total = sum(spread(scope, table, axes) for scope, table in own)
            waiting = [each for each in waiting if name not in each[0]]
            left = tuple(other for other in axes if other != name)
            waiting.append((left, np.max(total, axis=axes.index(name))))
        axes = sorted(target)
        left_over = [spread(scope, table, axes) for scope, table in waiting]
        results.append(np.asarray(sign * sum(left_over)))
    return results


def spread(scope: tuple[str, ...], table: Floats, axes: list[str]) -> Floats:
    return table.reshape([VALUES if axis in scope else 1 for axis in axes])


def weeks() -> tuple[float, float]:
    """Seconds of the loss of 520 weeks from the start, and of the bare recursion."""
    generator, changes = random.Random(2), 3
    domain = xp.Attributes(x=xp.changing(list(range(VALUES)), times=changes))
    query = xp.randomized_response(epsilon=EPSILON)
    transcript, tables = xp.Transcript(domain), []
    for week in range(1, 521):
        response = generator.randrange(VALUES)
        transcript = transcript.add(query.about("x", at=week), response)
        tables.append(np.where(np.arange(VALUES) == response, float(EPSILON), 0.0))
    bounds = xp.realized_loss(transcript)  # so that queries are set up for both
    total = [swept(tables, sign, changes) for sign in (1, -1)]
    assert abs(total[0] + total[1] - bounds.upper) < 1e-6
    ours = min(seconds(lambda: spread_of(transcript)) for _ in range(3))
    bare = min(
        seconds(lambda: [swept(tables, sign, changes) for sign in (1, -1)]) for _ in range(3)
    )
    return ours, bare


def spread_of(transcript: xp.Transcript) -> xp.numbers.Enclosure:
    """The loss in doubles, as decisions have it."""
    return log_likelihood(transcript.domain, transcript.exchanges).loss(xp.solver.Effort())


def swept(tables: list[Floats], sign: int, changes: int) -> float:
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

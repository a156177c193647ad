"""Streams of queries to a filter on a box, answered by an adversary.

The adversary mostly gives the worst response to every accepted query. Then

- no two points that an oracle finds have likelihoods further apart than the budget;
- a fresh odometer makes the same decision as the one that followed the stream;
- a replay with the same effort never reports a violation, and confirms what the default accepted.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import expost as xp
from support.box_cases import Ask, Case, Side, complaints

__all__ = ["Stream", "hunt", "some_stream", "violations"]

FILTERS = (xp.BayesianFilter, xp.BayesianFilter, xp.SimplifiedFilter, xp.BasicFilter)


@dataclass(frozen=True)
class Stream:
    """A budget, and queries with the response that the adversary gives unless one is worse."""

    filter: xp.filters.Filter
    sides: tuple[Side, ...]
    asks: tuple[Ask, ...]
    nodes: int | None

    @property
    def effort(self) -> xp.solver.Effort:
        return xp.solver.Effort(nodes=self.nodes)


def some_stream(generator: random.Random, most: int = 40) -> Stream:
    """Draw a stream of up to so many queries, at least as many as basic composition allows."""
    sides = tuple(Side(-1.0, 1.0) for _ in range(generator.randint(1, 9)))
    norm, epsilon = generator.choice([0.5, 1, 3, 6]), generator.choice(["0.1", "0.3", "1/3"])
    budget = generator.choice(["0.3", "0.6", "1", "2"])
    kinds = generator.choice([["logistic"], ["linear"], ["logistic", "linear", "probit"]])
    asks: list[Ask] = []
    for _ in range(generator.randint(5, most)):
        if asks and generator.random() < 0.2:
            asks.append(generator.choice(asks))
            continue
        direction = [generator.gauss(0, 1) for _ in sides]
        length = sum(x * x for x in direction) ** 0.5
        weights = tuple(norm * x / length for x in direction)
        high = generator.random() < 0.5
        asks.append(Ask(generator.choice(kinds), weights, generator.uniform(-1, 1), epsilon, high))
    nodes = generator.choice([None, None, 1, 20, 400])
    return Stream(generator.choice(FILTERS)(budget), sides, tuple(asks), nodes)


def violations(stream: Stream, seed: int) -> Iterator[str]:
    """Ask all queries, and describe everything that must not happen."""
    box, budget = Case(stream.sides, ()).box, stream.filter.budget.enclosure
    odometer = xp.Odometer(xp.Transcript(box, stream.filter), effort=stream.effort)
    accepted: tuple[Ask, ...] = ()
    for number, ask in enumerate(stream.asks):
        decision = stream.filter.decide(odometer, ask.query)
        fresh = xp.Odometer(odometer.transcript, effort=stream.effort)
        if stream.filter.decide(fresh, ask.query) != decision:
            yield f"query {number}: a fresh odometer decides differently"
        if not decision.accepted:
            continue
        worst = decision.worst_response
        high = ask.high if worst is None or number % 4 == 0 else bool(worst)
        given = Ask(ask.kind, ask.weights, ask.intercept, ask.epsilon, high)
        accepted += (given,)
        likelihood = given.query.on(box)
        odometer = odometer.add_position(given.query, given.position(likelihood))
        limit = xp.numbers.Enclosure(0.0, budget.upper)
        for wrong in complaints(Case(stream.sides, accepted), limit, seed, count=40):
            if "sum of the epsilons" not in wrong:  # the budget may be above it
                yield f"after query {number}: {wrong}"
    replay = xp.replay(odometer.transcript, nodes=stream.nodes)
    if replay.respected is False:
        yield f"a replay refuses exchange {replay.first_refused}"
    if stream.nodes is None and not replay.respected:
        yield "a replay does not confirm what the default accepted"


def hunt(seed: int) -> None:
    """Print every violation, until stopped."""
    print(f"seed {seed}", flush=True)
    start = reported = time.monotonic()
    queries = found = 0
    for step in itertools.count():
        stream = some_stream(random.Random(f"{seed}/{step}"))
        for violation in violations(stream, step):
            found += 1
            print(f"FOUND at {seed}/{step}: {violation}\n{stream}", flush=True)
        queries += len(stream.asks)
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            print(
                f"{reported - start:6.0f} s  {step + 1} streams, {queries} queries, {found} found",
                flush=True,
            )

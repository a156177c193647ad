"""Parsing, reading and building a transcript: microseconds for each exchange.

Reading is strict and exact, and building works out what every response says. Neither may take
longer than the search that follows. ``json.loads`` of the same text is what could not be saved.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import expost as xp
from benchmarks.timing import once
from expost.loss import log_likelihood
from expost.loss._on_box import BoxLogLikelihood
from expost.solver import BoxSpread

EXCHANGES = 100
VALUES = 10
TARGET = 80.0
PER_ENTRY = 1.0
"""More for each probability of a table, which is read, summed up and taken the logarithm of."""
TARGETS = {"channel": TARGET + 2 * VALUES * PER_ENTRY}
RUNS = 40


def run() -> bool:
    print(f"reading and building {EXCHANGES} exchanges, microseconds for each (target {TARGET:g},")
    print(f"and {PER_ENTRY:g} more for each entry of a table)")
    within = True
    for name, document in documents():
        parsing, reading, both = _least(document)
        limit = TARGETS.get(name, TARGET)
        within = within and both <= limit
        print(
            f"  {name:<24} reading {reading:6.1f}, building {both - reading:6.1f}, "
            f"together {both:6.1f} ({both / parsing:.0f} × json.loads)   (limit {limit:g})"
            + ("   ABOVE IT" if both > limit else "")
        )
    return within


def documents() -> Iterator[tuple[str, str]]:
    """Transcripts as texts, in which no query comes twice."""
    box, generator = xp.Box([(-1, 1)] * 9), random.Random(1)

    def score(size: int) -> dict[str, Any]:
        weights = [generator.uniform(-10, 10) for _ in range(size)]
        return {"weights": weights, "intercept": generator.uniform(-10, 10), "epsilon": "1"}

    yield "linear, d = 9", _asked(box, lambda k: xp.linear(**score(9)))
    ends: dict[str, Any] = {"range": (-100, 100)}
    yield "linear with a range", _asked(box, lambda k: xp.linear(**score(9), **ends))
    yield "logistic, d = 9", _asked(box, lambda k: xp.logistic(**score(9)))
    yield "probit, d = 9", _asked(box, lambda k: xp.probit(**score(9)))
    yield "Laplace, d = 9", _asked(box, lambda k: xp.laplace(**score(9), **ends, grid=1))
    ten = xp.FiniteSet(range(VALUES))
    rows = [
        [Fraction(generator.randint(1, 999), 1000) for _ in ten.values] for _ in range(EXCHANGES)
    ]
    tables = [[[p, 1 - p] for p in row] for row in rows]
    yield "channel", _asked(ten, lambda k: xp.channel(tables[k]))
    epsilons = [Fraction(k + 1, 100) for k in range(EXCHANGES)]
    yield "randomized response", _asked(ten, lambda k: xp.randomized_response(epsilons[k]))

    def named(**fields: Any) -> dict[str, Any]:
        score_fields = score(1)
        return {**score_fields, "weights": {"value": score_fields["weights"][0]}, **fields}

    yield "linear on a set", _asked(ten, lambda k: xp.linear(**named()))
    yield "logistic on a set", _asked(ten, lambda k: xp.logistic(**named()))
    yield "probit on a set", _asked(ten, lambda k: xp.probit(**named()))
    yield "Laplace on a set", _asked(ten, lambda k: xp.laplace(**named(**ends, grid=1)))


def _asked(domain: xp.FiniteSet | xp.Box, query: Callable[[int], xp.queries.Query]) -> str:
    transcript = xp.Transcript(domain)
    for k in range(EXCHANGES):
        current = query(k)
        transcript = transcript.add(current, current.on(domain).responses[k % 2])
    return transcript.to_json()


def build(transcript: xp.Transcript) -> object:
    """Build everything that a search needs."""
    total = log_likelihood(transcript.domain, transcript.exchanges)
    return BoxSpread(total.terms, total.domain) if isinstance(total, BoxLogLikelihood) else total


def _least(document: str) -> tuple[float, float, float]:
    """Measure parsing, reading, and both with building, in turns."""
    actions = (
        partial(json.loads, document),
        partial(xp.Transcript.from_json, document),
        lambda: build(xp.Transcript.from_json(document)),
    )
    times = [[once(action) for action in actions] for _ in range(RUNS)]
    parsing, reading, both = (1e6 * min(column) / EXCHANGES for column in zip(*times, strict=True))
    return parsing, reading, both


if __name__ == "__main__":
    run()

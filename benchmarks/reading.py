"""From the text of a file to what a search starts from: microseconds for each exchange.

Reading is strict and exact, and building works out what every response says. Neither may take
longer than the search that follows. ``json.loads`` of the same text is what could not be saved.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import expost as xp
from benchmarks.instances import draw
from benchmarks.timing import once
from expost.loss.log_likelihood import log_likelihood
from expost.loss.on_box import BoxLogLikelihood
from expost.solver.spread import BoxSpread

EXCHANGES = 100
LIMIT = 60.0
RUNS = 40


def run() -> bool:
    print(f"reading and building {EXCHANGES} exchanges, microseconds for each")
    within = True
    for name, document in documents():
        parsing, reading, both = _least(document)
        # The table of a channel has twenty numbers, each of them a fraction.
        limit = None if name == "channel" else LIMIT
        within = within and (limit is None or both <= limit)
        print(
            f"  {name:<22} reading {reading:6.1f}, building {both - reading:6.1f}, "
            f"together {both:6.1f} ({both / parsing:.0f} × json.loads)"
            + (f"   (limit {limit:g})" if limit else "")
        )
    return within


def documents() -> Iterator[tuple[str, str]]:
    """Transcripts as texts, in which no query comes twice."""
    for link in ("linear", "logistic"):
        instance = draw(link, link, n=EXCHANGES, d=9, scale=10, seed=1)
        yield f"{link}, d = 9", instance.transcript().to_json()
    domain = xp.FiniteSet(range(10))
    asked = xp.Transcript(domain)
    for k in range(EXCHANGES):
        asked = asked.add(xp.randomized_response(Fraction(k + 1, 100)), k % 10)
    yield "randomized response", asked.to_json()
    asked, generator = xp.Transcript(domain), random.Random(1)
    for k in range(EXCHANGES):
        rows = [Fraction(generator.randint(1, 999), 1000) for _ in domain.values]
        asked = asked.add(xp.channel([[p, 1 - p] for p in rows]), k % 2)
    yield "channel", asked.to_json()


def build(transcript: xp.Transcript) -> object:
    """All that comes before a search."""
    total = log_likelihood(transcript.domain, transcript.exchanges)
    return BoxSpread(total.terms, total.domain) if isinstance(total, BoxLogLikelihood) else total


def _least(document: str) -> tuple[float, float, float]:
    """Parsing, reading, and reading and building; in turns, so that noise meets all of them."""
    actions = (
        partial(json.loads, document),
        partial(xp.Transcript.from_json, document),
        lambda: build(xp.Transcript.from_json(document)),
    )
    times = [[once(action) for action in actions] for _ in range(RUNS)]
    parsing, reading, both = (1e6 * min(column) / EXCHANGES for column in zip(*times, strict=True))
    return parsing, reading, both

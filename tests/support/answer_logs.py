"""Random logs of many subjects on every kind of domain, and what a replay of each subject says."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars

import expost as xp
from expost.domains import Domain
from expost.filters import Filter
from expost.filters.rules import Renyi
from expost.queries import Query

Rows = list[tuple[Any, int, str, Any]]
"""Subject, order, query and response."""

FILTERS: list[Filter] = [
    xp.BayesianFilter(epsilon="0.6"),
    xp.SimplifiedFilter(epsilon="0.6"),
    xp.BasicFilter(epsilon="0.8"),
    xp.filters.CompositionFilter(epsilon="0.8", delta="1e-3", rule=Renyi(order=8)),
    xp.ApproximateFilter(epsilon="0.6", delta="1e-3"),
    xp.BayesianFilter(ratio="9/4"),
]

# Sums of these are often exactly a budget.
_EPSILONS = ["0.05", "0.1", "0.2"]


@dataclass(frozen=True)
class Logged:
    """A domain, queries, and what subjects answered."""

    domain: Domain
    queries: Mapping[str, Query]
    rows: Rows

    def transcript(self, subject: Any, guard: Filter) -> xp.Transcript:
        """The transcript of one subject."""
        own = sorted((order, key, response) for who, order, key, response in self.rows
                     if who == subject)  # fmt: skip
        transcript = xp.Transcript(self.domain, guard)
        for _, key, response in own:
            transcript = transcript.add(self.queries[key], response)
        return transcript

    @property
    def subjects(self) -> list[Any]:
        return sorted({row[0] for row in self.rows})

    def frame(self, rows: Rows | None = None) -> polars.DataFrame:
        """The log as a table; responses are texts, as in CSV."""
        told = [
            (who, order, key, _text(response)) for who, order, key, response in rows or self.rows
        ]
        return polars.DataFrame(
            told, schema=["subject", "order", "query", "response"], orient="row"
        )

    def save_queries(self, path: Path) -> Path:
        xp.audits.save_queries(self.domain, self.queries, path)
        return path


def _text(response: Any) -> str:
    from expost.files.canonical import json_text

    return json_text(list(response)) if isinstance(response, tuple) else str(response)


def some_queries(generator: random.Random, kind: str) -> tuple[Domain, dict[str, Query]]:
    def epsilon() -> str:
        return generator.choice(_EPSILONS)

    if kind == "set":
        return xp.FiniteSet(["a", "b", "c", "d"]), {
            "rr": xp.randomized_response(epsilon=epsilon()),
            "unary": xp.unary_encoding(epsilon=epsilon()),
            "linear": xp.perturbation([0, 0.3, 0.7, 1], epsilon=epsilon()),
            "table": xp.channel([[Fraction(w, 20), Fraction(20 - w, 20)] for w in (9, 10, 10, 11)]),
            "hash": xp.local_hashing(buckets=2, seed="0a", epsilon=epsilon()),
        }
    if kind == "records":
        person = xp.Attributes(smokes=["no", "yes"], region=["n", "s", "e"])
        rr = xp.randomized_response
        return person, {
            "smokes": rr(epsilon=epsilon()).about("smokes"),
            "region": rr(epsilon=epsilon()).about("region"),
            "both": rr(epsilon=epsilon()).about("smokes", "region"),
        }
    if kind == "changing":
        person = xp.Attributes(smokes=xp.changing(["no", "yes"], times=1), region=["n", "s"])
        rr = xp.randomized_response
        return person, {
            "then": rr(epsilon=epsilon()).about("smokes", at=1),
            "now": rr(epsilon=epsilon()).about("smokes", at=2),
            "region": rr(epsilon=epsilon()).about("region"),
        }
    assert kind == "box"
    box = xp.Box(age=(0, 100), pressure=(50, 200))
    return box, {
        "heart": xp.logistic({"age": -0.06, "pressure": 0.01}, intercept=1, epsilon=epsilon()),
        "sleep": xp.linear({"age": 0.05}, range=(0, 12), clip=True, epsilon=epsilon()),
    }


def some_log(generator: random.Random, kind: str, subjects: int, most: int = 12) -> Logged:
    """Everybody is asked what they happen to be asked; answers lean to one side, and some leap."""
    domain, queries = some_queries(generator, kind)
    rows: Rows = []
    for number in range(subjects):
        for order in range(1, generator.randint(1, most) + 1):
            key = generator.choice(list(queries))
            responses = queries[key].on(domain).responses
            place = min(generator.randrange(len(responses)), generator.randrange(len(responses)))
            rows.append((f"s{number}", order, key, responses[place]))
    return Logged(domain, queries, rows)


def with_outcomes(
    table: Mapping[str, Any], pairs: Iterable[tuple[Any, str]], outcome: str = "refused"
) -> dict[str, list[Any]]:
    """Add rows without a response to a table of answers: subjects, queries and their outcome."""
    subjects, queries = zip(*pairs, strict=True)
    return {
        "subject": [*table["subject"], *subjects],
        "query": [*table["query"], *queries],
        "response": [*table["response"], *[None] * len(subjects)],
        "outcome": ["answered"] * len(table["subject"]) + [outcome] * len(subjects),
    }

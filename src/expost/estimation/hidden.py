r"""What an analyst knows who did not see all responses, as likelihoods of values.

With a filter that is known, an analyst who knows what was asked in which order, and what was
refused, sees with the probability

.. math:: P_x[\text{view}] = c \sum_{\text{hidden responses}} 1[\text{accepted and refused as seen}]
          \prod_r P[Q_r(x) = y_r]

Only how often each response was given matters to the filter and to the product, so the sum goes
over tallies, each with the number of orders that lead to it. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from expost._types import Floats
from expost.answers import Answers, Attempt, View
from expost.answers.attempts import HIDDEN, REFUSED
from expost.errors import InvalidInput
from expost.estimation.atoms import Atoms
from expost.estimation.observations import Observations, alike_columns, check_values, scaled
from expost.filters import Filter
from expost.loss import Odometer
from expost.transcript import Transcript

__all__ = ["observations_of_views"]

Given = tuple[str, int]
"""A response: the id of a query, and the position."""
Tally = tuple[Given, ...]
"""Responses in a fixed order, for theirs does not matter."""
Ways = Mapping[Tally, int]
"""What may have been responded in secret, and in how many orders."""

_MOST_TALLIES = 20_000
_MOST_DECISIONS = 200_000
_MOST_RESPONSES = 1_000


def observations_of_views(
    answers: Answers, views: Counter[View], guard: Filter, atoms: Atoms
) -> Observations:
    """How likely each value makes every view, and how many subjects it is of."""
    check_values(len(atoms))
    secret = _Secret(answers, guard)
    counted: Counter[tuple[Tally, frozenset[tuple[Tally, int]]]] = Counter()
    ordered = sorted(views, key=_order)
    for view, known in zip(ordered, secret.known(ordered), strict=True):
        counted[(known.seen, frozenset(known.hidden.items()))] += views[view]
    rows = {given: row for row, given in enumerate(_all_given(answers, views))}
    logs, alike = alike_columns(_logs(answers, atoms, rows), len(counted))
    table = np.array(
        [_row(logs, rows, visible) + _sum_of(logs, rows, ways) for visible, ways in counted]
    )
    counts = np.array(list(counted.values()), dtype=np.float64)
    return Observations(scaled(table), counts, alike)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known after some attempts: what was seen, and what may have been hidden."""

    seen: Tally
    hidden: Ways


@dataclass(frozen=True, slots=True)
class _Secret:
    """What may have been responded in secret, given what a filter accepted and refused."""

    answers: Answers
    guard: Filter
    _odometers: dict[Tally, Odometer] = field(default_factory=dict)
    _accepted: dict[tuple[Tally, str], bool] = field(default_factory=dict)

    def known(self, views: Iterable[View]) -> Iterator[_Known]:
        """What is known after each of some views, of which similar ones follow each other."""
        last: View = ()
        path = [_Known((), {(): 1})]
        for view in views:
            pairs = zip(view, last, strict=False)
            shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            del path[1 + shared :]
            for attempt in view[len(path) - 1 :]:
                path.append(self._after(path[-1], attempt))
            yield path[-1]
            last = view

    def _after(self, known: _Known, attempt: Attempt) -> _Known:
        found = Counter[Tally]()
        for hidden, orders in known.hidden.items():
            accepted = self.accepts(_sorted((*known.seen, *hidden)), attempt.query)
            if accepted == (attempt.outcome == REFUSED):
                continue
            if attempt.outcome != HIDDEN:
                found[hidden] += orders
                continue
            for position in range(self._responses(attempt.query)):
                found[_sorted((*hidden, (attempt.query, position)))] += orders
        if not found:
            raise InvalidInput(
                "the filter that is declared does not accept and refuse in this order, whatever "
                "the hidden responses were",
                "attempts",
            )
        if len(found) > _MOST_TALLIES:
            raise InvalidInput(
                f"more than {_MOST_TALLIES:,} tallies of hidden responses are possible, which is "
                "too many to sum over",
                "attempts",
            )
        if attempt.position is None:
            return _Known(known.seen, found)
        return _Known(_sorted((*known.seen, (attempt.query, attempt.position))), found)

    def accepts(self, tally: Tally, query: str) -> bool:
        known = self._accepted.get((tally, query))
        if known is None:
            if len(self._accepted) >= _MOST_DECISIONS:
                raise InvalidInput(
                    f"the filter would have to decide more than {_MOST_DECISIONS:,} times",
                    "attempts",
                )
            known = self.guard.accepts(self._odometer(tally), self.answers.queries[query])
            self._accepted[(tally, query)] = known
        return known

    def _odometer(self, tally: Tally) -> Odometer:
        known = next((n for n in range(len(tally), 0, -1) if tally[:n] in self._odometers), 0)
        after = self._odometers[tally[:known]] if known else Odometer(self._nothing)
        for length in range(known, len(tally)):
            key, position = tally[length]
            after = after.answered(self.answers.queries[key], position)
            self._odometers[tally[: length + 1]] = after
        return after

    @property
    def _nothing(self) -> Transcript:
        return Transcript(self.answers.domain)

    def _responses(self, query: str) -> int:
        count = len(self.answers.queries[query].on(self.answers.domain).responses)
        if count > _MOST_RESPONSES:
            raise InvalidInput(
                f"{query!r} has {count:,} responses, which is too many where they are hidden",
                "attempts",
            )
        return count


def _sorted(given: Tally) -> Tally:
    return tuple(sorted(given))


def _order(view: View) -> list[tuple[str, str, int]]:
    return [(a.query, a.outcome, -1 if a.position is None else a.position) for a in view]


def _all_given(answers: Answers, views: Counter[View]) -> list[Given]:
    """All responses that were seen or may have been given in secret."""
    hidden = {a.query for view in views for a in view if a.outcome == HIDDEN}
    seen = {(a.query, a.position) for view in views for a in view if a.position is not None}
    for key in hidden:
        seen |= {(key, y) for y in range(len(answers.queries[key].on(answers.domain).responses))}
    return sorted(seen)


def _logs(answers: Answers, atoms: Atoms, rows: Mapping[Given, int]) -> Floats:
    """The log-likelihood of each response at each atom, which here must not lack a constant."""
    chances = {key: atoms.seen(answers.queries[key]).chances() for key, _ in rows}
    with np.errstate(divide="ignore"):
        return np.asarray(np.log([chances[key][position] for key, position in rows]))


def _row(logs: Floats, rows: Mapping[Given, int], tally: Tally) -> Floats:
    return np.asarray(logs[[rows[given] for given in tally]].sum(axis=0))


def _sum_of(logs: Floats, rows: Mapping[Given, int], ways: frozenset[tuple[Tally, int]]) -> Floats:
    """The logarithm of the sum over all that may have been responded in secret."""
    each = [_row(logs, rows, tally) + math.log(orders) for tally, orders in sorted(ways)]
    return np.asarray(np.logaddexp.reduce(each, axis=0))

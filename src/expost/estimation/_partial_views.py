r"""The likelihood of partial views: some responses are hidden, and all attempts are known.

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
from expost.answers import HIDDEN, REFUSED, Answers, Attempt, PartialView
from expost.errors import InvalidInput
from expost.estimation._observations import (
    Observations,
    check_values,
    merge_equal_columns,
    relative_likelihoods,
)
from expost.estimation._support import MixtureSupport
from expost.filters import Filter
from expost.loss import Odometer
from expost.transcript import Transcript

__all__ = ["observe_views"]


#: A response: the id of a query, and the position of the response.
Response = tuple[str, int]
#: Sorted responses, because their order does not matter.
Tally = tuple[Response, ...]
#: Possible hidden responses, with the number of orders of each tally.
OrderCounts = Mapping[Tally, int]

_MOST_TALLIES = 20_000
_MOST_DECISIONS = 200_000
_MOST_RESPONSES = 1_000


def observe_views(
    answers: Answers, views: Counter[PartialView], filter_: Filter, support: MixtureSupport
) -> Observations:
    """Tabulate how likely each point makes every view, and count the subjects with each view."""
    check_values(len(support))
    hidden_responses = _HiddenResponses(
        answers, filter_, {(): Odometer(Transcript(answers.domain))}
    )
    view_counts: Counter[tuple[Tally, frozenset[tuple[Tally, int]]]] = Counter()
    ordered = sorted(views, key=_view_key)
    for view, state in zip(ordered, hidden_responses.states_after(ordered), strict=True):
        view_counts[(state.visible, frozenset(state.hidden.items()))] += views[view]
    rows = {response: row for row, response in enumerate(_possible_responses(answers, views))}
    logs, groups = merge_equal_columns(_log_table(answers, support, rows), len(view_counts))
    table = np.array(
        [
            _tally_logs(logs, rows, visible_tally) + _sum_over_tallies(logs, rows, order_counts)
            for visible_tally, order_counts in view_counts
        ]
    )
    counts = np.array(list(view_counts.values()), dtype=np.float64)
    return Observations(relative_likelihoods(table), counts, groups)


@dataclass(frozen=True, slots=True)
class _ViewState:
    """The visible responses after some attempts, and the possible hidden ones."""

    visible: Tally
    hidden: OrderCounts


@dataclass(frozen=True, slots=True)
class _HiddenResponses:
    """The possible hidden responses, given what a filter accepted and refused."""

    answers: Answers
    filter: Filter
    _odometers: dict[Tally, Odometer]
    _accepted: dict[tuple[Tally, str], bool] = field(default_factory=dict)

    def states_after(self, views: Iterable[PartialView]) -> Iterator[_ViewState]:
        """Yield the state after each of some views; sorted views share prefixes, and work."""
        previous: PartialView = ()
        states = [_ViewState((), {(): 1})]
        for view in views:
            pairs = zip(view, previous, strict=False)
            shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            del states[1 + shared :]
            for attempt in view[len(states) - 1 :]:
                states.append(self._state_after(states[-1], attempt))
            yield states[-1]
            previous = view

    def _state_after(self, state: _ViewState, attempt: Attempt) -> _ViewState:
        order_counts = Counter[Tally]()
        for hidden, orders in state.hidden.items():
            accepted = self.accepts(_canonical((*state.visible, *hidden)), attempt.query)
            if accepted == (attempt.outcome == REFUSED):
                continue
            if attempt.outcome != HIDDEN:
                order_counts[hidden] += orders
                continue
            for position in range(self._response_count(attempt.query)):
                order_counts[_canonical((*hidden, (attempt.query, position)))] += orders
        if not order_counts:
            raise InvalidInput(
                "got outcomes that the declared filter cannot give, whatever the hidden responses "
                "were",
                "attempts",
            )
        if len(order_counts) > _MOST_TALLIES:
            raise InvalidInput(
                "got too many possible tallies of hidden responses; expected at most "
                f"{_MOST_TALLIES:,}",
                "attempts",
            )
        visible = state.visible
        if attempt.position is not None:
            visible = _canonical((*visible, (attempt.query, attempt.position)))
        return _ViewState(visible, order_counts)

    def accepts(self, tally: Tally, query: str) -> bool:
        accepted = self._accepted.get((tally, query))
        if accepted is None:
            if len(self._accepted) >= _MOST_DECISIONS:
                raise InvalidInput(
                    f"the filter would have to decide more than {_MOST_DECISIONS:,} times",
                    "attempts",
                )
            accepted = self.filter.accepts(self._odometer(tally), self.answers.queries[query])
            self._accepted[(tally, query)] = accepted
        return accepted

    def _odometer(self, tally: Tally) -> Odometer:
        prefix_length = next(n for n in range(len(tally), -1, -1) if tally[:n] in self._odometers)
        odometer = self._odometers[tally[:prefix_length]]
        for length, (key, position) in enumerate(tally[prefix_length:], prefix_length + 1):
            odometer = odometer.add_position(self.answers.queries[key], position)
            self._odometers[tally[:length]] = odometer
        return odometer

    def _response_count(self, query: str) -> int:
        count = len(self.answers.queries[query].on(self.answers.domain).responses)
        if count > _MOST_RESPONSES:
            raise InvalidInput(
                f"got {query!r} with {count:,} responses; expected at most {_MOST_RESPONSES:,} if "
                "they are hidden",
                "attempts",
            )
        return count


def _canonical(tally: Tally) -> Tally:
    return tuple(sorted(tally))


def _view_key(view: PartialView) -> list[tuple[str, str, int]]:
    return [(a.query, a.outcome, -1 if a.position is None else a.position) for a in view]


def _possible_responses(answers: Answers, views: Counter[PartialView]) -> list[Response]:
    """List all responses that are visible or may have been hidden."""
    hidden_queries = {a.query for view in views for a in view if a.outcome == HIDDEN}
    responses = {(a.query, a.position) for view in views for a in view if a.position is not None}
    for key in hidden_queries:
        responses |= {
            (key, y) for y in range(len(answers.queries[key].on(answers.domain).responses))
        }
    return sorted(responses)


def _log_table(answers: Answers, support: MixtureSupport, rows: Mapping[Response, int]) -> Floats:
    """Compute the log-likelihood of each response at each point, here with its constant."""
    tables = {key: support.likelihoods(answers.queries[key]).table() for key, _ in rows}
    with np.errstate(divide="ignore"):
        return np.asarray(np.log([tables[key][position] for key, position in rows]))


def _tally_logs(logs: Floats, rows: Mapping[Response, int], tally: Tally) -> Floats:
    return np.asarray(logs[[rows[response] for response in tally]].sum(axis=0))


def _sum_over_tallies(
    logs: Floats, rows: Mapping[Response, int], order_counts: frozenset[tuple[Tally, int]]
) -> Floats:
    """Compute the logarithm of the sum over all possible hidden responses."""
    log_terms = [
        _tally_logs(logs, rows, tally) + math.log(orders) for tally, orders in sorted(order_counts)
    ]
    return np.asarray(np.logaddexp.reduce(log_terms, axis=0))

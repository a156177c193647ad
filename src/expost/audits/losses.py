"""The realized losses of many subjects."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_nats
from expost._types import Floats, Indices
from expost.answers import Answers, Subject
from expost.cards import View
from expost.domains import Attributes, Box, FiniteSet
from expost.errors import expect
from expost.files.canonical import plain
from expost.files.tables import Table, as_lists
from expost.loss import log_likelihood, realized_loss
from expost.loss._realized import total_charge
from expost.loss.many_records import record_spreads
from expost.loss.many_sets import finite_spreads
from expost.numbers import Enclosure, Nats
from expost.panel.spent import Grid
from expost.queries import Query
from expost.solver import GAP, Effort

__all__ = ["Losses", "losses_within", "realized_losses"]


Tell = Callable[[int], None]
"""What is called with the number of subjects done."""
Given = list[tuple[Query, int]]
"""Responses, by their positions."""
_Work = Callable[[Given, Indices, Indices, Tell], tuple[Floats, Floats]]

# The table of all terms over all values takes up to 128 MiB.
_LARGEST_TABLE = 1 << 24

# Preparing to do all at once takes as long as two searches.
_ENOUGH = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Losses(Table):
    """A certified loss for every subject, in nats, between ``lower`` and ``upper``.

    :func:`realized_losses` returns it. Act on ``upper``. Arrays are in the order of ``subjects``.

    >>> import expost as xp
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> table = {"subject": ["a", "b"], "query": ["q", "q"], "response": [0, 1]}
    >>> losses = xp.realized_losses(xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table))
    >>> losses
    Losses(2 subjects, at most 1.09861)
    subject  loss     exchanges  basic
    a        1.09861  1          1.09861
    b        1.09861  1          1.09861
    """

    subjects: tuple[Subject, ...]
    lower: Floats
    upper: Floats
    exchanges: NDArray[np.intp]
    """How many responses the subject gave."""
    basic: Floats
    """What basic composition charges for these responses: the sum of the epsilons, rounded up."""

    def __len__(self) -> int:
        return len(self.subjects)

    def _view(self) -> View:
        def row(place: int) -> tuple[object, ...]:
            loss = Enclosure(float(self.lower[place]), float(self.upper[place]))
            number, charge = int(self.exchanges[place]), float(self.basic[place])
            return self.subjects[place], loss.shown(), number, format_nats(charge)

        largest = Enclosure(float(self.lower.max()), float(self.upper.max()))
        title = f"Losses({format_count(len(self), 'subject')}, at most {largest.shown()})"
        return View(title, {}, ("subject", "loss", "exchanges", "basic"), len(self), row)

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "lower": self.lower,
            "upper": self.upper,
            "exchanges": self.exchanges,
            "basic": self.basic,
        }

    def lists(self) -> dict[str, list[Any]]:
        """The same in plain numbers and texts."""
        return as_lists(self.columns())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The same, subject by subject."""
        columns = self.lists()
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    def summary(self) -> dict[str, Any]:
        """All subjects together, as JSON, by the upper ends of their losses."""
        return plain(
            {
                "subjects": len(self),
                "exchanges": int(self.exchanges.sum()),
                "mean": float(self.upper.mean()),
                "median": float(np.median(self.upper)),
                "largest": float(self.upper.max()),
                "basic": float(self.basic.mean()),
            }
        )

    def tree(self) -> dict[str, Any]:
        """The same, and the losses subject by subject."""
        return {**self.summary(), "losses": [plain(row) for row in self.rows()]}


def realized_losses(
    answers: Answers,
    *,
    gap: float = GAP,
    nodes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Losses:
    """The realized loss of every subject in a table of answers.

    It is what :func:`realized_loss` gives for each of their transcripts, but much faster: finite
    domains, records, and unclipped linear queries on a box of real coordinates are worked out all
    at once, and anything else once per pattern of responses.

    :func:`load_answers` reads answers from files. ``progress`` is called with the number of
    subjects done and their total.

    It warns if the answers are incomplete: what was asked may depend on responses that are not in
    the table, and then the loss of a part does not bound what that part reveals.

    >>> import expost as xp
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> table = {"subject": ["a", "a", "b"], "query": ["q"] * 3, "response": [0, 1, 0]}
    >>> losses = xp.realized_losses(xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table))
    >>> losses.subjects, losses.upper.round(3).tolist(), losses.basic.round(3).tolist()
    (('a', 'b'), [0.0, 1.099], [2.197, 1.099])
    """
    expect(answers, Answers, "Answers(domain, queries, table), or load_answers(data, queries)")
    if not answers.complete:
        message = "the answers are incomplete: the loss of a part need not bound what it tells"
        warnings.warn(f"{message}; the budget does", UserWarning, stacklevel=2)
    return losses_within(answers, Effort(gap, nodes), progress)


def losses_within(
    answers: Answers, effort: Effort, progress: Callable[[int, int], None] | None = None
) -> Losses:
    """The same with an :class:`Effort`; if its work is used up, what is left is not searched."""

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, len(answers))

    lower, upper = _spreads(answers, effort, tell)
    basic = _basic(answers)
    upper = np.maximum(lower, np.minimum(upper, basic))
    exchanges = answers.exchanges
    for array in (lower, upper, exchanges, basic):
        array.setflags(write=False)
    return Losses(answers.subjects, lower, upper, exchanges, basic)


def _spreads(answers: Answers, effort: Effort, tell: Tell) -> tuple[Floats, Floats]:
    """Bound the losses of all subjects from below and from above."""
    match answers.domain:
        case FiniteSet():
            return _set_spreads(answers, answers.domain, tell)
        case Attributes():
            return _record_spreads(answers, answers.domain, tell)
        case Box():
            return _by_pattern(answers, answers.domain, effort, tell)
        case _:
            assert_never(answers.domain)


def _set_spreads(answers: Answers, domain: FiniteSet, tell: Tell) -> tuple[Floats, Floats]:
    def spreads(given: Given, codes: Indices, starts: Indices, tell: Tell) -> tuple[Floats, Floats]:
        terms = [query.on(domain).term(position) for query, position in given]
        return finite_spreads(terms, codes, starts, tell)

    return _in_tables(answers, lambda query: len(domain), spreads, tell)


def _record_spreads(answers: Answers, domain: Attributes, tell: Tell) -> tuple[Floats, Floats]:
    def spreads(given: Given, codes: Indices, starts: Indices, tell: Tell) -> tuple[Floats, Floats]:
        seen = [(query.on(domain), position) for query, position in given]
        return record_spreads(domain, seen, codes, starts, tell)

    return _in_tables(answers, lambda query: len(query.on(domain).part), spreads, tell)


def _in_tables(
    answers: Answers, size: Callable[[Query], int], spreads: _Work, tell: Tell
) -> tuple[Floats, Floats]:
    """Losses by tables of terms, for as many subjects at a time as fit into them.

    ``size`` is that of the terms of a query.
    """

    def given(own: Iterable[int]) -> Given:
        pairs = (answers.given[code] for code in own)
        return [(answers.queries[key], position) for key, position in pairs]

    codes, starts = answers.codes, answers.starts
    by_query = {key: size(answers.queries[key]) for key in {key for key, _ in answers.given}}
    sizes = np.array([by_query[key] for key, _ in answers.given])
    if sizes.sum() <= _LARGEST_TABLE:
        return spreads(given(range(len(sizes))), codes, starts, tell)
    until = np.append(0, np.cumsum(sizes[codes]))[starts]
    ends, start = np.empty((2, len(answers))), 0
    while start < len(answers):
        stop = int(np.searchsorted(until, until[start] + _LARGEST_TABLE, side="right")) - 1
        if stop == start:  # the answers of this one subject do not fit into a table
            stop += 1
            loss = realized_loss(answers.transcript_of(codes[starts[start] : starts[stop]]))
            ends[:, start] = loss.lower, loss.upper
        else:
            own, places = np.unique(codes[starts[start] : starts[stop]], return_inverse=True)
            since = starts[start : stop + 1] - starts[start]
            ends[:, start:stop] = spreads(given(own.tolist()), places, since, lambda _done: None)
        start = stop
        tell(start)
    return ends[0], ends[1]


def _by_pattern(
    answers: Answers, box: Box, effort: Effort, tell: Callable[[int], None]
) -> tuple[Floats, Floats]:
    """Losses by pattern of responses, whatever their order and subject."""
    pattern_of, patterns = answers.patterns()
    sizes = np.bincount(pattern_of)
    number = {key: place for place, key in enumerate(answers.queries)}
    asked = np.array([number[key] for key, _ in answers.given])
    by_queries: dict[bytes, list[int]] = {}
    for place, codes in enumerate(patterns):
        by_queries.setdefault(asked[codes].tobytes(), []).append(place)
    ends, done = np.empty((2, len(patterns))), 0
    for places in by_queries.values():
        together = _together(answers, box, [patterns[place] for place in places], effort.gap)
        if together is not None:
            ends[:, places] = together
            done += int(sizes[places].sum())
            tell(done)
            continue
        for place in places:
            ends[:, place] = 0.0, math.inf  # which is nothing but what basic composition says
            if not effort.used_up:
                exchanges = answers.transcript_of(patterns[place]).exchanges
                loss = log_likelihood(box, exchanges).loss(effort)
                ends[:, place] = loss.lower, loss.upper
            done += int(sizes[place])
            tell(done)
    lower, upper = ends[:, pattern_of]
    return lower, upper


def _together(answers: Answers, box: Box, patterns: list[Indices], gap: float) -> Floats | None:
    """Lower and upper ends for patterns of the same queries, if they can be done all at once."""
    if len(patterns) < _ENOUGH:
        return None
    queries = [answers.queries[answers.given[code][0]] for code in patterns[0]]
    given = [[answers.given[code][1] for code in codes] for codes in patterns]
    from expost.loss.many_concave import concave_spreads  # brings a compiler along

    return concave_spreads(box, queries, np.array(given), gap)


def _basic(answers: Answers) -> Floats:
    """The exact sums of the epsilons, rounded up; equal sums are rounded once.

    Epsilons over a common denominator are added as integers. Of all others it is counted how often
    each was charged.
    """
    domain, grid = answers.domain, Grid()
    asked = list(dict.fromkeys(key for key, _ in answers.given))
    charges = {key: answers.queries[key].ceiling(domain) for key in asked}
    apart = {key: charge for key, charge in charges.items() if not grid.admit(charge)}
    # The grid grows with what it admits, so steps are counted when it is done.
    whole = {key: grid.steps(charges[key].rational) for key in asked if key not in apart}
    steps = np.array([whole.get(key, 0) for key, _ in answers.given], dtype=np.int64)
    beside = [apart.get(key) for key, _ in answers.given]
    first = answers.starts[:-1]
    others = list(dict.fromkeys(apart.values()))
    sums = [np.add.reduceat(steps[answers.codes], first)]
    for other in others:
        own = np.array([charge is not None and charge == other for charge in beside])
        sums.append(np.add.reduceat(own[answers.codes], first, dtype=np.int64))
    kind_of, some = _alike(sums)
    totals = []
    for place in some.tolist():
        counts = [(other, int(count[place])) for other, count in zip(others, sums[1:], strict=True)]
        counted = [(other, count) for other, count in counts if count]
        on_grid = Nats(Fraction(int(sums[0][place]), grid.denominator))
        totals.append(total_charge([(on_grid, 1), *counted]).enclosure.upper)
    return np.array(totals)[kind_of]


def _alike(columns: list[NDArray[np.int64]]) -> tuple[Indices, Indices]:
    """For each subject the number of its row, equal rows once, and one subject for each row."""
    kind_of = np.zeros(len(columns[0]), dtype=np.intp)
    some = kind_of[:1]
    for column in columns:
        # Numbers of rows and entries are small: those of a pair are still words.
        _, entries = np.unique(column, return_inverse=True)
        pairs = kind_of * (int(entries.max()) + 1) + entries
        _, some, kind_of = np.unique(pairs, return_index=True, return_inverse=True)
    return kind_of, some

"""The realized losses of many subjects."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_nats
from expost._types import Floats
from expost.answers import Answers, Subject
from expost.cards import View
from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.errors import expect
from expost.files.canonical import plain_tree
from expost.files.tables import ResultTable, as_lists
from expost.loss import realized_loss
from expost.loss._realized import basic_loss
from expost.numbers import Enclosure
from expost.panel import Search
from expost.panel.kernel import start
from expost.panel.places import Chosen
from expost.panel.questions import Questions
from expost.panel.state import State
from expost.panel.totals import exact_spent_bounds
from expost.queries import Query
from expost.solver import GAP, Effort
from expost.tally import distinct_integers

__all__ = ["Losses", "losses_within", "realized_losses"]


# Tables over all values, of the terms of responses or of the likelihoods of subjects, take up to
# 128 MiB.
_LARGEST_TABLE = 1 << 24

# The likelihoods of so many subjects stay near the processor.
_MOST_SUBJECTS = 1 << 15


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Losses(ResultTable):
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
        return plain_tree(
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
        return {**self.summary(), "losses": [plain_tree(row) for row in self.rows()]}


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

    ends = np.empty((2, len(answers)))
    basic = np.empty(len(answers))
    match answers.domain:
        case Box():
            blocks = _on_box(answers, effort, progress)
        case FiniteSet() | Attributes():
            blocks = _in_blocks(answers)
        case _:
            assert_never(answers.domain)
    for subjects, (lower, upper), spent in blocks:
        ends[:, subjects] = lower, upper
        basic[subjects] = spent
        if progress is not None:
            progress(subjects.stop, len(answers))
    lower, upper = ends[0], np.maximum(ends[0], np.minimum(ends[1], basic))
    exchanges = answers.exchanges
    for array in (lower, upper, exchanges, basic):
        array.setflags(write=False)
    return Losses(answers.subjects, lower, upper, exchanges, basic)


_Block = tuple[slice, tuple[Floats, Floats], Floats]
"""Some subjects, bounds of their losses, and the sums of their epsilons."""


def _in_blocks(answers: Answers) -> Iterator[_Block]:
    """Compute losses on sets and attributes, for as many subjects at a time as fit into memory."""
    domain, starts = answers.domain, answers.starts
    sizes = {key: _value_count(answers.queries[key], domain) for key, _ in answers.given}
    cells = np.array([sizes[key] for key, _ in answers.given])
    most = max(1, min(_MOST_SUBJECTS, _LARGEST_TABLE // int(cells.max())))
    # The registry has a table with the terms of all responses that occurred.
    registry = None
    if cells.sum() <= _LARGEST_TABLE:
        registry = Questions(domain)
        for key in sizes:
            registry.of(answers.queries[key])
    until = np.append(0, np.cumsum(cells[answers.codes]))[starts]
    first = 0
    while first < len(answers):
        end = min(first + most, len(answers))
        if registry is None:
            fitting = np.searchsorted(until, until[first] + _LARGEST_TABLE, side="right")
            end = min(end, max(first + 1, int(fitting) - 1))
        if registry is None and until[end] - until[first] > _LARGEST_TABLE:  # of one subject
            transcript = answers.transcript_of(answers.codes[starts[first] : starts[end]])
            loss, spent = realized_loss(transcript), basic_loss(transcript).enclosure.upper
            bounds = np.array([loss.lower]), np.array([loss.upper])
            yield slice(first, end), bounds, np.array([spent])
        else:
            state = _state(answers, slice(first, end), registry or Questions(domain), None)
            everyone = Chosen(end - first)
            yield slice(first, end), state.losses(everyone), exact_spent_bounds(state)
        first = end


def _value_count(query: Query, domain: Domain) -> int:
    """How many values the terms of a query distinguish."""
    if isinstance(domain, Attributes):
        return len(query.on(domain).part)
    assert isinstance(domain, FiniteSet)
    return len(domain)


def _on_box(
    answers: Answers, effort: Effort, progress: Callable[[int, int], None] | None
) -> Iterator[_Block]:
    """Search for the loss of each tally."""

    def report(done: int, total: int) -> None:
        if progress is not None and done < total:  # the end is reported with the block
            progress(len(answers) * done // total, len(answers))

    subjects = slice(0, len(answers))
    search = Search(effort, progress=report)
    state = _state(answers, subjects, Questions(answers.domain), search)
    yield subjects, state.losses(Chosen(len(answers))), exact_spent_bounds(state)


def _state(answers: Answers, subjects: slice, registry: Questions, search: Search | None) -> State:
    """Return the state of some subjects after their answers."""
    starts = answers.starts[subjects.start : subjects.stop + 1]
    codes = answers.codes[starts[0] : starts[-1]]
    counts = np.diff(starts)
    occurring, responses = distinct_integers(codes)
    given = [answers.given[code] for code in occurring.tolist()]
    numbers = np.array([registry.of(answers.queries[key]).number for key, _ in given])
    positions = [position for _, position in given]
    wide = any(position >= 1 << 63 for position in positions)
    state = start(registry, len(counts), track_peaks=False, search=search)
    owners = np.repeat(np.arange(len(counts)), counts)
    state.load(numbers, np.array(positions, object if wide else np.int64), responses, owners)
    return state

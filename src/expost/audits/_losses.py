"""The realized losses of many subjects, and whether they are within a budget at the end."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_nats
from expost._types import Floats, Progress
from expost.answers import Answers, Subject
from expost.cards import View
from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.errors import InvalidInput, expect, read_at
from expost.files.canonical import plain_tree
from expost.files.tables import ResultTable, as_lists
from expost.filters import Filter
from expost.loss import Odometer, realized_loss
from expost.loss._realized import basic_loss
from expost.numbers import Enclosure, read_only
from expost.panel import Search
from expost.panel._compiled_query import QueryRegistry, position_column
from expost.panel._kernel import start_state
from expost.panel._selection import Selection
from expost.panel._state import State
from expost.queries import Query
from expost.solver import GAP, Effort
from expost.tally import distinct_integers

__all__ = ["AgainstBudget", "Losses", "against_budget", "losses_within", "realized_losses"]


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
    #: The number of responses of each subject.
    exchanges: NDArray[np.intp]
    #: What basic composition charges for these responses: the sum of the epsilons, rounded up.
    basic: Floats

    def __len__(self) -> int:
        return len(self.subjects)

    def _view(self) -> View:
        def row(index: int) -> tuple[object, ...]:
            loss = Enclosure(float(self.lower[index]), float(self.upper[index]))
            rank, charge = int(self.exchanges[index]), float(self.basic[index])
            return self.subjects[index], loss.shown(), rank, format_nats(charge)

        largest = Enclosure(float(self.lower.max()), float(self.upper.max()))
        title = f"Losses({format_count(len(self), 'subject')}, at most {largest.shown()})"
        return View(title, {}, ("subject", "loss", "exchanges", "basic"), len(self), row)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "lower": self.lower,
            "upper": self.upper,
            "exchanges": self.exchanges,
            "basic": self.basic,
        }

    def lists(self) -> dict[str, list[Any]]:
        """Return the columns as lists of plain numbers and strings."""
        return as_lists(self.columns())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the losses subject by subject."""
        columns = self.lists()
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    def summary(self) -> dict[str, Any]:
        """Summarize all subjects together, as JSON, by the upper ends of their losses."""
        tree = {
            "subjects": len(self),
            "exchanges": int(self.exchanges.sum()),
            "mean": float(self.upper.mean()),
            "median": float(np.median(self.upper)),
            "largest": float(self.upper.max()),
            "basic": float(self.basic.mean()),
        }
        return plain_tree(tree)

    def tree(self) -> dict[str, Any]:
        """Return the summary and the losses of all subjects, as JSON."""
        return {**self.summary(), "losses": [plain_tree(row) for row in self.rows()]}


def realized_losses(
    answers: Answers,
    *,
    gap: float = GAP,
    nodes: int | None = None,
    progress: Progress | None = None,
) -> Losses:
    """Compute the realized loss of every subject in a table of answers.

    It is what :func:`realized_loss` returns for each transcript, but much faster. On finite
    domains and attributes, and for unclipped linear queries on a box of real coordinates, all
    subjects are computed at once; in other cases each tally of responses is searched once.

    It warns if the answers are incomplete: queries may depend on responses that are not in the
    table, and then the loss of a part does not bound what that part reveals.

    Args:
        answers: The answers; :func:`load_answers` reads them from files.
        gap: The largest width of a loss on a box, in nats.
        nodes: The most nodes of each search on a box; by default work is limited instead.
        progress: A function that is called with the number of finished subjects and their total.

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


def losses_within(answers: Answers, effort: Effort, progress: Progress | None = None) -> Losses:
    """Compute losses within an effort; what it does not cover is not searched."""
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
    read_only(lower, upper, exchanges, basic)
    return Losses(answers.subjects, lower, upper, exchanges, basic)


#: Some subjects, bounds of their losses, and the sums of their epsilons.
_Block = tuple[slice, tuple[Floats, Floats], Floats]


def _in_blocks(answers: Answers) -> Iterator[_Block]:
    """Compute losses on sets and attributes, for as many subjects at a time as fit into memory."""
    domain, starts = answers.domain, answers.starts
    sizes = {key: _value_count(answers.queries[key], domain) for key, _ in answers.responses}
    cells = np.array([sizes[key] for key, _ in answers.responses])
    block_limit = max(1, min(_MOST_SUBJECTS, _LARGEST_TABLE // int(cells.max())))
    # The registry has a table with the terms of all responses that occurred.
    registry = None
    if cells.sum() <= _LARGEST_TABLE:
        registry = QueryRegistry(domain)
        for key in sizes:
            registry.of(answers.queries[key])
    if (cells == cells[0]).all():
        cells_until = starts * cells[0]
    else:
        cells_of_subjects = np.add.reduceat(cells.take(answers.codes), starts[:-1])
        cells_until = np.append(0, np.cumsum(cells_of_subjects))
    first = 0
    while first < len(answers):
        fitting = int(np.searchsorted(cells_until, cells_until[first] + _LARGEST_TABLE, "right"))
        end = min(first + block_limit, max(first + 1, fitting - 1), len(answers))
        if cells_until[end] - cells_until[first] > _LARGEST_TABLE:  # of one subject
            transcript = answers.transcript_of(answers.codes[starts[first] : starts[end]])
            loss, spent = realized_loss(transcript), basic_loss(transcript).enclosure.upper
            bounds = np.array([loss.lower]), np.array([loss.upper])
            yield slice(first, end), bounds, np.array([spent])
        else:
            state = _state(answers, slice(first, end), registry or QueryRegistry(domain), None)
            all_subjects = Selection(end - first)
            yield slice(first, end), state.losses(all_subjects), state.exact_spent_bounds()
        first = end


def _value_count(query: Query, domain: Domain) -> int:
    """Count the values that the terms of a query distinguish."""
    if isinstance(domain, Attributes):
        return len(query.on(domain).part)
    assert isinstance(domain, FiniteSet)
    return len(domain)


def _on_box(answers: Answers, effort: Effort, progress: Progress | None) -> Iterator[_Block]:
    """Search for the loss of each tally."""

    def report(done: int, total: int) -> None:
        if progress is not None and done < total:  # the end is reported with the block
            progress(len(answers) * done // total, len(answers))

    subjects = slice(0, len(answers))
    search = Search(effort, progress=report)
    state = _state(answers, subjects, QueryRegistry(answers.domain), search)
    yield subjects, state.losses(Selection(len(answers))), state.exact_spent_bounds()


def _state(
    answers: Answers, subjects: slice, registry: QueryRegistry, search: Search | None
) -> State:
    """Return the state of some subjects after their answers."""
    starts = answers.starts[subjects.start : subjects.stop + 1]
    occurring, responses = distinct_integers(answers.codes[starts[0] : starts[-1]])
    responses_given = [answers.responses[code] for code in occurring.tolist()]
    query_indices = np.array(
        [registry.of(answers.queries[key]).index for key, _ in responses_given]
    )
    positions = position_column([position for _, position in responses_given])
    state = start_state(registry, len(starts) - 1, search=search)
    state.load(query_indices, positions, responses, starts - starts[0])
    return state


_WORDS = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AgainstBudget(ResultTable):
    """Subjects whose losses exceed a budget after all of their responses, as the filter counts.

    A verdict about the end only: a loss can fall, so a subject within the budget now may have
    exceeded it earlier. To find out, :func:`replay` each transcript. Subjects over the budget are
    shown first; ``to_polars`` and ``to_pandas`` have all subjects in their order.
    """

    losses: Losses
    filter: Filter
    #: By subject; None where a search on a box could not tell.
    over: tuple[bool | None, ...]

    def __len__(self) -> int:
        return len(self.over)

    @property
    def subjects_over(self) -> tuple[Subject, ...]:
        """The subjects who are certainly over the budget."""
        pairs = zip(self.losses.subjects, self.over, strict=True)
        return tuple(subject for subject, over in pairs if over)

    @property
    def over_budget(self) -> int:
        """The number of subjects who are certainly over the budget."""
        return self.over.count(True)

    @property
    def undecided(self) -> int:
        """The number of subjects whose comparison is undecided."""
        return self.over.count(None)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the losses, and whether each is over the budget, in words."""
        return {**self.losses.lists(), "over": [_WORDS[is_over] for is_over in self.over]}

    def _view(self) -> View:
        first = {True: 0, None: 1, False: 2}
        order = sorted(range(len(self)), key=lambda index: first[self.over[index]])
        losses = self.losses

        def row(rank: int) -> tuple[object, ...]:
            index = order[rank]
            loss = Enclosure(float(losses.lower[index]), float(losses.upper[index]))
            subject, exchanges = losses.subjects[index], int(losses.exchanges[index])
            return subject, _WORDS[self.over[index]], loss.shown(), exchanges

        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return View(
            f"AgainstBudget({self.over_budget:,} of {format_count(len(self), 'subject')} over "
            f"{self.filter.limit}{undecided})",
            {"filter": self.filter.kind, "when": "at the end; replay checks every exchange"},
            ("subject", "over", "loss", "exchanges"),
            len(self),
            row,
        )

    def summary(self) -> dict[str, Any]:
        """Return a summary of the losses, and the number of subjects over the budget, as JSON."""
        against = {
            "budget": self.filter.budget.nearest,
            "filter": self.filter.kind,
            "over": self.over_budget,
            "undecided": self.undecided,
        }
        return {**self.losses.summary(), "at_the_end": against}

    def tree(self) -> dict[str, Any]:
        """Return the summary and the rows of all subjects, as JSON."""
        rows = self.losses.tree()["losses"]
        rows_with_verdicts = [
            {**row, "over": over} for row, over in zip(rows, self.over, strict=True)
        ]
        return {**self.summary(), "losses": rows_with_verdicts}


def against_budget(
    answers: Answers, losses: Losses, filter_: Filter, *, effort: Effort | None = None
) -> AgainstBudget:
    """Hold the losses of subjects against the budget of a filter, exactly where that is possible.

    ``losses`` are those of the ``answers``. The enclosures decide most subjects. If the budget is
    between the ends, for example because a subject spent exactly all of it, the exact loss on a
    finite domain decides, one pattern of responses at a time.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon="0.5")
    >>> table = {"subject": ["a", "b", "b"], "query": ["q"] * 3, "response": ["no", "no", "no"]}
    >>> answers = xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": query}, table)
    >>> losses = xp.realized_losses(answers)
    >>> found = against_budget(answers, losses, xp.BayesianFilter(epsilon="0.5"))
    >>> found.subjects_over
    ('b',)
    >>> found
    AgainstBudget(1 of 2 subjects over 0.5)
    subject  over  loss  exchanges
    b        yes   1     2
    a        no    0.5   1
    filter: bayesian
    when: at the end; replay checks every exchange
    """
    expect(filter_, Filter, "a filter, such as BayesianFilter(epsilon=1)")
    read_at("filter", filter_.check_domain, answers.domain)
    if losses.subjects != answers.subjects:
        raise InvalidInput("differ from those of these answers", "losses")
    within, over = np.ones((2, len(losses)), dtype=np.bool_) & [[True], [False]]
    for one in filter_.members:
        limit = one.budget.enclosure
        # No filter holds more against its budget than the epsilons, unless it has a delta.
        fits = (losses.basic <= limit.lower) & one.pure
        if one.pure and one.by_loss:
            # A loss at a level is at most the loss about the person as a whole.
            fits |= losses.upper <= limit.lower
        within &= fits
        if one.loss_limit is not None and one.by_loss:
            over |= losses.lower > limit.upper
    verdicts_over: list[bool | None] = over.tolist()
    for index, verdict in _one_by_one(answers, filter_, ~(within | over), effort or Effort()):
        verdicts_over[index] = verdict
    within = np.array([verdict is False for verdict in verdicts_over])
    upper = filter_.cap_accepted(losses.lower, losses.upper, within)
    return AgainstBudget(replace(losses, upper=upper), filter_, tuple(verdicts_over))


def _one_by_one(
    answers: Answers, filter_: Filter, undecided_mask: NDArray[np.bool_], effort: Effort
) -> Iterator[tuple[int, bool | None]]:
    """Decide for each undecided subject whether the budget is exceeded; equal answers once."""
    if not undecided_mask.any():
        return
    over_by_tally: dict[int, bool | None] = {}
    tallies = answers.tallies()
    for index in np.flatnonzero(undecided_mask).tolist():
        tally = int(tallies.of_subject[index])
        if tally not in over_by_tally:
            holds = None
            if not effort.used_up:
                transcript = answers.transcript_of(tallies.responses(tally))
                holds = filter_.holds(Odometer(transcript, effort=effort))
            over_by_tally[tally] = None if holds is None else not holds
        yield index, over_by_tally[tally]

"""Many subjects' losses against a budget, by their end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost.answers import Answers, Subject
from expost.audits.losses import Losses
from expost.cards import View
from expost.errors import InvalidInput, expect
from expost.files.tables import ResultTable
from expost.filters import Filter
from expost.loss import Odometer
from expost.numbers import Enclosure
from expost.solver import Effort

__all__ = ["AgainstBudget", "against_budget"]

_WORDS = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AgainstBudget(ResultTable):
    """Who is over a budget after all of their responses, as the filter counts.

    A verdict about the end only: a loss can fall, so whoever is within the budget now may have been
    over it on the way. That is for :func:`replay` of each transcript. Whoever is over it is shown
    first; ``to_polars`` and ``to_pandas`` have all in their order.
    """

    losses: Losses
    guard: Filter
    over: tuple[bool | None, ...]
    """By subject; None where a search on a box could not tell."""

    def __len__(self) -> int:
        return len(self.over)

    @property
    def subjects_over(self) -> tuple[Subject, ...]:
        """Who is certainly over it."""
        pairs = zip(self.losses.subjects, self.over, strict=True)
        return tuple(subject for subject, over in pairs if over)

    @property
    def over_budget(self) -> int:
        """How many are certainly over it."""
        return self.over.count(True)

    @property
    def undecided(self) -> int:
        """How many may be."""
        return self.over.count(None)

    def columns(self) -> dict[str, Any]:
        """The columns of the losses, and whether each is over the budget, in words."""
        return {**self.losses.lists(), "over": [_WORDS[each] for each in self.over]}

    def _view(self) -> View:
        first = {True: 0, None: 1, False: 2}
        order = sorted(range(len(self)), key=lambda place: first[self.over[place]])
        losses = self.losses

        def row(number: int) -> tuple[object, ...]:
            place = order[number]
            loss = Enclosure(float(losses.lower[place]), float(losses.upper[place]))
            subject, exchanges = losses.subjects[place], int(losses.exchanges[place])
            return subject, _WORDS[self.over[place]], loss.shown(), exchanges

        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return View(
            f"AgainstBudget({self.over_budget:,} of {format_count(len(self), 'subject')} over "
            f"{self.guard.limit}{undecided})",
            {"filter": self.guard.kind, "when": "at the end; on the way is for replay"},
            ("subject", "over", "loss", "exchanges"),
            len(self),
            row,
        )

    def summary(self) -> dict[str, Any]:
        """The losses together, and how many subjects are over the budget, as JSON."""
        against = {
            "budget": self.guard.budget.nearest,
            "filter": self.guard.kind,
            "over": self.over_budget,
            "undecided": self.undecided,
        }
        return {**self.losses.summary(), "at_the_end": against}

    def tree(self) -> dict[str, Any]:
        """The same, and subject by subject."""
        rows = self.losses.tree()["losses"]
        told = [{**row, "over": over} for row, over in zip(rows, self.over, strict=True)]
        return {**self.summary(), "losses": told}


def against_budget(
    answers: Answers, losses: Losses, guard: Filter, *, effort: Effort | None = None
) -> AgainstBudget:
    """Hold the losses of subjects against the budget of a filter, exactly where that is possible.

    ``losses`` are those of the ``answers``. Most subjects are decided by their enclosures. Those
    for whom the budget is between the ends, as for whoever spent exactly all of it, are decided one
    pattern of responses at a time, by the exact loss on a finite domain.

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
    when: at the end; on the way is for replay
    """
    expect(guard, Filter, "a filter, such as BayesianFilter(epsilon=1)")
    if losses.subjects != answers.subjects:
        raise InvalidInput("are not those of these answers", "losses")
    limit = guard.budget.enclosure
    # No filter holds more against its budget than the epsilons, unless it has a delta.
    within = (losses.basic <= limit.lower) & guard.pure
    over = np.zeros(len(losses), dtype=np.bool_)
    if guard.pure and guard.by_loss:
        within |= losses.upper <= limit.lower
        over = losses.lower > limit.upper
    found: list[bool | None] = over.tolist()
    for place, verdict in _one_by_one(answers, guard, ~(within | over), effort or Effort()):
        found[place] = verdict
    within = np.array([verdict is False for verdict in found])
    upper = guard.cap_accepted(losses.lower, losses.upper, within)
    return AgainstBudget(replace(losses, upper=upper), guard, tuple(found))


def _one_by_one(
    answers: Answers, guard: Filter, open_: NDArray[np.bool_], effort: Effort
) -> list[tuple[int, bool | None]]:
    """For each subject that is open, whether the budget is exceeded; equal answers count once."""
    verdicts: dict[int, bool | None] = {}
    places = np.flatnonzero(open_).tolist()
    if not places:
        return []
    tallies = answers.tallies()
    result: list[tuple[int, bool | None]] = []
    for place in places:
        tally = int(tallies.of_subject[place])
        if tally not in verdicts:
            holds = None
            if not effort.used_up:
                transcript = answers.transcript_of(tallies.responses(tally))
                holds = guard.holds(Odometer(transcript, effort=effort))
            verdicts[tally] = None if holds is None else not holds
        result.append((place, verdicts[tally]))
    return result

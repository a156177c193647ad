"""What many subjects on a finite domain answered so far, in arrays.

Beside its answers, every subject has the largest difference of its ℓ now and at its peak. What ℓ is
on a kind of domain, a subclass knows. Proof: docs/theory/panels.md.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Domain
from expost.filters._many_accounts import Accounts
from expost.numbers import UNIT, Nats
from expost.panel.accounts import FiniteAccounts
from expost.panel.places import Chosen
from expost.panel.question import TERM_ERROR, TINY, FiniteQuestion, Question
from expost.panel.questions import Questions
from expost.panel.state import State
from expost.panel.ties import Compared

__all__ = ["FiniteState"]


# A sum, a difference and what is added to it round once each, and so do the bounds.
_ROUNDINGS = TERM_ERROR + 8


class FiniteState(State):
    """The answers of so many subjects on a set or on records."""

    roundings: ClassVar[int] = 1
    """How often the sums of a subject are rounded for each of its responses."""

    def __init__(
        self, domain: Domain, questions: Questions, count: int, *, track_peaks: bool = True
    ) -> None:
        super().__init__(domain, questions, count, track_peaks=track_peaks)
        self._spread: Floats | None = np.zeros(count)
        self.peak = np.zeros(count)
        """The largest that ``spread`` was on the way, if peaks are tracked."""
        self.impossible = np.zeros(count, dtype=np.bool_)
        """Whose responses rule some value out: their loss is infinite."""
        self._size = np.zeros(count)

    @property
    def spread(self) -> Floats:
        """max ℓ - min ℓ now, in doubles; :meth:`around` says how far off."""
        if self._spread is None:
            self._spread = self._measured()
        return self._spread

    def accounts(self, chosen: Chosen) -> Accounts:
        return FiniteAccounts(self, chosen)

    def _absorb(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        assert isinstance(question, FiniteQuestion)
        if self.track_peaks:
            self._add(question, codes, chosen)
            self.peak[chosen.index] = np.maximum(self.peak[chosen.index], self.spread[chosen.index])
        else:
            self._add_unmeasured(question, codes, chosen)
            self._spread = None
        self._size[chosen.index] += question.size
        if question.impossible.any():
            self.impossible[chosen.index] |= question.impossible[codes]

    def _absorb_counts(
        self, question: Question, codes: Indices, counts: Floats, total: Floats
    ) -> None:
        # At most as many roundings as responses: a product for each different one, and a sum.
        assert isinstance(question, FiniteQuestion)
        self._add_counts(question, codes, counts)
        self._spread = None
        self._size += question.size * total
        impossible = question.impossible[codes]
        if impossible.any():
            self.impossible |= counts[impossible].any(axis=0)

    def slack(self, chosen: Chosen, more: float = 0.0) -> Floats:
        """What a difference of two sums may be off, perhaps with D of so much added to it."""
        exchanges, size = self.exchanges[chosen.index], self._size[chosen.index]
        # Each of the two ends is a sum of terms, in any order: their errors, and a rounding for
        # each of them. The odd thousandth covers the rounding of this bound.
        slack = (self.roundings * exchanges + float(_ROUNDINGS)) * (size + more)
        slack *= 2.001 * UNIT
        slack += TINY * (2.001 * exchanges + 2)
        return np.asarray(slack)

    def around(self, amounts: Floats, slack: Floats, chosen: Chosen) -> tuple[Floats, Floats]:
        """Lower and upper bounds of losses, from doubles and what they may be off."""
        lower, upper = np.maximum(amounts - slack, 0.0), amounts + slack
        never = self.impossible[chosen.index]
        if never.any():
            lower[never] = upper[never] = np.inf
        nothing = self.exchanges[chosen.index] == 0
        if nothing.any():
            upper[nothing & (amounts == 0)] = 0.0
        return lower, upper

    def losses(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the realized losses now, which are never above the sum of the epsilons."""
        return self._capped(self.spread[chosen.index], chosen)

    def peaks(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the largest realized losses on the way."""
        assert self.track_peaks, "a tally has no order"
        return self._capped(self.peak[chosen.index], chosen)

    def _capped(self, amounts: Floats, chosen: Chosen) -> tuple[Floats, Floats]:
        lower, upper = self.around(amounts, self.slack(chosen), chosen)
        _, most = self.spent.around(chosen, None)
        return lower, np.maximum(lower, np.minimum(upper, most))

    @abstractmethod
    def _add(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        """Add responses to ℓ, and update ``spread`` for these subjects."""

    @abstractmethod
    def _add_unmeasured(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        """Add responses to ℓ alone."""

    @abstractmethod
    def _add_counts(self, question: FiniteQuestion, codes: Indices, counts: Floats) -> None:
        """Add counted responses to ℓ alone: a row for each code, a column for each subject."""

    @abstractmethod
    def _measured(self) -> Floats:
        """Return max ℓ - min ℓ of every subject."""

    @abstractmethod
    def worst(self, question: FiniteQuestion, chosen: Chosen) -> Floats:
        """max ℓ(x) - ℓ(x') + D(x, x') in doubles."""

    @abstractmethod
    def compare(
        self, question: FiniteQuestion | None, simply: bool, places: Indices, budget: Nats
    ) -> Compared:
        """Compare losses with a budget that doubles cannot tell them from.

        Losses now without a question; else after it, or if ``simply`` losses now plus its epsilon.
        What is neither within nor above is left to rationals.
        """

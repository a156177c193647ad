"""Saturating queries for the subjects of a ledger, from their tallies.

As on a panel each is made once for all who are in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expost.ledger.tallies import pairs_of
from expost.ledger.words import Words
from expost.panel.kernel import Kernel
from expost.panel.places import Places
from expost.panel.questions import Questions
from expost.panel.saturating import Saturating, Wanted
from expost.queries import Query
from expost.transcript import Summand

__all__ = ["ByTallies"]

# The most tallies of which it is remembered what was made for them.
_MOST = 1 << 16


class ByTallies:
    """The queries that were made so far, and for which tallies."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._forget()

    def _forget(self) -> None:
        self._made = Saturating(self._kernel.questions)
        self._numbers: dict[bytes, int] = {}

    def queries(
        self, wanted: Wanted, packed: Sequence[bytes], words: Words
    ) -> tuple[list[Query | None], Places]:
        """The different queries for these tallies, and which is whose; None if there is none."""
        if len(self._numbers) > _MOST:
            self._forget()
        known = self._numbers
        numbers = np.array([known.setdefault(each, len(known)) for each in packed], dtype=np.intp)
        return self._made.queries(wanted, numbers, _Told(list(known), words))


class _Told:
    """What tallies say, by their numbers."""

    def __init__(self, packed: Sequence[bytes], words: Words) -> None:
        self._packed = packed
        self._words = words

    def summands(self, number: int, questions: Questions) -> list[Summand]:
        words = self._words
        return [
            Summand(words.query(words.response(each).query), words.position(each), times)
            for each, times in pairs_of(self._packed[number])
        ]

"""One call of :meth:`Ledger.ask`: who is asked what, and what comes back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from expost.answers import Subject
from expost.ledger.calls import anything_asked, parts
from expost.ledger.core import Core
from expost.ledger.requests import Asked
from expost.panel.kernel import groups
from expost.panel.results import Replies
from expost.panel.values import values_of
from expost.queries import Query
from expost.session.secret import Secret, Single

__all__ = ["Asking", "Meant"]

Ints = NDArray[np.int64]
Meant = tuple[tuple[Subject, ...], Ints, list[Query], Ints]
"""Names and numbers of subjects, different queries, and which of them each is asked."""


class Asking(Single):
    """An errand of turns."""

    def __init__(self, core: Core, key: str, meant: Callable[[], Meant], secret: Secret) -> None:
        self._core = core
        self._key = key
        self._meant = meant
        self._secret = secret
        self._names: tuple[Subject, ...] = ()
        self._requests: list[Asked] = []
        self._replies: Replies | None = None

    @property
    def replies(self) -> Replies:
        """What is returned, once it is finished."""
        assert self._replies is not None
        return self._replies

    def __len__(self) -> int:
        """How many rows are asked something."""
        return sum(map(len, self._requests))

    def prepare(self) -> list[Asked]:
        self._names, numbers, asked, which = self._meant()
        held = values_of(self._core.policy.domain, self._secret, len(self._names), asked)
        rows = anything_asked(which)
        self._requests = [
            Asked(part, held) for part in parts(self._key, numbers, asked, which, rows)
        ]
        return self._requests

    def finish(self) -> None:
        words = self._core.words  # of which all that is needed is recorded, and stays
        asked, responses = np.zeros((2, len(self._names)), dtype=np.int64)
        for each in self._requests:
            asked[each.rows], responses[each.rows] = each.queries, each.responses
        answered = responses > 0
        given, places = [], answered.nonzero()[0]
        for query, own in groups(asked[places]):
            rows = places[own]
            positions = words.positions_of(responses[rows])
            question = self._core.kernel.questions[words.question(query)]
            given.append((rows, question.responses, positions))
        ids = tuple([words.names[number] or None for number in asked.tolist()])
        self._replies = Replies(self._names, ids, answered, tuple(given))

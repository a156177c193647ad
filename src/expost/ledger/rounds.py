"""What became of every question, by its key: the rounds of a study."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from expost.ledger.backend import DECLINED
from expost.ledger.core import Core
from expost.ledger.history import SHIFT, Rows, unanswered
from expost.ledger.requests import TURN

__all__ = ["Round", "rounds_of"]

_MADE_UP = re.compile(r"[0-9a-f]{32}")
"""A key that was made up, because nobody gave one."""


@dataclass(frozen=True, slots=True)
class Round:
    """One question under one key, over everybody who was asked it."""

    key: str | None
    """None for all requests whose keys the ledger made up."""
    query: str
    """The name of the query."""
    answered: int
    refused: int
    """By the filter."""
    declined: int
    """By a device, before it had sent anything."""
    waiting: int
    """Reserved, and not answered so far."""


def rounds_of(core: Core) -> tuple[Round, ...]:
    """All rounds, in the order of their first requests."""
    rows, reserved = Rows.of(iter(core.backend.rows())), Rows.of(core.backend.reservations())
    core.words.read(core.backend)
    keys = list(dict.fromkeys((*rows.keys, *reserved.keys)))
    waiting = unanswered(reserved, rows)
    number: dict[str, int] = {}
    shown: dict[str | None, int] = {}
    for key in keys:
        given = key.partition(TURN)[0]
        number[key] = shown.setdefault(None if _MADE_UP.fullmatch(given) else given, len(shown))
    codes = np.concatenate([part.paired(number, part.query) for part in (rows, waiting)])
    commits = np.concatenate([rows.commit, waiting.commit])
    refused = np.where(rows.response == DECLINED, 2, 1)
    outcomes = np.concatenate([np.where(rows.sequence > 0, 0, refused), np.full(len(waiting), 3)])
    found, place = np.unique(codes, return_inverse=True)
    earliest = np.full(len(found), np.iinfo(np.int64).max)
    np.minimum.at(earliest, place, commits)
    counts = np.zeros((len(found), 4), dtype=np.int64)
    np.add.at(counts, (place, outcomes), 1)
    names = list(shown)
    return tuple(
        Round(
            names[int(found[each]) >> SHIFT],
            core.words.names[int(found[each]) & ((1 << SHIFT) - 1)],
            *counts[each].tolist(),
        )
        for each in np.argsort(earliest, kind="stable").tolist()
    )

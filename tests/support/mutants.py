"""Ledgers with one fault each, which the simulator has to notice; by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import apsw

from expost.ledger import adding, core, history, ledger, settings
from expost.ledger.backend import Looked
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.ranges import Ranges
from expost.ledger.records import Change, Outcome, Tip
from expost.ledger.requests import Request, Situation
from expost.ledger.sqlite import Sqlite
from support.sites import template
from support.vaults import Door
from support.worlds import KINDS, Violation, World

__all__ = ["MUTANTS", "caught"]

Mutant = Callable[[], Any]


def normal_in_place_of_full() -> Any:
    """Commits are not synchronized."""
    weak = settings.Required("NORMAL", (1,), "")
    return patch.dict(settings.REQUIRED, {"synchronous": weak})


@contextmanager
def release_before_commit() -> Iterator[None]:
    """A change is recorded when the next request comes."""
    append, late = core.Core.append, dict[int, list[Any]]()

    def appended(self: core.Core, change: Change, after: Tip | None = None) -> bool:
        waiting = late.setdefault(id(self), [])
        waiting.append(change)
        while len(waiting) > 1:
            if not append(self, waiting.pop(0)):
                return False
        self.words.settle()
        return True

    with patch.object(core.Core, "append", appended):
        yield


@contextmanager
def compare_and_swap_dropped() -> Iterator[None]:
    """Heads are moved whoever else has moved them."""
    with (
        patch.object(adding, "_UPDATE", adding._UPDATE.split("AND")[0]),
        patch.object(adding, "_ADVANCE", adding._ADVANCE.split("WHERE")[0]),
        patch.object(Door, "compares", False),
    ):
        yield


@contextmanager
def key_not_permanent() -> Iterator[None]:
    """A key may be used again, and is decided about again."""

    def forgetful(self: Any, key: str, subjects: Sequence[int]) -> dict[int, Outcome]:
        return {}

    def once(table: Any, row: Any) -> None:
        table[row.key, row.subject, row.commit] = row

    statement = adding._INSERT["requests"].replace("INSERT", "INSERT OR IGNORE")
    with (
        patch.object(Sqlite, "outcomes", forgetful),
        patch.object(Door, "outcomes", forgetful),
        patch.object(Door, "_once", staticmethod(once)),
        patch.dict(adding._INSERT, {"requests": statement}),
    ):
        yield


def refusal_not_recorded() -> Any:
    """Who is refused is told so, and nobody else."""

    def refuse(self: Request, change: Change, found: Situation) -> None:
        for number in (~found.accepted).nonzero()[0].tolist():
            row = int(found.rows[number])
            self.outcomes[row] = Outcome(int(self.queries[row]), 0, 0)

    return patch.object(Request, "_refuse", refuse)


def checkpoint_ignored() -> Any:
    """Any database is opened."""
    return patch.object(ledger, "check", lambda backend, checkpoint: None)


@contextmanager
def tally_outside_of_the_transaction() -> Iterator[None]:
    """Heads are moved in a transaction of their own, after the commit."""
    append, late = Sqlite.append, list[Any]()

    def later(move: Any) -> Any:
        return lambda cursor, *given: late.append((move, given))

    def appended(self: Sqlite, change: Any, lines: Any, after: Any = None) -> Any:
        late.clear()
        tip = append(self, change, lines, after)
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            for move, given in late:
                move(self._cursor, *given)
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise self._failed(error) from None
        return tip

    with (
        patch.object(adding, "_move", later(adding._move)),
        patch.object(adding, "_advance", later(adding._advance)),
        patch.object(Sqlite, "append", appended),
    ):
        yield


def commits_left_out_of_the_checkpoint() -> Any:
    """Nobody misses a commit of which no line is there, once there is a later one."""

    def missing(self: Checkpoint, commits: int) -> Ranges:
        last = self.last()
        return Ranges().missing(last.commits + 1 if last else 1, commits)

    return patch.object(Checkpoint, "missing", missing)


def repeated_before_its_checkpoint() -> Any:
    """What another worker recorded is released, whether or not there is a line about it."""
    return patch.object(core.Core, "show", lambda self, commit=None: None)


def repeated_unchecked() -> Any:
    """A row is released as it is."""

    def shown(self: core.Core, requests: Sequence[Request], found: Looked) -> None:
        self.show()

    return patch.object(core.Core, "_check_repeated", shown)


def answers_unchecked() -> Any:
    """Rows are released as they are."""
    return patch.object(history.History, "check", lambda self, core: None)


MUTANTS: dict[str, tuple[Mutant, str]] = {
    "NORMAL in place of FULL": (normal_in_place_of_full, "disk"),
    "release before commit": (release_before_commit, "disk"),
    "compare-and-swap dropped": (compare_and_swap_dropped, "vault"),
    "compare-and-swap dropped, in SQLite": (compare_and_swap_dropped, "file"),
    "key not permanent": (key_not_permanent, "vault"),
    "key not permanent, in SQLite": (key_not_permanent, "disk"),
    "refusal not recorded": (refusal_not_recorded, "vault"),
    "refusal not recorded, in SQLite": (refusal_not_recorded, "disk"),
    "checkpoint ignored": (checkpoint_ignored, "disk"),
    "checkpoint ignored, in memory": (checkpoint_ignored, "vault"),
    "tally updated outside of the transaction": (tally_outside_of_the_transaction, "disk"),
    "commits left out of the checkpoint": (commits_left_out_of_the_checkpoint, "vault"),
    "commits left out, in SQLite": (commits_left_out_of_the_checkpoint, "file"),
    "repeated before its checkpoint": (repeated_before_its_checkpoint, "vault"),
    "repeated before its checkpoint, in SQLite": (repeated_before_its_checkpoint, "file"),
    "flipped bits are repeated": (repeated_unchecked, "vault"),
    "flipped bits are repeated, in SQLite": (repeated_unchecked, "disk"),
    "flipped bits among answers": (answers_unchecked, "disk"),
}
"""With the kind of world in which each is looked for."""


def caught(name: str, most: int) -> tuple[int, str] | None:
    """The first seed that notices a mutant, and what it says; None if none does."""
    mutant, kind = MUTANTS[name]
    assert kind in KINDS
    template()  # which is kept for later worlds: it has to come from a ledger without a fault
    with mutant():
        for seed in range(most):
            try:
                World(seed, kind).run()
            except Violation as violation:
                return seed, str(violation)
            except Exception as error:  # a crash of ours is noticed as well
                return seed, repr(error)
    return None

"""A ledger in memory, of which several workers may have a door, and which fails as it is told."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from expost.ledger import Backend, Tip
from expost.ledger.backend import DECLINED, Row, Stale
from expost.ledger.digests import next_root
from expost.ledger.errors import Broken, Damaged
from expost.ledger.records import Change, Head, Kept, Outcome, QueryWord, ResponseWord

__all__ = ["Door", "Vault"]


@dataclass
class Vault:
    """What is durable."""

    document: str
    roots: list[bytes]
    queries: list[QueryWord] = field(default_factory=list)
    introduced: list[int] = field(default_factory=list)
    responses: list[ResponseWord] = field(default_factory=list)
    subjects: list[tuple[str, int]] = field(default_factory=list)
    heads: dict[int, Head] = field(default_factory=dict)
    requests: dict[tuple[str, int], Row] = field(default_factory=dict)
    reservations: dict[tuple[str, int], Row] = field(default_factory=dict)
    closures: dict[int, int] = field(default_factory=dict)
    kept: list[tuple[Kept, int]] = field(default_factory=list)
    ended: int = 0

    def copy(self) -> Vault:
        """A backup."""
        return copy.deepcopy(self)


class Door(Backend):
    """A worker's way to a vault."""

    compares = True
    """Whether it looks at what a change is based on; a door that does not is a mutant."""

    def __init__(self, vault: Vault, committing: Callable[[], str] = lambda: "") -> None:
        self.vault = vault
        self._committing = committing
        """Says how the next commit ends: well, or "lost", or "kept" without an answer."""
        self._broken = False

    def policy(self) -> str:
        return self.vault.document

    def tip(self) -> Tip:
        return Tip(len(self.vault.roots) - 1, self.vault.roots[-1])

    def root(self, commit: int) -> bytes | None:
        return self.vault.roots[commit] if commit < len(self.vault.roots) else None

    def queries(self, after: int = 0) -> list[QueryWord]:
        return self.vault.queries[after:]

    def introduced(self) -> list[tuple[QueryWord, int]]:
        return list(zip(self.vault.queries, self.vault.introduced, strict=True))

    def responses(self, after: int = 0) -> list[ResponseWord]:
        return self.vault.responses[after:]

    def subjects(self, after: int = 0) -> list[tuple[int, str]]:
        return [(number, name) for number, (name, _) in enumerate(self.vault.subjects, 1)][after:]

    def numbers(self, names: Sequence[str]) -> list[int]:
        known = {name: number for number, name in self.subjects()}
        return [known.get(name, 0) for name in names]

    def size(self) -> int:
        return len(self.vault.subjects)

    def heads(self, subjects: Sequence[int]) -> list[Head]:
        return [self.vault.heads[number] for number in subjects]

    def waiting(self, first: int, last: int) -> list[int]:
        own = range(first, last + 1)
        return [number for number in own if number in self.vault.heads
                and self.vault.heads[number].reserved]  # fmt: skip

    def outcomes(self, key: str, subjects: Sequence[int]) -> dict[int, Outcome]:
        result: dict[int, Outcome] = {}
        for table in (self.vault.reservations, self.vault.requests):
            for number in subjects:
                row = table.get((key, number))
                if row is not None:
                    sequence = row.sequence
                    if row.response == DECLINED:
                        sequence = result[number].sequence
                    result[number] = Outcome(row.query, sequence, row.response, row.commit)
        return result

    def append(self, change: Change, lines: Sequence[bytes], after: Tip | None = None) -> Tip:
        if self._broken:
            raise Broken("an earlier write failed; open the ledger again")
        if after not in (None, self.tip()):
            raise Stale
        new = self.vault.copy()
        tip = Tip(len(new.roots), next_root(new.roots[-1], lines))
        self._apply(new, change, tip.commits)
        new.roots.append(tip.root)
        ending = self._committing()
        if ending == "lost":
            self._broken = True
            raise Broken("the commit failed")
        self.vault.__dict__.update(new.__dict__)
        if ending == "kept":
            self._broken = True
            raise Broken("the commit did not answer")
        return tip

    def _apply(self, vault: Vault, change: Change, made: int) -> None:
        for query in change.queries:
            known = {each.content_id for each in vault.queries} | {e.name for e in vault.queries}
            if query.number != len(vault.queries) + 1 or {query.content_id, query.name} & known:
                raise Stale
            vault.queries.append(query)
            vault.introduced.append(made)
        for response in change.responses:
            same = {(each.query, each.response) for each in vault.responses}
            if (
                response.number != len(vault.responses) + 1
                or (response.query, response.response) in same
            ):
                raise Stale
            vault.responses.append(response)
        for number, name, digest in change.subjects:
            if number != len(vault.subjects) + 1 or name in {each for each, _ in vault.subjects}:
                raise Stale
            vault.subjects.append((name, made))
            vault.heads[number] = Head(0, digest, b"", False, "", 0)
        moves = (*change.declined, *change.reserved, *change.closed, *change.refused)
        for subject, before, after in (
            *((each.subject, each.before, each.after) for each in change.answers),
            *((each.subject, each.before, each.after) for each in moves),
        ):
            now = vault.heads.get(subject)
            if now is None or (self.compares and (now.sequence, now.closed, now.reserved) != (
                before.sequence, before.closed, before.reserved,
            )):  # fmt: skip
                raise Stale
            vault.heads[subject] = after
            if after.closed and not before.closed:
                vault.closures[subject] = made
        rows = [
            *((each.key, each.subject, each.query, each.after.sequence, each.response)
              for each in change.answers),
            *((each.key, each.subject, each.query, 0, 0) for each in change.refused),
            *((each.key, each.subject, each.query, 0, DECLINED) for each in change.declined),
        ]  # fmt: skip
        for row in rows:
            self._once(vault.requests, Row(*row, made))
        for move in change.reserved:
            row = (move.key, move.subject, move.query, move.before.sequence + 1, 0)
            self._once(vault.reservations, Row(*row, made))
        for kept in change.kept:
            if any((each.subject, each.digest) == kept[:2] for each, _ in vault.kept):
                raise Stale
            vault.kept.append((kept, made))
        if change.end:
            if vault.ended:
                raise Stale
            vault.ended = made

    @staticmethod
    def _once(table: dict[tuple[str, int], Row], row: Row) -> None:
        if (row.key, row.subject) in table:
            raise Stale
        table[row.key, row.subject] = row

    def exchanges(self, subject: int, head: Head) -> list[Row]:
        own = [row for row in self.vault.requests.values() if row.subject == subject]
        own = [row for row in own if 0 < row.sequence <= head.sequence]
        answered = sorted(own, key=lambda row: row.sequence)
        if [row.sequence for row in answered] != list(range(1, head.sequence + 1)):
            raise Damaged("an exchange is missing, or there twice")
        return answered

    def unlinked(self) -> list[int]:
        return []  # exchanges are found by their numbers

    def rows(self) -> Iterator[Row]:
        return iter(list(self.vault.requests.values()))

    def reservations(self) -> Iterator[Row]:
        return iter(list(self.vault.reservations.values()))

    def registered(self) -> Iterator[tuple[int, str, int]]:
        for number, (name, made) in enumerate(self.vault.subjects, 1):
            yield number, name, made

    def closures(self) -> list[tuple[int, int]]:
        return list(self.vault.closures.items())

    def moved_in(self, commits: Sequence[int]) -> list[int]:
        rows = [*self.vault.requests.values(), *self.vault.reservations.values()]
        moved = {row.subject for row in rows if row.sequence and row.commit in commits}
        return sorted(moved | {n for n, made in self.vault.closures.items() if made in commits})

    def reason_kept(self, subject: int, digest: str) -> str | None:
        found = [e.reason for e, _ in self.vault.kept if (e.subject, e.digest) == (subject, digest)]
        return found[0] if found else None

    def kept(self) -> list[tuple[Kept, int]]:
        return list(self.vault.kept)

    def ended(self) -> int:
        return self.vault.ended

    def roots(self) -> Iterator[bytes]:
        return iter(list(self.vault.roots))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        yield

    def close(self) -> None:
        pass

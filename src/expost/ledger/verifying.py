"""Everything that a ledger keeps, worked out again from its exchanges.

Chains, tallies, every decision, and the root of every commit. What was recorded is compared with
what follows from it; nothing is taken from a head.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.audits.plan import Plan
from expost.audits.verdicts import verdicts
from expost.ledger import lines
from expost.ledger.backend import DECLINED
from expost.ledger.core import Core
from expost.ledger.digests import first_head, next_head, next_root
from expost.ledger.errors import Damaged
from expost.ledger.history import History, Rows, unanswered
from expost.ledger.tallies import Tallies

__all__ = ["Verification", "verified"]

Ints = NDArray[np.int64]
Tell = Callable[[int, int], None]

_SHOWN = 20
_OF_A_HEAD = ("length", "chain", "tally", "closing", "reservation")
_NEVER = 1 << 62
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Verification:
    """What came out when everything was worked out again."""

    subjects: int
    exchanges: int
    commits: int
    problems: tuple[str, ...]
    """What is not as it should be; the first ones."""
    undecided: int
    """How many subjects have an exchange that a search on a box could not decide about."""

    @property
    def good(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        counts = f"{self.subjects:,} subjects, {self.exchanges:,} exchanges"
        counts += f", {self.commits:,} commits"
        if self.good:
            text = f"verified: {counts}; chains, tallies, decisions and roots are as they should be"
            left = f", but for the decisions about {self.undecided:,} that are undecided"
            return text + left if self.undecided else text
        return "\n".join([f"NOT as recorded: {counts}", *self.problems])


def verified(core: Core, tell: Tell) -> Verification:
    """Verify a ledger; ``tell`` is called with how much is done, and how much there is."""
    problems: list[str] = []
    commits = core.backend.tip().commits
    try:
        history = History.read(core)
        exchanges = len(history.exchanges)
        heads = _chains(core, history, problems, tell)
        problems += [
            f"subject {number}: its exchanges do not lead from one to the other"
            for number in core.backend.unlinked()
        ]
        undecided = _decisions(core, history, problems)
        problems += [
            f"message {kept.digest} is not what was kept"
            for kept, _ in core.backend.kept()
            if hashlib.sha256(kept.message).hexdigest() != kept.digest
        ]
        _refusals(core, history, problems)
        _roots(core, history, heads, problems)
    except Damaged as error:
        problems.append(str(error))
        return Verification(0, 0, commits, tuple(problems), 0)
    return Verification(history.size, exchanges, commits, tuple(problems[:_SHOWN]), undecided)


def _chains(core: Core, history: History, problems: list[str], tell: Tell) -> list[bytes]:
    """The heads after each exchange; those of the database are compared with the last ones."""
    names, starts = core.people.names(core.backend), history.starts.tolist()
    responses, result = history.exchanges.response.tolist(), list[bytes]()
    if len(names) != history.size:
        raise Damaged("somebody is missing")
    closures = dict(core.backend.closures())
    waiting = unanswered(Rows.of(core.backend.reservations()), history.exchanges, history.others)
    open_keys = dict(zip(waiting.subject.tolist(), waiting.key.tolist(), strict=True))
    if len(open_keys) != len(waiting):
        raise Damaged("somebody has more than one open reservation")
    shared = [core.words.link(number) for number in range(core.words.last_response + 1)]
    for first in range(0, history.size, _BLOCK):
        block = range(first, min(first + _BLOCK, history.size))
        recorded = core.backend.heads([number + 1 for number in block])
        rows = slice(starts[block.start], starts[block.stop])
        lengths = np.diff(history.starts[block.start : block.stop + 1])
        tallies = Tallies.counted(history.exchanges.response[rows], lengths)
        for number, head, tally in zip(block, recorded, tallies, strict=True):
            digest = first_head(core.policy.content_id, names[number])
            for sequence, row in enumerate(range(starts[number], starts[number + 1]), 1):
                digest = next_head(digest, shared[responses[row]], sequence)
                result.append(digest)
            found = (head.sequence, head.digest, head.tally, bool(head.closed), head.reserved)
            place = open_keys.get(number + 1)
            key = "" if place is None else waiting.keys[place]
            length = starts[number + 1] - starts[number]
            due = (length, digest, tally, number + 1 in closures, key)
            for what, one, other in zip(_OF_A_HEAD, found, due, strict=True):
                if one != other:
                    whose = f"subject {number + 1}"
                    problems.append(f"{whose}: its {what} is not that of its requests")
        tell(block.stop, history.size)
    return result


def _decisions(core: Core, history: History, problems: list[str]) -> int:
    """Decide about every exchange again; one that is refused must have closed its subject."""
    words, rows = core.words, history.exchanges
    if not len(rows):
        return 0
    effort = core.kernel.search.effort
    plan = Plan(core.policy.domain, words.queries, core.policy.filter, effort)
    given = [
        (words.query(words.response(number).query), words.position(number))
        for number in range(1, words.last_response + 1)
    ]
    found = verdicts(given, rows.response - 1, history.starts, plan, lambda done: None)
    closures = dict(core.backend.closures())
    for place in np.flatnonzero(found.kept == 0).tolist():
        refused = int(found.first_refused[place])
        row = int(history.starts[place]) + refused - 1
        if not refused or closures.get(place + 1, _NEVER) > int(rows.commit[row]):
            problems.append(f"subject {place + 1}: exchange {refused} is over the budget")
    return int((found.kept < 0).sum())


def _refusals(core: Core, history: History, problems: list[str]) -> None:
    """Decide about everything that was refused or reserved again, on what came before it."""
    closures = dict(core.backend.closures())
    others = history.others.some(history.others.response != DECLINED)
    reserved = Rows.of(core.backend.reservations())
    reserved.check(history.size, core.words)
    for rows, accepted in ((others, False), (reserved, True)):
        for start in range(0, len(rows), _BLOCK):
            part = rows.some(np.arange(start, min(start + _BLOCK, len(rows))))
            _compare(core, history, part, accepted, closures, problems)


def _compare(
    core: Core,
    history: History,
    rows: Rows,
    accepted: bool,
    closures: dict[int, int],
    problems: list[str],
) -> None:
    """Whether the filter says so, on the exchanges of earlier commits."""
    packed = list[bytes]()
    for subject, commit in zip(rows.subject.tolist(), rows.commit.tolist(), strict=True):
        own = slice(int(history.starts[subject - 1]), int(history.starts[subject]))
        before = history.exchanges.response[own][history.exchanges.commit[own] < commit]
        packed += Tallies.counted(before, np.array([len(before)]))
    questions = core.words.questions(rows.query)
    found = core.kernel.decide(core.state(Tallies(packed)), questions)
    shut = np.array([closures.get(number, _NEVER) for number in rows.subject.tolist()])
    right = found.accepted & (shut > rows.commit)
    for place in np.flatnonzero((right != accepted) & ~found.undecided).tolist():
        what = "reservation is over the budget" if accepted else "refusal was not due"
        problems.append(f"subject {int(rows.subject[place])}: a {what}")


def _roots(core: Core, history: History, heads: list[bytes], problems: list[str]) -> None:
    """Chain all commits again."""
    found: dict[int, list[bytes]] = {}
    for commit, line in _lines(core, history, heads):
        found.setdefault(commit, []).append(line)
    previous = b""
    for number, root in enumerate(core.backend.roots()):
        if number and next_root(previous, found.pop(number, [])) != root:
            problems.append(f"commit {number:,} has another root")
            return
        previous = root
    if found:
        problems.append(f"commit {min(found):,} is missing")


def _lines(core: Core, history: History, heads: list[bytes]) -> Iterator[tuple[int, bytes]]:
    backend, ids = core.backend, core.words.content_ids
    rows = history.exchanges
    exchanges: dict[tuple[int, int], list[bytes]] = {}
    columns = (rows.commit, rows.key, rows.subject, rows.sequence)
    for (commit, key, subject, sequence), head in zip(
        zip(*(column.tolist() for column in columns), strict=True), heads, strict=True
    ):
        packed = lines.exchange(subject, sequence, head)
        exchanges.setdefault((commit, key), []).append(packed)
    for (commit, key), own in exchanges.items():
        yield commit, lines.answers(rows.keys[key], own)
    for row in backend.rows():
        if not row.sequence:
            line = lines.declined if row.response == DECLINED else lines.refused
            yield row.commit, line(row.subject, ids[row.query], row.key)
    for row in backend.reservations():
        yield row.commit, lines.reserved(row.subject, row.sequence, ids[row.query], row.key)
    for subject, commit in backend.closures():
        yield commit, lines.closed(subject)
    for kept, commit in backend.kept():
        yield commit, lines.kept(kept)
    for word, commit in backend.introduced():
        yield commit, lines.query(word)
    for subject, name, commit in backend.registered():
        yield commit, lines.subject(subject, name)
    if backend.ended():
        yield backend.ended(), lines.END

"""After a rollback: whoever may have spent more than is recorded is closed, and then it goes on."""

from __future__ import annotations

import json

from expost.errors import InvalidInput
from expost.ledger.backend import Stale
from expost.ledger.core import Core
from expost.ledger.digests import first_head
from expost.ledger.lines import lines_of
from expost.ledger.ranges import Ranges
from expost.ledger.reached import CLOSED, DIGITS, Reached
from expost.ledger.records import Change, Head, Move

__all__ = ["quarantine"]

_BLOCK = 1 << 15


def quarantine(core: Core, *, lost: bool, everybody: bool) -> list[str]:
    """Close all subjects of whom the checkpoint knows more than the database; names as JSON.

    Who was registered after the copy was made, and answered, is registered again for that: or else
    the same name would get a new budget. Once that is recorded, the checkpoint starts again from
    what there is; a crash before that leaves it as it was.

    A checkpoint that is not there would close nobody, so it has to be said that it is lost; and one
    that does not know whom all commits concern would close too few, so that closing everybody has
    to be said.
    """
    if not everybody:
        _check_known(core, lost)
    known = core.checkpoint.reached()
    places = known.places
    unnamed = sorted(places.keys() - known.names)
    if unnamed:
        raise InvalidInput(
            f"its checkpoint does not say who subject number {unnamed[0]} is, who has answered "
            "since; only a newer copy of the database helps"
        )
    names = list(known.names.values())
    present = dict(zip(names, core.backend.numbers(names), strict=True))
    concerned, missing = dict[int, str](), list[str]()
    for number, name in sorted(known.names.items()):
        here, answered = present[name], places.get(number)
        if not here and (answered or everybody):
            missing.append(name)
        elif here and answered and (here != number or _lost(core, number, *answered)):
            concerned[here] = name
    if everybody:
        concerned = dict(core.backend.subjects())
    moves = [
        Move("", number, 0, head, head._replace(closed=True))
        for number, head in zip(concerned, core.backend.heads(list(concerned)), strict=True)
        if not head.closed
    ]
    for change in (*_again(core, missing), Change(closed=moves)):
        if not change.empty:
            _append(core, change)
    core.checkpoint.restart(_all(core), core.backend.tip())
    return [*(concerned[move.subject] for move in moves), *missing]


def _check_known(core: Core, lost: bool) -> None:
    """Refuse to go on if there is somebody whom nobody knows."""
    tips = sorted(core.checkpoint.tips(), reverse=True)
    if not tips:
        if lost:
            return
        raise InvalidInput(
            "there is no checkpoint, so nobody would be closed; name the file if it is elsewhere. "
            "Only if it is lost, close everybody (--everybody), or nobody (--lost)"
        )
    # Up to here it is the same database, and whatever a line left out is there.
    same = next((tip.commits for tip in tips if core.backend.root(tip.commits) == tip.root), 0)
    missing = core.checkpoint.missing(tips[0].commits)
    unknown = [commit for commit in missing.numbers() if commit > same]
    if unknown:
        raise InvalidInput(
            f"its checkpoint does not say whom {len(unknown):,} of {tips[0].commits:,} commits "
            f"concern, such as number {unknown[0]:,}: a process was killed, or lines are lost; "
            "bring a newer copy of the database back, or close everybody (--everybody)"
        )


def _append(core: Core, change: Change) -> None:
    """Record a change, and nothing in the checkpoint, which is that of other commits."""
    try:
        core.backend.append(change, lines_of(change, {}))
    except Stale:
        raise InvalidInput("another process writes to it; recover it when it is at rest") from None


def _lost(core: Core, number: int, sequence: int, digest: str) -> bool:
    """Whether somebody had come farther than their head, or elsewhere."""
    if digest == CLOSED:
        return True
    (head,) = core.backend.heads([number])
    if head.sequence < sequence:
        return not (head.reserved and head.sequence == sequence - 1 and not digest)
    return bool(digest) and core.head_after(number, sequence).hex()[:DIGITS] != digest


def _again(core: Core, names: list[str]) -> tuple[Change, Change]:
    """These subjects are registered, and closed."""
    start, policy_id = core.backend.size() + 1, core.policy.content_id
    subjects, moves = [], []
    for number, name in enumerate(names, start):
        head = Head(0, first_head(policy_id, json.loads(name)), b"", False, "", 0)
        subjects.append((number, name, head.digest))
        moves.append(Move("", number, 0, head, head._replace(closed=True)))
    return Change(subjects=subjects), Change(closed=moves)


def _all(core: Core) -> Reached:
    """Where everybody is now."""
    result = Reached(Ranges().missing(1, core.backend.tip().commits))
    result.names.update({number: name for number, name, _ in core.backend.registered()})
    size = core.backend.size()
    for first in range(1, size + 1, _BLOCK):
        block = range(first, min(first + _BLOCK, size + 1))
        for number, head in zip(block, core.backend.heads(block), strict=True):
            if head.sequence or head.reserved or head.closed:
                result.moved(number, head)
    return result

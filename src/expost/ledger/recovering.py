"""After a rollback: whoever may have spent more than is recorded is closed, and then it goes on."""

from __future__ import annotations

import json

from expost.errors import InvalidInput
from expost.ledger.checkpoint import Reached
from expost.ledger.core import CLOSED, HEAD, Core, reached
from expost.ledger.digests import first_head
from expost.ledger.records import Change, Head, Move

__all__ = ["quarantine"]

_BLOCK = 1 << 15


def quarantine(core: Core, lost: bool) -> list[str]:
    """Close all subjects of whom the checkpoint knows more than the database; names as JSON.

    Who was registered after the copy was made, and answered, is registered again for that: or else
    the same name would get a new budget. Once that is recorded, the checkpoint starts again from
    what there is; a crash before that leaves it as it was.

    One that is not there would close nobody, so it has to be said that it is lost.
    """
    if core.checkpoint.last() is None and not lost:
        raise InvalidInput(
            "there is no checkpoint, so nobody would be closed; name the file if it is elsewhere, "
            "and only if it is lost, say so (--lost)"
        )
    known = core.checkpoint.reached()
    names = list(known.names.values())
    present = dict(zip(names, core.backend.numbers(names), strict=True))
    closed, missing = dict[str, Move](), list[str]()
    for number, (sequence, digest) in sorted(known.heads.items()):
        if number not in known.names:
            raise InvalidInput(
                f"its checkpoint does not say who subject number {number} is, who has answered "
                "since; only a newer copy of the database helps"
            )
        name = known.names[number]
        here = present[name]
        if not here:
            missing.append(name)
            continue
        (head,) = core.backend.heads([here])
        if not head.closed and (here != number or _lost(core, here, head, sequence, digest)):
            closed[name] = Move(here, 0, head, head._replace(closed=True))
    for change in (*_again(core, missing), Change(closed=list(closed.values()))):
        if not change.empty and not core.append([change]):
            raise InvalidInput("another process writes to it; recover it when it is at rest")
    core.checkpoint.restart(_all(core), core.backend.tip())
    return [*closed, *missing]


def _lost(core: Core, number: int, head: Head, sequence: int, digest: str) -> bool:
    """Whether an open subject had come farther than its head, or elsewhere."""
    if digest == CLOSED:
        return True
    if head.sequence < sequence:
        return not (head.reserved and head.sequence == sequence - 1 and not digest)
    return bool(digest) and core.head_after(number, sequence).hex()[:HEAD] != digest


def _again(core: Core, names: list[str]) -> tuple[Change, Change]:
    """These subjects are registered, and closed."""
    start, policy_id = core.backend.size() + 1, core.policy.content_id
    subjects, moves = [], []
    for number, name in enumerate(names, start):
        head = Head(0, first_head(policy_id, json.loads(name)), b"", False, "", 0)
        subjects.append((number, name, head.digest))
        moves.append(Move(number, 0, head, head._replace(closed=True)))
    return Change(subjects=subjects), Change(closed=moves)


def _all(core: Core) -> Reached:
    """Where everybody is now."""
    result = Reached({number: name for number, name, _ in core.backend.registered()})
    size = core.backend.size()
    for first in range(1, size + 1, _BLOCK):
        block = range(first, min(first + _BLOCK, size + 1))
        for number, head in zip(block, core.backend.heads(block), strict=True):
            if head.sequence or head.reserved or head.closed:
                result.heads[number] = reached(head)
    return result

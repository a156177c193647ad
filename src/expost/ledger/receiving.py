"""A message of a device on its way into the ledger: it fits its reservation, or it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from expost.errors import InvalidInput
from expost.ledger.backend import DECLINED
from expost.ledger.core import Core
from expost.ledger.devices import Message, Receipt, read_message
from expost.ledger.digests import next_head
from expost.ledger.records import NOBODY, Change, Head, Heads, Kept, Move, Outcome
from expost.ledger.requests import Given, Part, Places, Request, Situation
from expost.ledger.words import Words

__all__ = ["Received", "incoming"]

_LONGEST_REASON = 200


class Received(Request):
    """One message about somebody who is known. The filter decided when it was reserved."""

    decides = False

    def __init__(self, core: Core, number: int, message: Message, content: bytes) -> None:
        which, rows = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.intp)
        super().__init__(Part(message.key, np.array([number]), (), which, rows))
        self._message = message
        self._content = content
        self._core = core
        self._outcome: Outcome | None = None
        self.receipt = Receipt("kept")

    def start(self, words: Words) -> None:
        self.outcomes = [None]
        self.error = None
        self.queries = np.array([words.by_content(self._message.query)])

    def propose(self, words: Words) -> None:
        pass  # a device asks nothing

    def repeat(self, found: Mapping[int, Outcome], words: Words) -> None:
        number, message = int(self.subjects[0]), self._message
        self._outcome = outcome = found.get(number)
        if outcome is None or outcome.reserved or outcome.query != self.queries[0]:
            return
        if outcome.sequence != message.sequence:
            return
        if outcome.declined and message.declined:
            self._done(outcome, "declined", "")
        elif outcome.answered and not message.declined:
            likelihood = words.likelihood(outcome.query)
            if likelihood.position(message.response) == words.position(outcome.response):
                head = self._core.head_after(number, message.sequence).hex()
                if head == message.head:
                    self._done(outcome, "recorded", head)

    def _done(self, outcome: Outcome, what: str, head: str) -> None:
        self.outcomes[0] = outcome
        said = self._message
        self.receipt = Receipt(what, said.subject, said.sequence, said.key, head)

    def check(self, rows: Places, heads: Heads) -> None:
        pass  # whatever arrives is kept

    def add(self, change: Change, found: Situation, words: Words) -> Given | None:
        (head,), message, reserved = found.heads, self._message, self._outcome
        number, query = int(self.subjects[0]), int(self.queries[0])
        reason = self._misfit(head, reserved, words)
        if reason:
            self._keep(change, number, head, reason)
            return None
        if message.declined:
            after = head._replace(reserved="")
            change.declined.append(Move(self.key, number, query, head, after))
            self._done(Outcome(query, message.sequence, DECLINED), "declined", "")
            return None
        position = words.likelihood(query).position(message.response)
        assert position is not None
        response = words.propose_response(query, position)
        self._done(Outcome(query, message.sequence, response), "recorded", message.head)
        return self._given(found, np.arange(1), np.array([response]))

    def _misfit(self, head: Head, reserved: Outcome | None, words: Words) -> str:
        """Why it does not fit; nothing if it does."""
        message = self._message
        if not head.reserved:
            return "no reservation is open"
        if reserved is None or not reserved.reserved or head.reserved != message.key:
            return "another reservation is open"
        if message.sequence != reserved.sequence:
            return f"exchange {reserved.sequence} is reserved, not {message.sequence}"
        if reserved.query != self.queries[0]:
            return "another query is reserved"
        if message.declined:
            return ""
        query = int(self.queries[0])
        position = words.likelihood(query).position(message.response)
        if position is None:
            return "not a response of the query"
        response = words.propose_response(query, position)
        after = next_head(head.digest, words.link(response), message.sequence)
        return "" if after.hex() == message.head else "the head does not follow"

    def _keep(self, change: Change, number: int, head: Head, reason: str) -> None:
        digest = hashlib.sha256(self._content).hexdigest()
        known = self._core.backend.reason_kept(number, digest)
        if known is None:
            change.kept.append(Kept(number, digest, reason, self._content))
            if not head.closed:
                change.closed.append(Move("", number, 0, head, head._replace(closed=True)))
        said = self._message
        self.receipt = Receipt(
            "kept", said.subject, said.sequence, said.key, reason=known or reason
        )


def incoming(core: Core, content: bytes) -> Received | Receipt:
    """A message about somebody who is known; or the receipt of anything else, which is kept."""
    try:
        message = read_message(content)
    except InvalidInput as error:
        return _keep(core, content, f"not a message: {error}")
    if message.ledger != core.policy.content_id:
        return _keep(core, content, "of another ledger")
    (number,) = core.people.numbers(core.backend, [message.subject]).tolist()
    if not number:
        return _keep(core, content, "about nobody who is known")
    return Received(core, number, message, content)


def _keep(core: Core, content: bytes, reason: str) -> Receipt:
    digest = hashlib.sha256(content).hexdigest()
    kept = Kept(NOBODY, digest, reason[:_LONGEST_REASON], content)
    while core.backend.reason_kept(NOBODY, digest) is None:
        core.append(Change(kept=[kept]))
    return Receipt("kept", reason=kept.reason)

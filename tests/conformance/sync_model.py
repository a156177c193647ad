"""A small model of a device, made of the library: which requests it sends for which answers.

It shares nothing with ``device.py``. It has no store, because a request does not depend on one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import expost as xp
from expost.domains import domain_from_json
from expost.errors import ExpostError
from expost.files.canonical import canonical_bytes, readable_tree, value_tree
from expost.files.reading import parse
from expost.filters import filter_from_json
from expost.queries import query_from_json
from expost.sampling import draw
from support.random_documents import Tree

__all__ = ["Bytes", "policy_id", "read", "requests"]

REFUSED = {"refused": True}


def read(tree: Any) -> Any:
    """A tree as the library reads it from a file."""
    return parse(json.dumps(tree))


class Bytes:
    """A source that makes integers of given bytes, as the operating system's generator does."""

    def __init__(self, given: bytes) -> None:
        self._given = given
        self.used = 0

    def bytes(self, count: int) -> bytes:
        taken = self._given[self.used : self.used + count]
        assert len(taken) == count, "there are no more bytes"
        self.used += count
        return taken

    def below(self, limit: int) -> int:
        bits = limit.bit_length()
        count = -(-bits // 8)
        while (uniform := int.from_bytes(self.bytes(count), "big") >> (8 * count - bits)) >= limit:
            pass
        return uniform


def policy_id(policy: Tree) -> str:
    fields = read(policy)
    guard = filter_from_json(fields["filter"])
    tree = {
        "version": 1,
        "study": fields["study"],
        "nonce": fields["nonce"],
        "domain": domain_from_json(fields["domain"]).tree(),
        "filter": {"kind": guard.kind, **guard.tree()},
    }
    return hashlib.sha256(canonical_bytes(tree)).hexdigest()


class Model:
    """A device without a store: its transcript, its heads and its messages as objects."""

    def __init__(self, given: Tree, source: Bytes) -> None:
        policy = given["policy"]
        self.domain = domain_from_json(read(policy["domain"]))
        guard = filter_from_json(read(policy["filter"]))
        self.transcript = xp.Transcript(self.domain, guard)
        self.place, self.source = self.domain.locate(given["value"]), source
        self.names = {"ledger": policy_id(policy), "subject": given["subject"]}
        first = {"ledger": 1, "policy": self.names["ledger"], "subject": given["subject"]}
        self.heads = [hashlib.sha256(canonical_bytes(first)).hexdigest()]
        self.messages: list[Tree] = []
        self.documents: Tree = {}
        self.offered: list[int] = []
        self.declined = ""
        self.old_copy = False

    def begin(self) -> Tree:
        self.declined = ""
        return self.request([])

    def request(self, messages: list[Tree]) -> Tree:
        recorded = [message for message in messages if "head" in message]
        self.offered = [message["sequence"] for message in recorded]
        return {
            **self.names,
            "sequence": len(self.messages),
            "head": self.heads[-1],
            "messages": messages,
            "queries": {x["query"]: self.documents[x["query"]] for x in recorded},
        }

    def take(self, answer: Tree) -> Tree | None:
        own, confirmed = len(self.messages), answer["confirmed"]
        self.old_copy = self.old_copy or confirmed > own
        if self.old_copy or answer["head"] != self.heads[confirmed]:
            return REFUSED
        if confirmed < own:
            again = confirmed + 1 in self.offered
            return REFUSED if again else self.request(self.messages[confirmed:])
        reserved = answer["reservation"]
        if reserved is None:
            return None
        expected = {**self.names, "sequence": own + 1, "previous": self.heads[-1]}
        if any(reserved[name] != entry for name, entry in expected.items()):
            return REFUSED
        return self.answer(reserved)

    def answer(self, reserved: Tree) -> Tree | None:
        query = query_from_json(read(reserved["query"]))
        message = {**reserved, "query": query.content_id}
        try:
            likelihood = query.on(self.domain)
            accepted = self.transcript.required_filter.decide(
                xp.Odometer(self.transcript), query
            ).accepted
        except ExpostError:
            accepted = False
        if not accepted:
            repeated, self.declined = reserved["ticket"] == self.declined, reserved["ticket"]
            return None if repeated else self.request([{**message, "declined": True}])
        position = draw(likelihood.pmf(self.place), self.source)
        response = likelihood.responses[position]
        said = {"query": query.content_id, "response": value_tree(response)}
        chained = canonical_bytes({**said, "sequence": reserved["sequence"]})
        head = hashlib.sha256(chained + bytes.fromhex(self.heads[-1])).hexdigest()
        self.transcript = self.transcript.add(query, response)
        self.heads.append(head)
        self.documents[query.content_id] = reserved["query"]
        self.messages.append({**message, "response": readable_tree(said["response"]), "head": head})
        return self.request(self.messages[-1:])


def requests(given: Tree, source: Bytes) -> list[Any]:
    """The requests of a conversation, after the exchanges that the device has already stored."""
    model = Model(given, source)
    for exchange in given["exchanges"]:
        place = {"sequence": len(model.heads), "previous": model.heads[-1]}
        assert model.answer({**model.names, **exchange, **place}) is not None
        assert "head" in model.messages[-1], "it is within the budget"
    found: list[Any] = [model.begin()]
    latest: int | None = 0
    for reply in given["answers"]:
        if latest is None or reply["to"] != latest:
            found.append(REFUSED)
            continue
        found.append(model.take(reply["answer"]))
        more = found[-1] is not None and found[-1] != REFUSED
        latest = sum("messages" in (x or {}) for x in found) - 1 if more else None
    return found

"""Check conformance files and ledger exports with the arithmetic of ``device.py`` next to it.

    python3 -I checks.py conformance FILE.json ...
    python3 -I checks.py export FILE.jsonl

The first command compares ``device.py`` with all cases of conformance files. The second checks the
export of a ledger: every subject's chain and tally, and, on finite sets and attributes with a pure
filter, that the exchanges before each query allowed it. Only imported and suspended subjects may
be over the budget; the command counts their exchanges. On boxes it checks chains and tallies, and
no decisions. Exit codes: 0 no fault, 1 faults, 2 a file cannot be read.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import io
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["check_export", "conform"]


def _load_device() -> Any:
    path = Path(__file__).with_name("device.py")
    spec = importlib.util.spec_from_file_location("device", path)
    assert spec is not None, "device.py is a file of Python"
    assert spec.loader is not None, "and can be loaded"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("device", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


device = _load_device()


# -- conformance -----------------------------------------------------------------------------------


def conform(check: str, node: Any) -> dict[str, Any]:
    """Return the result of ``device.py`` for a case of a conformance file."""
    without_domain = {"query": _query, "chain": _chain, "ticket": _ticket, "sync": _sync}
    if check in without_domain:
        return without_domain[check](node)
    if check == "policy":
        return {"id": device.Policy(node["policy"]).id}
    domain = device.Domain(node["domain"])
    if check == "frozen":
        return _freeze(node, domain)
    account = device.Account(domain)
    try:
        compiled = account.compiled(device.Query.read(node["query"]))
        if "response" in node:
            compiled.likelihood.read(node["response"])
    except device.Refused:
        return {"refused": True}
    if check == "weights":
        return _weights(node, compiled.likelihood)
    if check == "draw":
        return _draw(node, domain, compiled)
    return _decision(node, account, compiled) if check == "decision" else {"refused": False}


def _query(node: Any) -> dict[str, Any]:
    named = device.content_id(node["query"])
    consistent = device.Query.read(node["query"]).id == named
    return {"id": named if consistent else "told differently from its fields and as it is read"}


def _chain(node: Any) -> dict[str, Any]:
    heads = [device.first_head(node["policy"], device.read_subject(node["subject"]))]
    for query_id, response in node["exchanges"]:
        heads.append(device.next_head(heads[-1], len(heads), query_id, _value(response)))
    return {"heads": heads}


def _ticket(node: Any) -> dict[str, Any]:
    texts = {name: node[name] for name in ("key", "ledger", "previous", "query")}
    subject, sequence = device.read_subject(node["subject"]), device.integer(node["sequence"])
    fields = {**texts, "subject": subject, "sequence": sequence, "amendment": None}
    key = bytes.fromhex(node["ticket_key"])
    return {"ticket": hmac.new(key, device.canonical(fields), hashlib.sha256).hexdigest()}


def _sync(node: Any) -> dict[str, Any]:
    """Answer a device's requests, and return them with messages as objects and without nonces."""
    subject, stream = device.read_subject(node["subject"]), bytes.fromhex(node["bytes"])
    with tempfile.TemporaryDirectory() as folder:
        store, policy = str(Path(folder) / "store"), device.written(node["policy"])
        device.Device.create(store, policy, subject, device.written(node["value"]))
        opened = device.Device(store, io.BytesIO(stream).read)
        talk = Conversation(opened)
        for exchange in node["exchanges"]:
            talk.begin()
            talk.answer(0, talk.reserving(exchange))
        talk.begin()
        for reply in node["answers"]:
            request_index = None if reply["to"] is None else device.integer(reply["to"])
            talk.answer(request_index, reply["answer"])
        opened.close()
    return {"requests": talk.requests} if talk.repeats_exact else {"requests": "a message changed"}


class Conversation:
    """A device, and its requests since the conversation began."""

    def __init__(self, opened: Any) -> None:
        self.device = opened
        self.requests: list[Any] = []
        #: True if every message had equal bytes each time it was sent.
        self.repeats_exact = True
        self._nonces: list[str] = []
        self._sent: dict[int, str] = {}

    def begin(self) -> None:
        self.requests, self._nonces = [], []
        self._add(self.device.sync())

    def reserving(self, exchange: Any) -> dict[str, Any]:
        """Return the answer of a ledger with the record of this device, and a reservation."""
        recorded, head = len(self.device.heads) - 1, self.device.heads[-1]
        names = {"ledger": self.device.policy.id, "subject": self.device.subject}
        reserved = {**names, **exchange, "sequence": recorded + 1, "previous": head}
        state = {"confirmed": recorded, "head": head, "state": "active", "receipts": []}
        return {**names, **state, "reservation": reserved}

    def answer(self, request_index: int | None, answer: Any) -> None:
        """Answer the request with this number, from 0; None stands for no request."""
        nonce = "0" * 32 if request_index is None else self._nonces[request_index]
        try:
            self._add(self.device.take(device.written({**answer, "nonce": nonce})))
        except device.Refused:
            self.requests.append({"refused": True})

    def _add(self, request: str) -> None:
        fields = json.loads(request) if request else None
        self.requests.append(fields)
        if fields is not None:
            self._nonces.append(fields.pop("nonce"))
            texts = fields["messages"]
            fields["messages"] = list(map(json.loads, texts))
            for text, message in zip(texts, fields["messages"], strict=True):
                if "head" in message:
                    self.repeats_exact &= self._sent.setdefault(message["sequence"], text) == text


def _value(node: Any) -> Any:
    if isinstance(node, list):
        return tuple(device.scalar(entry) for entry in node)
    return device.scalar(node)


def _freeze(node: Any, domain: Any) -> dict[str, Any]:
    past, kinds = device.SecretHistory(domain), domain.attributes.items()
    for record in node["records"]:
        past.add(tuple(past._indices(record)))
    frozen = [zip(kinds, indices, strict=True) for indices in past.frozen]
    return {"records": [{name: kind.values[k] for (name, kind), k in row} for row in frozen]}


def _weights(node: Any, likelihood: Any) -> dict[str, Any]:
    columns = [likelihood.column(likelihood.read(response)) for response in node["responses"]]
    shown = [[f"{weight // math.gcd(*column):x}" for weight in column] for column in columns]
    return {"total": f"{likelihood.total:x}", "columns": shown}


def _draw(node: Any, domain: Any, compiled: Any) -> dict[str, Any]:
    past, stream = device.SecretHistory(domain), io.BytesIO(bytes.fromhex(node["bytes"]))
    past.add(tuple(past._indices(node["value"])))
    response = past.draw(compiled, stream.read)
    return {"response": device.plain(device.value_tree(response)), "used": stream.tell()}


def _decision(node: Any, account: Any, compiled: Any) -> dict[str, Any]:
    filter_ = device.Filter.read(node["filter"], account.domain)
    for exchange in node["exchanges"]:
        before = account.compiled(device.Query.read(exchange["query"]))
        account.add(before, before.likelihood.read(exchange["response"]))
    refusing = device.refusing(filter_, account, compiled)
    answers = [
        {"accepted": number not in refusing, **_worst_case(rule.worst_cases(account, compiled))}
        for number, rule in enumerate(filter_.rules)
    ]
    alone = node["filter"]["kind"] != "all"
    return answers[0] if alone else {"accepted": not refusing, "filters": answers}


def _worst_case(cases: dict[Any, Any]) -> dict[str, Any]:
    """Return the largest of some rationals, each plus the logarithm of a quotient."""
    rational, (top, bottom) = cases.popitem()
    for other, (high, low) in cases.items():
        if low == 0 or (
            bottom and not device.is_within(high * bottom, low * top, rational - other)
        ):
            rational, top, bottom = other, high, low
    if not bottom:
        return {"rational": None, "ratio": None}
    common = math.gcd(top, bottom)
    return {"rational": str(rational), "ratio": f"{top // common:x}/{bottom // common:x}"}


def conformance(path: str) -> int:
    """Print and count the cases of a file with another result than expected."""
    try:
        content = Path(path).read_text(encoding="utf-8")
        # The device reads numbers as they are written; what is expected are plain ones.
        node, right = device.parse(content)["cases"], json.loads(content)["cases"]
        cases = [(x["check"], x["given"], y["expected"]) for x, y in zip(node, right, strict=True)]
    except (device.Refused, LookupError, TypeError, ValueError):
        raise OSError(0, "does not have the shape of a conformance file", path) from None
    wrong = 0
    for case_number, (check, compiled, expected) in enumerate(cases, 1):
        result = conform(check, compiled)
        if result != expected:
            wrong += 1
            print(f"{path}: case {case_number} ({check}): {result}", file=sys.stderr)
    print(f"{path}: {len(right) - wrong} of {len(right)} cases")
    return wrong


# -- the export of a ledger ------------------------------------------------------------------------


KINDS = ("device", "imported", "simulated")
STATES = ("active", "suspended", "unconfirmed")


class Export:
    """The lines of an export, checked one after the other; faults are collected."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.subjects = self.exchanges = self.extras = 0
        #: Exchanges of imported and suspended subjects that are over the budget.
        self.tolerated = 0
        #: True if decisions are checked too.
        self.decided = False
        self._digest = hashlib.sha256()
        self._ended = False
        self._queries: dict[str, Any] = {}
        self._compiled: dict[str, Any] = {}

    def expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(fault)

    def add(self, line: bytes) -> None:
        """Check one line."""
        fields = device.parse(line)
        if "end" in fields:
            end = fields["end"]
            counts = device.integer(end["subjects"]), device.integer(end["exchanges"])
            self.expect(counts == (self.subjects, self.exchanges), "the end: counts differ")
            self.expect(end["digest"] == self._digest.hexdigest(), "the end: the digest differs")
            self._ended = True
            return
        self.expect(not self._ended, "there is something after the end")
        self._digest.update(line)
        if "policy" in fields:
            self._begin(fields)
        else:
            self._subject(fields)

    def _begin(self, fields: Any) -> None:
        self.expect(fields["ledger"] == "2", "the header: this program reads version 2 only")
        self._policy_id, self._trees = fields["policy_id"], fields["queries"]
        try:
            policy = device.Policy(fields["policy"])
        except device.Refused:
            named = _generic_policy_id(fields["policy"])
        else:
            named, self.decided = policy.id, True
            self._policy = policy
        self.expect(named == self._policy_id, "the policy: its id is that of another one")
        for query_id, tree in self._trees.items():
            consistent = device.content_id(tree) == query_id
            self.expect(consistent, f"query {query_id[:12]}: its id is that of another one")

    def _subject(self, fields: Any) -> None:
        name = device.read_subject(fields["subject"])
        subject_label, head = f"subject {name!a}", device.first_head(self._policy_id, name)
        self.subjects += 1
        in_order = device.integer(fields["number"]) == self.subjects
        self.expect(in_order, f"{subject_label}: its number is not {self.subjects}")
        kind, state = fields["kind"], fields["state"]
        self.expect(kind in KINDS, f"{subject_label}: it has an unknown kind")
        self.expect(state in STATES, f"{subject_label}: it has an unknown state")
        tally: Counter[tuple[str, bytes]] = Counter()
        for sequence, (query_id, response_node) in enumerate(fields["exchanges"], 1):
            response = _value(response_node)
            head = device.next_head(head, sequence, query_id, response)
            tally[query_id, device.canonical(device.value_tree(response))] += 1
        self.exchanges += sum(tally.values())
        self.expect(head == fields["head"], f"{subject_label}: the chain does not end in its head")
        exported = [
            ((query_id, device.canonical(device.value_tree(_value(node)))), device.integer(count))
            for query_id, node, count in fields["tally"]
        ]
        matches = exported == sorted(tally.items())
        self.expect(matches, f"{subject_label}: the tally is not that of its exchanges")
        self.extras += len(fields["extras"])
        for query_id, _ in [*fields["exchanges"], *fields["extras"]]:
            listed = query_id in self._trees
            self.expect(listed, f"{subject_label}: query {query_id[:12]} is not listed")
        if self.decided:
            tolerated = kind == "imported" or state == "suspended"
            self._decisions(subject_label, fields["exchanges"], tolerated)

    def _decisions(self, subject_label: str, exchanges: Any, tolerated: bool) -> None:
        """Check that the exchanges before each query allowed it."""
        account = device.Account(self._policy.domain, self._compiled)
        for sequence, (query_id, response) in enumerate(exchanges, 1):
            try:
                if query_id not in self._queries:
                    self._queries[query_id] = device.Query.read(self._trees.get(query_id))
                compiled = account.compiled(self._queries[query_id])
                accepted = device.decide(self._policy.filter, account, compiled)
                account.add(compiled, compiled.likelihood.read(response))
            except device.Refused as problem:
                self.expect(False, f"{subject_label}: exchange {sequence}: {problem}")
                return
            self.tolerated += tolerated and not accepted
            right = accepted or tolerated
            self.expect(right, f"{subject_label}: exchange {sequence} was not within the budget")

    def finish(self) -> None:
        self.expect(self._ended, "the last line is missing")


def _generic_policy_id(policy: Any) -> str:
    """Return the id of a policy on a box: every number of its domain is a double."""

    def doubles(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: doubles(entry) for name, entry in node.items()}
        if isinstance(node, list):
            return [doubles(entry) for entry in node]
        return device.double(node) if isinstance(node, device.NumberText) else node

    def exactly(node: Any, field: str = "") -> Any:
        if isinstance(node, dict):
            level = field == "protects"
            return {name: exactly(x, field if level else name) for name, x in node.items()}
        if isinstance(node, list):
            return [exactly(entry, field) for entry in node]
        if field == "protects" and isinstance(node, device.NumberText):
            return device.integer(node)
        return node if field in ("kind", "protects") else device.exact(node)

    fixed = {"version": 1, "study": policy["study"], "nonce": policy["nonce"]}
    domain, filter_ = doubles(policy["domain"]), exactly(policy["filter"])
    named: str = device.digest({**fixed, "domain": domain, "filter": filter_})
    return named


def check_export(path: str, tell: Callable[[Export], None] = lambda _: None) -> Export:
    """Find what is wrong with an export; ``tell`` is called after every line."""
    export = Export()
    with open(path, "rb") as file:
        for line_number, line in enumerate(file, 1):
            tell(export)
            try:
                export.add(line)
            except device.Refused as problem:
                export.expect(False, f"line {line_number}: {problem}")
            except (LookupError, TypeError, ValueError, AttributeError):
                export.expect(False, f"line {line_number} does not have the shape of an export")
    export.finish()
    return export


class SubjectCounter:
    """Print the number of checked subjects from time to time, on a terminal."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, export: Export) -> None:
        if sys.stderr.isatty() and time.monotonic() > self._last + 1:
            self._last = time.monotonic()
            print(f"{export.subjects:,} subjects", end="\r", file=sys.stderr, flush=True)


def print_check(path: str) -> int:
    """Check an export, print its faults, and count them."""
    export = check_export(path, SubjectCounter())
    for fault in export.faults:
        print(f"{path}: {fault}", file=sys.stderr)
    checked = "chains, tallies and decisions" if export.decided else "chains and tallies"
    outcome = f", {len(export.faults):,} faults" if export.faults else " are right"
    counts = f"{export.subjects:,} subjects, {export.exchanges:,} exchanges"
    print(f"{path}: {counts}: {checked}{outcome}")
    if export.extras:
        print(f"{path}: {export.extras:,} extra responses in quarantined messages")
    if export.tolerated:
        over = f"{export.tolerated:,} exchanges of imported or suspended subjects"
        print(f"{path}: {over} were not within the budget")
    return len(export.faults)


def main(command: str = "", *paths: str) -> int:
    commands = {"conformance": conformance, "export": print_check}
    if command not in commands or not paths:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return int(sum([commands[command](path) for path in paths]) > 0)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

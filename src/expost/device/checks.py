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


def _beside() -> Any:
    path = Path(__file__).with_name("device.py")
    spec = importlib.util.spec_from_file_location("device", path)
    assert spec is not None, "device.py is a file of Python"
    assert spec.loader is not None, "and can be loaded"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("device", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


device = _beside()


# -- conformance -----------------------------------------------------------------------------------


def conform(check: str, given: Any) -> dict[str, Any]:
    """What ``device.py`` says about a case of a conformance file."""
    if check == "query":
        return _query(given)
    if check == "policy":
        return {"id": device.Policy(given["policy"]).id}
    if check == "chain":
        return _chain(given)
    if check == "ticket":
        return _ticket(given)
    if check == "sync":
        return _sync(given)
    domain = device.Domain(given["domain"])
    if check == "frozen":
        return _frozen(given, domain)
    account = device.Account(domain)
    try:
        asked = account.asked(device.Query.read(given["query"]))
        if "response" in given:
            asked.likelihood.read(given["response"])
    except device.Refused:
        return {"refused": True}
    if check == "weights":
        return _weights(given, asked.likelihood)
    if check == "draw":
        return _draw(given, domain, asked)
    return _decision(given, account, asked) if check == "decision" else {"refused": False}


def _query(given: Any) -> dict[str, Any]:
    named = device.content_id(given["query"])
    same = device.Query.read(given["query"]).id == named
    return {"id": named if same else "told differently from its fields and as it is read"}


def _chain(given: Any) -> dict[str, Any]:
    heads = [device.first_head(given["policy"], device.read_subject(given["subject"]))]
    for query_id, response in given["exchanges"]:
        heads.append(device.next_head(heads[-1], len(heads), query_id, _value(response)))
    return {"heads": heads}


def _ticket(given: Any) -> dict[str, Any]:
    texts = {name: given[name] for name in ("key", "ledger", "previous", "query")}
    subject, sequence = device.read_subject(given["subject"]), device.integer(given["sequence"])
    fields = {**texts, "subject": subject, "sequence": sequence, "amendment": None}
    key = bytes.fromhex(given["ticket_key"])
    return {"ticket": hmac.new(key, device.canonical(fields), hashlib.sha256).hexdigest()}


def _sync(given: Any) -> dict[str, Any]:
    """Answer a device's requests, and return them with messages as objects and without nonces."""
    subject, stream = device.read_subject(given["subject"]), bytes.fromhex(given["bytes"])
    with tempfile.TemporaryDirectory() as folder:
        store, policy = str(Path(folder) / "store"), device.written(given["policy"])
        device.Device.create(store, policy, subject, device.written(given["value"]))
        opened = device.Device(store, io.BytesIO(stream).read)
        talk = Conversation(opened)
        for exchange in given["exchanges"]:
            talk.begin()
            talk.answer(0, talk.reserving(exchange))
        talk.begin()
        for reply in given["answers"]:
            number = None if reply["to"] is None else device.integer(reply["to"])
            talk.answer(number, reply["answer"])
        opened.close()
    return {"requests": talk.requests} if talk.same else {"requests": "a message changed"}


class Conversation:
    """A device, and its requests since the conversation began."""

    def __init__(self, opened: Any) -> None:
        self.device = opened
        self.requests: list[Any] = []
        self.same = True
        """Whether every message had the same bytes each time it was sent."""
        self._nonces: list[str] = []
        self._sent: dict[int, str] = {}

    def begin(self) -> None:
        self.requests, self._nonces = [], []
        self._add(self.device.sync())

    def reserving(self, exchange: Any) -> dict[str, Any]:
        """The answer of a ledger that has the record of this device, and reserves an exchange."""
        number, head = len(self.device.heads) - 1, self.device.heads[-1]
        names = {"ledger": self.device.policy.id, "subject": self.device.subject}
        reserved = {**names, **exchange, "sequence": number + 1, "previous": head}
        state = {"confirmed": number, "head": head, "state": "active", "receipts": []}
        return {**names, **state, "reservation": reserved}

    def answer(self, number: int | None, answer: Any) -> None:
        """Answer the request with this number, from 0; None stands for no request."""
        nonce = "0" * 32 if number is None else self._nonces[number]
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
                    self.same &= self._sent.setdefault(message["sequence"], text) == text


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return tuple(device.scalar(entry) for entry in given)
    return device.scalar(given)


def _frozen(given: Any, domain: Any) -> dict[str, Any]:
    past, kinds = device.Past(domain), domain.attributes.items()
    for record in given["records"]:
        past.add(tuple(past.places(record)))
    frozen = [zip(kinds, places, strict=True) for places in past.frozen]
    return {"records": [{name: kind.values[k] for (name, kind), k in row} for row in frozen]}


def _weights(given: Any, likelihood: Any) -> dict[str, Any]:
    columns = [likelihood.column(likelihood.read(response)) for response in given["responses"]]
    shown = [[f"{weight // math.gcd(*column):x}" for weight in column] for column in columns]
    return {"total": f"{likelihood.total:x}", "columns": shown}


def _draw(given: Any, domain: Any, asked: Any) -> dict[str, Any]:
    past, stream = device.Past(domain), io.BytesIO(bytes.fromhex(given["bytes"]))
    past.add(tuple(past.places(given["value"])))
    response = past.draw(asked, stream.read)
    return {"response": device.plain(device.value_tree(response)), "used": stream.tell()}


def _decision(given: Any, account: Any, asked: Any) -> dict[str, Any]:
    guard = device.Filter.read(given["filter"])
    for exchange in given["exchanges"]:
        before = account.asked(device.Query.read(exchange["query"]))
        account.add(before, before.likelihood.read(exchange["response"]))
    accepted = device.decide(guard, account, asked)
    rational, pairs = device.worst_case(guard.kind, account, asked)
    top, bottom = device.widest(pairs)
    if not bottom:
        return {"accepted": accepted, "rational": None, "ratio": None}
    common = math.gcd(top, bottom)
    ratio = f"{top // common:x}/{bottom // common:x}"
    return {"accepted": accepted, "rational": str(rational), "ratio": ratio}


def conformance(path: str) -> int:
    """How many cases of a file are not answered as they should be."""
    try:
        content = Path(path).read_text(encoding="utf-8")
        # The device reads numbers as they are written; what is expected are plain ones.
        given, right = device.parse(content)["cases"], json.loads(content)["cases"]
        cases = [(x["check"], x["given"], y["expected"]) for x, y in zip(given, right, strict=True)]
    except (device.Refused, LookupError, TypeError, ValueError):
        raise OSError(0, "does not have the shape of a conformance file", path) from None
    wrong = 0
    for number, (check, asked, expected) in enumerate(cases, 1):
        found = conform(check, asked)
        if found != expected:
            wrong += 1
            print(f"{path}: case {number} ({check}): {found}", file=sys.stderr)
    print(f"{path}: {len(right) - wrong} of {len(right)} cases")
    return wrong


# -- the export of a ledger ------------------------------------------------------------------------


KINDS = ("device", "imported", "simulated")
STATES = ("active", "suspended", "unconfirmed")


class Export:
    """The lines of an export, checked one after the other; what is wrong is collected."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.subjects = self.exchanges = self.extras = 0
        self.tolerated = 0
        """Exchanges of imported and suspended subjects that are over the budget."""
        self.decided = False
        """Whether decisions are checked too."""
        self._digest = hashlib.sha256()
        self._ended = False
        self._queries: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}

    def need(self, right: bool, what: str) -> None:
        if not right:
            self.faults.append(what)

    def add(self, line: bytes) -> None:
        """One more line."""
        fields = device.parse(line)
        if "end" in fields:
            end = fields["end"]
            told = device.integer(end["subjects"]), device.integer(end["exchanges"])
            self.need(told == (self.subjects, self.exchanges), "the end: counts differ")
            self.need(end["digest"] == self._digest.hexdigest(), "the end: the digest differs")
            self._ended = True
            return
        self.need(not self._ended, "there is something after the end")
        self._digest.update(line)
        if "policy" in fields:
            self._begin(fields)
        else:
            self._subject(fields)

    def _begin(self, fields: Any) -> None:
        self.need(fields["ledger"] == "2", "the header: this program reads version 2 only")
        self._policy_id, self._trees = fields["policy_id"], fields["queries"]
        try:
            policy = device.Policy(fields["policy"])
        except device.Refused:
            named = _generic_policy_id(fields["policy"])
        else:
            named, self.decided = policy.id, True
            self._policy = policy
        self.need(named == self._policy_id, "the policy: its id is that of another one")
        for query_id, tree in self._trees.items():
            same = device.content_id(tree) == query_id
            self.need(same, f"query {query_id[:12]}: its id is that of another one")

    def _subject(self, fields: Any) -> None:
        name = device.read_subject(fields["subject"])
        place, head = f"subject {name!a}", device.first_head(self._policy_id, name)
        self.subjects += 1
        number = device.integer(fields["number"])
        self.need(number == self.subjects, f"{place}: its number is not {self.subjects}")
        kind, state = fields["kind"], fields["state"]
        self.need(kind in KINDS, f"{place}: it has an unknown kind")
        self.need(state in STATES, f"{place}: it has an unknown state")
        tally: Counter[tuple[str, bytes]] = Counter()
        for sequence, (query_id, given) in enumerate(fields["exchanges"], 1):
            response = _value(given)
            head = device.next_head(head, sequence, query_id, response)
            tally[query_id, device.canonical(device.value_tree(response))] += 1
            self.need(query_id in self._trees, f"{place}: query {query_id[:12]} is not listed")
        self.exchanges += sum(tally.values())
        self.need(head == fields["head"], f"{place}: the chain does not end in its head")
        told = [(q, device.canonical(device.value_tree(_value(r)))) for q, r, _ in fields["tally"]]
        counts = [device.integer(count) for *_, count in fields["tally"]]
        same = list(zip(told, counts, strict=True)) == sorted(tally.items())
        self.need(same, f"{place}: the tally is not that of its exchanges")
        for query_id, _ in fields["extras"]:
            self.extras += 1
            self.need(query_id in self._trees, f"{place}: query {query_id[:12]} is not listed")
        if self.decided:
            tolerated = kind == "imported" or state == "suspended"
            self._decisions(place, fields["exchanges"], tolerated)

    def _decisions(self, place: str, exchanges: Any, tolerated: bool) -> None:
        """Check that the exchanges before each query allowed it."""
        account = device.Account(self._policy.domain, self._asked)
        for sequence, (query_id, response) in enumerate(exchanges, 1):
            try:
                if query_id not in self._queries:
                    self._queries[query_id] = device.Query.read(self._trees.get(query_id))
                asked = account.asked(self._queries[query_id])
                accepted = device.decide(self._policy.filter, account, asked)
                account.add(asked, asked.likelihood.read(response))
            except device.Refused as problem:
                self.need(False, f"{place}: exchange {sequence}: {problem}")
                return
            self.tolerated += tolerated and not accepted
            right = accepted or tolerated
            self.need(right, f"{place}: exchange {sequence} was not within the budget")

    def finish(self) -> None:
        self.need(self._ended, "the last line is missing")


def _generic_policy_id(policy: Any) -> str:
    """The id of a policy on a box: every number of its domain is a double."""

    def doubles(given: Any) -> Any:
        if isinstance(given, dict):
            return {name: doubles(entry) for name, entry in given.items()}
        if isinstance(given, list):
            return [doubles(entry) for entry in given]
        return device.double(given) if isinstance(given, device.Written) else given

    def exactly(given: Any, field: str = "") -> Any:
        if isinstance(given, dict):
            return {name: exactly(entry, name) for name, entry in given.items()}
        if isinstance(given, list):
            return [exactly(entry, field) for entry in given]
        return given if field == "kind" else device.exact(given)

    fixed = {"version": 1, "study": policy["study"], "nonce": policy["nonce"]}
    domain, guard = doubles(policy["domain"]), exactly(policy["filter"])
    named: str = device.digest({**fixed, "domain": domain, "filter": guard})
    return named


def check_export(path: str, tell: Callable[[Export], None] = lambda _: None) -> Export:
    """What is wrong with an export; ``tell`` is called after every line."""
    export = Export()
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            tell(export)
            try:
                export.add(line)
            except device.Refused as problem:
                export.need(False, f"line {number}: {problem}")
            except (LookupError, TypeError, ValueError, AttributeError):
                export.need(False, f"line {number} does not have the shape of an export")
    export.finish()
    return export


class Progress:
    """Print the number of checked subjects from time to time, on a terminal."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, export: Export) -> None:
        if sys.stderr.isatty() and time.monotonic() > self._last + 1:
            self._last = time.monotonic()
            print(f"{export.subjects:,} subjects", end="\r", file=sys.stderr, flush=True)


def told(path: str) -> int:
    """Check an export and print what was found; how many faults there are."""
    export = check_export(path, Progress())
    for fault in export.faults:
        print(f"{path}: {fault}", file=sys.stderr)
    checked = "chains, tallies and decisions" if export.decided else "chains and tallies"
    print(
        f"{path}: {export.subjects:,} subjects, {export.exchanges:,} exchanges: {checked}", end=""
    )
    print(" are right" if not export.faults else f", {len(export.faults):,} faults")
    if export.extras:
        print(f"{path}: {export.extras:,} extra responses in quarantined messages")
    if export.tolerated:
        over = f"{export.tolerated:,} exchanges of imported or suspended subjects"
        print(f"{path}: {over} were not within the budget")
    return len(export.faults)


def main(command: str = "", *paths: str) -> int:
    commands = {"conformance": conformance, "export": told}
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

"""Checks with the arithmetic of a device, which it loads from the file ``device.py`` beside it.

    python3 -I checks.py conformance FILE.json ...
    python3 -I checks.py export FILE.jsonl

The first says whether ``device.py`` answers all cases of conformance files as it should. The second
checks the export of a ledger: every subject's chain and tally, and, on finite sets and attributes
with a pure filter, that every question was accepted by what was answered before it. On boxes chains
and tallies are checked, and decisions are not. Exit codes: 0 all is right, 1 something is not, 2 a
file cannot be read.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import math
import sys
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


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return tuple(device.scalar(entry) for entry in given)
    return device.scalar(given)


def _frozen(given: Any, domain: Any) -> dict[str, Any]:
    past, kinds = device.Past(domain), domain.attributes.items()
    for record in given["records"]:
        past.add(tuple(past.places(record)))
    kept = [zip(kinds, places, strict=True) for places in past.kept]
    return {"records": [{name: kind.values[k] for (name, kind), k in each} for each in kept]}


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


class Export:
    """The lines of an export, checked one after the other; what is wrong is collected."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.subjects = self.exchanges = 0
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
        if self.decided:
            self._decisions(place, fields["exchanges"])

    def _decisions(self, place: str, exchanges: Any) -> None:
        """Whether every question was accepted by what was answered before it."""
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
            self.need(accepted, f"{place}: exchange {sequence} was not within the budget")

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
    """Says from time to time, where somebody is looking, how many subjects were checked."""

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

"""Fuzz ``device.py`` with hostile answers.

A device reads answers to its requests, of which most are mutated. For every answer,

- the device returns a request or refuses in one line, and raises nothing else;
- a refusal leaves the stored bytes as they are, and draws nothing;
- every message is the one that a device without the refused answers sends;
- a device that is opened again sends every message again, to the byte.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from expost.device import device
from expost.device.device import Device, Refused
from support.level_decisions import draw_level
from support.random_documents import draw_finite_domain, draw_query, draw_subject, draw_value

__all__ = ["Violation", "fuzz_in_process", "fuzz_program", "hunt", "mutated"]

SECONDS = 120  # for all lines of one program
FIELDS = ("ledger", "subject", "sequence", "previous", "key", "query", "ticket", "nonce", "head")
DEEP = 900


class Violation(AssertionError):
    """A device did what it must not do."""


class Raw(str):
    """Text that is written into JSON as it is."""


TOKENS = [
    *("null", "true", "false", "[]", "{}", '""', "0", "-0", "-1", "1.5", "2", "1e400", "-1e400"),
    *("NaN", "Infinity", "-Infinity", "1e-400", "1e99999999", "9007199254740993", "9" * 25),
    *('"1/0"', '"1/3"', '"NaN"', '"1e9999"', '"-1"', '"1e-300"', '"500"', '"0x1p+0"', '"\'"'),
    *(r'"\ud800"', r'"\udfff\ud800"', r'"\u0000"', r'{"\ud800": 1}', '{"a": 1, "a": 2}'),
    *("[[1, 2], [3]]", '[["1"], []]', "[null, null]", '{"value": "x"}', '"\U0001f600"'),
    *("9" * 5000, f'"{"7" * 5000}"', f'"{"k" * 70_000}"', "[" + "0," * 5000 + "0]"),
    *("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * 100_000),
]
BYTES = [
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\0",
    b"\r",
    b'"',
    b"{",
    b"]",
    b"\\",
    b"[" * 900,
]


def written(tree: Any) -> str:
    """JSON with raw text where the tree has it."""
    if isinstance(tree, Raw):
        return tree
    if isinstance(tree, dict):
        fields = (f"{json.dumps(name)}: {written(value)}" for name, value in tree.items())
        return "{" + ", ".join(fields) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(written, tree)) + "]"
    return json.dumps(tree)


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: a list or an object, and an index or a name in it."""
    names = range(len(tree)) if isinstance(tree, list) else list(tree)
    for name in names:
        yield tree, name
        if isinstance(tree[name], dict | list):
            yield from _nodes(tree[name])


def _replace(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    within[name] = Raw(rng.choice(TOKENS))


def _delete(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    del within[name]


def _duplicate(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    again = rng.choice([written(within[name]), rng.choice(TOKENS)])
    within[name] = Raw(f"{written(within[name])}, {json.dumps(str(name))}: {again}")


def _swap(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    other, place = rng.choice(list(_nodes(tree)))
    first, second = written(within[name]), written(other[place])
    within[name], other[place] = Raw(second), Raw(first)


def _wrap(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    within[name] = rng.choice([[within[name]], {"value": within[name]}])


def _retype(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    within[name] = Raw(rng.choice([json.dumps(written(within[name])), written(name)]))


def _add(rng: random.Random, within: Any, name: Any, tree: Any) -> None:
    if isinstance(within, list):
        within.insert(rng.randrange(len(within) + 1), Raw(rng.choice(TOKENS)))
    else:
        within[rng.choice(["", "\ud800", "more", *FIELDS])] = Raw(rng.choice(TOKENS))


EDITS: list[Callable[[random.Random, Any, Any, Any], None]] = [
    *(_replace, _replace, _replace, _delete, _duplicate, _swap, _wrap, _retype, _add)
]


def mutated(rng: random.Random, tree: dict[str, Any]) -> bytes:
    """An answer with some of its fields, or some of its bytes, changed."""
    kind, tree = rng.random(), json.loads(json.dumps(tree))
    if kind < 0.02:
        return rng.choice([rng.choice(TOKENS).encode(), rng.randbytes(rng.randrange(40)), b""])
    if kind < 0.7:
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            if nodes := list(_nodes(tree)):
                rng.choice(EDITS)(rng, *rng.choice(nodes), tree)
    line = bytearray(written(tree), "utf-8")
    for _ in range(rng.choice([1, 1, 2, 5]) if kind > 0.65 else 0):
        place, edit = rng.randrange(len(line) + 1), rng.randrange(5)
        if edit == 0:
            line[place:place] = rng.choice([*BYTES, rng.randbytes(1)])
        elif edit == 1:
            del line[place : place + rng.choice([1, 1, 5, 1000])]
        elif edit == 2 and place < len(line):
            line[place] ^= 1 << rng.randrange(8)
        elif edit == 3:
            line[place:place] = line[: rng.randrange(len(line) + 1)][-rng.randint(1, 30) :]
        else:
            del line[place:]
    return bytes(line)


class Study:
    """A random policy and subject, and answers for a device under them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.domain = rng, draw_finite_domain(rng)
        budget = rng.choice([{"epsilon": "1"}, {"epsilon": "40"}, {"ratio": "9/4"}])
        kind = rng.choice(["basic", "simplified", "bayesian"])
        self.policy = {"version": 1, "study": "Smoking", "nonce": "00" * 16}
        guard = self._with_level({"kind": kind, **budget})
        self.policy |= {"domain": self.domain.tree, "filter": guard}
        self.value, self.subject = draw_value(rng, self.domain), draw_subject(rng)
        self.steps = rng.randint(1, 3) if self.domain.changes else 1

    def _with_level(self, guard: dict[str, Any]) -> dict[str, Any]:
        """Protect fewer pairs of records, if that suits the domain; next to the filter or alone."""
        attributes = self.domain.attributes or {}
        changing = [x for x in attributes.values() if isinstance(x, dict) and "changing" in x]
        limited = any(x.keys() != {"changing"} for x in changing)
        kinds = ["attributes", "groups"] + ["steps"] * bool(changing and not limited)
        if not attributes or self.rng.random() < 0.5:
            return guard
        level = draw_level(self.rng, attributes, self.rng.choice(kinds))
        narrow = {**guard, "protects": level}
        return narrow if self.rng.random() < 0.5 else {"kind": "all", "filters": [narrow, guard]}

    def create(self, path: Path) -> None:
        """Create a store, at the last step."""
        Device.create(str(path), json.dumps(self.policy), self.subject, json.dumps(self.value))
        opened = Device(str(path))
        for _ in range(self.steps - 1):
            opened.next()
        self.ledger, self.first_head = opened.policy.id, opened.heads[0]
        opened.close()

    def reservation(self, heads: list[str]) -> dict[str, Any]:
        """What a ledger reserves for a device whose chain has these heads."""
        return {
            "ledger": self.ledger,
            "subject": self.subject,
            "sequence": len(heads),
            "previous": heads[-1],
            "key": f"key {self.rng.getrandbits(64)}",
            "query": draw_query(self.rng, self.domain, steps=self.steps).tree,
            "ticket": self.rng.randbytes(32).hex(),
        }

    def answer(self, heads: list[str], nonce: str) -> dict[str, Any]:
        """The answer of a ledger that has recorded all exchanges, or fewer, or more."""
        fields: dict[str, Any] = {"ledger": self.ledger, "subject": self.subject, "nonce": nonce}
        fields |= {"state": "active", "receipts": [], "reservation": self.reservation(heads)}
        return {**fields, "confirmed": len(heads) - 1, "head": heads[-1]}

    def line(self, heads: list[str], nonce: str) -> tuple[bytes, bool]:
        """A line without its end, and whether a device must not refuse it."""
        tree, kind = self.answer(heads, nonce), self.rng.random()
        if kind < 0.15:
            return json.dumps(tree).encode(), True
        if kind < 0.2:
            tree["confirmed"] = self.rng.randrange(len(heads))
            tree["head"] = heads[tree["confirmed"]]
            return json.dumps(tree).encode(), False  # it may have been sent just before
        if kind < 0.22:
            tree["confirmed"] += 1
        elif kind < 0.25:
            tree["reservation"]["sequence"] = self.rng.randint(-1, len(heads) + 2)
        elif kind < 0.28:
            tree["nonce"] = self.rng.choice(["", "0" * 32, nonce.upper(), nonce[::-1]])
        line = tree
        if self.rng.random() < 0.5:  # the rest of the answer is right
            line = {**tree, "reservation": Raw(_text(mutated(self.rng, tree["reservation"])))}
            return written(line).encode("utf-8", "surrogateescape").replace(b"\n", b""), False
        return mutated(self.rng, line).replace(b"\n", b""), False


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")


def _need(right: bool, what: str, line: bytes) -> None:
    if not right:
        raise Violation(f"{what}: {line[:300]!r}")


def _take(tested: Device, line: bytes) -> str | None:
    """The next request of a device; None for a refusal."""
    try:
        return tested.take(line)
    except Refused as refusal:
        _need(str(refusal).isprintable(), f"the refusal {str(refusal)!r} is not one line", line)
        return None
    except Exception as error:
        raise Violation(f"the device ended with {error!r}: {line[:300]!r}") from error


def _nonce(request: str) -> str:
    return str(json.loads(request)["nonce"])


def _messages(request: str) -> list[str]:
    return list(json.loads(request)["messages"]) if request else []


def fuzz_in_process(seed: str, lines: int, folder: Path) -> int:
    """Send answers to a device, and those that it takes to a second one; return how many."""
    rng = random.Random(seed)
    study, store = Study(rng), folder / "tested"
    study.create(store)
    (folder / "control").write_bytes(store.read_bytes())
    (folder / "control").chmod(0o600)
    source = random.Random(seed).randbytes
    tested = Device(str(store), source)
    control = Device(str(folder / "control"), random.Random(seed).randbytes)
    request, same, taken, sent = tested.sync(), control.sync(), 0, dict[int, str]()
    for _ in range(lines):
        line, valid = study.line(tested.heads, _nonce(request))
        before = store.read_bytes()
        reply = _take(tested, line)
        _need(reply is not None or not valid, "a valid answer was refused", line)
        if reply is None:
            _need(store.read_bytes() == before, "a refusal changed the store", line)
            if tested.old_copy:
                tested.close()
                tested = Device(str(store), source)
            request, same = tested.sync(), control.sync()
            continue
        taken += 1
        right = line.replace(_nonce(request).encode(), _nonce(same).encode())
        expected = _take(control, right)
        known = _messages(reply) == _messages(expected or "")
        _need(expected is not None and known, "a refused line changed a message", line)
        for message in _messages(reply):
            fields = json.loads(message)
            if "head" in fields:
                first = sent.setdefault(fields["sequence"], message)
                _need(first == message, "a message is sent again with other bytes", line)
        request, same = reply, expected or ""
        if not request or rng.random() < 0.3:
            request, same = tested.sync(), control.sync()
    tested.close()
    control.close()
    equal = store.read_bytes() == (folder / "control").read_bytes()
    _need(equal, "the refused lines changed the store", b"")
    _repeats(study, store, [sent[number] for number in sorted(sent)])
    return taken


def _repeats(study: Study, store: Path, messages: list[str]) -> None:
    """A device that is opened again sends all of its messages again."""
    opened, got = Device(str(store)), list[str]()
    request = opened.sync()
    while len(got) < len(messages):
        tree = study.answer(opened.heads, _nonce(request))
        place = {"confirmed": len(got), "head": opened.heads[len(got)]}
        request = _take(opened, json.dumps({**tree, **place}).encode()) or ""
        _need(request != "", "messages are not sent again", b"")
        got += _messages(request)
    _need(got == messages and len(opened.heads) == len(got) + 1, "a message is not repeated", b"")
    opened.close()


def fuzz_program(seed: str, lines: int, folder: Path) -> int:
    """Send answers to a device that runs as a program; return how many it took."""
    study, store = Study(random.Random(seed)), folder / "store"
    study.create(store)
    heads, sent, taken = [study.first_head], list[str](), 0
    command = [sys.executable, "-I", "-S", device.__file__, "sync", str(store)]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    while lines > 0:
        with subprocess.Popen(command, **pipes) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stderr is not None
            watchdog = threading.Timer(SECONDS, program.kill)
            watchdog.start()
            line, valid, before = b"", True, b""
            while request := program.stdout.readline():
                taken += line != b""
                fresh = [x for x in _messages(request.decode()) if "head" in json.loads(x)]
                for message in fresh:
                    fields = json.loads(message)
                    if fields["sequence"] == len(heads):
                        heads.append(fields["head"])
                        sent.append(message)
                    again = sent[fields["sequence"] - 1] == message
                    _need(again, "a message is sent again with other bytes", line)
                lines, before = lines - 1, store.read_bytes()
                line, valid = study.line(heads, _nonce(request.decode()))
                program.stdin.write(line + b"\n")
                program.stdin.flush()
            errors, code = program.stderr.read(), program.wait()
            watchdog.cancel()
        taken += code == 0
        one_line = errors.startswith(b"device: ") and errors.count(b"\n") == 1
        ended = one_line if code == 1 else (code, errors) == (0, b"")
        _need(ended, f"exit code {code} and {errors[-200:]!r}: neither an end nor a refusal", line)
        _need(not (valid and code), "a valid answer was refused", line)
        _need(not code or store.read_bytes() == before, "a refusal changed the store", line)
    _repeats(study, store, sent)
    return taken


def hunt(seed: int) -> None:
    """Fuzz devices until stopped; every tenth case runs as a program."""
    print(f"seed {seed}", flush=True)
    start = reported = time.monotonic()
    lines, taken, found, step = 0, 0, 0, 0
    while True:
        fuzz, count = (fuzz_program, 50) if step % 10 == 9 else (fuzz_in_process, 300)
        with tempfile.TemporaryDirectory() as folder:
            try:
                taken += fuzz(f"{seed}/{step}", count, Path(folder))
            except Violation as violation:
                found += 1
                again = f"{fuzz.__name__}({f'{seed}/{step}'!r}, {count}, folder)"
                print(f"FOUND by {again}: {violation}", flush=True)
        lines, step = lines + count, step + 1
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            counts = f"{lines} lines, {taken} taken, {found} violations"
            print(f"{reported - start:6.0f} s  {step} devices, {counts}", flush=True)

"""Fuzz ``device.py`` with hostile reservations.

A device reads lines of which most are mutated reservations. Whatever a line is,

- the device answers it with one message or one refusal line, and does not end;
- a refusal leaves the stored bytes as they are, and draws nothing;
- every message is the one that a device without the refused lines sends;
- a device that is opened again repeats every message.
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

from conformance.drawing import a_domain, a_query, a_subject, a_value
from expost.device import device
from expost.device.device import Device, Refused

__all__ = ["Violation", "fuzz_in_process", "fuzz_program", "hunt", "mutated"]

SECONDS = 120  # for all lines of one program
FIELDS = ("ledger", "subject", "sequence", "previous", "key", "query", "seed", "epsilon", "at")
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
    """A reservation with some of its fields, or some of its bytes, changed."""
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
    """A random policy and subject, and valid reservations for a device under them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.domain = rng, a_domain(rng)
        budget = rng.choice([{"epsilon": "1"}, {"epsilon": "40"}, {"ratio": "9/4"}])
        kind = rng.choice(["basic", "simplified", "bayesian"])
        self.policy = {"version": 1, "study": "Smoking", "nonce": "00" * 16}
        self.policy |= {"domain": self.domain, "filter": {"kind": kind, **budget}}
        self.value, self.subject = a_value(rng, self.domain), a_subject(rng)
        attributes = self.domain.get("attributes", {}).values()
        changing = any(isinstance(x, dict) and "changing" in x for x in attributes)
        self.steps = rng.randint(1, 3) if changing else 1
        self.answered: list[bytes] = []
        """All lines that were answered with a message, in order."""

    def create(self, path: Path) -> None:
        """Create a store, at the last step."""
        Device.create(str(path), json.dumps(self.policy), self.subject, json.dumps(self.value))
        opened = Device(str(path))
        for _ in range(self.steps - 1):
            opened.next()
        self.ledger, self.first_head = opened.policy.id, opened.heads[0]
        opened.close()

    def reservation(self, heads: list[str]) -> dict[str, Any]:
        """What a ledger sends a device whose chain has these heads."""
        return {
            "ledger": self.ledger,
            "subject": self.subject,
            "sequence": len(heads),
            "previous": heads[-1],
            "key": f"key {self.rng.getrandbits(64)}",
            "query": a_query(self.rng, self.domain, self.steps),
        }

    def line(self, heads: list[str]) -> tuple[bytes, bool]:
        """A line without its end, and whether a device must answer it with a message."""
        tree, kind = self.reservation(heads), self.rng.random()
        if kind < 0.1:
            return json.dumps(tree).encode(), True
        if kind < 0.15:
            tree["sequence"] = self.rng.randint(-1, len(heads) + 2)
        elif kind < 0.2 and self.answered:
            return self.rng.choice(self.answered), False  # a declined one may no longer follow
        return mutated(self.rng, tree).replace(b"\n", b""), False


def _need(right: bool, what: str, line: bytes) -> None:
    if not right:
        raise Violation(f"{what}: {line[:300]!r}")


def _answer(tested: Device, line: bytes) -> str | None:
    """What a device answers; None for a refusal."""
    try:
        return tested.answer(line)
    except Refused as refusal:
        _need(str(refusal).isprintable(), f"the refusal {str(refusal)!r} is not one line", line)
        return None
    except Exception as error:
        raise Violation(f"the device ended with {error!r}: {line[:300]!r}") from error


def fuzz_in_process(seed: str, lines: int, folder: Path) -> int:
    """Send lines to a device, and those that it answers to a second one; return how many."""
    rng = random.Random(seed)
    study, store = Study(rng), folder / "tested"
    study.create(store)
    (folder / "control").write_bytes(store.read_bytes())
    (folder / "control").chmod(0o600)
    tested = Device(str(store), random.Random(seed).randbytes)
    control = Device(str(folder / "control"), random.Random(seed).randbytes)
    messages = []
    for _ in range(lines):
        line, valid = study.line(tested.heads)
        before = store.read_bytes()
        message = _answer(tested, line)
        _need(message is not None or not valid, "a valid reservation was refused", line)
        if message is None:
            _need(store.read_bytes() == before, "a refusal changed the store", line)
            continue
        _need(_answer(control, line) == message, "a refused line changed a message", line)
        messages.append((line, message))
        study.answered.append(line)
    tested.close()
    control.close()
    same = store.read_bytes() == (folder / "control").read_bytes()
    _need(same, "the refused lines changed the store", b"")
    _repeats(store, messages)
    return len(messages)


def _repeats(store: Path, messages: list[tuple[bytes, str]]) -> None:
    """A device that is opened again sends what it sent; a declined line may no longer follow."""
    opened = Device(str(store))
    for line, message in messages:
        repeated = _answer(opened, line)
        stale = repeated is None and "declined" in json.loads(message)
        _need(repeated == message or stale, "a message is not repeated", line)
    opened.close()


def fuzz_program(seed: str, lines: int, folder: Path) -> int:
    """Send lines to a device that runs as a program; return how many it answered."""
    study, store = Study(random.Random(seed)), folder / "store"
    study.create(store)
    heads, refused, messages = [study.first_head], 0, []
    command = [sys.executable, "-I", "-S", device.__file__, "answer", str(store)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **pipes) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        watchdog = threading.Timer(SECONDS, program.kill)
        watchdog.start()
        for _ in range(lines):
            line, valid = study.line(heads)
            before = store.read_bytes()
            program.stdin.write(line + b"\n")
            program.stdin.flush()
            reply = program.stdout.readline()
            _need(reply.endswith(b"\n"), f"the device ended with {reply!r}", line)
            if reply.startswith(b"device: "):
                refused += 1
                _need(not valid, "a valid reservation was refused", line)
                _need(store.read_bytes() == before, "a refusal changed the store", line)
                continue
            _need(reply.startswith(b"{"), f"{reply!r} is neither a message nor a refusal", line)
            message = json.loads(reply)
            messages.append((line, reply.decode().rstrip("\n")))
            study.answered.append(line)
            if message.get("sequence") == len(heads) and "head" in message:
                heads.append(message["head"])
        program.stdin.close()
        rest, code = program.stdout.read(), program.wait()
        watchdog.cancel()
    _need(rest == b"", f"the device adds {rest!r}", b"")
    _need(code == (refused > 0), f"the device ended with exit code {code}", b"")
    _repeats(store, messages)
    return len(messages)


def hunt(seed: int) -> None:
    """Fuzz devices until stopped; every tenth case runs as a program."""
    print(f"seed {seed}", flush=True)
    start = reported = time.monotonic()
    lines, answered, found, step = 0, 0, 0, 0
    while True:
        fuzz, count = fuzz_program if step % 10 == 9 else fuzz_in_process, 300
        with tempfile.TemporaryDirectory() as folder:
            try:
                answered += fuzz(f"{seed}/{step}", count, Path(folder))
            except Violation as violation:
                found += 1
                again = f"{fuzz.__name__}({f'{seed}/{step}'!r}, {count}, folder)"
                print(f"FOUND by {again}: {violation}", flush=True)
        lines, step = lines + count, step + 1
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            told = f"{lines} lines, {answered} answered, {found} violations"
            print(f"{reported - start:6.0f} s  {step} devices, {told}", flush=True)

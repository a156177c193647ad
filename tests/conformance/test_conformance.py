"""The library and the device pass the conformance vectors, and agree on many other cases."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from random import Random
from secrets import randbelow
from typing import Any

import pytest

from conformance import cases, sync_cases
from conformance.by_library import Bytes, answer
from conformance.make import FILES, VECTORS, file_of
from expost.device import checks, device
from expost.files.canonical import canonical_bytes
from expost.proof import verify
from support.random_documents import Tree

NAMES = (*FILES, "refused")


def stored(name: str) -> list[Tree]:
    found: list[Tree] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))["cases"]
    return found


def by_device(case: Tree) -> Tree:
    return checks.conform(case["check"], checks.device.parse(json.dumps(case["given"])))


@pytest.mark.parametrize("name", NAMES)
def test_the_library_passes(name: str) -> None:
    for number, case in enumerate(stored(name), 1):
        assert answer(case) == case["expected"], number


@pytest.mark.parametrize("name", NAMES)
def test_the_device_passes(name: str) -> None:
    for number, case in enumerate(stored(name), 1):
        assert by_device(case) == case["expected"], number


@pytest.mark.parametrize("name", NAMES)
def test_the_vectors_are_those_that_the_command_makes(name: str) -> None:
    assert file_of(name) == (VECTORS / f"{name}.json").read_text("utf-8")


def test_all_checks_and_families_have_vectors_and_both_decisions() -> None:
    every = [case for name in NAMES for case in stored(name)]
    assert {case["check"] for case in every} == {
        "query", "policy", "chain", "weights", "draw", "decision", "frozen", "refused",
        "ticket", "sync",
    }  # fmt: skip
    for check in ("query", "weights", "draw", "decision"):
        asked = {case["given"]["query"]["kind"] for case in every if case["check"] == check}
        assert asked == set(device.FAMILIES), check
    outcomes = {case["expected"].get("accepted") for case in every}
    assert {True, False} <= outcomes


def test_sync_vectors_have_every_outcome() -> None:
    talks = [case["expected"]["requests"] for case in stored("sync") if case["check"] == "sync"]
    every = [request for requests in talks for request in requests]
    sent = [request["messages"] for request in every if request and "messages" in request]
    assert every.count({"refused": True}) >= 20
    assert every.count(None) >= 5
    assert sum("declined" in message for messages in sent for message in messages) >= 3
    assert sum("response" in message for messages in sent for message in messages) >= 10
    assert max(map(len, sent)) >= 3


def test_keys_are_sorted_by_utf_16_code_units_in_all_three_programs() -> None:
    names = ["z", "\U0001d54f", "\ud7ff", "\ue000", "a", "\uff5a", "\U00010000"]
    tree = {"outer": dict.fromkeys(names, "x"), "list": [dict.fromkeys(names, 1)]}
    ordered = ["a", "z", "\ud7ff", "\U00010000", "\U0001d54f", "\ue000", "\uff5a"]
    for encode in (canonical_bytes, device.canonical, verify.canonical):
        read = json.loads(encode(tree))
        assert list(read) == ["list", "outer"]
        assert list(read["outer"]) == list(read["list"][0]) == ordered


def test_the_device_passes_alone_with_a_bare_interpreter(tmp_path: Path) -> None:
    source = Path(device.__file__).parent
    for name in ("device.py", "checks.py"):
        shutil.copy(source / name, tmp_path)
    files = sorted(map(str, VECTORS.glob("*.json")))
    command = [sys.executable, "-I", "-S", "checks.py", "conformance", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(files)


def test_a_wrong_case_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = stored("decisions")[0]
    case["expected"]["accepted"] = not case["expected"]["accepted"]
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"conformance": 1, "cases": [case]}))
    assert checks.main("conformance", str(path)) == 1
    assert "0 of 1 cases" in capsys.readouterr().out


CHECKS: list[tuple[str, Any, int]] = [
    ("decision", cases.decisions, 400),
    ("decision", cases.decisions_about_changes, 100),
    ("draw", cases.draws, 300),
    ("weights", cases.weights, 250),
    ("query", cases.ids, 150),
    ("query", cases.ids_beyond_the_basic_plane, 50),
    ("policy", cases.policies_beyond_the_basic_plane, 50),
    ("frozen", cases.frozen, 150),
    ("ticket", sync_cases.tickets, 100),
    ("sync", sync_cases.conversations, 200),
]


@pytest.mark.parametrize(("check", "make", "count"), CHECKS)
def test_library_and_device_agree_on_random_cases(check: str, make: Any, count: int) -> None:
    for seed in range(count):
        case = cases.with_answers(check, make(Random(f"more {check} {seed}")))
        case = json.loads(json.dumps(case))
        assert by_device(case) == case["expected"], (seed, case)


def test_bytes_become_integers_as_with_the_operating_systems_generator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed in range(200):
        limit = Random(seed).randrange(1, 1 << Random(seed).randint(1, 90))
        given = Random(seed).randbytes(2000)
        ours, theirs = Bytes(given), Bytes(given)
        monkeypatch.setattr(random, "_urandom", theirs.bytes)
        expected = randbelow(limit)
        assert (ours.below(limit), ours.used) == (expected, theirs.used)
        again = Bytes(given)
        assert device.below(limit, again.bytes) == expected


SMALL: list[Tree] = [
    {"kind": "randomized_response", "epsilon": "1"},
    {"kind": "local_hashing", "seed": "5eed", "buckets": 3, "epsilon": "1"},
    {"kind": "unary_encoding", "variant": "symmetric", "epsilon": "1"},
    {"kind": "unary_encoding", "variant": "optimized", "epsilon": "1"},
    {"kind": "subset_selection", "size": 2, "epsilon": "1"},
    {"kind": "hadamard_response", "order": 8, "epsilon": "1"},
    {"kind": "geometric", "range": [0, 3], "sensitivity": 3, "epsilon": "1"},
    {"kind": "perturbation", "scores": [0, 0.25, 0.5, 1], "range": [0, 1], "epsilon": "1"},
]


@pytest.mark.parametrize("query", SMALL, ids=lambda query: query["kind"])
def test_every_uniform_integer_is_drawn_from_and_counts_are_the_weights(
    query: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "two_weights", lambda _: (7, 2))
    domain = device.Domain(device.parse('{"values": [0, 1, 2, 3]}'))
    read = device.Query.read(device.parse(json.dumps(query)))
    likelihood = device.Account(domain).compiled(read).likelihood
    counts: list[dict[Any, int]] = []
    for place in range(4):
        found: dict[Any, int] = {}
        for uniform in range(likelihood.total):
            response = likelihood.draw(place, uniform)
            found[response] = found.get(response, 0) + 1
        counts.append(found)
    responses = set().union(*counts)
    for response, (one, other) in product(responses, product(range(4), repeat=2)):
        column = likelihood.column(response)
        assert counts[one][response] * column[other] == counts[other][response] * column[one]
        assert likelihood.read(device.parse(json.dumps(response))) == response


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"cases": 5}', b'{"cases": [{}]}', b"[" * 900]
)
def test_a_file_of_another_shape_is_refused_in_one_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_bytes(content)
    assert checks.main("conformance", str(path)) == 2
    assert capsys.readouterr().err == f"{path}: does not have the shape of a conformance file\n"

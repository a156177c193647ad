"""The device program refuses bad arguments, files and lines, each in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from expost.device import device
from support.single_device import POLICY

SECRET = "sehr geheim"


def run(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    # In UTF-8, whatever the locale is.
    program = [sys.executable, "-X", "utf8", "-I", "-S", device.__file__]
    command = [part.encode() for part in (*program, *arguments)]
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.json").write_text(json.dumps(POLICY), "utf-8")
    (tmp_path / "value.json").write_text(json.dumps(SECRET), "utf-8")
    (tmp_path / "value.json").chmod(0o600)
    return tmp_path


def create(folder: Path, **other: str) -> subprocess.CompletedProcess[bytes]:
    options = {"policy": "policy.json", "subject": "ann", "value": "value.json", **other}
    flags = [part for name, given in options.items() for part in (f"--{name}", given)]
    return run(folder, "create", "store", *flags)


def is_one_refusal(done: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether a program printed one line of refusal, and nothing that a value has."""
    one_line = done.stderr.startswith(b"device: ") and done.stderr.count(b"\n") == 1
    return one_line and done.returncode in (1, 2) and b"geheim" not in done.stderr


BAD_FILES: list[bytes] = [
    b"",
    b"\xff\xfe",
    b'"sehr geheim\xe9"',
    b"\0" * 100,
    b'"sehr geheim',
    b"[" * 100_000,
    b"[" * 900 + b"]" * 900,
    b'{"changing": ' * 900 + b"1" + b"}" * 900,
    b"NaN",
    b"9" * 5000,
    b"1e999999999",
    b"null",
    b'{"value": "sehr geheim", "value": "no"}',
    b'"\\ud800"',
]


@pytest.mark.parametrize("content", BAD_FILES, ids=lambda content: repr(content[:20]))
@pytest.mark.parametrize("name", ["policy.json", "value.json"])
def test_a_bad_file_is_refused_in_one_line(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    assert is_one_refusal(create(folder))
    assert not (folder / "store").exists()


HOSTILE: list[Any] = [None, True, 1, -1, 1.5, "", "x", "\ud800", [], {}, [[]], {"a": []}, [None]]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in a policy: an object or a list, and a name or an index in it."""
    here = list(enumerate(tree)) if isinstance(tree, list) else list(tree.items())
    inner = [found for _, x in here if isinstance(x, dict | list) for found in places(x)]
    return [(tree, name) for name, _ in here] + inner


DOMAINS: list[Any] = [
    {"values": ["no", "yes"]},
    {"points": {"names": ["age", "sex"], "rows": [[34, 0], [35, 1]]}},
    {
        "attributes": {
            "region": ["n", "s"],
            "age": {"integers": [0, 3]},
            "smokes": {"changing": ["no", "yes"], "times": 2},
            "weight": {"changing": [1, 2, 3], "max_step": "1"},
        }
    },
]


BUDGET: dict[str, Any] = {"kind": "bayesian", "epsilon": "1"}
LEVELS: list[Any] = [
    {"attributes": 1},
    {"groups": [["region", "age"], ["smokes"], ["weight"]]},
    {"steps": 4},
]
FILTERS: list[Any] = [
    BUDGET,
    {"kind": "all", "filters": [{**BUDGET, "protects": LEVELS[1]}, BUDGET]},
]
FILTERS += [{**BUDGET, "protects": level} for level in LEVELS]


@pytest.mark.parametrize("guard", FILTERS, ids=lambda guard: str(guard.get("protects", "")))
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: next(iter(domain)))
def test_every_wrong_type_in_a_policy_is_refused_or_read(domain: Any, guard: Any) -> None:
    policy = {**POLICY, "domain": domain, "filter": guard}
    for number in range(len(places(policy))):
        for wrong in HOSTILE:
            changed = json.loads(json.dumps(policy))
            within, name = places(changed)[number]
            within[name] = wrong
            with suppress(device.Refused):
                device.Policy(device.parse(json.dumps(changed)))


RECORD = {"region": ["n", "s"], "smokes": {"changing": ["no", "yes"]}}


@pytest.mark.parametrize(
    ("level", "reason"),
    [
        ({"attributes": 2}, "a level is about one attribute"),
        ({"attributes": 0}, "a level is about one attribute"),
        ({"groups": []}, "the groups must have every attribute, and no other"),
        ({"groups": [["region"]]}, "the groups must have every attribute, and no other"),
        ({"groups": [["region", "smokes", "x"]]}, "the groups must have every attribute"),
        ({"groups": [["region", "smokes"], []]}, "there must be attributes"),
        ({"groups": [["region", "smokes", "region"]]}, "a attribute is listed twice"),
        ({"steps": 0}, "must be at least 1"),
        ({"steps": 10**6 + 1}, "steps are at most"),
        ({"weeks": 1}, "has a field that is not known here"),
        ({"steps": 1, "attributes": 1}, "protects has one of attributes, groups, steps"),
        ({}, "protects has one of attributes, groups, steps"),
        (None, "protects is empty"),
    ],
)
def test_a_level_that_protects_no_pairs_or_too_few_is_refused(level: Any, reason: str) -> None:
    domain = device.Domain(device.parse(json.dumps({"attributes": RECORD})))
    with pytest.raises(device.Refused, match=reason):
        device.Filter.read(device.parse(json.dumps({**BUDGET, "protects": level})), domain)


@pytest.mark.parametrize(
    ("tree", "level", "reason"),
    [
        ({"values": [0, 1]}, {"attributes": 1}, "a level is for attributes"),
        ({"attributes": {"region": ["n", "s"]}}, {"steps": 1}, "needs an attribute that changes"),
        (DOMAINS[2], {"steps": 1}, "does not go with times or max_step"),
    ],
)
def test_a_level_that_does_not_suit_a_domain_is_refused(tree: Any, level: Any, reason: str) -> None:
    domain = device.Domain(device.parse(json.dumps(tree)))
    with pytest.raises(device.Refused, match=reason):
        device.Filter.read(device.parse(json.dumps({**BUDGET, "protects": level})), domain)


@pytest.mark.parametrize(
    "guard",
    [
        {"kind": "all", "filters": []},
        {"kind": "all", "filters": [BUDGET] * 17},
        {"kind": "all", "filters": [{"kind": "all", "filters": [BUDGET]}]},
        {"kind": "all", "filters": [{"kind": "approximate", "epsilon": "1", "delta": "1e-6"}]},
        {"kind": "all", "filters": [BUDGET], "epsilon": "1"},
        {"kind": "all"},
    ],
)
def test_a_conjunction_of_other_filters_is_refused(guard: Any) -> None:
    domain = device.Domain(device.parse(json.dumps({"attributes": RECORD})))
    with pytest.raises(device.Refused):
        device.Filter.read(device.parse(json.dumps(guard)), domain)


@pytest.mark.parametrize("subject", ['"', '""', '"a"b"', "007", "-", "-0012", "9" * 5000, "\u0661"])
def test_a_subject_is_a_name_or_is_refused(folder: Path, subject: str) -> None:
    done = create(folder, subject=subject)
    assert is_one_refusal(done) or json.loads(done.stdout)["subject"] == subject


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "store", "more"],
        ["sync", "store", "--value"],
        ["answer", "store"],
        ["next", "store", "--value"],
        ["create", "store", "--policy", "policy.json", "--subject", "ann", "--value"],
        ["next", "store", "--value", "a", "--value", "b"],
        ["explain", "store"],
        [],
    ],
)
def test_other_arguments_print_the_usage(folder: Path, arguments: list[str]) -> None:
    done = run(folder, *arguments)
    assert done.returncode == 2
    assert b"device.py create STORE" in done.stderr
    assert b"Traceback" not in done.stderr


LINES = [b"\xff", b"", b"\xef\xbb\xbf{", b"[" * 900, b"null", b"x" * 3_000_000]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
def test_an_answer_of_other_bytes_is_refused_in_one_line(folder: Path, line: bytes) -> None:
    assert create(folder).returncode == 0
    before = (folder / "store").read_bytes()
    done = run(folder, "sync", "store", given=line + b"\n")
    assert is_one_refusal(done)
    assert done.returncode == 1
    assert json.loads(done.stdout)["messages"] == []
    assert (folder / "store").read_bytes() == before


def test_the_end_of_the_input_is_refused_in_one_line(folder: Path) -> None:
    assert create(folder).returncode == 0
    done = run(folder, "sync", "store")
    assert (done.returncode, done.stdout.count(b"\n")) == (1, 1)
    assert done.stderr == b"device: the input ended before the answer to a request\n"

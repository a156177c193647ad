"""``checks.py export`` finds every change in the export of a ledger."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from expost.device import checks, device
from expost.device.device import Device
from support.single_device import POLICY, QUERY, answered

PEOPLE: list[str | int] = ["ann", 7, "größe"]


def an_export(tmp_path: Path) -> Path:
    """The export of a study of devices with four exchanges each."""
    policy = {**POLICY, "filter": {"kind": "bayesian", "epsilon": "40"}}
    lines: list[Any] = []
    for number, name in enumerate(PEOPLE, 1):
        store = str(tmp_path / f"store {number}")
        Device.create(store, json.dumps(policy), name, '"no"')
        own = Device(store)
        messages = [answered(own) for _ in range(4)]
        exchanges = [[message["query"], message["response"]] for message in messages]
        tally = sorted(Counter(map(tuple, exchanges)).items())
        fields = {"subject": name, "number": number, "kind": "device", "exchanges": exchanges}
        fields |= {"head": own.heads[-1], "tally": [[*pair, count] for pair, count in tally]}
        lines.append({**fields, "state": "active", "extras": []})
        own.close()
    header = {"ledger": 2, "policy": policy, "policy_id": own.policy.id}
    header |= {"queries": {messages[0]["query"]: QUERY}, "commits": 9, "root": "0" * 64}
    end = {"end": {"subjects": 3, "exchanges": 12, "digest": ""}}
    path = tmp_path / "study.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *lines, end]))
    assert rewritten(path, lambda lines, end: None) == []
    return path


def rewritten(path: Path, change: Any) -> list[str]:
    """The faults of an export whose lines are changed, and its digest with them."""
    *lines, end = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(lines, end["end"])
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end["end"]["digest"] = hashlib.sha256(content).hexdigest()
    path.write_bytes(content + json.dumps(end).encode() + b"\n")
    return checks.check_export(str(path)).faults


def other_response(lines: Any, end: Any) -> None:
    first = lines[1]["exchanges"][0]
    first[1] = "no" if first[1] != "no" else "yes"


def other_head(lines: Any, end: Any) -> None:
    lines[1]["head"] = "0" * 64


def other_tally(lines: Any, end: Any) -> None:
    lines[2]["tally"][0][2] += 1


def fewer(lines: Any, end: Any) -> None:
    lines.pop()


def other_policy(lines: Any, end: Any) -> None:
    lines[0]["policy"]["filter"]["epsilon"] = "3"


def other_query(lines: Any, end: Any) -> None:
    (query,) = lines[0]["queries"].values()
    query["epsilon"] = "0.4"


def other_version(lines: Any, end: Any) -> None:
    lines[0]["ledger"] = 1


def other_kind(lines: Any, end: Any) -> None:
    lines[1]["kind"] = "robot"


def other_state(lines: Any, end: Any) -> None:
    lines[1]["state"] = "asleep"


def unlisted_extra(lines: Any, end: Any) -> None:
    lines[1]["extras"] = [["0" * 64, "yes"]]


CHANGES = [
    (other_response, "chain"),
    (other_head, "chain"),
    (other_tally, "tally"),
    (fewer, "counts differ"),
    (other_policy, "policy"),
    (other_query, "query"),
    (other_version, "version 2"),
    (other_kind, "unknown kind"),
    (other_state, "unknown state"),
    (unlisted_extra, "is not listed"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_whatever_is_changed_in_an_export_is_found(tmp_path: Path, change: Any, words: str) -> None:
    path = an_export(tmp_path)
    assert any(words in fault for fault in rewritten(path, change))


def forged(lines: Any, end: Any, **other: str) -> None:
    """Nine equal responses of the first subject, with a right chain, under a budget of 1."""
    header, subject = lines[0], lines[1]
    (query_id,) = header["queries"]
    header["policy"]["filter"]["epsilon"] = "1"
    policy = device.Policy(device.parse(json.dumps(header["policy"])))
    header["policy_id"] = policy.id
    subject["exchanges"] = [[query_id, "yes"]] * 9
    subject["tally"] = [[query_id, "yes", 9]]
    subject |= other
    for line in lines[2:]:
        line["exchanges"] = line["tally"] = []
    for line in lines[1:]:
        head = device.first_head(policy.id, line["subject"])
        for sequence, (name, response) in enumerate(line["exchanges"], 1):
            head = device.next_head(head, sequence, name, response)
        line["head"] = head
    end["exchanges"] = 9


def test_a_forged_export_with_right_chains_that_broke_a_budget_is_found(tmp_path: Path) -> None:
    faults = rewritten(an_export(tmp_path), forged)
    assert faults
    assert all("not within the budget" in fault for fault in faults)


@pytest.mark.parametrize("other", [{"kind": "imported"}, {"state": "suspended"}])
def test_imported_and_suspended_subjects_may_be_over_the_budget(
    tmp_path: Path, other: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_export(tmp_path)
    assert rewritten(path, lambda lines, end: forged(lines, end, **other)) == []
    assert checks.check_export(str(path)).tolerated > 0
    assert checks.main("export", str(path)) == 0
    assert "imported or suspended subjects were not within the budget" in capsys.readouterr().out


def test_extras_are_listed_and_in_neither_chain_nor_tally(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = an_export(tmp_path)

    def with_extra(lines: Any, end: Any) -> None:
        (query_id,) = lines[0]["queries"]
        lines[1] |= {"extras": [[query_id, "no"]], "state": "suspended"}

    assert rewritten(path, with_extra) == []
    assert checks.main("export", str(path)) == 0
    assert "1 extra responses in quarantined messages" in capsys.readouterr().out


def test_the_checker_runs_alone(tmp_path: Path) -> None:
    path = an_export(tmp_path)
    program = [sys.executable, "-I", "-S", checks.__file__, "export"]
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "chains, tallies and decisions are right" in done.stdout
    rewritten(path, other_head)
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    path.write_text("not an export\n")
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    program.append(str(tmp_path / "nowhere"))
    assert subprocess.run(program, capture_output=True, check=False).returncode == 2

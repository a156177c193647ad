"""A command replaces an existing file only if the file is of the kind that it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars
import pytest

import expost as xp
from expost.device.device import Device

Run = Callable[..., tuple[int, str, str]]

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon="0.5")
MANY = ["--many", "answers.csv", "--queries", "queries.json"]

AUDIT = ["audit", "log.csv", "--queries", "queries.json", "--filter", "filter.json"]

COMMANDS: dict[str, tuple[list[str], str]] = {
    "certify": (["certify", "ann.json", "-o"], "a proof"),
    "explain": (["explain", "ann.json", "--html"], "a page of expost"),
    "learned": (
        ["explain", "ann.json", "--prior", "prior.csv", "--statement", 'value == "yes"', "--html"],
        "a page of expost",
    ),
    "design": (["design", "study.json", "--repetitions", "8", "--html"], "a page of expost"),
    "plot": (["plot", "ann.json", "-o"], "a picture"),
    "demo": (["demo", "--out"], "a picture"),
    "estimate": (
        ["estimate", "answers.csv", "--queries", "queries.json", "--frequencies", "-o"],
        "a picture",
    ),
    "audit": ([*AUDIT, "--csv"], "an audit table"),
    "losses": (["loss", *MANY, "-o"], "a table of losses"),
    "losses plot": (["loss", *MANY, "--plot"], "a picture"),
    "ledger report": (["ledger", "report", "study.db", "-o"], "a page of expost"),
    "ledger sync": (
        ["ledger", "sync", "study.db", "requests.jsonl", "-o"],
        "a file of sync answers",
    ),
    "ledger receive": (
        ["ledger", "receive", "study.db", "messages.jsonl", "-o"],
        "a file of receipts",
    ),
    "ledger recover": (
        ["ledger", "recover", "study.db", "--lost", "--checkpoint"],
        "a checkpoint",
    ),
    "ledger answers": (
        ["ledger", "answers", "study.db", "-o", "new.csv", "--queries"],
        "a file of queries",
    ),
}
NAMES = {
    "a page of expost": ["out.html"],
    "a picture": ["out.png", "out.svg", "out.pdf"],
    "a table of losses": ["out.csv", "out.jsonl", "out.parquet"],
}
PRECIOUS = ["bob.json", "query.json", "secret.json", "answers.csv", "page.html", "notes", "rows"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # On a busy machine a command may take a second, and would print how far it is.
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", float("inf"))
    filter_ = xp.BayesianFilter(epsilon=1)
    for name in ("ann", "bob"):
        xp.Transcript(DOMAIN, filter_).add(QUERY, "yes").save(f"{name}.json")
    QUERY.save("query.json")
    xp.audits.save_queries(DOMAIN, {"smokes": QUERY}, "queries.json")
    xp.audits.save_filter(filter_, "filter.json")
    Path("log.csv").write_text("subject,order,query,response\nann,1,smokes,yes\n", encoding="utf-8")
    Path("secret.json").write_text('{"age": 34}', encoding="utf-8")
    Path("answers.csv").write_text(
        "subject,query,response\nann,smokes,yes\nbob,smokes,no\n", encoding="utf-8"
    )
    Path("prior.csv").write_text("value,count\nno,3\nyes,1\n", encoding="utf-8")
    study = {"version": 1, "domain": {"values": ["no", "yes"]}, "subjects": 50, "epsilon": "1"}
    Path("study.json").write_text(
        json.dumps({**study, "goals": ['value == "yes"']}), encoding="utf-8"
    )
    Path("page.html").write_text(
        "<!DOCTYPE html>\n<html><body>My own page</body></html>\n", encoding="utf-8"
    )
    Path("notes").write_bytes(b"\xff\x00 <svg \x00")
    polars.DataFrame({"subject": ["ann"], "query": ["q"], "response": ["no"]}).write_parquet("rows")
    with xp.Ledger.create("study.db", DOMAIN, filter=filter_, queries={"smokes": QUERY}) as ledger:
        ledger.register(["ann", "bob"], kind="simulated")
        ledger.ask("smokes", ["yes", "no"], ["ann", "bob"], key="first")
        ledger.register(["cyd"])
        ledger.reserve("smokes", ["cyd"], key="second")
        Device.create("cyd.store", ledger.policy.to_json(), "cyd", '"yes"')
        device = Device("cyd.store")
        (answer,) = ledger.sync([device.sync()])
        request = device.take(answer.to_json())
    Path("requests.jsonl").write_text(f"{request}\n", encoding="utf-8")
    messages = "".join(f"{message}\n" for message in json.loads(request)["messages"])
    Path("messages.jsonl").write_text(messages, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("precious", PRECIOUS)
def test_a_file_of_another_kind_stays_as_it_is(
    run: Run, folder: Path, command: str, precious: str
) -> None:
    arguments, kind = COMMANDS[command]
    before = Path(precious).read_bytes()
    for name in NAMES.get(kind, ["out.json"]):
        Path(name).write_bytes(before)
        code, out, err = run(*arguments, name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"expost: {name}: already exists and is ")
        assert err.endswith(f"not {kind}; choose another name, or remove the file first\n")
        assert "34" not in err
        assert Path(name).read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_new_file_an_empty_one_and_one_of_the_same_kind_are_written(
    run: Run, folder: Path, command: str
) -> None:
    arguments, kind = COMMANDS[command]
    for name in NAMES.get(kind, ["out.json"]):
        for _ in ("new", "the same kind"):
            assert run(*arguments, name)[::2] == (0, "")
            Path("new.csv").unlink(missing_ok=True)
        written = Path(name).read_bytes()
        assert written
        Path(name).write_bytes(b"")
        assert run(*arguments, name)[::2] == (0, "")
        assert Path(name).read_bytes()
        Path("new.csv").unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["ledger sync", "ledger receive"])
def test_a_refused_output_records_nothing(run: Run, folder: Path, command: str) -> None:
    with xp.Ledger("study.db") as ledger:
        before = ledger.tip
    arguments, _ = COMMANDS[command]
    for output in ("bob.json", arguments[3]):  # another kind, and the input itself
        assert run(*arguments, output)[0] == 2
    with xp.Ledger("study.db") as ledger:
        assert ledger.tip == before


@pytest.mark.parametrize("name", ["losses.parquet", "summary.json", "audit.html"])
def test_an_audit_replaces_only_the_files_of_an_earlier_audit(
    run: Run, folder: Path, name: str
) -> None:
    for _ in ("new", "again"):
        assert run(*AUDIT, "-o", "out")[::2] == (0, "")
    copy = {file: file.read_bytes() for file in Path("out").iterdir()}
    (Path("out") / name).write_bytes(Path("bob.json").read_bytes())
    code, out, err = run(*AUDIT, "-o", "out")
    assert (code, out) == (2, "")
    assert err.startswith(f"expost: out/{name}: already exists and is a transcript, not a")
    copy[Path("out") / name] = Path("bob.json").read_bytes()
    assert {file: file.read_bytes() for file in Path("out").iterdir()} == copy


@pytest.mark.parametrize("name", ["runs.csv", "results.json", "report.html", "figures/health.svg"])
def test_a_report_of_experiments_replaces_only_an_earlier_one(
    run: Run, folder: Path, name: str
) -> None:
    for _ in ("new", "again"):
        assert run("reproduce", "health", "--out", "out")[::2] == (0, "")
    target = Path("out") / name
    target.write_bytes(Path("bob.json").read_bytes())
    code, out, err = run("reproduce", "health", "--out", "out")
    assert (code, out) == (2, "")
    assert err.startswith(f"expost: {target}: already exists and is a transcript, not a")
    assert target.read_bytes() == Path("bob.json").read_bytes()


def test_a_table_that_is_too_large_to_read_as_a_whole_is_recognized(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, _ = COMMANDS["losses"]
    for name in NAMES["a table of losses"][:2]:
        assert run(*arguments, name)[0] == 0
        monkeypatch.setattr("expost.files.kinds.LARGEST", len(Path(name).read_bytes()) - 3)
        assert run(*arguments, name)[::2] == (0, "")


def test_a_file_with_one_very_long_line_is_another_kind_of_file(run: Run, folder: Path) -> None:
    Path("long").write_text("x" * 200_000, encoding="utf-8")
    for arguments, _ in (COMMANDS["certify"], COMMANDS["explain"]):
        assert "long: already exists and is not a" in run(*arguments, "long")[2]

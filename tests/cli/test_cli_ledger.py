"""``expost ledger``: a study by commands, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.cli.ledger import command as ledger_group
from expost.device.device import Device
from support.missing_packages import COMMAND_LINE, run_without
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]
Do = Callable[..., dict[str, Any]]

QUERIES = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "queries": {"smokes": {"kind": "randomized_response", "epsilon": "0.5"}},
}
NAMES = ["ann", "bob", "cyd"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # On a busy machine a command may take a second, and would say how far it is.
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", float("inf"))
    Path("queries.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    Path("values.csv").write_text("subject,value\nann,yes\nbob,no\ncyd,no\n", encoding="utf-8")
    Path("values.csv").chmod(0o600)
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return "study.db"
    result: str = request.getfixturevalue("postgres")
    return result


@pytest.fixture
def do(run: Run) -> Do:
    """Run a command with --json; it has to go well, or end with this code."""

    def call(name: str, *arguments: object, code: int = 0) -> dict[str, Any]:
        ended, out, err = run("ledger", name, *arguments, "--json")
        assert (ended, err) == (code, ""), err
        tree: dict[str, Any] = json.loads(out)
        return tree

    return call


def started(do: Do, place: str, kind: str = "simulated", names: list[str] = NAMES) -> None:
    do("create", place, "--queries", "queries.json", "--budget", "1", "--study", "Smoking")
    Path("names.txt").write_text("\n".join(names), encoding="utf-8")
    do("register", place, "names.txt", "--kind", kind)


class Devices:
    """The devices of subjects, which talk to a ledger by commands."""

    def __init__(self, do: Do, place: str, names: list[str] = NAMES) -> None:
        self._do, self._place = do, place
        with xp.Ledger(place) as ledger:
            policy = ledger.policy.to_json()
        for name in names:
            Device.create(f"{name}.store", policy, name, '"yes"')
        self._devices = {name: Device(f"{name}.store") for name in names}

    def sync(self, *names: str) -> list[dict[str, Any]]:
        """Sync until no device has anything to send; return the last answers."""
        answers: dict[str, dict[str, Any]] = {}
        requests = {name: self._devices[name].sync() for name in names or self._devices}
        while requests:
            Path("requests.jsonl").write_text("\n".join(requests.values()), encoding="utf-8")
            result = self._do("sync", self._place, "requests.jsonl")["answers"]
            answers |= dict(zip(requests, result, strict=True))
            texts = zip(requests, map(json.dumps, result), strict=True)
            taken = {name: self._devices[name].take(text) for name, text in texts}
            requests = {name: request for name, request in taken.items() if request}
        return list(answers.values())

    def draw(self) -> list[dict[str, Any]]:
        """Let every device draw, and return the messages that it would send."""
        requests = [device.sync() for device in self._devices.values()]
        Path("requests.jsonl").write_text("\n".join(requests), encoding="utf-8")
        result = self._do("sync", self._place, "requests.jsonl")["answers"]
        pairs = zip(self._devices.values(), map(json.dumps, result), strict=True)
        drawn = [json.loads(device.take(text))["messages"] for device, text in pairs]
        return [json.loads(message) for messages in drawn for message in messages]


def written(file: str, *messages: object) -> str:
    """Write messages to a file, one per line."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in messages]
    Path(file).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return file


def other_response(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a device that answers the same number differently."""
    from expost.ledger._digests import chain_prefix, next_head

    response = {"no": "yes", "yes": "no"}[message["response"]]
    previous = bytes.fromhex(message["previous"])
    head = next_head(previous, chain_prefix(message["query"], response), message["sequence"])
    return {**message, "response": response, "head": head.hex()}


def lines(run: Run, *arguments: object) -> dict[str, str]:
    code, out, err = run("ledger", *arguments)
    assert (code, err) == (0, "")
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())


def refused(run: Run, *arguments: object, code: int = 2) -> str:
    """The one line of an error."""
    ended, out, err = run("ledger", *arguments)
    assert (ended, out, err.count("\n")) == (code, "", 1), err
    return err.removeprefix("expost: ").strip()


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for name, summary in ledger_group.summaries.items():
        command = import_module(f"expost.cli.ledger.{name}").command
        assert command.name == name
        assert " ".join(command.help.split()).startswith(summary.rstrip("."))


def test_every_command_is_explained_and_has_json(run: Run) -> None:
    assert all(f"  {name} " in run("ledger", "--help")[1] for name in ledger_group.summaries)
    for name in ledger_group.summaries:
        code, out, _ = run("ledger", name, "--help")
        assert code == 0
        assert "--json" in out
        assert "LEDGER" in out


def test_the_list_of_commands_imports_nothing_heavy() -> None:
    program = f"""
import sys
sys.argv = ["expost", "ledger", "--help"]
try:
    {COMMAND_LINE.replace(chr(10), "; ")}
except SystemExit:
    print([name for name in ("numpy", "polars", "psycopg", "apsw") if name in sys.modules])
"""
    assert run_without([], program).stdout.endswith("[]\n")


def test_a_study_from_nothing_to_its_end(run: Run, do: Do, place: str) -> None:
    created = do("create", place, "--queries", "queries.json", "--budget", "1", "--study", "S")
    assert created["queries"] == ["smokes"]
    kind = ("--kind", "simulated", "--subject")
    assert do("register", place, *kind, "ann", "--subject", "bob") == {"new": 2, "subjects": 2}
    assert do("register", place, *kind, "ann", "--subject", "cyd") == {"new": 1, "subjects": 3}
    first = do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    assert [row["subject"] for row in first["answered"]] == NAMES
    again = do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    assert again == first
    for week in range(2, 12):
        do("ask", place, "--query", "smokes", "--key", f"week {week}", "--values", "values.csv")
    printed = do("status", place, "--each")
    with xp.Ledger(place) as study:
        status, policy = study.status(), study.policy
        assert policy.content_id == created["policy_id"] == printed["policy_id"]
    assert [row["exchanges"] for row in printed["by_subject"]] == status.exchanges.tolist()
    assert printed["answers"] == status.exchanges.sum()
    assert printed["answers"] + printed["refused"] == 33
    assert do("audit", place)["respected"] == 3
    assert do("verify", place)["verified"] is True
    assert do("answers", place, "-o", "answers.csv", "--queries", "asked.json")["subjects"] == 3
    answers = xp.load_answers("answers.csv", "asked.json")
    with xp.Ledger(place) as study:
        assert answers.unanswered == study.answers().unanswered
    assert answers.count_unanswered() == {"refused": 3, "declined": 0, "missing": 0}
    assert xp.realized_losses(answers).upper == pytest.approx(status.loss.upper, abs=1e-9)
    assert do("transcript", place, "ann", "-o", "ann.json")["exchanges"] == status.exchanges[0]
    assert xp.load_transcript("ann.json").filter == xp.BayesianFilter(epsilon=1)
    exported = do("export", place, "-o", "export.jsonl")
    assert exported["root"] in Path("export.jsonl").read_text("utf-8")
    do("end", place)
    assert "the study has ended" in refused(
        run, "ask", place, "--query", "smokes", "--values", "values.csv"
    )
    assert do("status", place)["ended"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ["register", "study.db", "--subject", "dan"],
        ["reserve", "study.db", "--query", "smokes"],
        ["receive", "study.db", "m.jsonl"],
        ["sync", "study.db", "m.jsonl"],
        ["report", "study.db", "-o", "page.html"],
        ["export", "study.db", "-o", "export.jsonl"],
        ["backup", "study.db", "copy.db"],
        ["verify", "study.db"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_that_takes_long_shows_its_progress(
    run: Run, do: Do, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    started(do, "study.db", "device")
    written("m.jsonl", "a message")
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", 0.0)
    _, _, err = run("ledger", *arguments)
    assert any(word in err for word in ("subjects", "messages", "requests", "deciding", "copying"))


def test_devices_answer_what_was_reserved(run: Run, do: Do, place: str) -> None:
    started(do, place, "device")
    devices = Devices(do, place)
    assert lines(run, "reserve", place, "--query", "smokes", "--key", "w") == {
        "key": "w",
        "reserved": "3",
    }
    again = do("reserve", place, "--query", "smokes", "--key", "w", "--subject", "bob")
    assert again["outcomes"] == [{"subject": "bob", "outcome": "reserved", "sequence": 1}]
    later = do("reserve", place, "--query", "smokes", "--key", "v")
    assert later["counts"] == {"reserved": 0, "waiting": 3}
    assert "has to answer the reservation" in later["outcomes"][0]["reason"]
    assert do("status", place)["reserved"] == 3
    assert [answer["confirmed"] for answer in devices.sync()] == [1, 1, 1]
    printed = do("status", place)
    assert (printed["answers"], printed["reserved"]) == (3, 0)
    for week in range(9):
        do("reserve", place, "--query", "smokes", "--key", f"week {week}")
        devices.sync()
    last = do("reserve", place, "--query", "smokes", "--key", "last")
    assert last["counts"]["refused"] >= 1
    assert do("audit", place)["respected"] == 3
    assert do("verify", place)["verified"] is True


def test_sync_answers_are_printed_in_order_or_written(run: Run, do: Do) -> None:
    started(do, "study.db", "device")
    do("reserve", "study.db", "--query", "smokes")
    devices = Devices(do, "study.db")
    devices.draw()
    requests = Path("requests.jsonl").read_text("utf-8").splitlines()
    written("requests.jsonl", *reversed(requests), "", "junk")
    code, out, err = run("ledger", "sync", "study.db", "requests.jsonl")
    assert (code, err) == (1, "")
    *answers, receipt = map(json.loads, out.splitlines())
    assert [answer["subject"] for answer in answers] == NAMES[::-1]
    assert all(answer["reservation"]["key"] for answer in answers)
    assert receipt["outcome"] == "quarantined"
    assert "not a sync request" in receipt["reason"]
    code, shown, _ = run("ledger", "sync", "study.db", "requests.jsonl", "-o", "answers.jsonl")
    assert (code, shown) == (1, "answers      4\nquarantined  1\n")
    assert Path("answers.jsonl").read_text("utf-8") == out
    result = do("audit", "study.db")
    assert (result["suspended"], len(result["quarantined"])) == ([], 1)


def test_messages_are_received_once_and_receipts_are_written(run: Run, do: Do, place: str) -> None:
    started(do, place, "device")
    do("reserve", place, "--query", "smokes", "--key", "w")
    messages = Devices(do, place).draw()
    written("m.jsonl", *messages)
    assert lines(run, "receive", place, "m.jsonl", "--dry-run")["recorded"] == "3"
    assert do("status", place)["answers"] == 0
    assert lines(run, "receive", place, "m.jsonl", "-o", "receipts.jsonl") == {"recorded": "3"}
    receipts = list(map(json.loads, Path("receipts.jsonl").read_text("utf-8").splitlines()))
    assert [receipt["head"] for receipt in receipts] == [message["head"] for message in messages]
    assert do("receive", place, "m.jsonl")["receipts"] == receipts
    assert do("status", place)["answers"] == 3


def test_a_message_that_does_not_fit_is_quarantined_and_its_subject_suspended(
    run: Run, do: Do, place: str
) -> None:
    started(do, place, "device")
    do("reserve", place, "--query", "smokes", "--key", "w")
    devices = Devices(do, place)
    messages = devices.draw()
    do("receive", place, written("m.jsonl", *messages))
    written("m.jsonl", other_response(messages[0]), "not JSON")
    assert do("receive", place, "m.jsonl", "--dry-run", code=1)["quarantined"] == 2
    assert do("status", place)["suspended"] == 0
    printed = do("receive", place, "m.jsonl", code=1)
    assert [receipt["outcome"] for receipt in printed["receipts"]] == ["quarantined", "quarantined"]
    code, shown, _ = run("ledger", "receive", place, "m.jsonl")
    assert (code, "1: another answer to exchange 1" in shown) == (1, True)
    result = do("audit", place)
    assert (result["suspended"], len(result["quarantined"])) == (["ann"], 2)
    assert result["extras"] == [
        {"subject": "ann", "query": "smokes", "response": other_response(messages[0])["response"]}
    ]
    assert "suspended" in lines(run, "status", place, "--subject", "ann")["ann"]
    assert lines(run, "resolve", place, "ann", "bob")["unchanged"] == "1"
    assert do("status", place)["unconfirmed"] == 1
    devices.sync()
    printed = do("status", place)
    assert (printed["suspended"], printed["unconfirmed"]) == (0, 0)


def test_a_bad_client_release_suspends_nobody_until_an_operator_has_looked(
    run: Run, do: Do
) -> None:
    names = [f"person {index}" for index in range(100)]
    started(do, "study.db", "device", names)
    do("reserve", "study.db", "--query", "smokes", "--key", "w")
    messages = Devices(do, "study.db", names).draw()
    wrong = [{**message, "response": "maybe"} for message in messages[:2]]
    written("m.jsonl", *wrong, *messages[2:])
    code, shown, _ = run("ledger", "receive", "study.db", "m.jsonl")
    assert code == 1
    assert "held         2 subjects are not suspended: an operator has to look" in shown
    assert do("status", "study.db")["suspended"] == 0
    assert lines(run, "audit", "study.db")["held"].startswith("2 not suspended")
    names_file = written("names.txt", *names[:2])
    printed = do("resolve", "study.db", "--suspend", "--subjects", names_file)
    assert printed == {"suspended": names[:2], "unchanged": 0}
    assert do("status", "study.db")["suspended"] == 2
    assert "has no message that is held" in refused(
        run, "resolve", "study.db", "--suspend", names[5]
    )


def test_imported_answers_are_recorded_and_may_suspend(run: Run, do: Do, place: str) -> None:
    started(do, place, "imported")
    Path("r.csv").write_text("subject,response\nann,yes\nbob,no\n", encoding="utf-8")
    record = ("record", place, "r.csv", "--query", "smokes", "--key")
    assert do(*record, "w") == {"recorded": 2, "not_within_budget": 0}
    Path("r.csv").write_text("subject,response\n" + "ann,yes\n" * 3, encoding="utf-8")
    for _ in range(2):  # nothing is recorded twice
        printed = do(*record, "v", code=1)
        assert printed == {"recorded": 3, "not_within_budget": 2}
    code, shown, _ = run("ledger", *record, "v")
    assert (code, shown) == (1, "recorded           3\nnot within budget  2\n")
    printed = do("status", place)
    assert (printed["answers"], printed["kinds"], printed["suspended"]) == (5, {"imported": 3}, 1)
    assert do("audit", place, code=1)["broken_subjects"] == ["ann"]
    code, shown, _ = run("ledger", "audit", place)
    assert (code, "ann: 2, now 2, not respected from exchange 3\n" in shown) == (1, True)
    code, _, _ = run("ledger", "report", place, "-o", "page.html")
    assert code == 1
    assert "budget was not respected" in Path("page.html").read_text("utf-8")


def test_the_page_names_nobody_unless_asked_to(do: Do, place: str) -> None:
    started(do, place)
    do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    printed = do("report", place, "-o", "page.html", "--date", "2026-11-17")
    page = checked(Path("page.html").read_text("utf-8"))
    assert page.facts["root"] == printed["root"]
    assert page.facts["date"] == "2026-11-17"
    text = page.all("body")[0].text
    assert "The study Smoking" in text
    assert "week 1" in text
    assert not any(re.search(rf"\b{name}\b", text) for name in NAMES)
    do("report", place, "-o", "page.html", "--subject", "bob")
    text = checked(Path("page.html").read_text("utf-8")).all("body")[0].text
    assert "One subject: bob" in text
    assert not re.search(r"\bann\b", text)
    assert "postgres@" not in text


def test_a_restored_backup_is_refused_until_it_is_recovered(run: Run, do: Do) -> None:
    started(do, "study.db", "device")
    devices = Devices(do, "study.db")
    assert do("backup", "study.db", "backup.db") == {"file": "backup.db"}
    do("register", "study.db", "--subject", "eve")
    do("reserve", "study.db", "--query", "smokes", "--key", "w")
    devices.sync()
    shutil.copy("backup.db", "study.db")
    refused(run, "status", "study.db", code=1)
    code, shown, err = run("ledger", "recover", "study.db")
    assert (code, err) == (0, "")
    assert shown.splitlines() == [
        "lost commits        3",
        "unconfirmed         3",
        "                    each subject is confirmed by its device's next sync",
        "lost registrations  1",
        "                    register these subjects again, or wait until their devices sync",
        "suspended           0",
        "lost imports        0",
    ]
    status = do("status", "study.db")
    assert (status["unconfirmed"], status["answers"]) == (3, 0)
    outcomes = do("reserve", "study.db", "--query", "smokes", "--key", "v")
    assert outcomes["counts"] == {"reserved": 0, "unconfirmed": 3}
    assert [answer["confirmed"] for answer in devices.sync()] == [1, 1, 1]
    status = do("status", "study.db")
    assert (status["unconfirmed"], status["answers"]) == (0, 3)
    result = do("audit", "study.db")
    assert (result["unconfirmed"], result["lost_imports"]) == ([], 0)
    assert any("recovered" in mark for mark in result["marks"])
    assert "recovered" in lines(run, "audit", "study.db")["what happened"]
    assert "nothing to recover" in refused(run, "recover", "study.db")


def test_lost_imports_are_a_negative_outcome_until_they_are_recorded_again(
    run: Run, do: Do
) -> None:
    started(do, "study.db", "imported")
    do("backup", "study.db", "backup.db")
    Path("r.csv").write_text("subject,response\nann,yes\nbob,no\n", encoding="utf-8")
    record = ("record", "study.db", "r.csv", "--query", "smokes", "--key", "w")
    do(*record)
    shutil.copy("backup.db", "study.db")
    printed = do("recover", "study.db")
    assert (printed["lost_imports"], printed["suspended"]) == (2, [])
    assert do("audit", "study.db", code=1)["lost_imports"] == 2
    assert do("report", "study.db", "-o", "page.html", code=1)["lost_imports"] == 2
    assert "2 imported answers are lost" in Path("page.html").read_text("utf-8")
    do(*record)
    assert do("audit", "study.db")["lost_imports"] == 0


def test_without_a_checkpoint_an_operator_says_that_it_is_lost(run: Run, do: Do) -> None:
    started(do, "study.db", "device")
    Path("study.db.checkpoint").unlink()
    assert "--lost" in refused(run, "recover", "study.db")
    assert do("recover", "study.db", "--lost")["unconfirmed"] == 3
    assert do("status", "study.db")["unconfirmed"] == 3


def test_one_process_writes_and_others_read(run: Run, do: Do, place: str) -> None:
    started(do, place, "device")
    with xp.Ledger(place) as ledger:
        ledger.register(["dan"])
        for arguments in (
            ["register", place, "--subject", "eve"],
            ["reserve", place, "--query", "smokes"],
            ["receive", place, written("m.jsonl", "a message")],
            ["sync", place, "m.jsonl"],
            ["resolve", place, "ann"],
            ["end", place],
        ):
            assert "another process is writing to this ledger" in refused(run, *arguments)
        assert do("status", place)["subjects"] == 4
        assert do("verify", place)["verified"] is True
    assert do("end", place)["ended"] is True


def test_a_changed_database_is_noticed(run: Run, do: Do) -> None:
    started(do, "study.db")
    do("ask", "study.db", "--query", "smokes", "--values", "values.csv")
    database = sqlite3.connect("study.db")
    (trigger,) = database.execute("select sql from sqlite_master where name = 'requests_no_update'")
    with database:
        database.execute("drop trigger requests_no_update")
        database.execute("update requests set sequence = 0 where subject = '\"ann\"'")
        database.execute(trigger[0])
    database.close()
    result = do("verify", "study.db", code=1)
    assert (result["verified"], bool(result["problems"])) == (False, True)
    code, shown, _ = run("ledger", "verify", "study.db")
    assert (code, shown.startswith("verified   NO\n")) == (1, True)


def test_a_copy_is_a_new_file_of_a_database_that_is_a_file(run: Run, do: Do, postgres: str) -> None:
    started(do, "study.db")
    assert "already exists" in refused(run, "backup", "study.db", "values.csv")
    do("create", postgres, "--values", "a,b", "--budget", "1")
    assert "pg_dump" in refused(run, "backup", postgres, "copy.db")
    assert not Path("copy.db").exists()


def test_the_policy_for_devices_is_a_new_file(run: Run, do: Do) -> None:
    create = ("create", "--values", "a,b", "--budget", "1", "--policy")
    printed = do(*create, "policy.json", "study.db")
    Device.create("ann.store", Path("policy.json").read_text("utf-8"), "ann", '"a"')
    assert Device("ann.store").policy.id == printed["policy_id"]
    assert "policy.json: already exists" in refused(run, *create, "policy.json", "other.db")
    assert not Path("other.db").exists()


def test_saturating_rounds_can_be_repeated(run: Run, do: Do, place: str) -> None:
    started(do, place)
    question = ("saturating", place, "--question", 'value == "yes"')
    asked = do(*question, "--cap", "0.5", "--key", "w", "--values", "values.csv")
    assert len(asked["answered"]) == 3
    assert do(*question, "--cap", "0.5", "--key", "w", "--values", "values.csv") == asked
    assert do("status", place)["answers"] == 3
    assert lines(run, *question, "--cap", "0.5", "--key", "v", "--values", "values.csv") == {
        "key": "v",
        "answered": "0",
        "refused": "0",
        "no room": "3",
    }
    assert do("verify", place)["verified"] is True
    error = refused(run, *question, "--cap", "2", "--values", "values.csv")
    assert error.startswith("cap: 2 is above the budget of 1")
    error = refused(run, *question, "--cap", "1", "--values", "values.csv", "--subject", "ann")
    assert "without --subject" in error


def test_saturating_queries_are_reserved_for_devices(run: Run, do: Do, place: str) -> None:
    started(do, place, "device")
    do("register", place, "--subject", "sim", "--kind", "simulated")
    devices = Devices(do, place)
    Path("some.txt").write_text("ann\nbob\n", encoding="utf-8")
    question = ("saturating", place, "--question", 'value == "yes"', "--cap", "1", "--key", "w")
    assert do(*question, "--subjects", "some.txt")["counts"] == {"reserved": 2}
    assert do(*question)["counts"] == {"reserved": 3}  # those with a device
    devices.sync()
    outcomes = do(*question)
    assert outcomes["counts"] == {"reserved": 0, "recorded": 3}
    assert lines(run, *question[:-1], "v") == {"key": "v", "reserved": "0", "no room": "3"}
    assert do("status", place)["answers"] == 3
    assert do("verify", place)["verified"] is True


def test_subjects_come_from_tables_and_texts(run: Run, do: Do) -> None:
    started(do, "study.db", "device")
    Path("more.txt").write_text("dan\n\n eve \n", encoding="utf-8")
    assert do("register", "study.db", "more.txt")["new"] == 2
    Path("more.csv").write_text("age,subject\n3,fay\n4,ann\n", encoding="utf-8")
    assert do("register", "study.db", "--subjects", "more.csv")["new"] == 1
    Path("more.jsonl").write_text('{"subject": 7}\n{"subject": "8"}\n', encoding="utf-8")
    assert do("register", "study.db", "more.jsonl") == {"new": 2, "subjects": 8}
    reserve = ("reserve", "study.db", "--query", "smokes")
    assert do(*reserve, "--subjects", "more.csv")["counts"] == {"reserved": 2}
    printed = do(*reserve, "--subjects", "more.jsonl", "--subject", "7")
    assert [row["subject"] for row in printed["outcomes"]] == [7, "8"]
    listed = do("status", "study.db", "--subjects", "more.txt", "--subject", "ann")["by_subject"]
    assert [row["subject"] for row in listed] == ["ann", "dan", "eve"]
    written("more.txt", "dan", "Ann")
    assert refused(run, "status", "study.db", "--subjects", "more.txt") == (
        "more.txt: row 2: no subject 'Ann' in this ledger; did you mean 'ann'?"
    )
    written("more.jsonl", '{"subject": [7]}')
    assert "more.jsonl: row 1: no subject [7]" in refused(
        run, "status", "study.db", "--subjects", "more.jsonl"
    )


def test_a_subject_has_one_kind(run: Run, do: Do) -> None:
    started(do, "study.db", "device")
    Path("r.csv").write_text("subject,response\nann,yes\n", encoding="utf-8")
    for arguments in (
        ["register", "study.db", "names.txt", "--kind", "imported"],
        ["record", "study.db", "r.csv", "--query", "smokes", "--key", "k"],
        ["ask", "study.db", "--query", "smokes", "--values", "values.csv"],
    ):
        assert "is registered as device" in refused(run, *arguments)


@pytest.mark.parametrize(
    ("options", "table", "query"),
    [
        (["--values", "0..3"], "subject,value\na,0\nb,3\n", {"kind": "randomized_response"}),
        (
            ["--coordinate", "age=10..90", "--coordinate", "region=n,s"],
            "subject,region,age\na,n,10\nb,s,89.5\n",
            {"kind": "linear", "weights": {"age": 1}, "range": [10, 90]},
        ),
        (
            ["--domain", "domain.json"],
            "subject,region,age\na,n,1\nb,s,2\n",
            {"kind": "randomized_response", "about": ["age", "region"]},
        ),
    ],
    ids=["numbers", "box", "attributes"],
)
def test_values_of_every_kind_come_from_tables(
    do: Do, options: list[str], table: str, query: dict[str, Any]
) -> None:
    Path("domain.json").write_text(
        '{"attributes": {"region": ["n", "s"], "age": {"integers": [1, 3]}}}', encoding="utf-8"
    )
    Path("query.json").write_text(json.dumps({**query, "epsilon": "0.5"}), encoding="utf-8")
    Path("values.csv").write_text(table, encoding="utf-8")
    do("create", "study.db", *options, "--budget", "2")
    do("register", "study.db", "--kind", "simulated", "--subject", "a", "--subject", "b")
    printed = do("ask", "study.db", "--query", "query.json", "--values", "values.csv")
    assert [row["subject"] for row in printed["answered"]] == ["a", "b"]
    Path("values.csv").write_text(table.partition("\n")[0] + "\n", encoding="utf-8")
    printed = do("ask", "study.db", "--query", "query.json", "--values", "values.csv")
    assert (printed["answered"], printed["refused"]) == ([], [])


def test_values_that_change_are_lists(do: Do) -> None:
    Path("domain.json").write_text(
        '{"attributes": {"smokes": {"changing": ["no", "yes"], "times": 1}, "region": ["n", "s"]}}',
        encoding="utf-8",
    )
    Path("query.json").write_text(
        '{"kind": "randomized_response", "epsilon": "0.5", "about": ["smokes"], "at": 2}',
        encoding="utf-8",
    )
    Path("values.jsonl").write_text(
        '{"subject": "a", "smokes": ["no", "yes"], "region": "n"}\n', encoding="utf-8"
    )
    Path("values.jsonl").chmod(0o600)
    do("create", "study.db", "--domain", "domain.json", "--budget", "2")
    do("register", "study.db", "--kind", "simulated", "--subject", "a")
    printed = do("ask", "study.db", "--query", "query.json", "--values", "values.jsonl")
    assert len(printed["answered"]) == 1


@pytest.mark.parametrize("wrong", ['"no", "mood": ["a"]', '["no", "yes"], "mood": ["a"]'])
def test_values_that_change_are_lists_of_one_length(run: Run, do: Do, wrong: str) -> None:
    changing = '{"changing": ["no", "yes"], "times": 1}, "mood": {"changing": ["a", "b"]}'
    Path("domain.json").write_text(f'{{"attributes": {{"smokes": {changing}}}}}', encoding="utf-8")
    Path("query.json").write_text(
        '{"kind": "randomized_response", "epsilon": "0.5", "about": ["smokes"], "at": 1}',
        encoding="utf-8",
    )
    Path("values.jsonl").write_text(f'{{"subject": "a", "smokes": {wrong}}}\n', encoding="utf-8")
    Path("values.jsonl").chmod(0o600)
    do("create", "study.db", "--domain", "domain.json", "--budget", "2")
    do("register", "study.db", "--kind", "simulated", "--subject", "a")
    said = refused(run, "ask", "study.db", "--query", "query.json", "--values", "values.jsonl")
    assert said.startswith("values.jsonl: row 1: expected a list for each attribute that changes")
    assert "yes" not in said


class TestBadInput:
    @pytest.fixture(autouse=True)
    def study(self, do: Do, here: Path) -> Iterator[None]:
        started(do, "study.db")
        before = self.content(do)
        yield
        assert self.content(do) == before  # nothing was changed by any of it

    def content(self, do: Do) -> Any:
        return do("export", "study.db", "-o", f"{len(list(Path().iterdir()))}.jsonl")["root"]

    def test_a_key_that_is_too_long_is_one_line(self, run: Run) -> None:
        ask = ("ask", "study.db", "--query", "smokes", "--values", "values.csv", "--key", "x" * 201)
        assert "key: must have 1 to 200 printable characters" in refused(run, *ask)

    def test_a_value_outside_of_the_domain_is_not_shown(self, run: Run) -> None:
        Path("values.csv").write_text("subject,value\nann,geheim\n", encoding="utf-8")
        said = refused(run, "ask", "study.db", "--query", "smokes", "--values", "values.csv")
        assert "outside the domain" in said
        assert "geheim" not in said

    def test_a_key_is_not_used_for_another_query(self, run: Run, do: Do) -> None:
        Path("other.json").write_text(
            '{"kind": "randomized_response", "epsilon": "0.25"}', encoding="utf-8"
        )
        do("create", "other.db", "--queries", "queries.json", "--budget", "1")
        do("register", "other.db", "names.txt", "--kind", "simulated")
        ask = ("ask", "other.db", "--values", "values.csv", "--key", "k", "--query")
        do(*ask, "smokes")
        assert "was used for another query" in refused(run, *ask, "other.json")

    def test_a_table_of_values_that_others_may_read_is_warned_of(self, run: Run, do: Do) -> None:
        do("create", "other.db", "--queries", "queries.json", "--budget", "1")
        do("register", "other.db", "names.txt", "--kind", "simulated")
        Path("values.csv").chmod(0o644)
        code, _, err = run(
            "ledger", "ask", "other.db", "--query", "smokes", "--values", "values.csv"
        )
        assert (code, err) == (
            0, "expost: warning: values.csv is readable by others; run chmod 600 values.csv\n"
        )  # fmt: skip

"""``expost ledger``: a study by commands, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.cli.ledger import COMMANDS
from support.hiding import COMMAND_LINE, run_without
from support.pages import checked

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
    monkeypatch.setattr("expost.cli.progress._PATIENCE", float("inf"))
    Path("queries.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    Path("values.csv").write_text("subject,value\nann,yes\nbob,no\ncyd,no\n", encoding="utf-8")
    Path("values.csv").chmod(0o600)
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return "study.db"
    found: str = request.getfixturevalue("postgres")
    return found


@pytest.fixture
def do(run: Run) -> Do:
    """Run a command with --json; it has to go well, or end with this code."""

    def call(name: str, *arguments: object, code: int = 0) -> dict[str, Any]:
        ended, out, err = run("ledger", name, *arguments, "--json")
        assert (ended, err) == (code, ""), err
        tree: dict[str, Any] = json.loads(out)
        return tree

    return call


def started(do: Do, place: str, budget: str = "1") -> None:
    do("create", place, "--queries", "queries.json", "--budget", budget, "--study", "Smoking")
    do("register", place, *NAMES)


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
    for name, summary in COMMANDS.items():
        command = import_module(f"expost.cli.ledger.{name}").command
        assert command.name == name
        assert " ".join(command.help.split()).startswith(summary.rstrip("."))


def test_every_command_is_explained_and_has_json(run: Run) -> None:
    assert all(f"  {name} " in run("ledger", "--help")[1] for name in COMMANDS)
    for name in COMMANDS:
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
    assert do("register", place, "ann", "bob") == {"new": 2, "subjects": 2}
    assert do("register", place, "ann", "cyd") == {"new": 1, "subjects": 3}
    first = do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    assert [each["subject"] for each in first["answered"]] == NAMES
    again = do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    assert again == first
    for week in range(2, 12):
        do("ask", place, "--query", "smokes", "--key", f"week {week}", "--values", "values.csv")
    told = do("status", place, "--each")
    with xp.Ledger(place) as study:
        status, policy = study.status(), study.policy
        assert policy.content_id == created["policy_id"] == told["policy_id"]
    assert [each["exchanges"] for each in told["each"]] == status.exchanges.tolist()
    assert told["answers"] == status.exchanges.sum()
    assert told["answers"] + told["refused"] == 33
    assert do("audit", place)["kept"] == 3
    assert do("verify", place)["verified"] is True
    assert do("answers", place, "-o", "answers.csv", "--queries", "asked.json")["subjects"] == 3
    answers = xp.load_answers("answers.csv", "asked.json")
    assert xp.realized_losses(answers).upper == pytest.approx(status.loss.upper, abs=1e-9)
    assert do("transcript", place, "ann", "-o", "ann.json")["exchanges"] == status.exchanges[0]
    assert xp.load_transcript("ann.json").filter == xp.BayesianFilter(epsilon=1)
    exported = do("export", place, "-o", "export.jsonl")
    assert exported["root"] in Path("export.jsonl").read_text("utf-8")
    do("end", place)
    assert "the study is closed" in refused(
        run, "ask", place, "--query", "smokes", "--values", "values.csv"
    )
    assert do("status", place)["ended"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ["register", "study.db", "dan"],
        ["reserve", "study.db", "--query", "smokes", "-o", "r.jsonl"],
        ["record", "study.db", "m.jsonl"],
        ["ask", "study.db", "--query", "smokes", "--values", "values.csv"],
        ["report", "study.db", "-o", "page.html"],
        ["export", "study.db", "-o", "export.jsonl"],
        ["verify", "study.db"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_takes_long_says_how_far_it_is(
    run: Run, do: Do, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    started(do, "study.db")
    Path("m.jsonl").write_text("a message\n", encoding="utf-8")
    monkeypatch.setattr("expost.cli.progress._PATIENCE", 0.0)
    _, _, err = run("ledger", *arguments)
    assert "subjects" in err or "messages" in err or "deciding" in err


def test_devices_answer_what_was_reserved(run: Run, do: Do, place: str) -> None:
    started(do, place)
    out = lines(run, "reserve", place, "--query", "smokes", "--key", "w", "-o", "r.jsonl")
    assert (out["reserved"], out["refused"]) == ("3", "0")
    again = do("reserve", place, "--query", "smokes", "--key", "w", "--subject", "bob")
    sent = [json.loads(line) for line in Path("r.jsonl").read_text("utf-8").splitlines()]
    assert again["reserved"] == [sent[1]]
    assert do("status", place)["reserved"] == 3
    messages = [_message(each, "yes") for each in sent]
    Path("m.jsonl").write_text("".join(f"{message}\n" for message in messages), encoding="utf-8")
    assert lines(run, "record", place, "m.jsonl") == {"recorded": "3"}
    assert do("record", place, "m.jsonl")["recorded"] == 3
    assert do("status", place)["answers"] == 3
    # One who answers the same number differently was perhaps restored from a backup.
    Path("m.jsonl").write_text(f"{_message(sent[0], 'no')}\nnot JSON\n", encoding="utf-8")
    told = do("record", place, "m.jsonl", code=1)
    assert told["kept"] == 2
    assert [receipt["outcome"] for receipt in told["receipts"]] == ["kept", "kept"]
    code, shown, _ = run("ledger", "record", place, "m.jsonl")
    assert (code, "no reservation is open" in shown) == (1, True)
    found = do("audit", place)
    assert (found["closed"], len(found["did_not_fit"])) == (["ann"], 2)


def _message(reservation: dict[str, Any], response: str) -> str:
    """What a device sends; the chain is that of docs/reference/ledger.md."""
    from expost.ledger.digests import link, next_head

    query = xp.queries.query_from_json(reservation["query"])
    shared = link(query.content_id, response)
    head = next_head(bytes.fromhex(reservation["previous"]), shared, reservation["sequence"])
    fields = {name: reservation[name] for name in ("ledger", "subject", "sequence", "key")}
    said = {**fields, "query": query.content_id, "response": response, "head": head.hex()}
    return json.dumps(said)


def test_responses_that_nobody_reserved_are_recorded_and_may_close(
    run: Run, do: Do, place: str
) -> None:
    started(do, place)
    Path("r.csv").write_text("subject,response\nann,yes\nbob,no\n", encoding="utf-8")
    assert do("record", place, "r.csv", "--query", "smokes", "--key", "w") == {
        "recorded": 2,
        "closed": 0,
    }
    Path("r.csv").write_text("subject,response\n" + "ann,yes\n" * 3, encoding="utf-8")
    for _ in range(2):  # nothing is recorded twice
        told = do("record", place, "r.csv", "--query", "smokes", "--key", "v", code=1)
        assert told == {"recorded": 3, "closed": 2}
    assert do("status", place)["answers"] == 5
    assert do("audit", place, code=1)["broken"] == ["ann"]
    code, _, _ = run("ledger", "report", place, "-o", "page.html")
    assert code == 1
    assert "was not kept" in Path("page.html").read_text("utf-8")


def test_the_page_names_nobody_unless_asked_to(do: Do, place: str) -> None:
    started(do, place)
    do("ask", place, "--query", "smokes", "--key", "week 1", "--values", "values.csv")
    told = do("report", place, "-o", "page.html", "--date", "2026-11-17")
    page = checked(Path("page.html").read_text("utf-8"))
    assert page.facts["content id"] == told["root"]
    assert page.facts["date"] == "2026-11-17"
    text = page.all("body")[0].text
    assert "The study Smoking" in text
    assert "week 1" in text
    assert not any(re.search(rf"\b{name}\b", text) for name in NAMES)
    do("report", place, "-o", "page.html", "--subject", "bob")
    text = checked(Path("page.html").read_text("utf-8")).all("body")[0].text
    assert "One person: bob" in text
    assert not re.search(r"\bann\b", text)
    assert "postgres@" not in text


def test_a_restored_backup_is_refused_until_it_is_recovered(run: Run, do: Do) -> None:
    started(do, "study.db")
    shutil.copy("study.db", "backup.db")
    asked = ("ask", "study.db", "--query", "smokes", "--values", "values.csv")
    do(*asked, "--key", "week 1")
    shutil.copy("backup.db", "study.db")
    said = refused(run, "status", "study.db", code=1)
    assert "it is an older copy" in said
    assert do("recover", "study.db") == {"closed": NAMES}
    assert do("status", "study.db")["closed"] == 3


def test_without_a_checkpoint_somebody_says_who_is_closed(run: Run, do: Do) -> None:
    started(do, "study.db")
    Path("study.db.checkpoint").unlink()
    said = refused(run, "recover", "study.db")
    assert "close everybody (--everybody), or nobody (--lost)" in said
    shutil.copy("study.db", "other.db")
    assert do("recover", "other.db", "--lost") == {"closed": []}
    assert do("recover", "study.db", "--everybody") == {"closed": NAMES}


def test_subjects_come_from_tables_and_texts(do: Do) -> None:
    started(do, "study.db")
    Path("more.txt").write_text("dan\n\n eve \n", encoding="utf-8")
    assert do("register", "study.db", "--from", "more.txt")["new"] == 2
    Path("more.csv").write_text("age,subject\n3,fay\n4,ann\n", encoding="utf-8")
    assert do("register", "study.db", "--from", "more.csv")["new"] == 1
    Path("more.jsonl").write_text('{"subject": 7}\n{"subject": "7"}\n', encoding="utf-8")
    assert do("register", "study.db", "--from", "more.jsonl") == {"new": 2, "subjects": 8}


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
    do("register", "study.db", "a", "b")
    told = do("ask", "study.db", "--query", "query.json", "--values", "values.csv")
    assert [each["subject"] for each in told["answered"]] == ["a", "b"]
    Path("values.csv").write_text(table.partition("\n")[0] + "\n", encoding="utf-8")
    told = do("ask", "study.db", "--query", "query.json", "--values", "values.csv")
    assert (told["answered"], told["refused"]) == ([], [])


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
    do("register", "study.db", "a")
    told = do("ask", "study.db", "--query", "query.json", "--values", "values.jsonl")
    assert len(told["answered"]) == 1


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
    do("register", "study.db", "a")
    said = refused(run, "ask", "study.db", "--query", "query.json", "--values", "values.jsonl")
    assert said.startswith("values.jsonl: row 1: attributes that change have a list of values each")
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

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["status", "no.db"], "no.db: cannot be read: No such file or directory"),
            (["create", "study.db", "--values", "a,b", "--budget", "1"], "is there already"),
            (["create", "x.db", "--values", "a,b", "--queries", "queries.json", "--budget", "1"],
             "queries.json: has another domain"),
            (["create", "x.db", "--values", "a,b", "--budget", "0"], "--budget: "),
            (["register", "study.db"], "name somebody, or give --from FILE"),
            (["register", "study.db", "--from", "no.txt"], "no.txt: "),
            (["ask", "study.db", "--query", "drinks", "--values", "values.csv"],
             "--query drinks: neither a file nor a query that the ledger knows, such as smokes"),
            (["ask", "study.db", "--query", "smokes", "--values", "no.csv"], "--values: there is"),
            (["ask", "study.db", "--query", "smokes", "--values", "values.csv", "--key", "x" * 201],
             "key: must have 1 to 200 printable characters"),
            (["reserve", "study.db", "--query", "smokes", "--subject", "zoe"],
             "--subject zoe: nobody in the ledger is called so"),
            (["record", "study.db", "no.jsonl"], "no.jsonl: "),
            (["record", "study.db", "values.csv", "--key", "k"], "--key: goes with --query"),
            (["record", "study.db", "values.csv", "--query", "smokes", "--key", "k"],
             "values.csv: has no column 'response'"),
            (["record", "study.db", "values.csv", "--query", "smokes"],
             "--key: goes with --query: it names what is recorded, so that nothing is twice"),
            (["answers", "study.db", "-o", "a.txt", "--queries", "q.json"], "a.txt: the name of"),
            (["answers", "study.db", "-o", "a.csv", "--queries", "q.json"], "nobody has answered"),
            (["report", "study.db", "-o", "page.txt"], "page.txt: the name of a page ends in"),
            (["transcript", "study.db", "zoe", "-o", "z.json"], "--subject zoe: nobody"),
        ],
    )  # fmt: skip
    def test_it_is_one_clear_line(self, run: Run, arguments: list[str], said: str) -> None:
        assert said in refused(run, *arguments)

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
        do("register", "other.db", *NAMES)
        ask = ("ask", "other.db", "--values", "values.csv", "--key", "k", "--query")
        do(*ask, "smokes")
        assert "was used for another query" in refused(run, *ask, "other.json")

    def test_a_table_of_values_that_others_may_read_is_warned_of(self, run: Run, do: Do) -> None:
        do("create", "other.db", "--queries", "queries.json", "--budget", "1")
        do("register", "other.db", *NAMES)
        Path("values.csv").chmod(0o644)
        code, _, err = run(
            "ledger", "ask", "other.db", "--query", "smokes", "--values", "values.csv"
        )
        assert (code, err) == (
            0, "expost: warning: others may read values.csv; chmod 600 leaves it to its owner\n"
        )  # fmt: skip

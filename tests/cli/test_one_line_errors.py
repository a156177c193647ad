"""One-line errors of every command: the line, the exit code, and that no file has changed."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.cli.commands import group
from expost.cli.ledger import command as ledger_group

Run = Callable[..., tuple[int, str, str]]

SMOKING = xp.FiniteSet(["no", "yes"])
BUDGET = xp.BayesianFilter(epsilon=1)
QUERY = xp.randomized_response(epsilon="0.5")
STUDY = {
    "version": 1,
    "domain": {"values": ["never", "often"]},
    "goals": ["value == 'often'"],
    "subjects": 1000,
    "epsilon": "1",
}
BOXES = {
    "no_end": {"age": [10, None]},
    "reversed": {"age": [10, 5]},
    "no_integer": {"age": {"integers": [0.2, 0.8]}},
    "no_side": {},
    "other_name": {"size": [10, 100]},
}
ABOUT_AGE = {"kind": "logistic", "weights": {"age": 1}, "epsilon": "1"}


def write(name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of all commands in the table. None of the commands changes any."""
    folder = tmp_path_factory.mktemp("errors")
    before = Path.cwd()
    os.chdir(folder)
    try:
        _write_transcripts()
        _write_queries_and_tables()
        _write_other_files()
    finally:
        os.chdir(before)
    commits = _commits(folder)
    yield folder
    assert _commits(folder) == commits


def _commits(folder: Path) -> Any:
    with xp.Ledger(folder / "study.db") as ledger:
        return ledger.tip


def _write_transcripts() -> None:
    start = xp.Transcript(SMOKING, BUDGET)
    start.save("empty.json")
    start.add(QUERY, "yes").save("transcript.json")
    xp.Transcript(SMOKING).add(QUERY, "yes").save("bare.json")
    person = xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"]))
    xp.Transcript(person, BUDGET).save("changing.json")
    box = xp.Transcript(xp.Box(age=(10, 100))).add(xp.logistic({"age": 1}, epsilon=1), 1)
    box.save("box.json")
    for name, sides in BOXES.items():
        write(f"box_{name}.json", {**json.loads(box.to_json()), "domain": {"box": sides}})


def _write_queries_and_tables() -> None:
    QUERY.save("query.json")
    amount = xp.perturbation([0, 1], range=(0, 1), epsilon=1)
    queries = {"smokes": QUERY, "rare": QUERY, "amount": amount}
    xp.audits.save_queries(SMOKING, queries, "queries.json")
    xp.audits.save_queries(xp.FiniteSet([1, 2]), {"rare": QUERY}, "other.json")
    for name, query in {
        "not_json": "{",
        "no_kind": {"kind": "nonsense"},
        "no_field": {"kind": "channel"},
        "no_budget": {"kind": "randomized_response", "epsilon": -1},
        "one_score": {"kind": "perturbation", "scores": [0], "range": [0, 1], "epsilon": 1},
    }.items():
        write(f"query_{name}.json", query)
    box = {"version": 1, "domain": {"box": {"age": [0, 1]}}, "queries": {"ill": ABOUT_AGE}}
    write("box_queries.json", box)
    write("box_answers.csv", "subject,query,response\n1,ill,0\n2,ill,1\n")
    write("answers.csv", "subject,query,response\nann,smokes,no\nbob,smokes,yes\n")
    write("unknown_query.csv", "subject,query,response\nann,smoke,no\n")
    write("no_response.csv", "subject,query,response\nann,smokes,\n")
    write("no_query.csv", "subject,response\nann,no\n")
    write("blank.csv", "")
    record = xp.Attributes(smokes=["no", "yes"], region=["north", "south"])
    about = {name: QUERY.about(name) for name in ("smokes", "region")}
    xp.audits.save_queries(record, about, "record_queries.json")
    write("record.csv", "subject,query,response\nann,smokes,no\nann,region,north\n")
    worked = {"worked": QUERY.about("hours")}
    hours = xp.Attributes(hours=[0, 4, 8], sex=["f", "m"])
    xp.audits.save_queries(hours, worked, "number_queries.json")
    write("numbers.csv", "subject,query,response\nann,worked,4\nbob,worked,8\n")
    write("log.csv", "subject,order,query,response\nann,1,smokes,no\n")
    write("people.csv", "subject,sex,weight\nann,f,2\nbob,m,-1\n")
    write("twice.csv", "subject,sex\nann,f\nbob,m\nann,f\n")
    write("strangers.csv", "subject,response\nzed,no\n")
    write("gap.csv", "subject,order,query,response\nann,2,smokes,no\n")


def _write_other_files() -> None:
    xp.audits.save_filter(BUDGET, "filter.json")
    write("no_filter.json", "{}")
    write("prior.csv", "age,weight\n20,1\n70,1\n")
    write("study.json", STUDY)
    changes: dict[str, dict[str, Any]] = {
        "goal": {"goals": ["value > 1"]},
        "epsilon": {"epsilon": "-1"},
        "subjects": {"subjects": "many"},
    }
    for name, change in changes.items():
        write(f"study_{name}.json", {**STUDY, **change})
    write("domain.json", {"values": ["no", "yes"]})
    write("pairs.csv", "input,output\nno,no\nyes,no\n")
    write("other_pairs.csv", "input,output\nno,no\nmaybe,no\n")
    write("blank.json", "")
    for name, secret in {"unquoted": "the-secret", "outside": '"the-secret"'}.items():
        write(f"{name}.json", secret)
        Path(f"{name}.json").chmod(0o600)
    write("version.json", {"version": 2, "domain": {"values": ["no"]}, "exchanges": []})
    write("field.json", {"version": 1, "domian": {"values": ["no"]}, "exchanges": []})
    Path("junk").write_bytes(b"\x1f\x8bxxxx")
    xp.proof.certificate(xp.load_transcript("transcript.json")).save("proof.json")
    Path("folder").mkdir()
    Path("devices").mkdir()
    xp.Transcript(SMOKING, BUDGET).add(QUERY, "yes").save("devices/a.json")
    write("values.csv", "subject,value\nann,yes\nbob,no\n")
    Path("values.csv").chmod(0o600)
    ledger = xp.Ledger.create("study.db", SMOKING, filter=BUDGET, queries={"smokes": QUERY})
    with ledger:
        ledger.register(["ann", "bob"])


ERRORS = [
    ("nonsense", "no such command 'nonsense'"),
    ("losss transcript.json", "no such command 'losss'; did you mean 'loss'?"),
    ("--nonsense", "No such option '--nonsense'."),
    (
        "demo --out nowhere/odometer.png --json",
        "nowhere/odometer.png: cannot be saved: No such file or directory",
    ),
    (
        "demo --out transcript.json",
        "transcript.json: already exists and is a transcript, not a picture; choose "
        "another name, or remove the file first",
    ),
    (
        "design study_goal.json",
        "study_goal.json: goals[0].column 1: only numbers can be compared with >",
    ),
    ("design study_epsilon.json", "study_epsilon.json: epsilon: must be greater than 0, not -1"),
    ("design study_subjects.json", "study_subjects.json: subjects: must be an integer"),
    (
        "design study.json --html study.json",
        "study.json: would overwrite an input of the command",
    ),
    (
        "forecast nowhere.csv --query query.json",
        "nowhere.csv: cannot be read: No such file or directory",
    ),
    ("forecast answers.csv --query query.json", "answers.csv: a table requires --queries QUERIES"),
    (
        "forecast answers.csv --queries queries.json --query queries.json#smokes",
        "DATA does not name one filter; give --filter FILTER",
    ),
    (
        "forecast study.db --filter filter.json --query smokes",
        "a ledger has its own filter; leave --filter out",
    ),
    ("audit study.db --filter filter.json", "study.db: is a ledger; run expost ledger audit"),
    (
        "estimate study.db",
        "study.db: is a ledger; write its answers to a table with expost ledger answers",
    ),
    (
        "new transcript.json --values no,yes --budget 1",
        "transcript.json: already exists; not overwritten",
    ),
    ("new new.json --values a,a --budget 1", "--values: 'a' appears twice"),
    (
        "new new.json --values a, --budget 1",
        "--values: must be a list such as never,sometimes,often, with no empty entry",
    ),
    (
        "new new.json --values no --budget 1",
        "--values: only one value; separate values with commas, as in no,yes",
    ),
    (
        "new new.json --values 0..9999999999 --budget 1",
        "--values: a range has at most 1,000,000 values",
    ),
    (
        "new new.json --values 0.5..2 --budget 1",
        "--values: '0.5' is not an integer; list other numbers, as in 0.5,1.5",
    ),
    (
        "new new.json --values a,b --budget abc",
        "--budget: 'abc' is not a number; write 0.5 or 1/3",
    ),
    (
        "new new.json --values a,b --budget 0,5",
        "--budget: '0,5' is not a number; write 1.5",
    ),
    (
        "new new.json --values 5..2 --budget 1",
        "--values: '5..2': the lower end comes first, as in 0..10",
    ),
    ("new new.json --values a,b --budget -1", "--budget: must be greater than 0, not -1"),
    ("new new.json --values a,b --budget 1 --delta 2", "--delta: must be between 0 and 1, not 2"),
    (
        "new new.json --values a,b --budget 1 --delta 0.1 --filter basic",
        "--delta: requires the filter bayesian",
    ),
    (
        "new new.json --values a,b --coordinate a=0..1",
        "give one of --values, --coordinate and --domain",
    ),
    (
        "new new.json --coordinate 10..100",
        "--coordinate: '10..100': expected NAME=…, such as age=10..100, sex=integers:0..1 "
        "or region=north,south",
    ),
    ("new new.json --coordinate a=0..1 --coordinate a=0..2", "--coordinate.a: appears twice"),
    (
        "new new.json --coordinate a=2..1",
        "--coordinate.a: the lower bound, 2, is above the upper one, 1",
    ),
    ("new new.json --coordinate a=x..1", "--coordinate.a: 'x' is not a number"),
    (
        "query linear --epsilon 1",
        "linear requires --weight; its options: --weight, [--intercept], [--range], "
        "[--clip], --epsilon",
    ),
    (
        "query linear --epsilon 1 --weight a=1 --grid 2",
        "linear has no --grid; its options: --weight, [--intercept], [--range], [--clip], "
        "--epsilon",
    ),
    ("query linear --epsilon 0 --weight a=1", "--epsilon: must be greater than 0, not 0"),
    ("query linear --epsilon 1 --weight a=x", "--weight: a: 'x' is not a number"),
    (
        "query linear --epsilon 1 --weight age",
        "--weight: 'age': expected NAME=…, such as age=-0.059",
    ),
    ("query linear --epsilon 1 --weight a=1 --weight a=2", "--weight: a: appears twice"),
    (
        "query linear --epsilon 1 --weight a=n:1,s",
        "--weight: a: must have a weight for each category, such as north:1,south:2",
    ),
    (
        "query linear --epsilon 1 --weight a=1 --range 3",
        "--range: '3' is not a range; write two numbers as in 0..12",
    ),
    ("query perturbation --epsilon 1 --scores 0,2", "--scores[1]: is outside the range [0, 1]"),
    ("query channel --row 1/2,1/3 --row 1,0", "--row[0]: the row sums to 5/6, not to 1"),
    (
        "query randomised_response --epsilon 1",
        "unknown kind 'randomised_response'; did you mean 'randomized_response'?",
    ),
    ("query randomized_response --epsilon 1 --at 1", "--at: requires --about"),
    (
        "query randomized_response",
        "randomized_response requires --epsilon; its options: --epsilon",
    ),
    (
        "query randomized_response --epsilon 1 --sigma 3",
        "randomized_response has no --sigma; its options: --epsilon",
    ),
    (
        "query randomized_response --epsilon 1 --out query.json",
        "query.json: already exists; not overwritten",
    ),
    (
        "query randomized_response --epsilon 1 --for record_queries.json",
        "--about: name an attribute: smokes, region",
    ),
    ("loss", "give either FILE, or --many DATA with --queries QUERIES"),
    ("loss nowhere.json", "nowhere.json: cannot be read: No such file or directory"),
    ("loss query.json", "query.json: is a query; expected a transcript"),
    ("loss version.json", "version.json: version 2 is not supported; expected 1"),
    (
        "loss field.json",
        "field.json: domian: unknown field; known here: version, domain, exchanges, filter, "
        "queries; did you mean 'domain'?",
    ),
    (
        "loss answers.csv",
        "answers.csv: is not the transcript of one subject; for many subjects it is "
        "--many answers.csv --queries QUERIES",
    ),
    (
        "loss folder",
        "folder: is not the transcript of one subject; for many subjects it is --many folder",
    ),
    ("loss --many answers.csv", "give either FILE, or --many DATA with --queries QUERIES"),
    ("loss --queries queries.json", "give either FILE, or --many DATA with --queries QUERIES"),
    (
        "loss transcript.json --many answers.csv --queries queries.json",
        "give either FILE, or --many DATA with --queries QUERIES",
    ),
    (
        "loss transcript.json -o losses.csv",
        "give either FILE, or --many DATA with --queries QUERIES",
    ),
    (
        "loss transcript.json --plot losses.png",
        "give either FILE, or --many DATA with --queries QUERIES",
    ),
    (
        "loss --many answers.csv --queries queries.json -o losses.txt",
        "losses.txt: the name of a table must end in .csv, .jsonl, .parquet",
    ),
    (
        "loss --many answers.csv --queries queries.json -o nowhere/losses.csv",
        "cannot write: No such file or directory: nowhere/losses.csv",
    ),
    (
        "loss --many answers.csv --queries queries.json -o answers.csv",
        "answers.csv: would overwrite an input of the command",
    ),
    (
        "loss --many answers.csv --queries queries.json --plot losses.exe",
        "losses.exe: the name of a picture must end in .png, .svg or .pdf",
    ),
    (
        "loss --many answers.csv --queries queries.json --plot answers.csv",
        "answers.csv: would overwrite an input of the command",
    ),
    (
        "loss --many answers.csv --queries queries.json --budget 0",
        "--budget: must be greater than 0, not 0",
    ),
    (
        "loss --many unknown_query.csv --queries queries.json",
        "unknown_query.csv: row 1 below the header: query: unknown query 'smoke'; did you "
        "mean 'smokes'?",
    ),
    (
        "loss --many no_response.csv --queries queries.json",
        "no_response.csv: row 1 below the header: response: is empty: there is no response to query"
        " 'smokes'",
    ),
    (
        "loss --many no_query.csv --queries queries.json",
        "no_query.csv: column 'query' is missing; there are 'subject', 'response'",
    ),
    ("loss --many blank.csv --queries queries.json", "blank.csv: is empty"),
    ("loss box.json --gap 0", "gap: must be at least 1e-06, not 0"),
    ("loss box.json --gap nan", "gap: must be a finite number"),
    ("loss box.json --nodes 0", "nodes: must be an integer from 1 to 1,000,000,000, not 0"),
    ("loss box.json --threads 3", "threads: must be an integer from 1 to 2, not 3"),
    ("loss box_no_end.json", "box_no_end.json: domain.box.age: must be a number"),
    (
        "loss box_reversed.json",
        "box_reversed.json: domain.box.age: the lower bound, 10, is above the upper one, 5",
    ),
    (
        "loss box_no_integer.json",
        "box_no_integer.json: domain.box.age: the bounds of integers must be integers",
    ),
    (
        "loss box_no_side.json",
        "box_no_side.json: domain.box: a box needs sides, either all named or all plain",
    ),
    (
        "loss box_other_name.json",
        "box_other_name.json: exchanges[0].query.weights.age: the domain has no such "
        "coordinate; it has size",
    ),
    (
        "audit nowhere.csv --queries queries.json --filter filter.json",
        "nowhere.csv: cannot be read: No such file or directory",
    ),
    (
        "audit queries.json --filter filter.json",
        "queries.json: not a log (CSV, JSONL or Parquet); for one transcript, run expost loss",
    ),
    (
        "audit log.csv --filter filter.json",
        "a log requires --queries QUERIES",
    ),
    ("audit log.csv --queries queries.json", "Missing option '--filter'."),
    (
        "audit log.csv --queries queries.json --filter no_filter.json",
        "no_filter.json: 'version' is missing",
    ),
    (
        "audit log.csv --queries queries.json --filter query.json",
        "query.json: is a query; expected a filter file",
    ),
    (
        "audit log.csv --queries queries.json --filter filter.json --memory much",
        "--memory: 'much' is not a size; write 500M or 2G",
    ),
    (
        "audit log.csv --queries queries.json --filter filter.json --engine spark --memory 1G",
        "--memory: only for a log with the engine polars; leave it out",
    ),
    (
        "audit devices --filter filter.json --memory 1G",
        "--memory: only for a log with the engine polars; leave it out",
    ),
    (
        "audit log.csv --queries queries.json --filter filter.json -o log.csv",
        "log.csv: is not a folder",
    ),
    (
        "audit answers.csv --queries queries.json --filter filter.json",
        "answers.csv: column 'order' is missing; there are subject, query, response; number"
        " the exchanges of each subject from 1",
    ),
    (
        "audit log.csv --queries queries.json --filter filter.json --expect 2",
        "log.csv: has 1 subject; expected 2 (--expect)",
    ),
    ("decide transcript.json", "Missing option '--query'."),
    (
        "decide bare.json --query query.json",
        "bare.json: the transcript names no filter, so there is no budget",
    ),
    (
        "decide transcript.json --query query_not_json.json",
        "query_not_json.json: line 1 column 2: not JSON: Expecting property name enclosed"
        " in double quotes",
    ),
    (
        "decide transcript.json --query query_no_kind.json",
        "query_no_kind.json: kind: unknown query; known: channel, randomized_response, "
        "unary_encoding, …",
    ),
    (
        "decide transcript.json --query query_no_field.json",
        "query_no_field.json: 'responses' is missing",
    ),
    (
        "decide transcript.json --query query_no_budget.json",
        "query_no_budget.json: epsilon: must be greater than 0, not -1",
    ),
    (
        "decide transcript.json --query query_one_score.json",
        "query_one_score.json: scores: 1 scores for a domain of 2 values",
    ),
    (
        "decide transcript.json --query queries.json",
        "queries.json: is a file of queries; name one of them, such as "
        "queries.json#smokes, queries.json#rare, queries.json#amount",
    ),
    (
        "decide transcript.json --query queries.json#smoke",
        "queries.json: unknown query 'smoke'; did you mean 'smokes'?",
    ),
    (
        "decide transcript.json --query other.json#rare",
        "other.json: its domain differs from the subject's",
    ),
    (
        "decide transcript.json --query query.json#rare",
        "query.json: not a file of queries; leave out #rare",
    ),
    (
        "decide transcript.json --query nowhere.json#rare",
        "nowhere.json: cannot be read: No such file or directory",
    ),
    (
        "ask bare.json --query query.json --secret domain.json",
        "bare.json: the transcript names no filter, so there is no budget",
    ),
    (
        "ask query_not_json.json --query query.json --secret domain.json",
        "query_not_json.json: line 1 column 2: not JSON: Expecting property name enclosed"
        " in double quotes",
    ),
    (
        "ask transcript.json --query query_not_json.json --secret domain.json",
        "query_not_json.json: line 1 column 2: not JSON: Expecting property name enclosed"
        " in double quotes",
    ),
    (
        "ask transcript.json --query query.json --secret nowhere.json",
        "--secret: no such file (name not shown, in case it is the value itself)",
    ),
    (
        "ask transcript.json --query query.json --secret unquoted.json",
        'unquoted.json: not a value in JSON; write "yes", 34 or {"age": 34} (contents not shown)',
    ),
    (
        "ask transcript.json --query query.json --secret outside.json",
        "the value is outside the domain (and is not shown here)",
    ),
    (
        "ask changing.json --query query.json",
        "query.json: about: the domain has attributes; call query.about(…) with some of "
        "region, smokes",
    ),
    (
        'next transcript.json --secret "34"',
        "--secret: is a value, not the name of a file (not shown)",
    ),
    (
        "next changing.json --secret history.json",
        "--secret: expected a history, a file whose name ends in .jsonl; pass the first "
        "record, and later the changes, with --changes",
    ),
    ("estimate answers.csv", "answers.csv: a table requires --queries QUERIES"),
    (
        "estimate answers.csv --queries queries.json --mean age",
        "--mean: unknown query 'age'; known: smokes, rare, amount",
    ),
    (
        "estimate answers.csv --queries queries.json --mean smokes",
        "--mean: randomized_response is not about a score, so it has no mean; leave out "
        "--mean for the shares of its values",
    ),
    (
        "estimate answers.csv --queries queries.json --about smokes",
        "--about: no query is about attributes; leave it out",
    ),
    (
        "estimate answers.csv --queries queries.json --at 1",
        "--at: no query is about attributes; leave it out",
    ),
    ("estimate answers.csv --queries queries.json --mean amount", "query: no subject answered it"),
    (
        "estimate answers.csv --queries queries.json --likelihood",
        "expected at most one of --mean NAME (with --likelihood or without), --share STATEMENT "
        "and --frequencies",
    ),
    (
        "estimate answers.csv --queries queries.json --mean smokes --frequencies",
        "expected at most one of --mean NAME (with --likelihood or without), --share STATEMENT "
        "and --frequencies",
    ),
    (
        "estimate answers.csv --queries queries.json --planned --incomplete",
        "--incomplete: has no effect with --planned; leave it out",
    ),
    (
        "estimate answers.csv --queries queries.json --support prior.csv",
        "--support: requires --mean ID --likelihood on a box",
    ),
    (
        "estimate answers.csv --queries queries.json --confidence 2",
        "confidence: must be between 0 and 1, not 2; write 0.95",
    ),
    (
        "estimate answers.csv --queries queries.json --frequencies -o answers.csv",
        "answers.csv: would overwrite an input of the command",
    ),
    (
        "estimate answers.csv --queries queries.json --frequencies -o picture.exe",
        "picture.exe: got a name that ends in '.exe'; expected a table (.csv, .jsonl, .parquet) "
        "or a picture (.png, .svg, .pdf)",
    ),
    (
        "estimate answers.csv --queries queries.json -o picture.csv --plain",
        "--plain: requires -o PICTURE (.png, .svg or .pdf)",
    ),
    (
        "estimate answers.csv --queries queries.json --by sex",
        "--by: requires --covariates FILE",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates people.csv --by age",
        "people.csv: column 'age' is missing; there are 'subject', 'sex', 'weight'",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates people.csv --weight weight",
        "people.csv: row 2 below the header: weight: got '-1'; expected a number above 0; delete "
        "the row to leave the subject out",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates people.csv --weight sex "
        "--frequencies",
        "--weight: only estimates by likelihood have weights; leave out --frequencies",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates people.csv --weight sex "
        "--mean amount",
        "--weight: only estimates by likelihood have weights; add --likelihood, on a finite domain",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates twice.csv --by sex",
        "twice.csv: row 3 below the header: subject: 'ann' appears twice; expected one row per "
        "subject",
    ),
    (
        "estimate answers.csv --queries queries.json --covariates strangers.csv --by response",
        "strangers.csv: subject: none of these subjects is in the answers, whose subjects are "
        "ann, bob",
    ),
    (
        "estimate answers.csv --queries queries.json --share 'value == no'",
        "--share: statement column 10: unknown name 'no'; known: value; write \"no\" for the value",
    ),
    (
        "estimate answers.csv --queries queries.json --share 'value == \"no\"' --about smokes",
        "--about: the statement of --share names its attributes; leave it out",
    ),
    (
        "estimate box_answers.csv --queries box_queries.json --share 'age >= 1'",
        "--share: got a box, whose values cannot be listed; expected a finite domain. Use "
        "--mean ID for the mean of a score, or --about NAME for the shares of categories",
    ),
    (
        "estimate record.csv --queries record_queries.json --share 'size > 3'",
        "--share: statement column 1: unknown name 'size'; known: smokes, region",
    ),
    (
        "estimate numbers.csv --queries number_queries.json --mean hours --about sex",
        "--about: --mean names its attributes; leave it out",
    ),
    (
        "estimate numbers.csv --queries number_queries.json --mean worked",
        "--mean: randomized_response is not about a score, so it has no mean; --mean hours, or "
        "leave out --mean for the shares of its values",
    ),
    (
        "estimate numbers.csv --queries number_queries.json --mean hour",
        "--mean: unknown query 'hour'; did you mean 'hours'?",
    ),
    (
        "estimate numbers.csv --queries number_queries.json --share 'sex == \"f\"'",
        "--share: no query is about 'sex'; the queries are about hours",
    ),
    (
        "estimate record.csv --queries record_queries.json --mean region",
        "--mean: randomized_response is not about a score, so it has no mean; leave out --mean "
        "for the shares of its values",
    ),
    (
        "estimate box_answers.csv --queries box_queries.json",
        "the domain is a box, which has means only: --mean ID, …",
    ),
    (
        "estimate record.csv --queries record_queries.json",
        "--about: expected one attribute of smokes, region, or several together, such as "
        "smokes,region",
    ),
    (
        "estimate record.csv --queries record_queries.json --about smoke",
        "--about: no query is about 'smoke'; the queries are about smokes, region; did you "
        "mean 'smokes'?",
    ),
    (
        "estimate record.csv --queries record_queries.json --about smokes,smokes",
        "--about: an attribute appears twice",
    ),
    (
        "estimate record.csv --queries record_queries.json --about smokes --at 2",
        "--at: smokes does not change; leave it out",
    ),
    (
        "estimate record.csv --queries record_queries.json --about smokes,region --frequencies",
        "queries.smokes: is about smokes alone; leave out --frequencies, for any mixture "
        "of queries",
    ),
    ("explain nowhere.json", "nowhere.json: cannot be read: No such file or directory"),
    (
        "explain transcript.json --html transcript.json",
        "transcript.json: would overwrite an input of the command",
    ),
    ("explain transcript.json --date today", "--date: requires --html"),
    (
        "explain transcript.json --html nowhere/page.html",
        "cannot write: No such file or directory: nowhere/page.html",
    ),
    (
        "explain transcript.json --prior prior.csv",
        "give --prior PRIOR and --statement STATEMENT together",
    ),
    (
        'explain transcript.json --statement "value > 1"',
        "give --prior PRIOR and --statement STATEMENT together",
    ),
    (
        'explain box.json --prior prior.csv --statement "agee > 1"',
        "statement column 1: unknown name 'agee'; known: age",
    ),
    (
        'explain box.json --prior prior.csv --statement "age >"',
        "statement column 6: a number, a string or a name is missing before the end",
    ),
    (
        "explain box.json --prior prior.csv --statement \"__import__('os')\"",
        "statement column 1: unknown name '__import__'; known: age",
    ),
    (
        'explain box.json --prior prior.csv --statement "age > 1" --html nowhere/page.html',
        "cannot write: No such file or directory: nowhere/page.html",
    ),
    (
        "explain box.json --prior prior.csv --statement 'age\n>\x1b[31m 1'",
        "statement column 6: is a character that statements do not have",
    ),
    (
        'explain box.json --prior nowhere.csv --statement "age > 1"',
        "nowhere.csv: cannot be read: No such file or directory",
    ),
    (
        "plot transcript.json -o nowhere/odometer.png",
        "nowhere/odometer.png: the picture cannot be saved: there is no folder nowhere",
    ),
    (
        "plot transcript.json -o odometer.xyz",
        "odometer.xyz: the name of a picture must end in .png, .svg or .pdf",
    ),
    (
        "plot transcript.json -o folder",
        "folder: the name of a picture must end in .png, .svg or .pdf",
    ),
    ("plot transcript.json --delta 0", "delta: must be between 0 and 1, not 0"),
    ("plot transcript.json --delta nan", "delta: must be a finite number, not nan"),
    ("plot bare.json --delta 1e-6", "the transcript names no filter, so there is no budget"),
    (
        "compare bare.json",
        "bare.json: the transcript names no filter, so there is no budget; give --epsilon-budget",
    ),
    ("compare empty.json", "has no exchanges, so there is no query to ask again"),
    ("compare transcript.json --delta 1", "delta: must be between 0 and 1, not 1"),
    ("compare transcript.json --delta -1e-6", "delta: must be between 0 and 1, not -1e-6"),
    ("compare transcript.json --delta small", "delta: 'small' is not a number; write 0.5 or 1/3"),
    ("compare transcript.json --epsilon-budget 0", "epsilon: must be greater than 0, not 0"),
    ("compare transcript.json --epsilon-budget inf", "epsilon: must be a finite number, not inf"),
    (
        "compare transcript.json --nodes 0",
        "nodes: must be an integer from 1 to 1,000,000,000, not 0",
    ),
    ("ledger nonsense", "no such command 'nonsense'"),
    (
        "ledger create study.db --values no,yes --budget 1",
        "study.db: already exists; ledgers are never overwritten",
    ),
    ("ledger create new.db --values a,b --budget 0", "--budget: must be greater than 0, not 0"),
    (
        "ledger create new.db --queries query.json --budget 1",
        "query.json: is a query; expected a file of queries",
    ),
    (
        "ledger create new.db --queries queries.json --values 1,2 --budget 1",
        "queries.json: its domain differs from the one in the options",
    ),
    (
        "ledger create new.db --queries queries.json --budget 1 --policy domain.json",
        "domain.json: already exists; not overwritten",
    ),
    ("ledger register study.db", "no subjects; give FILE, --subject NAME or --subjects FILE"),
    (
        "ledger register study.db nowhere.txt",
        "nowhere.txt: cannot be read: No such file or directory",
    ),
    (
        "ledger register study.db --subject x --kind robot",
        "Invalid value for '--kind': 'robot' is not one of 'device', 'imported', 'simulated'.",
    ),
    ("ledger register nowhere.db ann", "ann: cannot be read: No such file or directory"),
    (
        "ledger reserve study.db --query smoke",
        "--query: no such file, and unknown query 'smoke'; did you mean 'smokes'?",
    ),
    ("ledger reserve study.db", "Missing option '--query'."),
    (
        "ledger reserve study.db --query smokes --subject zed",
        "--subject zed: no subject 'zed' in this ledger",
    ),
    ("ledger saturating study.db --question smokes", "Missing option '--cap'."),
    (
        "ledger sync study.db nowhere.jsonl",
        "nowhere.jsonl: cannot be read: No such file or directory",
    ),
    (
        "ledger receive study.db nowhere.jsonl",
        "nowhere.jsonl: cannot be read: No such file or directory",
    ),
    (
        "ledger receive study.db answers.csv -o domain.json",
        "domain.json: already exists and is not a file of receipts; choose another name, "
        "or remove the file first",
    ),
    ("ledger record study.db answers.csv --query smokes", "Missing option '--key'."),
    ("ledger record study.db answers.csv --key a", "Missing option '--query'."),
    (
        "ledger record study.db values.csv --query smokes --key a",
        "values.csv: column 'response' is missing; there are 'subject', 'value'",
    ),
    ("ledger record study.db blank.csv --query smokes --key a", "blank.csv: is empty"),
    (
        "ledger record study.db strangers.csv --query smokes --key a",
        'strangers.csv: row 1 below the header: no subject "zed" in this ledger',
    ),
    (
        "ledger create new.db --domain domain.json --budget 1 --checkpoint study.db.checkpoint",
        "study.db.checkpoint: already exists; checkpoints are never overwritten",
    ),
    (
        "ledger ask study.db --query smokes --values nowhere.csv",
        "--values: no such file (name not shown, in case it is the value itself)",
    ),
    (
        "ledger ask study.db --query drinks --values values.csv",
        "--query: no such file, and unknown query 'drinks'; known: smokes",
    ),
    ("ledger status nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    ("ledger status study.db --subject zed", "--subject zed: no subject 'zed' in this ledger"),
    (
        "ledger status study.db --subjects queries.json",
        "queries.json: row 1: no subject '{' in this ledger",
    ),
    (
        "ledger answers study.db -o answers.csv --queries new.json",
        "answers.csv: already exists; not overwritten",
    ),
    (
        "ledger answers study.db -o new.txt --queries new.json",
        "new.txt: the name of a table must end in .csv, .jsonl, .parquet",
    ),
    ("ledger answers study.db -o new.csv --queries new.json", "no subject has answered anything"),
    ("ledger transcript study.db zed -o new.json", "subject zed: no subject 'zed' in this ledger"),
    (
        "ledger transcript study.db ann -o transcript.json",
        "transcript.json: already exists; not overwritten",
    ),
    ("ledger audit nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    ("ledger report study.db -o page.txt", "page.txt: the name of a page must end in .html"),
    (
        "ledger report study.db -o page.html --subject zed",
        "subject zed: no subject 'zed' in this ledger",
    ),
    (
        "ledger export nowhere.db -o export.jsonl",
        "nowhere.db: cannot be read: No such file or directory",
    ),
    (
        "ledger export study.db -o transcript.json",
        "transcript.json: already exists; not overwritten",
    ),
    ("ledger verify nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    (
        "ledger backup study.db transcript.json",
        "transcript.json: already exists; ledgers are never overwritten",
    ),
    ("ledger backup study.db", "Missing argument 'FILE'."),
    ("ledger recover nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    (
        "ledger recover study.db",
        "study.db.checkpoint: the database is not behind it: there is nothing to recover",
    ),
    ("ledger resolve study.db", "no subjects; give NAME, --subject NAME or --subjects FILE"),
    ("ledger resolve study.db zed", "--subject zed: no subject 'zed' in this ledger"),
    ("ledger resolve study.db ann --suspend", 'subjects: "ann" has no message that is held'),
    ("ledger end nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    (
        "check-client nowhere.csv --query query.json --domain domain.json",
        "nowhere.csv: cannot be read: No such file or directory",
    ),
    (
        "check-client pairs.csv --query query.json --domain domain.json --permanent",
        "pairs.csv: column 'subject' is missing",
    ),
    (
        "check-client pairs.csv --query query.json --domain domain.json --confidence 2",
        "confidence: must be between 0 and 1, not 2; write 0.95",
    ),
    (
        "check-client pairs.csv --query query.json --domain domain.json --confidence x",
        "confidence: 'x' is not a number; write 0.5 or 1/3",
    ),
    (
        "check-client pairs.csv --query query.json --domain query.json",
        "query.json: kind: unknown field; known here: values, points, attributes, box",
    ),
    (
        "check-client pairs.csv --query domain.json --domain domain.json",
        "domain.json: 'kind' is missing",
    ),
    (
        "import other_pairs.csv --subject who --response output -o new.csv",
        "other_pairs.csv: no column 'who'; there are 'input', 'output'",
    ),
    (
        "check-client other_pairs.csv --query query.json --domain domain.json",
        "other_pairs.csv: row 2 below the header: input: is not in the domain",
    ),
    ("reproduce quadratic", "experiment: must be one of linear, logistic, health, examples, all"),
    ("reproduce linear --runs 0", "runs: must be at least 1"),
    ("reproduce linear --jobs 0", "jobs: must be at least 1"),
    ("reproduce linear --seed -1", "seed: must be at least 0"),
    ("reproduce examples --out query.json", "cannot write: Not a directory: query.json/figures"),
    ("certify transcript.json", "Missing option '--out' / '-o'."),
    (
        "certify transcript.json -o query.json",
        "query.json: already exists and is a query, not a proof; choose another name, or "
        "remove the file first",
    ),
    ("certify nowhere.json -o new.json", "nowhere.json: cannot be read: No such file or directory"),
    (
        "verify transcript.json nowhere.json",
        "nowhere.json: cannot be read: No such file or directory",
    ),
    ("verify transcript.json junk", "junk: is not UTF-8 text"),
    ("verify transcript.json blank.json", "blank.json: is empty; expected a proof"),
    ("verify proof.json transcript.json", "proof.json: is a proof; expected a transcript"),
    (
        "completion tcsh",
        "Invalid value for 'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'.",
    ),
    ("serve nowhere.db", "nowhere.db: cannot be read: No such file or directory"),
    ("serve nowhere.db --port 70000", "…70000 is not in the range 0<=x<=65535."),
    (
        "serve nowhere.db --host 0.0.0.0",
        "--host: got 0.0.0.0, which others can reach without encryption; expected a loopback "
        "address. Use --tls-cert and --tls-key, or a reverse proxy; or --insecure-http",
    ),
    (
        "doctor transcript.json --secrets secret.json",
        "No such option '--secrets'. Did you mean '--secret'?",
    ),
]
"""Arguments, and the line that is printed; … stands for the rest of it. All exit with 2."""


@pytest.mark.parametrize(("arguments", "line"), ERRORS, ids=[row[0] for row in ERRORS])
def test_bad_input_is_one_line_and_changes_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, line: str
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", float("inf"))
    before = _contents(folder)
    code, out, err = run(*shlex.split(arguments))
    assert (code, out) == (2, "")
    start, dots, _ = f"expost: {line}\n".partition("…")
    err = err.replace(f"{folder}/", "")
    assert err.count("\n") == 1
    assert err.startswith(start.rstrip()) if dots else err == start
    assert _contents(folder) == before


def _contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    # A ledger counts its writers.
    return {path: path.read_bytes() for path in files if not path.name.startswith("study.db")}


def test_a_file_that_is_no_ledger_is_an_error_of_the_ledger(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    reason = "query.json: the database cannot be read (file is not a database)"
    assert run("ledger", "verify", "query.json") == (1, "", f"expost: {reason}\n")


def test_every_command_is_in_the_table() -> None:
    first, second = zip(*((*shlex.split(row[0]), "")[:2] for row in ERRORS), strict=True)
    assert set(group.summaries) <= set(first)
    assert set(ledger_group.summaries) <= set(second)

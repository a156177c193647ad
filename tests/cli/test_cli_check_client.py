"""``expost check-client``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

CLAIM = '{"kind": "randomized_response", "epsilon": "1"}'
DOMAIN = '{"values": ["no", "yes"]}'


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("claim.json").write_text(CLAIM, encoding="utf-8")
    Path("domain.json").write_text(DOMAIN, encoding="utf-8")
    rows = ["no,no"] * 730 + ["no,yes"] * 270 + ["yes,yes"] * 735 + ["yes,no"] * 265
    write("right.csv", "input,output", rows)
    write("honest.csv", "input,output", ["no,no"] * 300 + ["yes,yes"] * 300)


def write(name: str, header: str, rows: list[str]) -> None:
    Path(name).write_text("\n".join([header, *rows]) + "\n", "utf-8")


OPTIONS = ("--query", "claim.json", "--domain", "domain.json")


def test_a_client_as_claimed_is_not_refuted(run: Run) -> None:
    code, out, err = run("check-client", "right.csv", *OPTIONS)
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        "claim            not refuted",
        "reports          2,000 of 2 inputs",
        "claimed epsilon  1",
    ]


def test_a_client_that_tells_the_truth_is_refuted_with_the_epsilon_that_it_shows(run: Run) -> None:
    code, out, err = run("check-client", "honest.csv", *OPTIONS, "--json")
    assert (code, err) == (1, "")
    result = json.loads(out)
    assert result["refuted"] is True
    assert result["claimed_epsilon"] == 1
    assert 3 < result["shown_epsilon"] < 6
    assert {result["shown_by"]["likely"], result["shown_by"]["unlikely"]} == {"no", "yes"}
    assert result["shown_by"]["hits"] == [300, 0]
    assert result["changed_rows"] is None
    first = result["contradictions"][0]
    assert not first["lower"] <= first["claimed"] <= first["upper"]
    text = run("check-client", "honest.csv", *OPTIONS)[1]
    assert text.splitlines()[0] == "claim            refuted"
    assert "at least" in text


def test_the_domain_may_be_that_of_a_transcript(run: Run) -> None:
    transcript = {"version": 1, "domain": json.loads(DOMAIN), "exchanges": []}
    Path("transcript.json").write_text(json.dumps(transcript), encoding="utf-8")
    options = ("--query", "claim.json", "--domain", "transcript.json")
    assert run("check-client", "honest.csv", *options)[0] == 1


def test_a_permanent_response_that_changes_refutes(run: Run) -> None:
    rows = ["ann,no,no", "bob,yes,yes", "ann,no,no", "bob,yes,no"]
    write("permanent.csv", "subject,input,output", rows)
    code, out, _ = run("check-client", "permanent.csv", *OPTIONS, "--permanent")
    assert code == 1
    assert "not permanent    rows 2 and 4 differ" in out
    assert "ann" not in out
    assert run("check-client", "permanent.csv", *OPTIONS)[0] == 0


def test_coordinates_have_columns_of_their_own(run: Run) -> None:
    Path("box.json").write_text(
        '{"box": {"age": [10, 100], "region": {"categories": ["n", "s"]}}}', encoding="utf-8"
    )
    claim = {"kind": "logistic", "weights": {"age": 0.05}, "intercept": -2, "epsilon": "2"}
    Path("logistic.json").write_text(json.dumps(claim), encoding="utf-8")
    write("people.csv", "age,region,output", ["34,n,1"] * 400 + ["81.5,s,0"] * 400)
    options = ("--query", "logistic.json", "--domain", "box.json")
    code, out, err = run("check-client", "people.csv", *options)
    assert (code, err) == (1, "")
    assert "age=34, region=n" in out


def test_labels_that_steer_a_terminal_are_shown_without_it(run: Run) -> None:
    evil = "\x1b[2J\x9bH\u202eyes"
    Path("domain.json").write_text(json.dumps({"values": ["no", evil]}), encoding="utf-8")
    write("honest.csv", "input,output", ["no,no"] * 300 + [f"{evil},{evil}"] * 300)
    code, out, err = run("check-client", "honest.csv", *OPTIONS)
    assert (code, err) == (1, "")
    assert "?[2J?H?yes" in out
    assert all(line.isprintable() for line in out.splitlines())
    code, out, err = run("check-client", "honest.csv", *OPTIONS, "--json")
    assert (code, err) == (1, "")
    assert r"\u001b[2J\u009bH\u202eyes" in out
    assert all(line.isprintable() for line in out.split("\n"))
    assert evil in {json.loads(out)["shown_by"][name] for name in ("likely", "unlikely")}

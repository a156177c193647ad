"""A folder of transcripts, in place of a table of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import expost as xp
from expost.audits import load_folder

VALUES = xp.FiniteSet(["no", "yes"])
GUARD = xp.BayesianFilter(epsilon=1)
HALF, ONE = xp.randomized_response("0.5"), xp.randomized_response("1")
QUERIES = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "queries": {"half": {"kind": "randomized_response", "epsilon": "0.5"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "subjects"
    folder.mkdir()
    start = xp.Transcript(VALUES, GUARD)
    start.add(HALF, "yes").add(HALF, "no").add(ONE, "yes").save(folder / "bob.json")
    start.add(HALF, "yes").save(folder / "ann.json")
    start.save(folder / "eve.json")
    (folder / ".ann.json.0123.new").write_text("half of a file")
    (folder / "notes.txt").write_text("not a transcript")
    return folder


def test_a_folder_is_the_table_of_its_exchanges(folder: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps(QUERIES))
    found = load_folder(folder, queries)
    one = ONE.content_id[:8]
    table = {
        "subject": ["ann", "bob", "bob", "bob"],
        "query": ["half", "half", "half", one],
        "response": ["yes", "yes", "no", "yes"],
    }
    expected = xp.Answers(VALUES, {"half": HALF, one: ONE}, table)
    assert (found.unasked, found.filters, found.filter) == (1, (GUARD,), GUARD)
    for name in ("domain", "queries", "subjects", "given", "complete"):
        assert getattr(found.answers, name) == getattr(expected, name), name
    assert found.answers.codes.tolist() == expected.codes.tolist()
    assert found.answers.starts.tolist() == expected.starts.tolist()
    assert xp.load_answers(folder, queries).subjects == ("ann", "bob")


def test_a_folder_names_the_filter_that_all_its_transcripts_name(folder: Path) -> None:
    assert xp.load_answers(folder).filter == GUARD
    xp.Transcript(VALUES).add(HALF, "no").save(folder / "max.json")
    assert xp.load_answers(folder).filter is None


def test_losses_are_those_of_the_transcripts(folder: Path) -> None:
    losses = xp.realized_losses(xp.load_answers(folder))
    for name, upper, lower in zip(losses.subjects, losses.upper, losses.lower, strict=True):
        loss = xp.realized_loss(xp.load_transcript(folder / f"{name}.json"))
        assert lower <= loss.upper
        assert loss.lower <= upper


def test_a_label_and_the_number_that_it_spells_stay_apart(tmp_path: Path) -> None:
    values = xp.FiniteSet([1, "1"])
    xp.Transcript(values).add(HALF, "1").save(tmp_path / "a.json")
    answers = xp.load_answers(tmp_path)
    assert answers.given[0][1] == 1
    assert answers.transcript("a").exchanges[0].response == "1"


def test_ids_are_as_long_as_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("expost.audits.folder._DIGITS", 0)
    xp.Transcript(VALUES).add(HALF, "no").add(ONE, "no").save(tmp_path / "a.json")
    answers = xp.load_answers(tmp_path)
    assert sorted(map(len, answers.queries)) == [1, 1]
    assert list(answers.queries.values()) == [HALF, ONE]


def test_progress_counts_files(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    load_folder(folder, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_what_cannot_be_put_together_is_one_line(folder: Path, tmp_path: Path) -> None:
    def refused(message: str, *arguments: Path) -> None:
        with pytest.raises(xp.InvalidInput) as error:
            xp.load_answers(*arguments)
        assert str(error.value) == message

    empty = tmp_path / "empty"
    empty.mkdir()
    refused(f"{empty}: has no transcripts, whose names end in .json", empty)
    xp.Transcript(VALUES).save(empty / "a.json")
    refused(f"{empty}: nobody has answered anything", empty)
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({**QUERIES, "domain": {"values": [1, 2]}}))
    refused(f"{queries}: domain: is not the domain of the transcripts", folder, queries)
    xp.Transcript(xp.FiniteSet([1, 2])).add(HALF, 1).save(folder / "zoe.json")
    refused(f"{folder}: zoe: has another domain than those before it", folder)
    (folder / "zoe.json").write_text("{}")
    refused(f"{folder / 'zoe.json'}: 'version' is missing", folder)

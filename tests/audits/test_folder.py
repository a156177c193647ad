"""A folder of transcripts, in place of a table of answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
    for name in ("domain", "queries", "subjects", "responses", "complete"):
        assert getattr(found.answers, name) == getattr(expected, name), name
    assert found.answers.codes.tolist() == expected.codes.tolist()
    assert found.answers.starts.tolist() == expected.starts.tolist()
    assert xp.load_answers(folder, queries).subjects == ("ann", "bob")


@pytest.mark.parametrize("digits", [8, 9, 63])
def test_a_short_id_never_takes_the_name_of_another_query(
    folder: Path, tmp_path: Path, digits: int
) -> None:
    names = [ONE.content_id[:length] for length in range(8, digits + 1)]
    queries = tmp_path / "queries.json"
    half = QUERIES["queries"]["half"]  # type: ignore[index]
    named = {name: half | {"epsilon": f"0.{rank}"} for rank, name in enumerate(names, 2)}
    queries.write_text(json.dumps({**QUERIES, "queries": {"half": half, **named}}))
    by_name = load_folder(folder, queries).answers.queries
    assert by_name[ONE.content_id[: digits + 1]] == ONE
    assert ONE not in [by_name.get(name) for name in names]


def test_a_query_with_the_content_id_of_another_one_as_its_name_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "queries.json"
    names = [ONE.content_id[:length] for length in range(8, 65)]
    named = {name: {"kind": "randomized_response", "epsilon": "0.25"} for name in names}
    queries.write_text(json.dumps({**QUERIES, "queries": named}))
    with pytest.raises(xp.InvalidInput, match="has the content id of another one as its name"):
        load_folder(folder, queries)


def test_a_folder_names_the_filter_that_all_its_transcripts_name(folder: Path) -> None:
    assert xp.load_answers(folder).filter == GUARD
    xp.Transcript(VALUES).add(HALF, "no").save(folder / "max.json")
    assert xp.load_answers(folder).filter is None


def test_a_filter_for_a_folder_is_an_error_and_not_ignored(folder: Path) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^filter: requires a table"):
        xp.load_answers(folder, filter=GUARD)


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
    assert answers.responses[0][1] == 1
    assert answers.transcript("a").exchanges[0].response == "1"


def test_ids_are_as_long_as_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("expost.audits._answer_files._DIGITS", 0)
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
    refused(f"{empty}: no subject has answered anything", empty)
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps({**QUERIES, "domain": {"values": [1, 2]}}))
    refused(f"{queries}: domain: differs from the domain of the transcripts", folder, queries)
    xp.Transcript(xp.FiniteSet([1, 2])).add(HALF, 1).save(folder / "zoe.json")
    refused(f"{folder}: zoe: its domain differs from that of the transcripts before it", folder)
    (folder / "zoe.json").write_text("{}")
    refused(f"{folder / 'zoe.json'}: 'version' is missing", folder)


def test_an_audit_names_every_entry_that_it_did_not_read(folder: Path) -> None:
    for name in ("PATIENT-041.JSON", "patient-041.json.bak", "patient-041", ".hidden.txt"):
        (folder / name).write_text("{}")
    (folder / "ward").mkdir()
    (folder / "ward" / "max.json").write_text("{}")
    with pytest.raises(xp.audits.BadFiles) as caught:
        xp.audit(folder, filter=GUARD)
    named = [Path(each.file).name for each in caught.value.files]
    assert named == ["PATIENT-041.JSON", "notes.txt", "patient-041", "patient-041.json.bak", "ward"]
    assert all("was not read" in each.reason for each in caught.value.files)
    assert "\n" not in str(caught.value)


def test_a_folder_whose_only_file_has_an_uppercase_suffix_is_not_read_as_a_log(
    tmp_path: Path,
) -> None:
    (tmp_path / "PATIENT-041.JSON").write_text("{}")
    with pytest.raises(xp.audits.BadFiles, match=r"PATIENT-041\.JSON: is not a file to audit"):
        xp.audit(tmp_path, filter=GUARD)


def test_all_damaged_files_are_reported_at_once(folder: Path) -> None:
    (folder / "max.json").write_text("{")
    (folder / "zoe.json").write_text("{}")
    (folder / "link.json").symlink_to(folder / "missing.json")
    (folder / "ward.json").mkdir()
    for read in (xp.load_answers, lambda path: xp.audit(path, filter=GUARD)):
        with pytest.raises(xp.audits.BadFiles) as caught:
            read(folder)
        names = {Path(each.file).name for each in caught.value.files} - {"notes.txt"}
        assert names == {"link.json", "max.json", "ward.json", "zoe.json"}
        assert str(caught.value).endswith(str(caught.value.files[0]))


MARKED = [
    "ann (copy)", "ann copy", "ann - Copy", "ann - Copy (2)", "Copy of ann", "ann (1)", "ann_copy2",
    "ann.bak", "ANN", "ann (copy) (3)",
]  # fmt: skip


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("empty", [False, True], ids=["answered", "empty"])
def test_a_copy_by_its_name_is_refused(name: str, empty: bool, tmp_path: Path) -> None:
    start = xp.Transcript(VALUES, GUARD)
    (start if empty else start.add(HALF, "yes")).save(tmp_path / "ann.json")
    start.add(HALF, "no").save(tmp_path / "bob.json")
    # Other whitespace is still the same transcript.
    (tmp_path / f"{name}.json").write_text((tmp_path / "ann.json").read_text("utf-8") + "\n")
    with pytest.raises(xp.audits.BadFiles) as caught:
        xp.audit(tmp_path, filter=GUARD)
    (bad,) = caught.value.files
    assert {Path(bad.file).stem, bad.reason.split(".json")[0].removeprefix("is a copy of ")} == {
        name, "ann"
    }  # fmt: skip


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    xp.Transcript(VALUES, GUARD).add(HALF, "yes").save(tmp_path / "ann.json")
    (tmp_path / "bob.json").hardlink_to(tmp_path / "ann.json")
    (tmp_path / "eve.json").symlink_to("ann.json")
    with pytest.raises(xp.audits.BadFiles) as caught:
        xp.audit(tmp_path, filter=GUARD)
    assert [Path(each.file).name for each in caught.value.files] == ["bob.json", "eve.json"]
    assert all(each.reason.startswith("is the same file as ann") for each in caught.value.files)


def audited(folder: Path, transcript: xp.Transcript, names: Iterable[str]) -> xp.audits.Audit:
    for name in names:
        transcript.save(folder / f"{name}.json")
    return xp.audit(folder, filter=xp.BayesianFilter(epsilon=1000))


RECORDS = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=2))
PERSON = xp.Box(age=(10, 100), sex=xp.integers(0, 1), region=xp.categories("n", "s"))
AGE = {"age": 0.05, "sex": 1}
LONG: dict[str, tuple[xp.domains.Domain, list[tuple[xp.queries.Query, Any]]]] = {
    "set": (VALUES, [(HALF, "no"), (HALF, "yes")]),
    "ruled out": (VALUES, [(xp.channel([[1, 0], ["1/2", "1/2"]]), 0), (HALF, "yes")]),
    "attributes": (
        RECORDS,
        [
            (HALF.about("region"), "n"),
            (HALF.about("smokes", at=1), "yes"),
            (HALF.about("smokes", at=2), "yes"),
        ],
    ),
    "logistic": (PERSON, [(xp.logistic(AGE, intercept=-3, epsilon="0.1"), 1)]),
    "linear": (PERSON, [(xp.linear(AGE, range=(0, 6), epsilon="0.1"), 0)]),
    "laplace": (PERSON, [(xp.laplace(AGE, range=(0, 6), grid=1, epsilon="0.5"), 3)]),
    "piecewise": (PERSON, [(xp.piecewise(AGE, range=(0, 6), grid=1, epsilon="0.5"), 3)]),
    "categories": (PERSON, [(HALF.about("region"), "s")]),
}


@pytest.mark.parametrize("kind", LONG)
def test_a_long_copy_is_refused_under_any_name(kind: str, tmp_path: Path) -> None:
    domain, exchanges = LONG[kind]
    transcript = xp.Transcript(domain)
    for query, response in exchanges * (64 // len(exchanges)):
        transcript = transcript.add(query, response)
    with pytest.raises(xp.audits.BadFiles) as caught:
        audited(tmp_path, transcript, ["patient-001", "patient-042", "patient-999"])
    assert [Path(each.file).stem for each in caught.value.files] == ["patient-042", "patient-999"]
    assert caught.value.files[0].reason == (
        "has the same content as patient-001.json; two subjects would agree by chance with "
        "probability below 1 in 1,000,000, so one person would count twice. Remove one of them"
    )


def test_equal_transcripts_are_copies_from_a_length_that_grows_with_the_folder(
    tmp_path: Path,
) -> None:
    coin = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]])
    transcript = xp.Transcript(VALUES)
    for _ in range(19):
        transcript = transcript.add(coin, 0)
    # 2^-19 is above one in a million, and 2^-20 is below.
    assert audited(tmp_path, transcript, ["ann", "bob"]).files is not None
    transcript = transcript.add(coin, 0)
    with pytest.raises(xp.audits.BadFiles, match="same content as ann"):
        audited(tmp_path, transcript, ["ann", "bob"])
    # Among three subjects there are three pairs.
    xp.Transcript(VALUES).save(tmp_path / "eve.json")
    assert len(audited(tmp_path, transcript, ["ann", "bob"])) == 2


def certain(length: int) -> xp.Transcript:
    """A long transcript that all subjects with one value are likely to have."""
    transcript = xp.Transcript(VALUES)
    for _ in range(length):
        transcript = transcript.add(xp.randomized_response(20), "yes")
        transcript = transcript.add(xp.channel([[1, 0], [0, 1]]), 1)
    return transcript


@pytest.mark.parametrize("transcript", [xp.Transcript(VALUES), certain(200)], ids=["empty", "sure"])
def test_transcripts_that_subjects_share_by_chance_are_kept(
    transcript: xp.Transcript, tmp_path: Path
) -> None:
    xp.Transcript(VALUES).add(HALF, "no").save(tmp_path / "max.json")
    found = audited(tmp_path, transcript, ["ann", "bob", "eve"])
    assert found.files is not None
    assert found.files.count == 4


def test_people_who_gave_the_same_responses_are_all_audited_and_named(tmp_path: Path) -> None:
    start = xp.Transcript(VALUES, GUARD)
    for name in ("person (1)", "person (2)", "ann"):
        start.add(HALF, "yes").save(tmp_path / f"{name}.json")
    start.add(HALF, "no").save(tmp_path / "bob.json")
    for name in ("eve", "max"):
        start.save(tmp_path / f"{name}.json")
    found = xp.audit(tmp_path, filter=GUARD)
    assert (len(found), found.respected) == (4, 4)
    assert found.files is not None
    assert (found.files.count, found.files.unasked) == (6, 2)
    assert found.files.identical == (("ann", "person (1)", "person (2)"),)
    assert found.files.other_filters == ()


def test_transcripts_that_name_another_filter_are_reported(tmp_path: Path) -> None:
    other = xp.BasicFilter(epsilon=1)
    xp.Transcript(VALUES, GUARD).add(HALF, "no").save(tmp_path / "ann.json")
    xp.Transcript(VALUES, other).add(HALF, "yes").save(tmp_path / "bob.json")
    xp.Transcript(VALUES).save(tmp_path / "eve.json")
    found = xp.audit(tmp_path, filter=GUARD)
    assert found.files is not None
    assert found.files.other_filters == (("bob", other), ("eve", None))
    assert found.summary()["other_filters"] == [
        {"subject": "bob", "filter": {"kind": "basic", "epsilon": "1"}},
        {"subject": "eve", "filter": None},
    ]

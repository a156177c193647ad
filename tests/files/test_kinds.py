"""Files by what they are: the wrong one is named, and none is written over by another kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.audits._plan import load_filter, save_filter

VALUES = xp.FiniteSet(["no", "yes"])
GUARD = xp.BayesianFilter(epsilon=2)
QUERY = xp.randomized_response(epsilon=1)
START = xp.Transcript(VALUES, GUARD)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    START.add(QUERY, "yes").save(tmp_path / "transcript")
    QUERY.save(tmp_path / "query")
    xp.audits.save_queries(VALUES, {"q": QUERY}, tmp_path / "queries")
    save_filter(GUARD, tmp_path / "filter")
    (tmp_path / "table").write_text("subject;query;response\nann;q;yes\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "proof").write_text('{"version": 1, "responses": [], "loss": "0"}')
    return tmp_path


READERS: dict[str, Callable[[Path], Any]] = {
    "transcript": xp.load_transcript,
    "query": xp.queries.load_query,
    "queries": lambda path: xp.load_answers(
        {"subject": [1], "query": ["q"], "response": ["no"]}, path
    ),
    "filter": load_filter,
}
CALLED = {"filter": "a filter file", "queries": "a file of queries", "empty": "empty"}


@pytest.mark.parametrize("wanted", READERS)
@pytest.mark.parametrize("given", ["transcript", "query", "queries", "filter", "table", "empty"])
def test_a_file_of_another_kind_is_called_what_it_is(files: Path, wanted: str, given: str) -> None:
    read = READERS[wanted]
    if given == wanted:
        read(files / given)
        return
    found, needed = (CALLED.get(name, f"a {name}") for name in (given, wanted))
    with pytest.raises(xp.InvalidInput) as error:
        read(files / given)
    assert str(error.value) == f"{files / given}: is {found}; expected {needed}"


def test_a_slip_in_a_file_of_the_right_kind_is_named_by_its_place(files: Path) -> None:
    text = (files / "transcript").read_text("utf-8")
    for wrong, reason in [(text[:-5], "not JSON"), (text.replace(': "yes"', ': "oh"'), "is not a")]:
        with pytest.raises(xp.InvalidInput, match=reason):
            xp.Transcript.from_json(wrong)


@pytest.mark.parametrize("kind", xp.filters.FILTERS)
def test_a_bare_filter_is_called_a_filter_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "filter"
    path.write_text(f'{{"kind": "{kind}", "epsilon": "1"}}', encoding="utf-8")
    with pytest.raises(xp.InvalidInput, match="is a filter file; expected a transcript"):
        xp.load_transcript(path)


@pytest.mark.parametrize("field", ["domain", "exchanges"])
def test_a_misspelled_field_of_a_transcript_is_named(files: Path, field: str) -> None:
    text = (files / "transcript").read_text("utf-8").replace(field, field[:-1])
    with pytest.raises(xp.InvalidInput, match=f"{field[:-1]}: unknown .* mean '{field}'"):
        xp.Transcript.from_json(text)


def test_an_earlier_transcript_does_not_bring_a_budget_back(tmp_path: Path) -> None:
    path = tmp_path / "ann.json"
    START.save(path)
    START.save(path)
    longer = START.add(QUERY, "yes").add(QUERY, "no")
    longer.save(path)
    longer.save(path)
    kept = path.read_bytes()
    others = [
        START,
        longer.first(1),
        START.add(QUERY, "yes").add(QUERY, "yes").add(QUERY, "no"),
        xp.Transcript(VALUES, xp.BayesianFilter(epsilon=3)).add(QUERY, "yes").add(QUERY, "no"),
        xp.Transcript(xp.FiniteSet(["yes", "no"]), GUARD).add(QUERY, "yes").add(QUERY, "no"),
    ]
    for other in others:
        with pytest.raises(xp.InvalidInput) as error:
            other.save(path)
        assert str(error.value) == (
            f"{path}: has a transcript with 2 exchanges, which this one, with {len(other)}, "
            "does not continue; overwrite=True replaces it"
        )
        assert path.read_bytes() == kept
    START.save(path, overwrite=True)
    assert xp.load_transcript(path) == START


SAVERS: dict[str, Callable[..., None]] = {
    "transcript": START.add(QUERY, "yes").save,
    "query": QUERY.save,
    "queries": lambda path, **more: xp.audits.save_queries(VALUES, {"q": QUERY}, path, **more),
    "filter": lambda path, **more: save_filter(GUARD, path, **more),
}


@pytest.mark.parametrize("wanted", SAVERS)
def test_no_file_is_written_over_by_one_of_another_kind(files: Path, wanted: str) -> None:
    (files / "notes").write_bytes(b"\xff\x00")
    for path in sorted(files.iterdir()):
        kept = path.read_bytes()
        if path.name in (wanted, "empty"):
            SAVERS[wanted](path)  # the same again, or nothing that could be lost
            continue
        with pytest.raises(xp.InvalidInput, match=r"not a .*; overwrite=True replaces it"):
            SAVERS[wanted](path)
        assert path.read_bytes() == kept
        SAVERS[wanted](path, overwrite=True)
        READERS[wanted](path)

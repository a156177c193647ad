"""Commands on the transcript of a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from expost.report._comparison import compare

Run = Callable[..., tuple[int, str, str]]

PERSON = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=2), age=[1, 2, 3])
QUERY = xp.randomized_response(epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    transcript = xp.Transcript(PERSON, xp.BayesianFilter(epsilon=2))
    transcript = transcript.add(QUERY.about("region", "smokes", at=3), ["s", "no"])
    transcript.add(QUERY.about("age"), 2).save(tmp_path / "person.json")
    return tmp_path / "person.json"


def test_decide_reads_a_query_about_attributes(run: Run, file: Path, tmp_path: Path) -> None:
    arguments = tmp_path / "query.json"
    arguments.write_text(
        '{"kind": "randomized_response", "epsilon": "1", "about": ["smokes", "region"], "at": 9}'
    )
    code, out, err = run("decide", file, "--query", arguments, "--json")
    assert (code, err) == (0, "")
    decision = json.loads(out)
    odometer = xp.Odometer(xp.load_transcript(file))
    expected = xp.BayesianFilter(epsilon=2).decide(
        odometer, xp.randomized_response(epsilon=1).about("smokes", "region", at=9)
    )
    assert decision["accepted"] is True
    assert decision["loss_at_worst"]["upper"] == expected.loss_at_worst.upper
    assert decision["largest_epsilon"] == str(expected.largest_epsilon) == "1"
    lines = run("decide", file, "--query", arguments)[1].splitlines()
    assert lines[2] == "loss at worst    2  (if the response is smokes=no, region=s)"


def test_compare_counts_how_many_more_questions_about_an_attribute_are_accepted(
    run: Run, file: Path
) -> None:
    code, out, err = run("compare", file, "--json")
    assert (code, err) == (0, "")
    extra = {name: json.loads(out)[name]["more"] for name in ("basic", "simplified", "bayesian")}
    odometer, query = xp.Odometer(xp.load_transcript(file)), QUERY.about("age")
    counts = {"simplified": 0, "bayesian": 0}
    for name, filter_ in (("simplified", xp.SimplifiedFilter), ("bayesian", xp.BayesianFilter)):
        after = odometer
        while filter_(epsilon=2).decide(after, query).accepted:
            counts[name] += 1
            after = after.add(query, 2)
    # Nothing is worse than the same response about the same attribute over and over.
    assert extra == {"basic": 2, **counts}


def test_comparing_a_record_of_one_attribute_is_comparing_a_set() -> None:
    values, transcripts = ["never", "sometimes", "often"], []
    for domain, query in (
        (xp.FiniteSet(values), QUERY),
        (xp.Attributes(smokes=values), QUERY.about("smokes")),
    ):
        transcript = xp.Transcript(domain)
        for response in ("often", "never", "often"):
            transcript = transcript.add(query, response)
        transcripts.append(transcript)
    first, other = (compare(xp.Odometer(row), epsilon=3).tree() for row in transcripts)
    assert first == other

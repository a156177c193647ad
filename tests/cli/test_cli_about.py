"""``--about`` and ``--at``: estimates and queries about attributes of a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.estimation import estimate_distribution, estimate_frequencies, estimate_mean
from expost.queries import Query

Run = Callable[..., tuple[int, str, str]]

PERSON = xp.Attributes(
    smokes=["no", "yes"], region=["north", "south"], version=xp.changing(["1.8", "1.10"])
)
RESPONSE = xp.randomized_response(epsilon="1")
QUERIES: dict[str, Query] = {
    "smokes": RESPONSE.about("smokes"),
    "region": RESPONSE.about("region"),
    "old": xp.perturbation([1, 0], epsilon="1").about("version", at=1),
    "new": RESPONSE.about("version", at=2),
}


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., list[Any]]:
    """The arguments for a study in which everybody was asked some of the queries."""

    def created(*keys: str) -> list[Any]:
        xp.audits.save_queries(PERSON, QUERIES, tmp_path / "queries.json")
        rows = ["subject,query,response"]
        for subject in range(60):
            for place, key in enumerate(keys):
                responses = QUERIES[key].on(PERSON).responses
                rows.append(f"{subject},{key},{responses[(subject // 3 + place) % 3 % 2]}")
        (tmp_path / "answers.csv").write_text("\n".join(rows))
        return ["estimate", tmp_path / "answers.csv", "--queries", tmp_path / "queries.json"]

    return created


def estimates(tree: dict[str, Any]) -> list[float]:
    return [row["estimate"] for row in tree["estimates"]]


def test_the_only_attribute_that_was_asked_about_is_taken(run: Run, study: Any) -> None:
    arguments = study("smokes")
    tree = json.loads(run(*arguments, "--repetitions", 50, "--json")[1])
    answers = xp.load_answers(arguments[1], arguments[3]).about("smokes")
    assert estimates(tree) == estimate_distribution(answers).probabilities.tolist()
    assert [row["of"] for row in tree["estimates"]] == ["no", "yes"]
    assert tree["what"] == "the distribution of smokes, by maximum likelihood"
    tree = json.loads(run(*arguments, "--frequencies", "--json")[1])
    assert estimates(tree) == estimate_frequencies(answers).frequency.tolist()


def test_one_of_several_attributes_or_some_together_are_named(run: Run, study: Any) -> None:
    arguments = study("smokes", "region")
    answers = xp.load_answers(arguments[1], arguments[3])
    for names in (["region"], ["region", "smokes"]):
        options = ["--about", ",".join(names), "--repetitions", 50, "--json"]
        tree = json.loads(run(*arguments, *options)[1])
        result = estimate_distribution(answers.about(*names))
        assert estimates(tree) == result.probabilities.tolist()
        assert tree["unused"] == (60 if len(names) == 1 else 0)
        assert tree["warning"] is None or "at an end of what is possible" in tree["warning"]
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err == (
        "expost: --about: expected one attribute of smokes, region, or several "
        "together, such as smokes,region\n"
    )


def test_a_step_is_named_where_there_are_several(run: Run, study: Any) -> None:
    arguments = study("old", "new")
    answers = xp.load_answers(arguments[1], arguments[3])
    tree = json.loads(run(*arguments, "--at", 2, "--frequencies", "--json")[1])
    assert (
        estimates(tree) == estimate_frequencies(answers.about("version", at=2)).frequency.tolist()
    )
    assert tree["what"].startswith("the share of each value of version at step 2: unbiased")
    code, _, err = run(*arguments)
    assert (code, err) == (2, "expost: --at: name a step; version was asked about at 1, 2\n")
    arguments = study("new")
    assert (
        run(*arguments, "--frequencies", "--json")[1]
        == run(*arguments, "--frequencies", "--about", "version", "--at", 2, "--json")[1]
    )


def test_the_mean_of_a_query_is_about_what_the_query_is_about(run: Run, study: Any) -> None:
    arguments = [*study("smokes", "old", "new"), "--mean", "old"]
    tree = json.loads(run(*arguments, "--json")[1])
    answers = xp.load_answers(arguments[1], arguments[3])
    assert estimates(tree) == [estimate_mean(answers, "old").mean]
    (mean,) = estimates(
        json.loads(run(*arguments, "--likelihood", "--repetitions", 50, "--json")[1])
    )
    result = estimate_distribution(answers.about("version", at=1))
    assert mean == pytest.approx(result.probabilities[0], abs=1e-9)
    code, _, err = run(*arguments, "--about", "smokes")
    assert (code, err) == (
        2,
        "expost: --about: the query of --mean names its attributes; leave it out\n",
    )
    assert run(*arguments, "--at", 1)[2] == err.replace("--about", "--at")


def test_answers_that_are_left_out_are_warned_of(run: Run, study: Any) -> None:
    arguments = study("smokes", "region")
    lines = arguments[1].read_text("utf-8").splitlines()
    arguments[1].write_text("\n".join(lines[:-1]))  # the last one was not asked for the region
    options = ["--frequencies", "--json"]
    assert json.loads(run(*arguments, "--about", "smokes", *options)[1])["warning"] is None
    code, out, err = run(*arguments, "--about", "region", *options)
    tree = json.loads(out)
    assert (code, err, tree["left_out"]) == (0, "", 1)
    assert "If who was asked depended on them" in tree["warning"]
    planned = json.loads(run(*arguments, "--about", "region", "--planned", *options)[1])
    assert planned["warning"] is None


def test_a_query_about_attributes_is_written(run: Run, tmp_path: Path) -> None:
    domain, file = tmp_path / "person.json", tmp_path / "query.json"
    xp.Transcript(PERSON).save(domain)
    options = ["randomized_response", "--epsilon", "0.5", "--for", domain]
    about = ["--about", "region,version", "--at", 3]
    code, out, err = run("query", *options, *about, "-o", file)
    assert (code, err) == (0, "")
    assert out.endswith("about region and version at step 3, at epsilon 0.5.\n")
    expected = xp.randomized_response(epsilon="0.5").about("region", "version", at=3)
    assert Query.from_json(file.read_text("utf-8")).content_id == expected.content_id
    cases: list[tuple[list[Any], str]] = [
        ([], "--about: name an attribute: smokes, region, version"),
        (["--about", "regoin"], "--about: unknown attribute 'regoin'; did you mean 'region'?"),
        (["--about", "version"], "--at: version changes from step to step; name the step"),
        (["--at", 3], "--at: requires --about"),
    ]
    for wrong, message in cases:
        code, out, err = run("query", *options, *wrong)
        assert (code, out) == (2, "")
        assert err.startswith(f"expost: {message}"), err

"""What is wrong with a question about a record is one clear line, wherever it is asked."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.errors import OutsideDomain

Run = Callable[..., tuple[int, str, str]]

DOMAIN = {
    "attributes": {
        "region": ["n", "s"],
        "smokes": {"changing": ["no", "yes"], "times": 2},
        "big": {"integers": [1, 90_000]},
    }
}
PERSON = xp.Attributes(
    region=["n", "s"], smokes=xp.changing(["no", "yes"], times=2), big=xp.integers(1, 90_000)
)

# What a query is about, at which step, a response, where the error is, and what it says.
LINES: list[tuple[Any, Any, Any, str, str]] = [
    (
        ["height"],
        None,
        "n",
        "about",
        "unknown attribute 'height'; known: region, smokes, big",
    ),
    ([], None, "n", "about", "must name at least one attribute"),
    (["region", "region"], None, "n", "about", "an attribute appears twice"),
    ([3], None, "n", "about[0]", "must be a string"),
    (["smokes"], None, "no", "at", "smokes changes from step to step; name the step"),
    (["region"], 3, "n", "at", "region does not change; leave it out"),
    (["smokes"], "3", "no", "at", "must be an integer"),
    (["smokes"], 2.5, "no", "at", "must be an integer"),
    (["smokes"], True, "no", "at", "must be an integer"),
    (
        ["smokes"],
        [3, 4],
        "no",
        "at",
        "must be one step: a question is never about several of them",
    ),
    (
        ["region", "big"],
        None,
        ["n", 1],
        "about",
        "region, big have 180,000 combinations; a question can be about at most 100,000",
    ),
    (["region"], None, "w", "response", "is not a response of this query; it has 'n', 's'"),
    (["region"], None, ["n"], "response", "is not a response of this query; it has 'n', 's'"),
    *(
        (
            ["region", "smokes"],
            3,
            response,
            "response",
            "is not a response of this query; it has ('n', 'no'), ('n', 'yes'), ('s', 'no'), "
            "('s', 'yes')",
        )
        for response in (["n", "maybe"], ["n"], ["no", "n"], "n")
    ),
]
lines = pytest.mark.parametrize(("about", "step", "response", "place", "reason"), LINES)


def query_of(about: Any, step: Any) -> dict[str, Any]:
    """A query as it is in a file."""
    at = {} if step is None else {"at": step}
    return {"kind": "randomized_response", "epsilon": "1", "about": about, **at}


@lines
def test_in_python(about: Any, step: Any, response: Any, place: str, reason: str) -> None:
    query, transcript = xp.randomized_response(epsilon=1), xp.Transcript(PERSON)
    with pytest.raises(xp.InvalidInput) as caught:
        transcript.add(query.about(*about, at=step), response)
    assert str(caught.value) == f"{place}: {reason}"


@lines
def test_in_a_transcript_file(
    run: Run, tmp_path: Path, about: Any, step: Any, response: Any, place: str, reason: str
) -> None:
    path = tmp_path / "transcript.json"
    exchange = {"query": query_of(about, step), "response": response}
    path.write_text(json.dumps({"version": 1, "domain": DOMAIN, "exchanges": [exchange]}))
    field = place if place == "response" else f"query.{place}"
    expected = f"expost: {path}: exchanges[0].{field}: {reason}\n"
    assert run("loss", path) == (2, "", expected)


NAMED = "query 'q'"


@lines
def test_in_a_table_of_answers(
    run: Run, tmp_path: Path, about: Any, step: Any, response: Any, place: str, reason: str
) -> None:
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    asked = {"q": query_of(about, step)}
    queries.write_text(json.dumps({"version": 1, "domain": DOMAIN, "queries": asked}))
    with data.open("w", newline="") as file:
        text = response if isinstance(response, str) else json.dumps(response)
        csv.writer(file).writerows([("subject", "query", "response"), ("ann", "q", text)])
    code, out, err = run("loss", "--many", data, "--queries", queries)
    assert (code, out) == (2, "")
    if place == "response":  # the response is shown, and which query does not have it
        assert err.startswith(f"expost: {data}: row 1 below the header: response: '")
        assert err.endswith(f"{reason.replace('this query', NAMED)}\n")
    else:
        assert err == f"expost: {queries}: queries.q.{place}: {reason}\n"


@pytest.mark.parametrize("command", ["decide", "ask"])
@pytest.mark.parametrize(
    ("about", "step", "place", "reason"),
    [(about, step, *error) for about, step, _, *error in LINES if error[0] != "response"],
)
def test_in_the_file_of_a_query(
    run: Run, tmp_path: Path, command: str, about: Any, step: Any, place: str, reason: str
) -> None:
    path, asked = tmp_path / "transcript.json", tmp_path / "query.json"
    xp.Transcript(PERSON, xp.BayesianFilter(epsilon=1)).save(path)
    asked.write_text(json.dumps(query_of(about, step)))
    expected = f"expost: {asked}: {place}: {reason}\n"
    assert run(command, path, "--query", asked) == (2, "", expected)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {},
            "about: the domain has attributes; call query.about(…) with some of region, smokes, "
            "big",
        ),
        ({"at": 3}, "at: requires about"),
        ({"about": "region"}, "about: must be a list"),
        (
            {"about": ["region"], "at": None},
            "at: must be an integer; leave it out if no attribute changes",
        ),
        ({"about": ["region"], "step": 3}, "step: unknown field; known here: epsilon"),
    ],
)
def test_what_only_a_file_can_get_wrong(query: dict[str, Any], message: str) -> None:
    exchange = {"query": {"kind": "randomized_response", "epsilon": "1", **query}, "response": "n"}
    document = json.dumps({"version": 1, "domain": DOMAIN, "exchanges": [exchange]})
    with pytest.raises(xp.InvalidInput) as caught:
        xp.Transcript.from_json(document)
    assert str(caught.value) == f"exchanges[0].query.{message}"


def test_too_much_that_questions_tie_together_is_one_line(run: Run, tmp_path: Path) -> None:
    wide = xp.Attributes({f"a{number}": xp.integers(1, 200) for number in range(3)})
    query, path = xp.randomized_response(epsilon=1), tmp_path / "transcript.json"
    transcript = xp.Transcript(wide, xp.BayesianFilter(epsilon=9))
    for names in (("a0", "a1"), ("a1", "a2"), ("a2", "a0")):
        transcript = transcript.add(query.about(*names), (1, 1))
    transcript.save(path)
    reason = (
        "got queries that connect a0, a1 and a2, with 8,000,000 combinations; expected at most "
        "1,048,576"
    )
    assert run("loss", path) == (2, "", f"expost: {reason}\n")
    followed = xp.Attributes(a=xp.changing(xp.integers(1, 400), times=9), b=xp.integers(1, 200))
    chained = xp.Transcript(followed).add(query.about("a", "b", at=1), (1, 1))
    xp.Transcript.save(chained, path, overwrite=True)
    reason = (
        "got queries that connect a and b, with 800,000 combinations of values and changes; "
        "expected at most 100,000"
    )
    assert run("loss", path) == (2, "", f"expost: {reason}\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: xp.Attributes(), "names: must be non-empty"),
        (lambda: xp.Attributes(a="n"), "a: must be a list of values, integers(lower, upper) or ch"),
        (lambda: xp.Attributes(a=[]), "a: a domain needs at least one value"),
        (lambda: xp.Attributes(a=["n", "n"]), "a.values[1]: 'n' appears twice"),
        (lambda: xp.Attributes(a=[(1, 2)]), "a.values[0]: is a vector"),
        (lambda: xp.Attributes(a=xp.integers(0, 10**6)), "a: 1,000,001 values are too many for an"),
        (lambda: xp.Attributes(a=xp.changing(xp.changing([1, 2]))), "a: changes already"),
        (
            lambda: xp.Attributes(a=xp.changing(["n"], max_step=1)),
            "a.max_step: requires numbers",
        ),
        (
            lambda: xp.changing([1, 2], max_step=1, times=1),
            "give either times or max_step, not both",
        ),
        (lambda: xp.changing([1, 2], times=-1), "times: must be at least 0"),
        (lambda: xp.randomized_response(1).about("a").about("b"), "about: is already about a"),
        (
            lambda: xp.randomized_response(1).about("a").on(xp.FiniteSet([0, 1])),
            "about: a finite set has no attributes; ask about its values as they are",
        ),
    ],
)
def test_what_no_record_is_like(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_a_value_outside_of_an_attribute_is_never_shown() -> None:
    for value in ({"region": "secret", "smokes": "no", "big": 1}, {"region": "n"}, ["secret"]):
        with pytest.raises(OutsideDomain) as caught:
            xp.Session(PERSON, value, filter=xp.BayesianFilter(epsilon=1))
        assert "secret" not in str(caught.value)

"""``expost query``: the file of a query, from options."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from expost.cli.query import _KINDS
from expost.files.reading import parse
from expost.queries import Query, query_from_json

Run = Callable[..., tuple[int, str, str]]

CASES: dict[str, tuple[str, Query]] = {
    "channel": (
        "--row 3/4,1/4 --row 0.25,0.75 --responses low,high",
        xp.channel([["3/4", "1/4"], ["1/4", "3/4"]], responses=["low", "high"]),
    ),
    "randomized_response": ("--epsilon 0.1", xp.randomized_response("0.1")),
    "unary_encoding": ("--epsilon 1", xp.unary_encoding(epsilon=1)),
    "subset_selection": ("--size 2 --epsilon 1", xp.subset_selection(size=2, epsilon=1)),
    "local_hashing": (
        "--seed 5e10 --buckets 4 --epsilon 1",
        xp.local_hashing(seed="5e10", buckets=4, epsilon=1),
    ),
    "hadamard_response": ("--order 8 --epsilon 1/3", xp.hadamard_response(order=8, epsilon="1/3")),
    "geometric": (
        "--range -3..10 --sensitivity 13 --epsilon 1",
        xp.geometric(range=(-3, 10), sensitivity=13, epsilon=1),
    ),
    "exponential_mechanism": (
        "--row 0,1 --row 1/2,0 --responses 7,b --sensitivity 1 --epsilon 1",
        xp.exponential_mechanism(
            [["0", "1"], ["1/2", "0"]], responses=[7, "b"], sensitivity=1, epsilon=1
        ),
    ),
    "perturbation": ("--scores 0,.5,1 --epsilon 1", xp.perturbation([0, 0.5, 1], epsilon=1)),
    "linear": (
        "--weight age=0.0855 --weight region=north:1,south:-2 --intercept -3 --range 0..12 --clip "
        "--epsilon 1",
        xp.linear(
            {"age": 0.0855, "region": {"north": 1, "south": -2}},
            intercept=-3,
            range=(0, 12),
            clip=True,
            epsilon=1,
        ),
    ),
    "logistic": ("--weight 0.5 --weight -1 --epsilon 1", xp.logistic([0.5, -1], epsilon=1)),
    "probit": ("--weight a=1e-3 --epsilon 1", xp.probit({"a": 1e-3}, epsilon=1)),
    "duchi": (
        "--weight a=1 --range -1..1 --epsilon 1",
        xp.queries.duchi({"a": 1}, range=(-1, 1), epsilon=1),
    ),
    "laplace": (
        "--weight a=1 --range 0..100 --grid 0.5 --epsilon 1",
        xp.laplace({"a": 1}, range=(0, 100), grid="0.5", epsilon=1),
    ),
    "gaussian": (
        "--weight a=1 --range 0..10 --grid 1 --epsilon 1 --delta 1e-6",
        xp.gaussian({"a": 1}, range=(0, 10), grid=1, epsilon=1, delta="1e-6"),
    ),
    "piecewise": (
        "--weight a=1 --range 0..10 --grid 1 --epsilon 1",
        xp.piecewise({"a": 1}, range=(0, 10), grid=1, epsilon=1),
    ),
    "warner": ("--p 0.7", xp.queries.warner("0.7")),
    "forced_response": (
        "--truth 0.75 --yes 1/6 --responses n,y",
        xp.queries.forced_response("0.75", yes="1/6", responses=["n", "y"]),
    ),
    "crosswise": ("--epsilon 1", xp.queries.crosswise(epsilon=1)),
    "unrelated_question": (
        "--p 0.7 --prevalence 0.1",
        xp.queries.unrelated_question("0.7", prevalence="0.1"),
    ),
}


def test_every_family_has_a_case() -> None:
    assert sorted(CASES) == sorted(_KINDS), "add a case here, and options in cli/query.py"


@pytest.mark.parametrize("kind", CASES)
def test_what_is_printed_is_the_query(run: Run, kind: str) -> None:
    options, query = CASES[kind]
    code, out, err = run("query", kind, *shlex.split(options))
    assert (code, err) == (0, "")
    assert query_from_json(parse(out)) == query


def test_a_query_is_saved_checked_and_not_written_over(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "subject.json", tmp_path / "query.json"
    xp.Transcript(xp.FiniteSet(["no", "yes"])).save(file)
    arguments = ["query", "randomized_response", "--epsilon", "0.5", "--for", file, "-o", out]
    line = f"The query is in {out}: the value itself, at epsilon 0.5.\n"
    assert run(*arguments) == (0, line, "")
    query = xp.randomized_response("0.5")
    assert query_from_json(parse(out.read_text("utf-8"))) == query
    code, printed, err = run(*arguments)
    assert (code, printed) == (2, "")
    assert err == f"expost: {out}: already exists; not overwritten\n"
    out.unlink()
    tree = json.loads(run(*arguments, "--json")[1])
    assert tree == {
        "file": str(out),
        "query": {"kind": "randomized_response", "epsilon": "0.5"},
        "content_id": query.content_id,
    }


def test_a_query_that_does_not_fit_the_domain_is_refused(run: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "subject.json", tmp_path / "query.json"
    xp.Transcript(xp.Box(age=(0, 1))).save(file)
    options = ["--weight", "aeg=1", "--epsilon", "1", "--for", file, "-o", out]
    code, _, err = run("query", "logistic", *options)
    hint = "the domain has no such coordinate; it has age; did you mean 'age'?"
    assert (code, err) == (2, f"expost: weights.aeg: {hint}\n")
    assert not out.exists()


def test_a_misspelt_kind_is_answered_with_the_one_that_is_meant(run: Run) -> None:
    code, out, err = run("query", "randomised_response", "--epsilon", 1)
    assert (code, out) == (2, "")
    assert err.endswith("did you mean 'randomized_response'?\n")
    assert run("nwe")[2] == "expost: no such command 'nwe'; did you mean 'new'?\n"

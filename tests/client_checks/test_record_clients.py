"""Clients that answer about attributes of a record."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import expost as xp
from expost.client_checks import check_client
from expost.numbers import Nats
from expost.queries import Query
from expost.sampling import draw

PERSON = xp.Attributes(
    region=["n", "s"], age=xp.integers(0, 3), minutes=xp.changing(["few", "many"]), home=[0, "own"]
)
RESPONSE = xp.randomized_response(epsilon=1)
QUERIES = [
    RESPONSE.about("region"),
    RESPONSE.about("age", "region"),
    xp.unary_encoding(epsilon=1).about("age"),
    xp.perturbation([0, 1, 2, 3], range=(0, 3), epsilon=1).about("age"),
    RESPONSE.about("minutes", "region", at=4),
]


def reports(query: Query, names: list[str], count: int = 2_000) -> dict[str, list[Any]]:
    """What a client answers that is as claimed, with the columns of some attributes."""
    generator, source = random.Random(1), xp.sampling.InsecureSource(1)
    likelihood = query.on(PERSON)
    table: dict[str, list[Any]] = {name: [] for name in [*names, "output"]}
    for _ in range(count):
        values = {name: generator.choice(PERSON[name].values.values) for name in PERSON.names}
        place = PERSON.locate(values)
        assert place is not None
        for name in names:
            table[name].append(values[name])
        table["output"].append(likelihood.responses[draw(likelihood.pmf(place), source)])
    return table


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_client_as_claimed_is_not_refuted_and_one_without_noise_is(query: Any) -> None:
    for names in (list(query.names), [*query.names, "home"]):
        check = check_client(query, PERSON, reports(query, names))
        assert (check.refuted, check.claimed) == (False, Nats(Fraction(1)))
    part = PERSON.part(query.names)
    likelihood = query.query.on(part)
    positions = range(len(likelihood.responses))
    loudest = [max(positions, key=likelihood.pmf(place).weight) for place in range(len(part))]
    rows = [(value, likelihood.responses[loudest[i]]) for i, value in enumerate(part.values)]
    table: dict[str, list[Any]] = {"output": [row[1] for row in rows] * 300}
    for axis, name in enumerate(query.names):
        values = [value[axis] if isinstance(value, tuple) else value for value, _ in rows]
        table[name] = values * 300
    check = check_client(query, PERSON, table)
    assert check.refuted
    assert check.inputs == len(part)


def test_a_client_whose_answers_depend_on_another_attribute_is_refuted() -> None:
    # It looks like randomized response on the region, and shows whether somebody is old.
    people = [(region, age) for region in "ns" for age in [0] * 269 + [1] * 731]
    answers = [region if age else "sn"["ns".index(region)] for region, age in people]
    table = {"region": [region for region, _ in people], "output": answers}
    query = RESPONSE.about("region")
    assert not check_client(query, PERSON, table).refuted
    assert check_client(query, PERSON, {**table, "age": [age for _, age in people]}).refuted


@pytest.mark.parametrize(
    ("query", "columns", "message"),
    [
        (
            QUERIES[0],
            {"input": [1]},
            "column 'region' is missing; inputs are in region, not in 'input'",
        ),
        (QUERIES[0], {"region": ["x"]}, "row 1: input: is not in the domain"),
        (QUERIES[1], {"region": ["n"], "age": [9]}, "row 1: input: is not in the domain"),
        (RESPONSE, {"region": ["n"]}, "about: the domain has attributes; call query.about(…)"),
        (RESPONSE.about("minutes"), {"minutes": ["few"]}, "at: minutes changes from step to step"),
        (
            xp.unary_encoding(epsilon=1).about("big"),
            {"big": [1], "region": ["n"]},
            "unary_encoding has too many responses to check other attributes; leave out region",
        ),
        (
            RESPONSE.about("city"),
            {"city": ["1"]},
            "row 1: input: is a label of the domain, and also",
        ),
    ],
)
def test_what_is_no_table_of_reports_is_one_line(
    query: Query, columns: dict[str, list[Any]], message: str
) -> None:
    person = xp.Attributes(
        {**{n: _given(n) for n in PERSON.names}, "big": xp.integers(1, 40), "city": [1, "1"]}
    )
    with pytest.raises(xp.InvalidInput) as caught:
        check_client(query, person, {**columns, "output": ["n"]})
    assert str(caught.value).startswith(message)


def _given(name: str) -> Any:
    kind = PERSON[name]
    return kind.values.values if kind.change is None else xp.changing(kind.values.values)


def test_the_command_reads_columns_of_labels_and_numbers(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    domain = {"attributes": {"region": ["n", "s"], "age": {"integers": [0, 1]}}}
    Path("domain.json").write_text(json.dumps(domain), encoding="utf-8")
    claim = {"kind": "randomized_response", "epsilon": "1", "about": ["region", "age"]}
    Path("claim.json").write_text(json.dumps(claim), encoding="utf-8")
    rows = [f'{region},{age},"[""{region}"", {age}]"' for region in "ns" for age in (0, 1)]
    Path("pairs.csv").write_text("\n".join(["region,age,output", *rows * 200]), encoding="utf-8")
    code, out, err = run(
        "check-client", "pairs.csv", "--query", "claim.json", "--domain", "domain.json"
    )
    assert (code, err) == (1, "")
    assert "reports          800 of 4 inputs\n" in out
    assert "  likely for     region=n, age=0  (200 of 200)\n" in out


def test_fractions_are_made_for_different_probabilities_not_for_every_count() -> None:
    names = ["a", "b", "c"]
    domain = xp.Attributes({name: xp.integers(0, 5) for name in names})
    records = list(product(range(6), repeat=3))
    table = {name: [record[k] for record in records] for k, name in enumerate(names)}
    table["output"] = [record[0] for record in records]
    made = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal made
        made += event == "call" and frame.f_code is Fraction.__new__.__code__

    sys.setprofile(count)
    try:
        found = check_client(xp.randomized_response(1).about("a"), domain, table)
    finally:
        sys.setprofile(None)
    assert found.intervals > 6 * len(records)
    assert made < found.intervals / 2

"""The losses of many subjects at once, against exact likelihoods and those of one at a time."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas
import polars
import pytest

import expost as xp
from expost.audits import _losses as module
from expost.domains import Domain
from expost.numbers import Enclosure
from expost.panel._box_state import Task
from expost.queries import Query
from expost.solver import Effort
from support import oracles
from support.box_cases import answered
from support.random_cases import columns

EPSILONS = ["0.001", "0.1", "1/3", "1", "2.5", "30"]


def some_query(generator: random.Random, size: int) -> Query:
    kind = generator.randrange(4)
    epsilon = generator.choice(EPSILONS)
    if kind == 0:
        return xp.randomized_response(epsilon=epsilon)
    if kind == 1:
        scores = [generator.choice([0.0, 1.0, generator.random()]) for _ in range(size)]
        return xp.perturbation(scores, epsilon=epsilon)
    # Some responses are impossible for some values, and some are extremely unlikely.
    unlikely = generator.choice([1, 1, 10**6, 10**295])
    low = 0 if generator.random() < 0.2 else 1
    weights = [generator.choice([low, 1, 2, 9]) for _ in range(size)]
    rows = [[w, unlikely + 10 - w, 10] for w in weights]
    return xp.channel([[Fraction(w, unlikely + 20) for w in row] for row in rows])


def some_table(
    generator: random.Random, domain: xp.FiniteSet, queries: dict[str, Query], rows: int
) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    for _ in range(rows):
        key = generator.choice(list(queries))
        table["subject"].append(generator.choice(["ann", "bob", 7, "7", "eve"]))
        table["query"].append(key)
        table["response"].append(generator.choice(queries[key].on(domain).responses))
    return table


def exact_ratios(
    domain: xp.FiniteSet, queries: dict[str, Query], table: dict[str, list[Any]]
) -> dict[Any, Fraction | None]:
    """max P / min P of every subject, from the public pmf."""
    vectors: dict[Any, list[list[Fraction]]] = {}
    tables = {key: columns(query, domain) for key, query in queries.items()}
    for subject, key, response in zip(*table.values(), strict=True):
        place = list(queries[key].on(domain).responses).index(response)
        vectors.setdefault(subject, []).append(tables[key][place])
    return {
        subject: oracles.ratio(oracles.product(given, len(domain)))
        for subject, given in vectors.items()
    }


def check(seed: int, rows: int) -> None:
    """Every loss is enclosed, and is at most the sum of the epsilons; no tolerance."""
    generator = random.Random(seed)
    domain = xp.FiniteSet(range(generator.randint(1, 6)))
    queries = {f"q{i}": some_query(generator, len(domain)) for i in range(generator.randint(1, 5))}
    table = some_table(generator, domain, queries, generator.randint(1, rows))
    losses = xp.realized_losses(xp.Answers(domain, queries, table))
    ratios = exact_ratios(domain, queries, table)
    asked: dict[Any, Counter[str]] = {}
    for subject, key in zip(table["subject"], table["query"], strict=True):
        asked.setdefault(subject, Counter())[key] += 1
    assert list(losses.subjects) == list(ratios)
    for row in losses.rows():
        ratio, lower, upper = ratios[row["subject"]], row["lower"], row["upper"]
        counts = asked[row["subject"]]
        charge = sum(
            (queries[key].charge(domain) * n for key, n in counts.items()), xp.numbers.Nats()
        )
        assert row["exchanges"] == counts.total()
        assert upper <= row["basic"] == charge.enclosure.upper
        if ratio is None:
            assert lower == upper == np.inf
        else:
            with mpmath.workdps(700):  # likelihoods may differ in their 300th digit only
                exact = oracles.log(ratio)
                assert lower <= exact <= upper
            assert upper - lower <= 1e-15 * (40 + row["exchanges"]) * row["basic"] + 1e-300


@pytest.mark.parametrize("seed", range(150))
def test_losses_over_a_finite_domain_enclose_the_exact_ones(seed: int) -> None:
    check(seed, rows=30)


def test_a_thousand_responses_still_are_enclosed() -> None:
    check(seed=1000, rows=3000)


def test_equal_weights_give_exactly_nothing() -> None:
    query = xp.channel([["1/3", "2/3"]] * 4)
    table = {"subject": [1, 1, 2], "query": ["q"] * 3, "response": [0, 1, 1]}
    losses = xp.realized_losses(xp.Answers(xp.FiniteSet(range(4)), {"q": query}, table))
    assert losses.lower.tolist() == losses.upper.tolist() == losses.basic.tolist() == [0.0, 0.0]


def test_three_queries_of_a_tenth_are_at_most_three_tenths() -> None:
    query = xp.randomized_response(epsilon="0.1")
    table = {"subject": ["a"] * 3, "query": ["q"] * 3, "response": [1] * 3}
    losses = xp.realized_losses(xp.Answers(xp.FiniteSet([0, 1]), {"q": query}, table))
    assert losses.upper[0] <= losses.basic[0] == np.nextafter(0.3, 1)  # 0.3 is below 3/10


def test_an_infinite_charge_is_for_those_who_were_asked() -> None:
    queries = {"hard": xp.channel([[1, 0], [0, 1]]), "soft": xp.randomized_response(epsilon=1)}
    table = {"subject": ["a", "b"], "query": ["hard", "soft"], "response": [0, 0]}
    losses = xp.realized_losses(xp.Answers(xp.FiniteSet([0, 1]), queries, table))
    assert losses.upper[0] == losses.basic[0] == np.inf
    assert losses.upper[1] <= losses.basic[1] == 1


def test_a_table_too_large_for_one_piece_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(5)
    domain = xp.FiniteSet(range(5))
    queries = {f"q{i}": some_query(generator, 5) for i in range(4)}
    answers = xp.Answers(domain, queries, some_table(generator, domain, queries, 60))
    together = xp.realized_losses(answers)
    monkeypatch.setattr(module, "_LARGEST_TABLE", 2)
    apart = xp.realized_losses(answers)
    assert together.basic.tolist() == apart.basic.tolist()
    for place, subject in enumerate(answers.subjects):
        alone = xp.realized_loss(answers.transcript(subject))
        assert apart.lower[place] == alone.lower
        assert apart.upper[place] == min(alone.upper, apart.basic[place])
        assert together.lower[place] <= alone.upper
        assert alone.lower <= together.upper[place]


# -- on boxes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "6"])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_linear_queries_on_a_box(epsilon: str, size: int) -> None:
    generator = np.random.default_rng(size)
    box = xp.Box([(-1, 2)] * size)
    queries: list[Query] = [
        xp.linear(generator.uniform(-3, 3, size).tolist(), intercept=1, epsilon=epsilon)
        for _ in range(7)
    ]
    queries += queries[:2]  # asked twice
    answers = answered(box, queries, generator.integers(0, 2, (30, len(queries))))
    losses = xp.realized_losses(answers, gap=0.001)
    for place, subject in enumerate(answers.subjects):
        alone = xp.realized_loss(answers.transcript(subject), gap=1e-6)
        assert losses.lower[place] <= alone.upper
        assert alone.lower <= losses.upper[place]
        assert losses.upper[place] - losses.lower[place] <= 0.001


def test_subjects_on_a_box_may_have_answered_different_queries() -> None:
    generator = random.Random(3)
    box = xp.Box([(-1, 1)] * 3)
    queries: dict[str, Query] = {
        "steep": xp.logistic([4, -3, 1], epsilon=1),
        "flat": xp.logistic([0.3, 0, 1], intercept=1, epsilon="0.5"),
        "sum": xp.linear([1, 1, 1], epsilon=1),
        "first": xp.linear([1, 0, 0], epsilon=2),
        "clipped": xp.linear([1, -1, 2], range=(-1, 1), clip=True, epsilon=1),
    }
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    for person in range(40):
        for _ in range(generator.randint(1, 6)):
            key = generator.choice(list(queries))
            table["subject"].append(person)
            table["query"].append(key)
            table["response"].append(generator.choice(queries[key].on(box).responses))
    answers = xp.Answers(box, queries, table)
    losses = xp.realized_losses(answers, nodes=300)
    for place, subject in enumerate(answers.subjects):
        alone = xp.realized_loss(answers.transcript(subject), nodes=300)
        assert losses.lower[place] <= alone.upper
        assert alone.lower <= losses.upper[place]
        assert losses.upper[place] <= losses.basic[place]


def test_every_pattern_is_searched_once_in_whichever_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = xp.Box(a=(-1, 1), b=xp.integers(0, 1))
    queries: dict[str, Query] = {
        "p": xp.logistic({"a": 2, "b": -1}, epsilon=1),
        "q": xp.logistic({"a": -5}, intercept=1, epsilon="0.5"),
    }
    searched = []
    run = Task.run

    def counting(task: Task, effort: Effort) -> Enclosure:
        searched.append(task)
        return run(task, effort)

    monkeypatch.setattr(Task, "run", counting)
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    orders = itertools.permutations([("p", 1), ("q", 0), ("p", 0)])
    for subject, order in enumerate(orders):
        for key, response in order:
            table["subject"].append(subject)
            table["query"].append(key)
            table["response"].append(response)
    losses = xp.realized_losses(xp.Answers(box, queries, table), gap=1e-6)
    assert len(losses) == 6
    assert len(searched) == 1
    assert len(set(losses.upper)) == 1


@pytest.mark.parametrize("domain", [xp.FiniteSet([0, 1]), xp.Box([(0, 1)])])
def test_progress_counts_subjects_up_to_all(domain: Domain) -> None:
    query: Query = xp.randomized_response(epsilon=1)
    if isinstance(domain, xp.Box):
        query = xp.logistic([1], epsilon=1)
    table = {"subject": range(9), "query": ["q"] * 9, "response": [0, 1, 1] * 3}
    seen: list[tuple[int, int]] = []
    answers = xp.Answers(domain, {"q": query}, table)
    xp.realized_losses(answers, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (9, 9)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_losses_become_frames() -> None:
    table = {"subject": ["a", "b"], "query": ["q"] * 2, "response": [0, 1]}
    answers = xp.Answers(xp.FiniteSet([0, 1]), {"q": xp.randomized_response(epsilon=1)}, table)
    losses = xp.realized_losses(answers)
    for frame in (polars.DataFrame(losses.columns()), pandas.DataFrame(losses.columns())):
        assert list(frame.columns) == ["subject", "lower", "upper", "exchanges", "basic"]
        assert list(frame["subject"]) == ["a", "b"]
        assert list(frame["upper"]) == losses.upper.tolist()
    assert repr(losses).startswith("Losses(2 subjects, at most 1)\nsubject  loss")


def test_what_is_not_answers_is_refused() -> None:
    with pytest.raises(xp.InvalidInput, match=r"must be Answers\(domain, queries, table\), or lo"):
        xp.realized_losses([[0, 1]])  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", [polars.DataFrame, pandas.DataFrame, dict])
def test_a_frame_goes_with_a_file_of_queries(frame: Any, tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    queries = {"q": {"kind": "randomized_response", "epsilon": "0.5"}}
    study = {"version": 1, "domain": {"values": [0, 1]}, "queries": queries}
    path.write_text(json.dumps(study))
    columns = {"subject": ["a", "b", "a"], "query": ["q"] * 3, "response": [0, 1, 1]}
    losses = xp.realized_losses(xp.load_answers(frame(columns), path))
    assert losses.subjects == ("a", "b")
    assert losses.upper.tolist() == pytest.approx([0, 0.5], abs=1e-12)
    path.write_text(json.dumps({**study, "queries": {}}))
    with pytest.raises(xp.InvalidInput, match=r"queries\.json: queries: must not be empty"):
        xp.load_answers(frame(columns), path)
    with pytest.raises(xp.InvalidInput, match="must be the name of a file"):
        xp.load_answers(frame(columns), queries)  # type: ignore[arg-type]


def test_sums_of_epsilons_are_exact_whoever_was_asked_what() -> None:
    # Decimals, fractions that share no denominator with them, and the logarithm of a ratio.
    domain, generator = xp.FiniteSet(range(3)), random.Random(6)
    queries = {
        str(number): query
        for number, query in enumerate(
            [
                *(xp.randomized_response(e) for e in ("0.05", "0.1", "1/3", "1/7", "1/4294967291")),
                xp.channel([["1/2", "1/2"], ["2/5", "3/5"], ["2/5", "3/5"]]),
            ]
        )
    }
    table = some_table(generator, domain, queries, 300)
    losses = xp.realized_losses(xp.Answers(domain, queries, table))
    for row in losses.rows():
        own = [
            key
            for s, key in zip(table["subject"], table["query"], strict=True)
            if s == row["subject"]
        ]
        charge = sum((queries[key].charge(domain) for key in own), xp.numbers.Nats())
        assert row["basic"] == charge.enclosure.upper

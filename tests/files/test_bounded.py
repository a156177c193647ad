"""No file of up to a megabyte takes long: it is read and answered quickly, or refused by a line."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

import expost as xp
from expost.cli._loss_of_many import loss_of_many

BUDGET = {"kind": "bayesian", "epsilon": "1"}


@contextmanager
def quickly() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


def text(domain: Any, exchanges: list[Any], filter: Any = BUDGET) -> str:
    return json.dumps({"version": 1, "domain": domain, "filter": filter, "exchanges": exchanges})


def exchange(kind: str, response: Any, **fields: Any) -> dict[str, Any]:
    return {"query": {"kind": kind, **fields}, "response": response}


def go_through(document: str) -> xp.Transcript:
    """Load, loss, decide once more, and what would fit."""
    transcript = xp.Transcript.from_json(document)
    xp.realized_loss(transcript)
    odometer = xp.Odometer(transcript)
    decision = transcript.required_filter.decide(odometer, transcript.exchanges[-1].query)
    decision.tree()
    return transcript


LAPLACE = {"weights": {"value": 1}, "range": [0, 1], "grid": "0.001"}


def test_a_fine_grid_of_laplace_noise_on_two_values() -> None:
    exchanges = [exchange("laplace", 500, **LAPLACE, epsilon=f"1.{i:02}") for i in range(12)]
    with quickly():
        transcript = go_through(text({"values": [0, 1]}, exchanges, {**BUDGET, "epsilon": "30"}))
        session = xp.Session.resume(transcript, 0)
        assert session.ask(transcript.exchanges[0].query) in range(-45_000, 46_001)


def test_many_laplace_and_geometric_queries_on_many_values() -> None:
    laplace = [exchange("laplace", i, **LAPLACE, epsilon=f"1.{i:03}") for i in range(100)]
    geometric = [
        exchange("geometric", i, range=[0, 1000], sensitivity="1000", epsilon=f"1.{i:03}")
        for i in range(100)
    ]
    with quickly():
        go_through(text({"values": [i / 500 for i in range(501)]}, laplace))
        go_through(text({"values": list(range(1000))}, geometric))


def test_an_exponential_mechanism_at_the_largest_epsilon() -> None:
    utility = [[(37 * i + 101 * j * j) % 1009 for j in range(100)] for i in range(30)]
    query = xp.exponential_mechanism(utility, sensitivity=1009, epsilon=500)
    with quickly():
        transcript = xp.Transcript(xp.FiniteSet(range(30)), xp.BayesianFilter(1))
        session = xp.Session.resume(transcript, 3)
        with pytest.raises(xp.BudgetExceeded, match="query refused"):
            session.ask(query)


def test_thousands_of_queries_that_all_differ_are_compared_exactly() -> None:
    there_and_back = [
        exchange("randomized_response", "no" if i % 2 else "yes", epsilon=f"0.1{i // 2:04}")
        for i in range(3000)
    ]
    one_way = [exchange("randomized_response", "no", epsilon=f"0.1{i:04}") for i in range(3000)]
    values = {"values": ["no", "yes"]}
    with quickly():
        assert xp.realized_loss(go_through(text(values, there_and_back))).upper == 0
        assert xp.realized_loss(go_through(text(values, one_way))).upper > 344.98


def test_thousands_of_values_that_are_tied_are_compared_exactly() -> None:
    answered = [exchange("randomized_response", i, epsilon="0.1") for i in range(2000)]
    with quickly():
        transcript = go_through(text({"values": list(range(4000))}, answered))
    epsilon = transcript.exchanges[0].query.on(xp.FiniteSet(range(4000))).epsilon
    assert xp.realized_loss(transcript) == epsilon.enclosure


def test_thousands_of_answers_on_a_box_are_replayed() -> None:
    box = xp.Box(age=(10, 100))
    asked: dict[str, Any] = {"weights": {"age": 0.1}, "intercept": -5, "epsilon": "0.1"}
    xp.realized_loss(
        xp.Transcript(box).add(xp.logistic(**asked), 1)
    )  # what is compiled is compiled by now
    exchanges = [exchange("logistic", i % 2, **asked) for i in range(2500)]
    document = text({"box": {"age": [10, 100]}}, exchanges, {**BUDGET, "epsilon": "251"})
    with quickly():
        assert xp.replay(xp.Transcript.from_json(document)).respected


def test_thousands_of_queries_on_a_box_that_all_differ_are_replayed_by_few_searches() -> None:
    draw = random.Random(1)
    exchanges = [
        exchange("logistic", draw.randrange(2), weights=[draw.uniform(-9, 9)], epsilon="0.1")
        for _ in range(2500)
    ]
    document = text({"box": [[-1, 1]]}, exchanges, {**BUDGET, "epsilon": "180"})
    transcript = xp.Transcript.from_json(document)
    with quickly():
        found = xp.replay(transcript)
        told = xp.report.explain(found)
    assert found.respected
    assert found.loss.upper <= found.peak.upper <= 180
    assert told.loss == found.loss
    with quickly():
        decision = transcript.required_filter.decide(
            xp.Odometer(transcript), transcript.exchanges[0].query
        )
        assert decision.accepted


def test_a_few_queries_with_thousands_of_answers_each_are_searched_once_each() -> None:
    draw, box = random.Random(2), xp.Box([(-1, 1)] * 100)
    transcript = xp.Transcript(box)
    for _ in range(20):
        query = xp.logistic([round(draw.uniform(-1, 1), 3) for _ in range(100)], epsilon="0.1")
        for _ in range(400):
            transcript = transcript.add(query, draw.randrange(2))
    with quickly():
        loss = xp.realized_loss(transcript)
    assert 0 < loss.lower < loss.upper <= 800


def test_an_explanation_of_hundreds_of_queries_about_hundreds_of_coordinates() -> None:
    draw, box = random.Random(3), xp.Box([(-1, 1)] * 300)
    transcript = xp.Transcript(box)
    for _ in range(400):
        weights = [round(draw.uniform(-0.1, 0.1), 3) for _ in range(300)]
        transcript = transcript.add(xp.logistic(weights, epsilon="0.1"), draw.randrange(2))
    odometer = xp.Odometer(transcript)
    with quickly():
        assert odometer.log_likelihood.extreme_pair(odometer.effort) is not None


def test_more_different_answers_on_a_box_than_can_be_proved_are_refused_by_a_line() -> None:
    queries = [exchange("logistic", 1, weights=[i / 1000], epsilon="0.1") for i in range(3001)]
    transcript = xp.Transcript.from_json(text({"box": [[-1, 1]]}, queries))
    message = "^exchanges: there are 3,001 different responses on a box; at most 3,000 are proved"
    with quickly(), pytest.raises(xp.InvalidInput, match=message):
        xp.proof.certificate(transcript)


def test_weights_of_hundreds_of_bits_are_not_looked_at_value_by_value() -> None:
    domain = {"values": list(range(40_000))}
    exchanges = [
        exchange("hadamard_response", 99 * i, order=65_536, epsilon=f"499.{i:03}")
        for i in range(400)
    ]
    with quickly():
        go_through(text(domain, exchanges))


def test_more_different_answers_than_a_table_has_room_for_are_worked_out_part_by_part() -> None:
    count, domain = 30_000, xp.FiniteSet(range(1000))
    queries = {str(i): xp.randomized_response(f"1.{i:02}") for i in range(30)}
    table = {
        "subject": [f"s{i}" for i in range(count)],
        "query": [str(i % 30) for i in range(count)],
        "response": [i // 30 for i in range(count)],
    }
    with quickly():
        answers = xp.Answers(domain, queries, table)
        losses = xp.realized_losses(answers)
    for place in (0, 16_776, 16_777, count - 1):
        exact = xp.realized_loss(answers.transcript(f"s{place}"))
        assert losses.lower[place] <= exact.lower
        assert exact.upper <= losses.upper[place] < exact.upper + 1e-13


def test_many_responses_over_many_values_are_limited_by_the_size_of_their_files(
    tmp_path: Path,
) -> None:
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    asked = {"q": {"kind": "randomized_response", "epsilon": "1"}}
    domain = {"values": list(range(75_000))}
    queries.write_text(json.dumps({"version": 1, "domain": domain, "queries": asked}))
    rows = "".join(f"{i},q,{i}\n" for i in range(35_000))
    data.write_text(f"subject,query,response\n{rows}")
    with quickly(), pytest.raises(xp.InvalidInput, match="35,000 responses over 75,000 values are"):
        loss_of_many(data, queries, None, None, None, xp.solver.Effort())


def test_all_patterns_of_a_table_on_a_box_share_one_allowance_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.solver._effort.WORK", 2_000)
    asked = {f"{i}": {"kind": "logistic", "weights": [i], "epsilon": "1"} for i in range(1, 9)}
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    queries.write_text(json.dumps({"version": 1, "domain": {"box": [[0, 1]]}, "queries": asked}))
    rows = [f"{i},{1 + bit},{i >> bit & 1}\n" for i in range(256) for bit in range(8)]
    data.write_text(f"subject,query,response\n{''.join(rows)}")
    shared, alone = (
        cast(Any, loss_of_many(data, queries, "2", None, None, effort).tree)()["losses"]
        for effort in (xp.solver.Effort(), xp.solver.Effort(nodes=1000))
    )
    assert shared[0]["upper"] == alone[0]["upper"] < 8
    assert (shared[-1]["lower"], shared[-1]["upper"], shared[-1]["over"]) == (0, 8, None)
    assert all(some["upper"] >= more["lower"] for some, more in zip(shared, alone, strict=True))


def test_fractions_with_hundreds_of_digits_add_up_exactly() -> None:
    exchanges = [
        exchange("randomized_response", "no", epsilon=f"{10**800 + 3 * i}/{10**801 + 7 * i + 1}")
        for i in range(300)
    ]
    with quickly():
        values = {"values": ["no", "yes"]}
        transcript = go_through(text(values, exchanges, {"kind": "basic", "epsilon": "100"}))
    added = sum((Fraction(each["query"]["epsilon"]) for each in exchanges), Fraction(0))
    assert xp.Odometer(transcript).exact_spent == xp.numbers.Nats(added)


def test_thousands_of_named_coordinates_are_found_at_once() -> None:
    names = [f"c{j}" for j in range(8000)]
    domain = {"points": {"names": names, "rows": [[0] * 8000, [1] * 8000]}}
    weights = dict.fromkeys(names, 0.001)
    with quickly():
        go_through(text(domain, [exchange("logistic", 1, weights=weights, epsilon="1")]))


@pytest.mark.parametrize(
    ("domain", "count"),
    [
        ({"box": [[0, 1]] * 100_000}, "100,000"),
        ({"box": {f"a{j}": [0, 1] for j in range(20_000)}}, "20,000"),
        ({"box": {"region": {"categories": [f"l{j}" for j in range(20_000)]}}}, "20,000"),
    ],
    ids=["plain", "named", "categories"],
)
def test_a_box_that_is_too_large_is_refused_by_a_line(domain: Any, count: str) -> None:
    message = f"^domain.box: a box of {count} coordinates, .*: at most 300 are searched"
    with quickly(), pytest.raises(xp.InvalidInput, match=message):
        xp.Transcript.from_json(text(domain, []))


def test_queries_that_take_long_to_set_up_are_limited_where_they_all_differ() -> None:
    fields = {"weights": {"value": 1}, "range": [0, 1], "grid": "1/10000"}
    exchanges = [exchange("gaussian", 100, **fields, sigma=f"2.{i:03}") for i in range(30)]
    message = r"exchanges\[11\].query: got gaussian queries that take .* at most 4,194,304 for"
    with quickly(), pytest.raises(xp.InvalidInput, match=message):
        xp.Transcript.from_json(text({"values": [0, 1]}, exchanges))
    with quickly():
        transcript = xp.Transcript.from_json(text({"values": [0, 1]}, exchanges[:5] * 30))
    assert len(transcript) == 150
    hashed = xp.local_hashing(seed="5eed", buckets=2, epsilon=1)
    assert hashed.work(xp.FiniteSet(range(70))) == 70


def test_queries_that_are_equal_take_no_more_however_they_are_written() -> None:
    fields = {"weights": {"value": 1}, "range": [0, 1], "grid": "1/10000"}
    exchanges = [exchange("gaussian", 100, **fields, sigma=f"2.{'0' * i}") for i in range(1, 20)]
    with quickly():
        document = text({"values": [0, 1]}, exchanges)
        assert len(xp.Transcript.from_json(document)) == len(exchanges)
    exchanges += [exchange("gaussian", 100, **fields, sigma=f"2.{i:03}") for i in range(1, 30)]
    message = r"exchanges\[29\].query: got gaussian queries that take .* at most 4,194,304 for"
    with quickly(), pytest.raises(xp.InvalidInput, match=message):
        xp.Transcript.from_json(text({"values": [0, 1]}, exchanges))


def test_a_message_lists_a_few_names_of_many() -> None:
    names = [f"c{j}" for j in range(8000)]
    domain = xp.FiniteSet([[0] * 8000, [1] * 8000], names=names)
    with pytest.raises(xp.InvalidInput, match=r"it has c0, .*, c7 and 7,992 more$"):
        xp.logistic({"d": 1}, epsilon=1).on(domain)
    assert len(repr(domain)) < 100


def test_ever_new_queries_are_replayed_and_not_all_of_them_compared() -> None:
    exchanges = [
        exchange("randomized_response", "ab"[i % 2], epsilon=f"0.{10000 + i}") for i in range(3001)
    ]
    with quickly():
        transcript = go_through(text({"values": ["a", "b"]}, exchanges, {**BUDGET, "epsilon": "5"}))
        assert xp.replay(transcript).respected
        with pytest.raises(xp.InvalidInput, match="3,001 different queries; at most 3,000"):
            xp.report.compare(xp.Odometer(transcript))


def test_reports_of_a_client_that_adds_laplace_noise() -> None:
    domain = xp.FiniteSet([(age,) for age in range(6)], names=["age"])
    query = xp.laplace({"age": 1}, range=(0, 5), grid="0.5", epsilon="0.5")
    reports = {"age": [i % 6 for i in range(40)], "output": [i % 11 for i in range(40)]}
    with quickly():
        assert xp.client_checks.check_client(
            query, domain, reports
        ).refuted  # noise goes far beyond the range

"""Clients known to be wrong are refuted, clients that are right hardly ever."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost.client_checks import check_client
from expost.client_checks._events import Event, events
from expost.sampling import draw
from support.random_cases import table as probabilities

Table = dict[str, list[Any]]


def reports(query: xp.queries.Query, domain: xp.FiniteSet, count: int, seed: int) -> Table:
    """What a client answers that is as claimed, on inputs of all kinds."""
    likelihood, source = query.on(domain), xp.sampling.InsecureSource(seed)
    inputs = [domain.values[source.below(len(domain))] for _ in range(count)]
    places = [domain.locate(value) for value in inputs]
    answers = [
        likelihood.responses[draw(likelihood.pmf(x), source)] for x in places if x is not None
    ]
    return {"input": inputs, "output": answers}


def of_client(client: Callable[[int], Any], size: int, count: int) -> Table:
    inputs = [i % size for i in range(count)]
    return {"input": inputs, "output": [client(value) for value in inputs]}


def numbers(size: int) -> xp.FiniteSet:
    return xp.FiniteSet(range(size))


CLAIMS = [
    (xp.randomized_response(1), numbers(2)),
    (xp.randomized_response(2), numbers(8)),
    (xp.unary_encoding(variant="symmetric", epsilon=1), numbers(4)),
    (xp.unary_encoding(epsilon=3), numbers(6)),
    (xp.subset_selection(size=2, epsilon=1), numbers(5)),
    (xp.hadamard_response(order=8, epsilon=1), numbers(6)),
    (xp.local_hashing(seed="5eed", buckets=4, epsilon=1), numbers(8)),
    (xp.geometric(range=(0, 35), sensitivity=5, epsilon=1), numbers(6)),
    (xp.channel([[1, 0, 0], ["1/2", "1/2", 0], ["1/100", 0, "99/100"]]), numbers(3)),
    (xp.perturbation([0, 0.3, 1], range=(0, 1), epsilon=1), numbers(3)),
]


@pytest.mark.parametrize(("query", "domain"), CLAIMS, ids=lambda part: getattr(part, "kind", ""))
def test_clients_that_are_as_claimed_are_hardly_ever_refuted(
    query: xp.queries.Query, domain: xp.FiniteSet
) -> None:
    runs = 60
    refuted = sum(
        check_client(query, domain, reports(query, domain, 120, seed)).refuted
        for seed in range(runs)
    )
    # With a rate of 5 % more than nine of sixty happen once in a thousand times.
    assert refuted <= 9


@pytest.mark.parametrize(("query", "domain"), CLAIMS, ids=lambda part: getattr(part, "kind", ""))
def test_events_are_claimed_to_be_as_likely_as_their_responses_in_sum(
    query: xp.queries.Query, domain: xp.FiniteSet
) -> None:
    likelihood, columns = query.on(domain), probabilities(query, domain)
    values = range(len(domain))

    def given(position: int) -> list[Event]:
        """The events when every input got this response, once: the hits say which have it."""
        return list(events(likelihood, {x: Counter([position]) for x in values}))

    by_response = [given(position) for position in range(len(columns))]
    for index, event in enumerate(by_response[0]):
        if event.name == "other bits":
            continue  # it counts bits, not responses
        for cell, x in enumerate(event.inputs):
            total = sum(
                (
                    column[x]
                    for column, seen in zip(columns.values(), by_response, strict=True)
                    if seen[index].hits[cell]
                ),
                Fraction(0),
            )
            assert total == event.claimed[cell], event.name


def test_a_unary_encoding_that_perturbs_only_the_set_bit_is_refuted() -> None:
    generator, size = random.Random(1), 6
    claim = xp.unary_encoding(epsilon=1)

    def client(value: int) -> str:
        return "".join("1" if i == value and generator.random() < 0.5 else "0" for i in range(size))

    few = check_client(claim, numbers(size), of_client(client, size, 60))
    assert few.refuted
    many = check_client(claim, numbers(size), of_client(client, size, 3000))
    assert many.shown is not None
    # The bit is never set for another input, so the epsilon that is shown grows with the reports.
    assert many.shown.epsilon > 2
    assert many.shown.event == f"bit of {many.shown.likely}"
    assert many.shown.hits[1] == 0


def test_bits_that_are_right_one_by_one_but_not_together_are_refuted() -> None:
    generator, size = random.Random(2), 4
    claim = xp.unary_encoding(variant="symmetric", epsilon=2)
    keep = math.e / (math.e + 1)

    def client(value: int) -> str:
        same = generator.random()  # one draw for all bits
        return "".join("1" if (same < keep) == (i == value) else "0" for i in range(size))

    check = check_client(claim, numbers(size), of_client(client, size, 4000))
    assert check.refuted
    together = ("output ", "bit of 0 without", "bit of 1 without", "bit of 2 without")
    assert any(found.event.startswith(together) for found in check.contradictions)
    # Of three bits or more, no two inputs have an output in common.
    assert check.shown is not None
    assert check.shown.epsilon > 2
    assert check.shown.event.startswith("output ")


@pytest.mark.parametrize(("epsilon", "count"), [("1", 400_000), ("4", 60_000)])
def test_a_flip_probability_that_is_rounded_down_to_128ths_is_refuted(
    epsilon: str, count: int
) -> None:
    flip = math.floor(128 / (math.exp(float(epsilon)) + 1)) / 128
    generator = np.random.default_rng(3)
    inputs = generator.integers(0, 2, count)
    outputs = inputs ^ (generator.random(count) < flip)
    table = pl.DataFrame({"input": inputs, "output": outputs.astype(np.int64)})
    check = check_client(xp.randomized_response(epsilon), numbers(2), table)
    assert check.refuted
    assert check.shown is not None
    assert float(epsilon) < check.shown.epsilon < math.log((1 - flip) / flip)


def test_a_permanent_response_that_is_redrawn_is_refuted() -> None:
    query, domain = xp.randomized_response(1), numbers(2)
    table = reports(query, domain, 200, seed=4)
    table["subject"] = [f"subject {i // 2}" for i in range(200)]
    table["input"] = [table["input"][i - i % 2] for i in range(200)]
    fresh = reports(query, domain, 200, seed=4)
    redrawn = check_client(query, domain, {**table, "output": fresh["output"]}, permanent=True)
    assert redrawn.refuted
    assert redrawn.changed is not None
    first, second = (row - 1 for row in redrawn.changed)
    assert table["subject"][first] == table["subject"][second]
    assert fresh["output"][first] != fresh["output"][second]
    kept = {**table, "output": [fresh["output"][i - i % 2] for i in range(200)]}
    permanent = check_client(query, domain, kept, permanent=True)
    assert not permanent.refuted
    assert permanent.reports == 100


def test_a_client_with_more_noise_than_claimed_is_not_as_claimed_either() -> None:
    domain = numbers(2)
    table = reports(xp.randomized_response("0.1"), domain, 2000, seed=5)
    check = check_client(xp.randomized_response(2), domain, table)
    assert check.refuted
    assert check.shown is None or check.shown.epsilon < 2


def test_what_is_claimed_to_be_impossible_refutes_at_once() -> None:
    claim = xp.channel([[1, 0], ["1/2", "1/2"]])
    check = check_client(claim, numbers(2), {"input": [0], "output": [1]})
    assert check.refuted
    assert check.claimed == xp.numbers.Nats(ratio=None)
    found = check.contradictions[0]
    assert (found.event, found.input, found.hits, found.trials) == ("output 0", 0, 0, 1)


def test_few_reports_of_many_inputs_are_taken_together() -> None:
    domain = numbers(200)
    table = {"input": list(range(200)), "output": list(range(200))}
    check = check_client(xp.randomized_response(2), domain, table)
    assert check.refuted
    assert check.contradictions[0].event == "output that speaks for the input"
    assert check.contradictions[0].input is None


def test_inputs_from_a_box_are_taken_together() -> None:
    box = xp.Box(age=(10, 100), region=xp.categories("north", "south"))
    query = xp.logistic({"age": 0.05, "region": {"north": 1}}, intercept=-2, epsilon=3)
    likelihood, source = query.on(box), xp.sampling.InsecureSource(6)
    generator = random.Random(6)
    ages = [generator.uniform(10, 100) for _ in range(800)]
    regions = [generator.choice(["north", "south"]) for _ in range(800)]
    outputs = []
    for point in zip(ages, regions, strict=True):
        place = box.locate(point)
        assert place is not None
        outputs.append(likelihood.responses[draw(likelihood.pmf(place), source)])
    right = {"age": ages, "region": regions, "output": outputs}
    assert not check_client(query, box, right).refuted
    assert check_client(query, box, {**right, "output": [1] * 800}).refuted


def test_every_epsilon_that_is_shown_is_below_the_true_one() -> None:
    query, domain = xp.randomized_response("1.5"), numbers(3)
    shown = []
    for seed in range(40):
        check = check_client(query, domain, reports(query, domain, 1500, seed), confidence="0.9")
        shown.append(check.shown.epsilon if check.shown else 0.0)
    assert max(shown) < 1.5
    assert sum(shown) / len(shown) > 0.7


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_tables_may_be_frames_and_their_cells_texts(frame: Any) -> None:
    domain, query = numbers(2), xp.randomized_response(1)
    plain = reports(query, domain, 50, seed=7)
    texts = {name: [str(entry) for entry in column] for name, column in plain.items()}
    expected = check_client(query, domain, plain)
    assert check_client(query, domain, frame(plain)) == expected
    assert check_client(query, domain, frame(texts)) == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"input": [0]}, "column 'output' is missing"),
        ({"output": [0]}, "column 'input' is missing"),
        ({"input": [], "output": []}, "there are no rows"),
        ({"input": [0, 1], "output": [0]}, "the columns have different lengths"),
        ({"input": [0, 7], "output": [0, 0]}, "row 2: input: is not in the domain"),
        ({"input": [0, True], "output": [0, 0]}, "row 2: input: is not in the domain"),
        ({"input": [0, {}], "output": [0, 0]}, "row 2: input: must be a label, a number or a list"),
        ({"input": [0, 1], "output": [0, 9]}, "row 2: output: 9 is not a response of the claim"),
        ([0, 1], "must be a frame or a mapping of columns"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(table: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        check_client(xp.randomized_response(1), numbers(2), table)


def test_other_bad_input_is_one_line() -> None:
    table = {"input": [0], "output": [0]}
    query = xp.randomized_response(1)
    with pytest.raises(xp.InvalidInput, match="confidence: must be between 0 and 1"):
        check_client(query, numbers(2), table, confidence=95)
    with pytest.raises(xp.InvalidInput, match="column 'subject' is missing"):
        check_client(query, numbers(2), table, permanent=True)
    every = {"input": list(range(2000)), "output": list(range(2000))}
    with pytest.raises(xp.InvalidInput, match="too many to compare"):
        check_client(query, numbers(2000), every)
    named = xp.FiniteSet([(0,), (1,)], names=["output"])
    with pytest.raises(xp.InvalidInput, match="a coordinate of the domain is called 'output'"):
        check_client(query, named, table)
    mixed = xp.FiniteSet([1, "1"])
    with pytest.raises(
        xp.InvalidInput, match="is a label of the domain, and also spells one of its numbers"
    ):
        check_client(query, mixed, {"input": ["1"], "output": [1]})

"""Many subjects on a box decide as one subject alone does, with a search for every tally."""

from __future__ import annotations

import random

import pytest

import expost as xp
from expost.filters import Filter
from expost.panel import Search
from expost.sampling import InsecureSource

BOX = xp.Box(age=(10, 100), bmi=(10, 50))
LINEAR = {
    f"linear {i}": xp.linear({"age": a, "bmi": b}, epsilon="0.5")
    for i, (a, b) in enumerate([(0.05, 0.02), (-0.03, 0.06), (0.02, -0.08)])
}
OTHERS = {
    "logistic": xp.logistic({"age": 0.04, "bmi": -0.08}, epsilon="0.5"),
    "clipped": xp.linear({"age": 0.1, "bmi": -0.3}, range=(-2, 2), clip=True, epsilon="0.5"),
}


def asked_at_random(
    queries: dict[str, xp.queries.Query], guard: Filter, subjects: int, rounds: int
) -> tuple[xp.Panel, dict[int, xp.Transcript], int]:
    generator = random.Random(4)
    panel = xp.Panel(
        BOX,
        filter=guard,
        subjects=range(subjects),
        queries=queries,
        source=InsecureSource(2),
    )
    values = [(generator.uniform(10, 100), generator.uniform(10, 50)) for _ in range(subjects)]
    transcripts = {name: xp.Transcript(BOX, guard) for name in range(subjects)}
    refused = 0
    for _ in range(rounds):
        keys = generator.choices(list(queries), k=subjects)
        decisions, replies = panel.decide(keys), panel.ask(keys, values)
        for name, key in enumerate(keys):
            alone = guard.decide(transcripts[name], queries[key])
            assert alone.accepted == decisions.accepted[name] == replies.answered[name]
            assert decisions.loss_at_worst.upper[name] >= alone.loss_at_worst.lower
            assert decisions.loss_at_worst.lower[name] <= alone.loss_at_worst.upper
            refused += not alone.accepted
            if alone.accepted:
                transcripts[name] = transcripts[name].add(queries[key], replies.responses[name])
    return panel, transcripts, refused


@pytest.mark.parametrize(
    ("queries", "guard"),
    [
        (LINEAR, xp.BayesianFilter("1.2")),
        (LINEAR | OTHERS, xp.BayesianFilter("1.2")),
        (LINEAR | OTHERS, xp.SimplifiedFilter("1.2")),
        (OTHERS, xp.BasicFilter(1)),
    ],
)
def test_every_decision_on_a_box_is_that_of_the_subject_alone(
    queries: dict[str, xp.queries.Query], guard: Filter
) -> None:
    panel, transcripts, refused = asked_at_random(queries, guard, 12, 5)
    assert refused
    loss, peak = panel.loss, panel.peak
    for name, transcript in transcripts.items():
        assert panel.transcript(name) == transcript
        odometer = xp.Odometer(transcript)
        assert loss.lower[name] <= odometer.loss.upper
        assert odometer.loss.lower <= loss.upper[name]
        assert peak.lower[name] <= odometer.peak.upper
        assert odometer.peak.lower <= peak.upper[name]


def test_searches_in_several_processes_find_the_same_and_report() -> None:
    told: list[tuple[int, int]] = []
    search = Search(processes=2, progress=lambda done, total: told.append((done, total)))
    many = xp.Panel(BOX, filter=xp.BayesianFilter("1.3"), subjects=range(32), search=search)
    one = xp.Panel(BOX, filter=xp.BayesianFilter("1.3"), subjects=range(32))
    for bit in range(5):
        query = xp.logistic({"age": 0.01 * bit, "bmi": -0.03}, epsilon="0.25")
        for panel in (many, one):
            panel.record(query, [number >> bit & 1 for number in range(32)])
    following = xp.logistic({"age": 0.01, "bmi": 0.05}, epsilon="0.25")
    first, second = many.decide(following), one.decide(following)
    assert (first.accepted == second.accepted).all()
    assert (first.loss_at_worst.upper == second.loss_at_worst.upper).all()
    assert told[-1] == (32, 32)
    # What was searched for once is known.
    told.clear()
    many.decide(following, range(8))
    assert not told


def test_records_of_a_box_are_hidden_as_values_of_sets_are() -> None:
    panel = xp.Panel(BOX, filter=xp.BayesianFilter(1), subjects=["a", "b"])
    with pytest.raises(xp.InvalidInput, match="row 2: the value is outside") as caught:
        panel.ask(OTHERS["logistic"], {"age": [20, 777], "bmi": [20, 20]})
    assert "777" not in str(caught.value)


def test_where_the_epsilons_fit_the_worst_is_known_from_above_only() -> None:
    panel = xp.Panel(BOX, filter=xp.BayesianFilter("1.2"), subjects=["a", "b"], queries=LINEAR)
    ends = {key: query.on(BOX).responses[1] for key, query in LINEAR.items()}
    panel.record("linear 0", [ends["linear 0"]], ["a"])
    found = panel.decide("linear 1").loss_at_worst
    assert found.lower.tolist() == [0.0, 0.0]
    for upper, spent in zip(found.upper.tolist(), [1.0, 0.5], strict=True):
        assert spent <= upper <= spent * (1 + 1e-12)
    panel.record("linear 1", [ends["linear 1"]], ["a"])
    searched = panel.decide("linear 2", ["a"]).loss_at_worst
    assert 0 < searched.lower[0] <= searched.upper[0] < 1.5

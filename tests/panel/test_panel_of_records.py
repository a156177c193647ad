"""Many subjects with attributes, changing ones too, decide as one subject alone does."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.domains import freeze, freeze_columns
from expost.panel._kernel import Kernel
from expost.panel._selection import Selection
from expost.sampling import InsecureSource
from support import panel_cases, record_cases


@pytest.mark.parametrize("seed", range(24))
def test_every_decision_about_records_is_that_of_the_subject_alone(seed: int) -> None:
    case = record_cases.random_record_case(random.Random(seed))
    asked = [exchange.query for exchange in case.transcript.exchanges]
    guard = [xp.BayesianFilter("1.5"), xp.SimplifiedFilter(2), xp.BasicFilter(2)][seed % 3]
    _, state, odometers = panel_cases.play_on(
        case.domain, [*asked, case.following], guard, subjects=8, seed=seed, rounds=6
    )
    lower, upper = state.losses(Selection(8))
    for low, high, odometer in zip(lower, upper, odometers, strict=True):
        exact = odometer.exact_loss.enclosure
        assert low <= exact.upper
        assert exact.lower <= high
        assert high - low < 1e-12


def test_changes_that_are_limited_by_distance_count_gaps() -> None:
    # With a hole between its values the steps at which somebody was asked make a difference.
    domain = xp.Attributes(level=xp.changing([0, 1, 4], max_step=2), other=["a", "b"])
    query = xp.randomized_response(epsilon="0.5")
    asked = [query.about("level", at=step) for step in (1, 2, 3, 5)]
    joint = [query.about("level", "other", at=4)]
    panel_cases.play_on(domain, [*asked, *joint], xp.BayesianFilter("1.5"), 40, seed=3, rounds=8)


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_frozen_as_sequences_are(seed: int) -> None:
    generator = np.random.default_rng(seed)
    change = [
        xp.changing(range(4)),
        xp.changing(range(4), times=2),
        xp.changing(range(4), times=0),
        xp.changing([0, 3, 4, 9], max_step=3),
        range(4),
    ][seed % 5]
    domain = xp.Attributes(it=change)
    true = generator.integers(0, 4, (6, 15))
    if seed % 5 == 4:
        true[:] = true[0]
    frozen = freeze_columns(domain["it"], true)
    for subject in range(15):
        alone = freeze(domain, [(place,) for place in true[:, subject].tolist()])
        assert frozen[:, subject].tolist() == [place for (place,) in alone]


def test_a_panel_of_records_takes_whole_sequences_and_freezes_them() -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    certain = xp.randomized_response(epsilon=40)
    panel = xp.Panel(
        domain, filter=xp.BasicFilter(1000), subjects=["a", "b"], source=InsecureSource(1)
    )
    changed = [["no", "yes", "no"], ["yes", "yes", "yes"]]
    columns = {"region": ["n", "s"], "smokes": changed}
    rows = [
        [{"region": region, "smokes": smokes} for smokes in own]
        for region, own in zip(["n", "s"], changed, strict=True)
    ]
    for values in (columns, rows):
        for step, told in enumerate((("no", "yes"), ("yes", "yes"), ("yes", "yes")), 1):
            # Somebody changed more often than the domain allows, and is answered for all the same.
            assert panel.ask(certain.about("smokes", at=step), values).responses == told
        assert panel.ask(certain.about("region"), values).responses == ("n", "s")
        joint = panel.ask(certain.about("smokes", "region", at=3), values)
        assert joint.responses == (("yes", "n"), ("yes", "s"))
    transcript = panel.transcript("a")
    assert len(transcript) == 10
    assert panel.loss.upper[0] >= xp.Odometer(transcript).exact_loss.enclosure.lower


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"smokes": [["no"], ["no", "yes"]]}, "row 1: got 1 steps; a query is about step 2"),
        ({"region": ["n", "s"]}, "column 'smokes' is missing"),
        ({"smokes": [["no", "seldom"], ["no", "yes"]]}, "row 1: the value is outside the domain"),
        ([[{"smokes": "seldom"}], []], "row 1"),
        (["no", "yes"], "values: cannot be read|row 1"),
        (3, "must be a list"),
    ],
)
def test_wrong_records_are_refused_and_not_shown(values: object, message: str) -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    panel = xp.Panel(domain, filter=xp.BayesianFilter(1), subjects=["a", "b"])
    query = xp.randomized_response(epsilon="0.1").about("smokes", at=2)
    with pytest.raises(xp.InvalidInput, match=message) as caught:
        panel.ask(query, values)
    assert "seldom" not in str(caught.value)


def test_records_that_do_not_change_are_given_one_by_one_or_by_columns() -> None:
    domain = xp.Attributes(region=["n", "s"], age=xp.integers(18, 20))
    certain = xp.randomized_response(epsilon=40)
    panel = xp.Panel(domain, filter=xp.BasicFilter(999), subjects=["a", "b"])
    rows = [{"region": "n", "age": 20}, {"region": "s", "age": 18}]
    for values in (rows, {"region": ["n", "s"], "age": np.array([20, 18])}):
        assert panel.ask(certain.about("age"), values).responses == (20, 18)
        assert panel.ask(certain.about("region"), values).responses == ("n", "s")


def test_who_else_is_there_makes_no_difference_to_the_last_digit() -> None:
    domain = xp.Attributes(a=range(3), b=range(4), c=range(3), d=xp.changing(range(3), times=1))
    query = xp.randomized_response(epsilon="0.3")
    about = [("a", "b"), ("b", "c"), ("a", "c"), ("a",), ("c",)]
    queries = [query.about(*names) for names in about]
    queries += [query.about("a", "d", at=1), query.about("d", at=2), query.about("c", "d", at=3)]
    generator = np.random.default_rng(4)
    asked = generator.integers(0, len(queries), (12, 40))
    given = generator.integers(0, 3, (12, 40))

    def bounds(subjects: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kernel = Kernel(domain, xp.BayesianFilter(2))
        numbers = np.array([kernel.query_index(each) for each in queries])
        state = kernel.start(len(subjects))
        for queried, responses in zip(asked, given, strict=True):
            kernel.fold(state, numbers[queried[subjects]], responses[subjects])
        found = kernel.decide(state, int(numbers[0]))
        everybody = Selection(len(subjects))
        return np.array([*state.losses(everybody), *state.peaks(everybody), found.upper])

    together = bounds(np.arange(40))
    for some in (np.arange(7), np.arange(20, 40), np.array([3]), np.array([39, 5, 12])):
        assert (bounds(some) == together[:, some]).all()


def test_who_is_asked_little_is_decided_about_where_all_questions_tie_too_much() -> None:
    names = ["a0", "a1", "a2"]
    domain = xp.Attributes({name: range(128) for name in names})
    query = xp.randomized_response(epsilon="0.5")
    pairs = [query.about(a, b) for a, b in combinations(names, 2)]
    guard = xp.BayesianFilter("1.6")
    panel = xp.Panel(domain, filter=guard, subjects=range(len(pairs)))
    values = {name: [0] * len(pairs) for name in names}
    for own, each in enumerate(pairs):
        assert panel.ask(each, {name: [0] for name in names}, [own]).answered.all()
    single = query.about("a0")
    found = panel.decide(single)
    for own in range(len(pairs)):
        alone = guard.decide(panel.transcript(own), single)
        assert alone.accepted == found.accepted[own]
        assert alone.loss_at_worst.upper == pytest.approx(found.loss_at_worst.upper[own])
    panel.ask(single, values)
    panel.record(pairs[1], [(0, 0)], [0])
    with pytest.raises(xp.InvalidInput, match="connect a0, a1 and a2"):
        panel.record(pairs[2], [(0, 0)], [0])

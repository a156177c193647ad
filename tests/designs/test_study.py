"""Studies as people write them, and what is wrong with some."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.designs import Study, load_study, study_from_json

FULL: dict[str, Any] = {
    "version": 1,
    "domain": {"values": [0, 1, 2, 3]},
    "subjects": 1000,
    "epsilon": "1",
    "goals": [{"share": "value >= 2"}, {"mean": "value"}, {"distribution": "value"}],
}


def read(**changed: Any) -> Study:
    fields = {name: x for name, x in {**FULL, **changed}.items() if x is not None}
    return study_from_json(json.dumps(fields))


def test_a_study_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    file.write_text(json.dumps(FULL), encoding="utf-8")
    study = load_study(file)
    assert [goal.kind for goal in study.goals] == ["share", "mean", "distribution"]
    assert np.array_equal(
        read(goals=[{"share": [2, 3]}]).model.targets[0].rows, study.model.targets[0].rows
    )
    assert [len(target.rows) for target in study.model.targets] == [1, 1, 4]
    assert np.allclose(study.model.targets[1].rows, [[0, 1, 2, 3]])
    assert study.model.targets[1].scale == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"version": 2}, "version "),
        ({"goals": None}, "'goals' is missing"),
        ({"goals": []}, "goals: there must be 1 to 100 of them"),
        ({"goals": ["value > 9"]}, r"goals\[0\].*same answer"),
        ({"goals": ["valeu > 1"]}, r"goals\[0\].*unknown name"),
        ({"goals": [{"share": "value > 1", "mean": "value"}]}, r"goals\[0\]: must have one of"),
        ({"goals": [{"share": [1, 9]}]}, r"goals\[0\].share\[1\]: is not a value"),
        ({"goals": [{"median": "value"}]}, r"goals\[0\].median: unknown field"),
        ({"subjects": 3}, "subjects: must be at least 10"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "0.0099"}, "epsilon: must be at least 0.01, not 0.0099"),
        ({"goals": [{"distribution": "x"}]}, "unknown name 'x'; known: value$"),
        ({"population": {"sample": []}}, "population.sample: must not be empty"),
        ({"arrival": "later"}, "arrival: must be one of up front, sequential, open-ended"),
        ({"population": {"probabilities": ["0.5", "0.5"]}}, "population.*2 numbers for 4 values"),
        ({"population": {"sample": [0, 7]}}, r"population.*sample\[1\]: is not a value"),
        ({"population": "normal"}, "population: must be"),
        ({"rounds": 0}, "rounds: must be at least 1"),
        ({"budget": "1"}, "budget: unknown field"),
        ({"delta": "2"}, "delta"),
    ],
)
def test_what_is_wrong_with_a_study_is_said(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        read(**changed)


def test_shares_of_an_attribute_that_is_not_there_are_an_error() -> None:
    person = xp.Attributes(age=["young", "old"], smokes=["no", "yes"])
    shares = {"shares": {"smoke": ["0.9", "0.1"]}}
    study = Study(person, subjects=100, epsilon=1, goals=['age == "old"'], population=shares)
    with pytest.raises(xp.InvalidInput, match=r"population.shares: unknown attribute 'smoke'"):
        _ = study.model


def test_another_file_is_recognized() -> None:
    with pytest.raises(xp.InvalidInput, match="is a query; expected a study"):
        study_from_json('{"kind": "randomized_response", "epsilon": "1"}')


def test_records_have_the_combinations_that_goals_are_about() -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=["no", "yes"], age=xp.integers(0, 90))
    study = Study(
        domain,
        subjects=100,
        epsilon=1,
        goals=['region == "n" and smokes == "no"', {"distribution": "smokes"}],
        population={"shares": {"smokes": ["0.9", "0.1"]}},
    )
    assert study.model.support.weights.round(3).tolist() == [0.45, 0.05, 0.45, 0.05]


def test_histories_are_those_that_the_limit_allows() -> None:
    domain = xp.Attributes(active=xp.changing(["no", "yes"], times=1))
    goals = [f'active at {week} == "yes"' for week in range(1, 6)]
    study = Study(
        domain,
        subjects=100,
        epsilon=1,
        goals=goals,
        population={"shares": {"active": ["0.5", "0.5"]}, "changes": "0.2"},
    )
    rows = [tuple(row.values()) for row in study.model.support.rows]
    changes = [sum(a != b for a, b in pairwise(row)) for row in rows]
    assert len(rows) == 2 + 2 * 4
    assert max(changes) == 1
    # Redrawn with 0.2 and then the other one with 0.5.
    changed_once, none = 0.1 * 0.9**3, 0.9**4
    assert study.model.support.weights[0] == pytest.approx(none / (2 * none + 8 * changed_once))
    assert not study.model.support.reportable


def test_a_pilot_counts_each_value_and_half_of_every_other() -> None:
    study = Study(xp.FiniteSet(["a", "b", "c"]), subjects=100, epsilon=1, goals=['value == "a"'],
                  population=["a", "a", "b"])  # fmt: skip
    assert study.model.weights.tolist() == pytest.approx([2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5])


def test_means_on_a_box_are_those_of_its_points() -> None:
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    heart = xp.logistic({"age": -0.05, "sex": -1}, intercept=3, epsilon="1")
    points = [[20, 0], [40, 1], [60, 1]]
    study = Study(box, subjects=100, epsilon=1, goals=[heart, {"mean": "age"}], population=points)
    logits = 3 - 0.05 * np.array([20, 40, 60]) - np.array([0, 1, 1])
    assert np.allclose(study.model.targets[0].rows, 1 / (1 + np.exp(-logits)))
    assert np.allclose(study.model.targets[1].rows, [20, 40, 60])
    assert study.model.targets[1].scale == 90


def test_histories_take_the_largest_step_exactly_as_written() -> None:
    person = xp.Attributes(dose=xp.changing([0.1, 0.2, 0.3], max_step="0.1"))
    goals = ["dose at 1 >= 0.2", "dose at 2 >= 0.2"]
    support = Study(person, subjects=100, epsilon=1, goals=goals).model.support
    histories = {(row["dose", 1], row["dose", 2]) for row in support.rows}
    assert histories == {(a, b) for a in (0.1, 0.2, 0.3) for b in (0.1, 0.2, 0.3)} - {
        (0.1, 0.3),
        (0.3, 0.1),
    }

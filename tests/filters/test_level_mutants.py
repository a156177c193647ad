"""Each way to break a level or a conjunction is found by the checks of small records."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import expost as xp
from expost.filters import _all_of
from expost.filters._levels import Groups, Steps
from expost.loss import _levels
from expost.loss._levels import GroupsLikelihood, StepsLikelihood
from support.level_cases import LevelCase, random_case
from support.protected_pairs import Attribute, Study, coin


def differs(seeds: Iterable[int], kind: str) -> bool:
    """Return whether some decision at one kind of level is not that of all protected pairs."""
    for seed in seeds:
        case = random_case(random.Random(seed))
        if kind not in case.guard["protects"]:
            continue
        if case.accepts() != case.is_accepted_by_oracle():
            return True
    return False


SEEDS = range(300)


def test_without_a_mutant_nothing_differs() -> None:
    for kind in ("steps", "groups", "attributes"):
        assert not differs(range(60), kind)


def test_constants_left_out_of_a_step_level_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepsLikelihood, "_touches_constants", lambda self, query: False)
    assert differs(SEEDS, "steps")


@pytest.mark.parametrize("shift", [-1, 1])
def test_windows_off_by_one_are_found(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    original = _levels.start_level

    def shifted(level: Any, domain: xp.Attributes) -> Any:
        wrong = Steps(level.width + shift) if isinstance(level, Steps) else level
        return original(wrong, domain)

    monkeypatch.setattr(_levels, "start_level", shifted)
    assert differs(SEEDS, "steps")


@pytest.mark.parametrize("kind", ["groups", "attributes"])
def test_a_query_about_two_groups_that_is_charged_to_one_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    original: Callable[..., Sequence[Any]] = GroupsLikelihood._touched
    monkeypatch.setattr(GroupsLikelihood, "_touched", lambda self, query: original(self, query)[:1])
    assert differs(SEEDS, kind)


def test_groups_that_do_not_cover_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study({"a": Attribute(2), "b": Attribute(2)}, 1)
    guard = {"kind": "bayesian", "ratio": "3", "protects": {"groups": [["a"]]}}
    case = LevelCase(study, [], coin("b", None, 100), guard, {})
    with pytest.raises(xp.InvalidInput, match="the groups leave out b"):
        case.accepts()
    monkeypatch.setattr(Groups, "check", lambda self, domain: None)
    monkeypatch.setattr(GroupsLikelihood, "_touched", _touched_that_exist)
    assert case.accepts()
    assert not study.accepts({**guard, "protects": {"attributes": 1}}, [], case.query)


def _touched_that_exist(self: GroupsLikelihood, query: Any) -> list[Any]:
    names = {name for name, _ in query.on(self.domain).variables}
    return [
        self.likelihoods.get(unit) or _levels.UnitLikelihood.start(self.domain, unit)
        for unit in self.units
        if unit.names & names
    ]


def test_a_conjunction_that_is_any_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study({"a": Attribute(2), "b": Attribute(2)}, 1)
    guard = {
        "kind": "all",
        "filters": [
            {"kind": "bayesian", "ratio": "2", "protects": {"attributes": 1}},
            {"kind": "bayesian", "ratio": "9"},
        ],
    }
    case = LevelCase(study, [], coin("a", None, 3), guard, {})
    assert case.accepts() is case.is_accepted_by_oracle() is False
    original = _all_of.conjunction

    def any_of(decisions: Sequence[Any]) -> Any:
        return original([max(decisions, key=bool)])

    monkeypatch.setattr(_all_of, "conjunction", any_of)
    assert case.accepts()

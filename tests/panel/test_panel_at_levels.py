"""Panels at levels of protection and under several filters decide as one subject at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

import expost as xp
from expost.filters import filter_from_json
from expost.filters._levels import Steps
from expost.panel import _kernel
from expost.panel._unit_spreads import UnitSpreads
from support.level_cases import LevelCase, as_channel, random_level, random_question, random_study

SUBJECTS = range(6)
KINDS = ("bayesian", "simplified", "basic")
RATIOS = ("2", "9/4", "3", "4", "6", "9")


def draw_filter(generator: random.Random, level: Any) -> xp.filters.Filter:
    """Draw a filter at a level, in a third of the cases next to one about the whole person."""
    kind, ratio = generator.choice(KINDS), generator.choice(RATIOS)
    tree: dict[str, Any] = {"kind": kind, "ratio": ratio, "protects": level}
    if generator.random() < 1 / 3:
        whole = {"kind": generator.choice(KINDS), "ratio": generator.choice([*RATIOS, "30"])}
        both = [tree, whole]
        generator.shuffle(both)
        tree = {"kind": "all", "filters": both}
    return filter_from_json(tree)


def differs(seed: int) -> bool:
    """Return whether a panel decides otherwise than each of its subjects alone."""
    generator = random.Random(seed)
    study = random_study(generator, limits=generator.random() < 0.2)
    questions = [random_question(generator, study, zeros=False) for _ in range(5)]
    domain = LevelCase(study, [], questions[0], {}, {}).domain
    filter_ = draw_filter(generator, random_level(generator, study))
    panel = xp.Panel(domain, filter=filter_, subjects=list(SUBJECTS))
    odometers = [xp.Odometer(xp.Transcript(domain, filter_)) for _ in SUBJECTS]
    for _ in range(10):
        query = as_channel(generator.choice(questions))
        expected = [bool(filter_.decide(odometer, query).accepted) for odometer in odometers]
        if panel.decide(query).accepted.tolist() != expected:
            return True
        remaining = [float(filter_.remaining(odometer)) for odometer in odometers]
        if panel.remaining.tolist() != pytest.approx(remaining, abs=1e-9):
            return True
        asked = [s for s in SUBJECTS if expected[s] and generator.random() < 0.8]
        if not asked:
            continue
        possible = query.on(domain).responses
        responses = [generator.choice(possible) for _ in asked]
        panel.record(query, responses, asked)
        for subject, response in zip(asked, responses, strict=True):
            odometers[subject] = odometers[subject].add(query, response)
    return False


def any_differs(seeds: Iterable[int]) -> bool:
    return any(map(differs, seeds))


def test_panels_decide_as_each_subject_alone() -> None:
    assert [seed for seed in range(150) if differs(seed)] == []


@pytest.mark.parametrize("shift", [-1, 1])
def test_windows_off_by_one_are_found(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    start = UnitSpreads.__init__

    def shifted(self: UnitSpreads, domain: xp.Attributes, level: Any, count: int) -> None:
        wrong = Steps(max(1, level.width + shift)) if isinstance(level, Steps) else level
        start(self, domain, wrong, count)

    monkeypatch.setattr(UnitSpreads, "__init__", shifted)
    assert any_differs(range(150))


def test_tied_groups_taken_as_untied_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    units = UnitSpreads.units

    def untied(self: UnitSpreads, scope: Any) -> Any:
        variables = list(scope)
        if self._groups:
            return [unit for unit in self._groups if unit.touches(variables)]
        return units(self, variables)

    monkeypatch.setattr(UnitSpreads, "units", untied)
    assert any_differs(range(150))


def test_steps_tied_to_constants_taken_as_untied_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    units = UnitSpreads.units

    def untied(self: UnitSpreads, scope: Any) -> Any:
        variables = list(scope)
        if self._groups:
            return units(self, variables)
        return list({step for _, step in variables})

    monkeypatch.setattr(UnitSpreads, "units", untied)
    assert any_differs(range(150))


def test_constants_left_out_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    units = UnitSpreads.units

    def without_constants(self: UnitSpreads, scope: Any) -> Any:
        touched = units(self, scope)
        return touched and [unit for unit in touched if unit is not None]

    monkeypatch.setattr(UnitSpreads, "units", without_constants)
    assert any_differs(range(150))


def test_any_in_place_of_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kernel.FilterVerdicts, "both", lambda one, other: one)
    assert any_differs(range(150))

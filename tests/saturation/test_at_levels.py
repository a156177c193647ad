"""Saturating queries at a level of protection, against all pairs of small records in fractions."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.saturation import _saturating, _unit_state, _value_classes
from support.level_cases import LevelCase, as_channel, described, random_level, random_study
from support.protected_pairs import Cell, Question, Study, channel

ROUNDING = mpmath.mpf(2) ** -20
WEEKLY = xp.Attributes(
    region=["north", "south"],
    smokes=xp.changing(["no", "yes"]),
    drinks=xp.changing(["no", "yes"]),
)
COIN = xp.randomized_response(epsilon="0.25")


def a_question_about(generator: random.Random, study: Study, cell: Cell) -> Question:
    """Draw a channel about a cell, and sometimes about another attribute as well."""
    name, step = cell
    names = [name]
    if generator.random() < 0.25:
        names += generator.sample(sorted(study.attributes.keys() - {name}), 1)
    changes = any(study.attributes[each].changing for each in names)
    rows = 1
    for each in names:
        rows *= study.attributes[each].size
    weights = []
    for _ in range(rows):
        first = generator.choice([1, 2, 3])
        weights.append([first, 5 - first])
    at = (step or generator.randint(1, study.steps)) if changes else None
    return channel(names, at, weights)


def loss_of(ratio: Fraction | None) -> mpmath.mpf:
    assert ratio is not None
    with mpmath.workdps(60):
        return mpmath.log(ratio.numerator) - mpmath.log(ratio.denominator)


def losses_after(
    study: Study, level: Any, asked: list[tuple[Question, int]], query: Question
) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """For each response the largest loss over the parts that a query touches, and over all."""
    result = []
    for response in range(len(query.columns)):
        weights = study.likelihoods([*asked, (query, response)])
        touched = [part for part in study.parts(level) if not part.isdisjoint(study.scope(query))]
        own = max(loss_of(study.spread(part, weights)) for part in touched)
        result.append((own, loss_of(study.ratio(level, weights))))
    return result


def play(seed: int) -> Counter[str]:
    """Ask a small record a few queries, ordinary and saturating ones; check the latter."""
    generator = random.Random(f"level {seed}")
    study = random_study(generator, limits=seed % 4 == 0)
    while len(study.attributes) < 2 or all(a.size < 2 for a in study.attributes.values()):
        study = random_study(generator, limits=seed % 4 == 0)
    level, budget = random_level(generator, study), Fraction(2)
    guard = {"kind": "bayesian", "epsilon": str(budget), "protects": level}
    case = LevelCase(study, [], channel(["a"], None, [[1]]), guard, {})
    odometer = xp.Odometer(xp.Transcript(case.domain, case.filter))
    asked: list[tuple[Question, int]] = []
    seen: Counter[str] = Counter()
    for _ in range(6):
        cell = generator.choice([c for c in study.cells if study.attributes[c[0]].size > 1])
        if generator.random() < 0.4:
            ordinary = a_question_about(generator, study, cell)
            query: Any = as_channel(ordinary)
            if not case.filter.accepts(odometer, query):
                continue
            exchange = ordinary, generator.randrange(len(ordinary.columns))
        else:
            name, step = cell
            question = f"{name} at {step}" if step else name
            cap = budget * generator.randint(2, 8) / 8
            try:
                query = xp.saturating(odometer, question, cap=cap, seed=f"{seed % 256:02x}")
            except xp.InvalidInput as error:
                reasons = ("ties", "touches several", "leave nothing to ask")
                seen[next(reason for reason in reasons if reason in str(error))] += 1
                continue
            asked_about = described(query, case.domain)
            for own, whole in losses_after(study, level, asked, asked_about):
                assert cap - ROUNDING <= own <= cap, (seed, own, cap)
                assert own <= whole <= budget
            assert case.filter.accepts(odometer, query)
            seen["windows" if level.get("steps", 1) > 1 else "made"] += 1
            exchange = asked_about, generator.randrange(len(asked_about.columns))
        asked.append(exchange)
        odometer = odometer.add_position(query, exchange[1])
    return seen


@pytest.mark.parametrize("block", range(4))
def test_every_response_ends_at_the_cap_and_no_promise_is_broken(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40 * block, 40 * block + 40):
        seen += play(seed)
    assert min(seen[kind] for kind in ("made", "windows", "ties", "leave nothing to ask")) > 5


def test_records_that_are_not_listed_end_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_value_classes, "MOST_COMBINATIONS", 0)
    assert sum((play(seed) for seed in range(1000, 1030)), Counter())["made"] > 15


def test_tables_that_are_rounded_end_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_saturating, "_MOST_BITS", 0)
    assert sum((play(seed) for seed in range(2000, 2030)), Counter())["made"] > 15


def test_other_steps_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unit_state, "_spent_elsewhere", lambda *_: Fraction(0))
    with pytest.raises(AssertionError, match="Fraction"):
        sum((play(seed) for seed in range(40)), Counter())


def start(level: Any) -> xp.Odometer:
    return xp.Odometer(xp.Transcript(WEEKLY, xp.BayesianFilter(1, protects=level)))


def test_every_week_has_its_own_cap() -> None:
    odometer = start(xp.steps(1))
    for week in range(1, 5):
        for question, cap in ((f"smokes at {week}", "1/2"), (f"drinks at {week}", 1)):
            odometer = odometer.add(xp.saturating(odometer, question, cap=cap), 0)
    assert 3.9999 < odometer.loss.upper <= 4


def test_what_touches_several_parts_is_refused_in_one_line() -> None:
    overlapping = xp.groups(["region", "smokes"], ["smokes", "drinks"])
    with pytest.raises(xp.InvalidInput, match="question: touches several groups or steps"):
        xp.saturating(start(overlapping), "smokes at 1", cap=1)
    xp.saturating(start(overlapping), "region", cap=1)
    with pytest.raises(xp.InvalidInput, match="question: touches several groups or steps"):
        xp.saturating(start(xp.steps(1)), "region == 'north' and smokes at 1 == 'yes'", cap=1)


@pytest.mark.parametrize("width", [1, 3])
def test_a_step_that_a_query_ties_to_a_constant_is_refused(width: int) -> None:
    tying = COIN.about("region", "smokes", at=3)
    response = tying.on(WEEKLY).responses[0]
    tied = start(xp.steps(width)).add(tying, response)
    for question in ["region", "smokes at 3", *(["smokes at 5"] if width > 1 else [])]:
        with pytest.raises(xp.InvalidInput, match=r"an earlier query ties .* to other attributes"):
            xp.saturating(tied, question, cap=1)
    xp.saturating(tied, f"smokes at {3 + width}", cap=1)


def test_a_response_that_rules_out_a_value_of_another_group_is_refused() -> None:
    certain = xp.channel([["1", "0"], ["0", "1"]]).about("region")
    ruled_out = start(xp.attributes(1)).add(certain, 0)
    with pytest.raises(xp.InvalidInput, match="rule some values out"):
        xp.saturating(ruled_out, "smokes at 1", cap=1)


def test_a_query_made_for_one_filter_is_decided_by_all() -> None:
    week, life = xp.BayesianFilter(1, protects=xp.steps(1)), xp.BayesianFilter(2)
    both = xp.AllOf(week, life)
    with pytest.raises(xp.InvalidInput, match="a saturating query ends at the budget of one"):
        xp.saturating(xp.Transcript(WEEKLY, both), "smokes at 1", cap=1)
    odometer = start(xp.steps(1))
    for step, accepted in ((1, True), (2, True), (3, False)):
        query = xp.saturating(odometer, f"smokes at {step}", cap=1)
        assert both.accepts(odometer, query) == accepted
        odometer = odometer.add(query, 0)


@pytest.mark.parametrize("width", [1, 2])
def test_a_panel_makes_the_queries_of_each_transcript(width: int) -> None:
    level = xp.steps(width)
    panel = xp.Panel(
        WEEKLY,
        filter=xp.BayesianFilter(1, protects=level),
        subjects=range(40),
        source=xp.sampling.InsecureSource(3),
    )
    values = {
        "region": [["north", "south"][n % 2] for n in range(40)],
        "smokes": [[["no", "yes"][n // 2 % 2]] * 2 for n in range(40)],
        "drinks": [[["no", "yes"][n // 4 % 2]] * 2 for n in range(40)],
    }
    caps = ["1/4", "1/2", "1/2", "1"]
    for question, cap in zip(
        ["smokes at 1", "drinks at 1", "region", "smokes at 2"], caps, strict=True
    ):
        ids = panel.saturating(question, cap=cap)
        for subject, name in zip(panel.subjects, ids, strict=True):
            transcript = panel.transcript(subject)
            assert panel.queries[name] == xp.saturating(transcript, question, cap=cap)
        assert panel.ask(ids, values).answered.all()

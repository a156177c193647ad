"""The oracle of levels: small cases by hand, parts against all pairs, and games."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from support.protected_pairs import Attribute, Level, Question, Study, channel, coin, play

TWO = Attribute(2)
WEEKLY = Attribute(2, changing=True)
STUDY = Study({"region": TWO, "smokes": WEEKLY}, 3)
LEVELS: list[Level] = [
    None,
    {"attributes": 1},
    {"groups": [["region"], ["smokes", "region"]]},
    {"steps": 1},
    {"steps": 2},
    {"steps": 5},
]


def record(region: int, *smokes: int) -> dict[tuple[str, int], int]:
    return {("region", 0): region} | {("smokes", k): x for k, x in enumerate(smokes, 1)}


@pytest.mark.parametrize(
    ("level", "one", "other", "protected"),
    [
        (None, (0, 0, 0, 0), (1, 1, 1, 1), True),
        (None, (0, 0, 0, 0), (0, 0, 0, 0), False),
        ({"attributes": 1}, (0, 0, 0, 0), (0, 1, 1, 1), True),
        ({"attributes": 1}, (0, 0, 0, 0), (1, 1, 0, 0), False),
        ({"groups": [["region", "smokes"]]}, (0, 0, 0, 0), (1, 1, 0, 0), True),
        ({"steps": 1}, (0, 0, 0, 0), (0, 0, 1, 0), True),
        ({"steps": 1}, (0, 0, 0, 0), (0, 1, 1, 0), False),
        ({"steps": 1}, (0, 0, 0, 0), (1, 0, 0, 0), True),
        ({"steps": 1}, (0, 0, 0, 0), (1, 1, 0, 0), False),
        ({"steps": 2}, (0, 0, 0, 0), (0, 0, 1, 1), True),
        ({"steps": 2}, (0, 0, 0, 0), (0, 1, 0, 1), False),
        ({"steps": 3}, (0, 0, 0, 0), (0, 1, 0, 1), True),
    ],
)
def test_a_level_has_the_pairs_of_its_definition(
    level: Level, one: tuple[int, ...], other: tuple[int, ...], protected: bool
) -> None:
    assert STUDY.protects(level, record(*one), record(*other)) is protected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, 15),  # of 16 records
        ({"attributes": 1}, 1 + 7),  # the region, or another history
        ({"steps": 1}, 1 + 3),
        ({"steps": 2}, 1 + 3 + 2),
        ({"steps": 3}, 1 + 7),
    ],
)
def test_a_record_has_a_known_number_of_partners(level: Level, expected: int) -> None:
    assert sum(j == 0 for j, _ in STUDY.pairs(level)) == expected


def test_every_pair_is_inside_a_part_and_no_other_pair_is() -> None:
    for level in LEVELS:
        parts = STUDY.parts(level)
        for one, other in product(STUDY.records, repeat=2):
            cells = {cell for cell in STUDY.cells if one[cell] != other[cell]}
            inside = bool(cells) and any(cells <= part for part in parts)
            assert STUDY.protects(level, one, other) is inside


def test_a_habit_in_three_weeks_costs_one_week_at_the_level_of_a_week() -> None:
    asked = [(coin("smokes", step, 3), 1) for step in (1, 2, 3)]
    weights = STUDY.likelihoods(asked)
    assert STUDY.ratio({"steps": 1}, weights) == 3
    assert STUDY.ratio({"steps": 2}, weights) == 9
    assert STUDY.ratio(None, weights) == STUDY.ratio({"attributes": 1}, weights) == 27


def test_a_constant_costs_what_it_reveals_at_the_level_of_a_step() -> None:
    weights = STUDY.likelihoods([(coin("region", None, 5), 0), (coin("smokes", 1, 3), 0)])
    assert STUDY.ratio({"steps": 1}, weights) == 5
    assert STUDY.ratio({"groups": [["smokes"], ["region"]]}, weights) == 5


def test_separate_spreads_are_not_exact_where_a_constant_is_tied_to_steps() -> None:
    # The first query reveals step 1 of region 0 alone, the second step 2 of region 1 alone.
    first = channel(["region", "smokes"], 1, [[3, 1], [1, 3], [2, 2], [2, 2]])
    second = channel(["region", "smokes"], 2, [[2, 2], [2, 2], [3, 1], [1, 3]])
    weights = STUDY.likelihoods([(first, 0), (second, 0)])
    assert STUDY.ratio({"steps": 2}, weights) == STUDY.ratio_by_pairs({"steps": 2}, weights) == 3
    alone = [STUDY.ratio({"steps": 1}, STUDY.likelihoods([(q, 0)])) for q in (first, second)]
    assert alone == [3, 3]  # 9 if their spreads were added


def test_a_query_about_two_groups_is_charged_to_both() -> None:
    study = Study({"a": TWO, "b": TWO, "c": TWO}, 0)
    both = channel(["a", "b"], None, [[2, 1], [1, 2], [1, 2], [2, 1]])._replace(epsilon=Fraction(1))
    basic = {"kind": "basic", "epsilon": "2", "protects": {"attributes": 1}}
    assert study.accepts(basic, [(both, 0)], coin("a", None, 2)._replace(epsilon=Fraction(1)))
    assert not study.accepts(
        basic, [(both, 0)], coin("a", None, 2)._replace(epsilon=Fraction(11, 10))
    )
    assert not study.accepts(
        basic, [(both, 0)], coin("b", None, 2)._replace(epsilon=Fraction(11, 10))
    )
    assert study.accepts(basic, [(both, 0)], coin("c", None, 2)._replace(epsilon=Fraction(2)))


def test_all_filters_must_accept() -> None:
    week = {"kind": "bayesian", "ratio": "3", "protects": {"steps": 1}}
    life = {"kind": "bayesian", "ratio": "9"}
    both = {"kind": "all", "filters": [week, life]}
    asked = [(coin("smokes", 1, 3), 0)]
    assert STUDY.refusing(both, asked, coin("smokes", 2, 3)) == []
    assert STUDY.refusing(both, asked, coin("smokes", 1, 3)) == [0]
    asked += [(coin("smokes", 2, 3), 0)]
    assert STUDY.refusing(both, asked, coin("smokes", 3, 3)) == [1]
    assert STUDY.refusing(both, asked, coin("smokes", 2, 3)) == [0, 1]


def test_a_zero_likelihood_is_an_infinite_loss() -> None:
    sure = channel(["smokes"], 2, [[1, 0], [0, 1]])
    for level in LEVELS:
        assert STUDY.ratio(level, STUDY.likelihoods([(sure, 0)])) is None
        guard = {"kind": "bayesian", "epsilon": "100", "protects": level}
        assert not STUDY.accepts(guard, [], sure)


def test_limits_on_changes_leave_out_histories() -> None:
    study = Study.read({"smokes": {"changing": ["no", "yes"], "times": 1}}, 3)
    assert len(study.records) == 2 + 2 * 2
    near = Study.read({"x": {"changing": {"integers": [0, 2]}, "max_step": "1"}}, 2)
    assert len(near.records) == 7


def random_question(generator: random.Random, study: Study) -> Question:
    names = generator.sample(list(study.attributes), generator.randint(1, len(study.attributes)))
    rows = 1
    for name in names:
        rows *= study.attributes[name].size
    weights = []
    for _ in range(rows):
        row = [generator.randint(0, 4) for _ in range(2)]
        weights.append([*row, 12 - sum(row)])
    changing = any(study.attributes[name].changing for name in names)
    return channel(names, generator.randint(1, study.steps) if changing else None, weights)


@pytest.mark.parametrize("seed", range(40))
def test_parts_have_the_loss_of_all_pairs(seed: int) -> None:
    generator = random.Random(seed)
    attributes: dict[str, Any] = {
        name: Attribute(generator.randint(1, 3), generator.random() < 0.6) for name in "abc"[:2]
    }
    study = Study(attributes, generator.randint(1, 2))
    asked = [(random_question(generator, study), generator.randrange(3)) for _ in range(3)]
    weights = study.likelihoods(asked)
    if not any(weights):
        return
    for level in [None, {"attributes": 1}, {"groups": [["b"], ["a", "b"]]}]:
        assert study.ratio(level, weights) == study.ratio_by_pairs(level, weights)
    for width in (1, 2, 3):
        level = {"steps": width}
        assert study.ratio(level, weights) == study.ratio_by_pairs(level, weights)


def test_a_game_finds_a_broken_promise_and_a_needless_refusal() -> None:
    study = Study({"smokes": WEEKLY}, 2)
    guard = {"kind": "bayesian", "ratio": "9", "protects": {"steps": 1}}
    menu = [coin("smokes", 1, 3), coin("smokes", 2, 3)]

    def right(history: Any, query: int) -> bool:
        asked = [(menu[q], y) for q, y in history]
        return study.accepts(guard, asked, menu[query])

    findings = play(study, guard, menu, [3, 3], right)
    assert findings.transcripts > 20
    assert (findings.broken, findings.needless) == ([], [])
    assert play(study, guard, menu, [3, 1], lambda history, query: True).broken
    assert play(study, guard, menu, [1, 1], lambda history, query: query == 0).needless

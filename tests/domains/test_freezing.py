"""Freezing: what a device answers for, against all sequences of small domains."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest

import expost as xp
from expost.domains import freeze

VALUES: dict[str, list[float]] = {
    "two": [0, 1],
    "three": [0, 1, 2],
    "apart": [4, 0, 1],
    "decimals": [0, 0.1, 0.3],
}
LIMITS = [(c, None) for c in range(4)] + [(None, s) for s in ("0", "0.1", "0.2", "1", "3", None)]


def inside(
    values: list[float], times: int | None, step: str | None, sequence: tuple[int, ...]
) -> bool:
    """Whether a sequence of places is one that the limits allow."""
    if times is not None:
        return sum(a != b for a, b in pairwise(sequence)) <= times
    if step is not None:
        numbers = [Fraction(str(values[place])) for place in sequence]
        return all(abs(a - b) <= Fraction(step) for a, b in pairwise(numbers))
    return True


@pytest.mark.parametrize(("times", "step"), LIMITS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_frozen_sequences_are_allowed_and_allowed_ones_stay_as_they_are(
    values: list[float], times: int | None, step: str | None
) -> None:
    domain = xp.Attributes(x=xp.changing(values, times=times, max_step=step))

    def frozen(sequence: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place for (place,) in freeze(domain, [(place,) for place in sequence]))

    for true in product(range(len(values)), repeat=4):
        answered = frozen(true)
        assert inside(values, times, step, answered)
        assert frozen(answered) == answered
        assert (answered == true) is inside(values, times, step, true)
        # What comes later changes nothing of what was before.
        assert frozen(true[:-1]) == answered[:-1]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_with_a_largest_step_no_allowed_value_is_nearer_to_the_true_one(
    values: list[float],
) -> None:
    numbers = [Fraction(str(value)) for value in values]
    for step in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3)):
        domain = xp.Attributes(x=xp.changing(values, max_step=step))
        for place, wanted in product(range(len(values)), repeat=2):
            _, (reached,) = freeze(domain, [(place,), (wanted,)])
            distance = abs(numbers[reached] - numbers[wanted])
            allowed = [x for x in numbers if abs(x - numbers[place]) <= step]
            assert distance == min(abs(x - numbers[wanted]) for x in allowed)


def test_a_value_catches_up_with_the_true_one_step_by_step() -> None:
    domain = xp.Attributes(x=xp.changing(xp.integers(0, 9), max_step=2))
    assert freeze(domain, [(0,), (9,), (9,), (5,), (0,)]) == [(0,), (2,), (4,), (5,), (3,)]


def test_each_attribute_has_limits_of_its_own() -> None:
    domain = xp.Attributes(
        region=["n", "s"], smokes=xp.changing([0, 1], times=1), week=xp.changing([0, 1])
    )
    true = [(1, 0, 0), (0, 1, 1), (1, 0, 0), (0, 1, 1)]
    assert freeze(domain, true) == [(1, 0, 0), (1, 1, 1), (1, 1, 0), (1, 1, 1)]


def test_a_frozen_record_does_not_show_itself() -> None:
    domain = xp.Attributes(x=xp.changing([0, 1], times=1))
    assert "places" not in repr(xp.domains.Frozen.first(domain, (1,)))

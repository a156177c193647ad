"""The simulator: a hundred seeds, and every mutant by its name. ``make torture`` has 10,000."""

from __future__ import annotations

import pytest

from support.mutants import MUTANTS, caught
from support.worlds import World, played


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_nothing_that_was_released_is_ever_lost(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            played(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_ledger_with_a_fault_is_noticed(name: str) -> None:
    assert caught(name, 120) is not None


def test_a_seed_is_always_the_same_world() -> None:
    drawn = []
    for _ in range(2):
        world = World(17, "disk")
        world.run()
        drawn.append(sorted(map(repr, world._known.items())))
    assert drawn[0] == drawn[1] != []

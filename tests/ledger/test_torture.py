"""The simulator: a hundred seeds, and every mutant by its name. ``make torture`` has 10,000."""

from __future__ import annotations

import pytest

from support.mutants import MUTANTS, caught
from support.worlds import World, play


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_nothing_that_was_released_is_ever_lost(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            play(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None


@pytest.mark.parametrize("name", [name for name in MUTANTS if "PostgreSQL" not in name])
def test_a_fault_in_a_ledger_or_a_device_is_noticed(name: str) -> None:
    assert caught(name, 120) is not None


def test_a_seed_is_always_the_same_world() -> None:
    drawn = []
    for _ in range(2):
        world = World(17, "disk")
        world.run()
        drawn.append((world.drawn, world.kinds))
    assert drawn[0] == drawn[1]
    assert any(drawn[0][0].values())


def test_restored_devices_draw_again_in_some_worlds() -> None:
    assert sum(play(seed, "vault").redraws for seed in range(40)) > 0

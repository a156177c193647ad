"""The simulator: a hundred seeds, and every mutant by its name. ``make torture`` has 10,000."""

from __future__ import annotations

import random

import pytest

from expost.errors import InvalidInput
from expost.ledger import Ledger, LedgerBehind
from support.ledger_mutants import MUTANTS, caught
from support.ledger_sites import MemorySite
from support.simulated_studies import SimulatedStudy, play


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_nothing_that_was_released_is_ever_lost(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            play(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None


@pytest.mark.parametrize("name", [name for name in MUTANTS if "PostgreSQL" not in name])
def test_a_ledger_with_a_fault_is_noticed(name: str) -> None:
    assert caught(name, 120) is not None


def test_a_seed_is_always_the_same_world() -> None:
    drawn = []
    for _ in range(2):
        world = SimulatedStudy(17, "disk")
        world.run()
        drawn.append((world.drawn, world.kinds))
    assert drawn[0] == drawn[1]
    assert any(drawn[0][0].values())


def test_restored_devices_draw_again_in_some_worlds() -> None:
    assert sum(play(seed, "memory").redraws for seed in range(20)) > 0


def _open(site: MemorySite) -> Ledger:
    return Ledger.on_backend(site.backend(), site.store())


def _recover(site: MemorySite, *, lost: bool = False) -> None:
    with pytest.raises(LedgerBehind):
        _open(site)
    Ledger.recover_on_backend(site.backend(), site.store(), lost=lost)


def _check_that_dora_is_known(site: MemorySite) -> None:
    with _open(site) as ledger:
        assert "dora" not in ledger.subjects
        with pytest.raises(InvalidInput, match="was registered as device"):
            ledger.register(["dora"], kind="imported")
        ledger.register(["dora"])
        assert ledger.status(["dora"]).states == ("unconfirmed",)


def test_a_registration_is_known_after_two_rollbacks_if_only_a_fork_had_it() -> None:
    site = MemorySite(random.Random(0))
    first = site.backup()
    with _open(site) as ledger:
        ledger.register(["dora"])
    second = site.backup()
    site.restore(first, checkpoint=True)  # the checkpoint forgets dora also
    with _open(site) as ledger:
        ledger.receive([b"junk"])
    site.restore(second, checkpoint=False)
    _recover(site)
    site.restore(first, checkpoint=False)
    _recover(site)
    _check_that_dora_is_known(site)


def test_a_registration_is_known_after_a_rollback_if_the_checkpoint_was_lost_before() -> None:
    site = MemorySite(random.Random(0))
    first = site.backup()
    with _open(site) as ledger:
        ledger.register(["dora"])
    site.lose_checkpoint()
    _recover(site, lost=True)
    site.restore(first, checkpoint=False)
    _recover(site)
    _check_that_dora_is_known(site)

"""A real PostgreSQL that is killed: a few seeds, and every mutant by its name."""

from __future__ import annotations

import pytest

from support import postgres_sites  # which adds a kind of world, and mutants
from support.ledger_mutants import MUTANTS, caught
from support.simulated_studies import KINDS, play

ON_SERVERS = [name for name in MUTANTS if name.endswith("in PostgreSQL")]


def test_there_is_such_a_world() -> None:
    assert KINDS["server"] is postgres_sites.PostgresSite
    assert len(ON_SERVERS) == 2


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_killed_loses_nothing(seed: int) -> None:
    play(seed, "server")


@pytest.mark.parametrize("name", ON_SERVERS)
def test_a_ledger_with_a_fault_is_noticed(name: str) -> None:
    assert caught(name, 20) is not None

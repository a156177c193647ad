"""ℓ over records, against all records listed."""

from __future__ import annotations

import random

import pytest

from support.records import complaints, some_records


@pytest.mark.parametrize("block", range(4))
def test_losses_and_decisions_are_those_of_all_records_listed(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        assert complaints(some_records(random.Random(seed))) == [], seed

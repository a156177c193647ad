"""Efforts that are made of others."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

import expost as xp
from expost.solver import NODES, Allowance

GIVEN = xp.solver.Effort(0.5, threads=2, group=7, progress=print, work=Allowance(80.0))
CHANGED = {
    "shared": (GIVEN.divide_gap(5), {"gap": 0.1}),
    "glance": (GIVEN.with_node_limit(16), {"nodes": 16}),
    "within": (GIVEN.sharing_nodes(9), {"threads": 1, "allowance": Allowance(9)}),
    "part": (GIVEN.with_share(0.5), {"work": Allowance(40.0, GIVEN.work)}),
    "halves": (GIVEN.halves()[1], {"work": Allowance(40.0)}),
}


@pytest.mark.parametrize(("effort", "changes"), CHANGED.values(), ids=CHANGED)
def test_an_effort_made_of_another_is_the_same_but_for_what_is_meant(
    effort: xp.solver.Effort, changes: dict[str, Any]
) -> None:
    expected = replace(GIVEN, **changes)
    for field in fields(xp.solver.Effort):
        assert getattr(effort, field.name) == getattr(expected, field.name), field.name


def test_a_glance_is_never_longer_than_the_search_may_be() -> None:
    assert xp.solver.Effort(nodes=3).with_node_limit(16).nodes == 3
    assert xp.solver.Effort().with_node_limit(2 * NODES).nodes == NODES


def test_the_gap_of_a_part_is_one_that_a_person_may_give() -> None:
    shared = xp.solver.Effort(gap=1e-6).divide_gap(1000)
    assert xp.solver.Effort(gap=shared.gap) == shared

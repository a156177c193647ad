"""The study of the tutorial, as its figures are made, at a small size."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import expost as xp

PROGRAM = Path(__file__).parent.parent / "docs" / "figures" / "health.py"


def test_the_study_of_the_tutorial_can_be_run_and_drawn_at_any_size() -> None:
    spec = importlib.util.spec_from_file_location("health_figures", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    health = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(health)
    names = health.study(20)
    audit: xp.audits.Audit = names["audit"]
    assert (len(audit), audit.kept) == (20, 20)
    assert len(names["refused"]) == 12
    assert int(audit.to_polars()["exchanges"].sum()) == 20 * 12 - sum(names["refused"])
    assert len(health.draw(names["refused"], audit).axes) == 2

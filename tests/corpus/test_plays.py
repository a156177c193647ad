"""Seeded subjects answer what they answered before, and filters decide as they did."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.cases import load
from corpus.playing import play
from corpus.sameness import HOW_TO_CHANGE, roundings, tree_differences

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_seeded_subjects_answer_what_they_answered_before(part: int) -> None:
    plays: list[dict[str, Any]] = load("plays.json.gz")
    exact = load("roundings.json.gz") == roundings()
    for old in plays[part::PARTS]:
        script = {field: old[field] for field in ("name", "start", "value", "asked")}
        on_box = "box" in old["start"]["domain"]
        changes = list(tree_differences(old, play(script), on_box=on_box, exact=exact))
        assert not changes, f"{old['name']}: {HOW_TO_CHANGE}\n{changes}"

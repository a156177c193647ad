"""Seeded subjects answer what they answered before, and filters decide as they did."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.cases import load
from corpus.playing import kept_play
from corpus.sameness import roundings, tree_differences

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_seeded_subjects_answer_what_they_answered_before(part: int) -> None:
    plays: list[dict[str, Any]] = load("plays.json.gz")
    exact = load("roundings.json.gz") == roundings()
    for play in plays[part::PARTS]:
        given = {name: play[name] for name in ("start", "value", "seed", "asked")}
        on_box = "box" in play["start"]["domain"]
        found = list(tree_differences(play, kept_play(given), on_box=on_box, exact=exact))
        assert not found, f"seed {play['seed']}: {found}"

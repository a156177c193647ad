"""Every adaptive analyst against filters with levels: promises hold, and no filter goes further."""

from __future__ import annotations

from random import Random

import pytest

from support.level_games import KINDS, LevelGame, by_device, by_library, draw_level_game
from support.protected_pairs import Accepts, Attribute, History, Study, channel
from support.random_documents import Tree

PLAYERS = {"library": by_library, "device": by_device}


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("block", range(4))
def test_no_analyst_breaks_a_promise_and_no_filter_accepts_more(player: str, block: int) -> None:
    transcripts, refused = 0, 0
    for seed in range(15 * block, 15 * block + 15):
        game = draw_level_game(Random(seed))
        findings = game.play(PLAYERS[player](game))
        assert (findings.broken, findings.needless) == ([], []), (seed, game)
        transcripts += findings.transcripts
        refused += findings.decisions > findings.transcripts
    assert transcripts > 100
    assert refused > 3


LARGE = Study({name: Attribute(2, changing=True) for name in "abc"}, 3)
TIED = (
    channel(["a", "b"], 1, [[1, 2], [2, 1], [2, 1], [1, 2]]),
    channel(["b", "c"], 2, [[1, 3], [3, 1], [1, 3], [1, 3]]),
    channel(["a"], 3, [[1, 2], [2, 1]]),
    channel(["a", "b", "c"], 1, [[1, 2]] * 4 + [[2, 1]] * 4),
)


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize(
    "protects", [{"attributes": 1}, {"groups": [["a", "b"], ["c"]]}, {"steps": 1}, {"steps": 2}]
)
def test_games_on_three_attributes_at_three_steps(player: str, protects: Tree) -> None:
    week = {"kind": "bayesian", "ratio": "4", "protects": protects}
    life = {"kind": "bayesian", "ratio": "9"}
    game = LevelGame(LARGE, {"kind": "all", "filters": [week, life]}, TIED, (2, 1, 1, 1))
    findings = game.play(PLAYERS[player](game))
    assert (findings.broken, findings.needless) == ([], [])
    assert findings.decisions > findings.transcripts > 20


@pytest.mark.parametrize("player", PLAYERS)
def test_basic_accepts_less_than_simplified_and_that_less_than_bayesian(player: str) -> None:
    decisions: list[tuple[bool, ...]] = []
    for seed in range(30):
        drawn = draw_level_game(Random(f"kinds {seed}"))
        accepts = [PLAYERS[player](drawn.of_kind(kind)) for kind in KINDS]

        def accepted_by_the_last(
            history: History, query: int, accepts: list[Accepts] = accepts
        ) -> bool:
            decisions.append(tuple(each(history, query) for each in accepts))
            return decisions[-1][-1]

        assert drawn.play(accepted_by_the_last).broken == []
    assert all(sorted(each) == list(each) for each in decisions)
    assert decisions.count((False, True, True)) > 5
    assert decisions.count((False, False, True)) > 5

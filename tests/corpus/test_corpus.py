"""What commands give is what they gave before. How to change that on purpose: CONTRIBUTING.md."""

from __future__ import annotations

from functools import cache

import pytest

from corpus.cases import Kept, kept_from, load
from corpus.running import results
from corpus.sameness import differences, roundings

PARTS = 16


@cache
def corpus() -> list[Kept]:
    return [kept_from(tree) for tree in load("commands.json.gz")]


@pytest.mark.parametrize("part", range(PARTS))
def test_commands_give_what_they_gave_before(part: int) -> None:
    exact = load("roundings.json.gz") == roundings()
    problems = []
    for kept in corpus()[part::PARTS]:
        for (command, new), old in zip(results(kept.case), kept.found, strict=True):
            found = "\n".join(differences(kept, command, old, new, exact=exact))
            if found:
                problems.append(f"{kept.case.name}: {' '.join(command)}\n{found}\n")
    assert not problems, f"{len(problems)} are not as before:\n\n" + "\n".join(problems[:10])

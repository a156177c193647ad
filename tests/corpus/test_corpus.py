"""Commands give what they gave before; if that changed on purpose, make the corpus again."""

from __future__ import annotations

import json
from functools import cache

import pytest

from corpus.cases import Record, load, read_record
from corpus.running import outcomes
from corpus.sameness import HOW_TO_CHANGE, differences, roundings
from support.random_documents import as_text, list_filters

PARTS = 16


@cache
def corpus() -> list[Record]:
    return [read_record(tree) for tree in load("commands.json.gz")]


@pytest.mark.parametrize("part", range(PARTS))
def test_commands_give_what_they_gave_before(part: int) -> None:
    exact = load("roundings.json.gz") == roundings()
    problems = []
    for record in corpus()[part::PARTS]:
        for (command, new), old in zip(outcomes(record.case), record.outcomes, strict=True):
            changes = "\n".join(differences(record, command, old, new, exact=exact))
            if changes:
                problems.append(f"{record.case.name}: {' '.join(command)}\n{changes}\n")
    listed = "\n".join(problems[:10])
    assert not problems, f"{len(problems)} are not as before. {HOW_TO_CHANGE}\n\n{listed}"


def test_every_filter_decides_on_finite_sets_and_on_boxes() -> None:
    decided = set()
    for record in corpus():
        if "decide" in {command[1] for command in record.case.commands}:
            guard = json.loads(record.case.files["subject.json"]).get("filter", {})
            kind = {name: guard[name] for name in guard if name not in ("epsilon", "ratio")}
            decided.add((as_text(kind), record.case.on_box))
    filters = [guard for guard in list_filters() if guard is not None]
    assert decided >= {(as_text(guard), on_box) for guard in filters for on_box in (False, True)}

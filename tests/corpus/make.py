"""Make the corpus again, on purpose: ``PYTHONPATH=src:tests python -m corpus.make``.

It says which cases are not what they were.
"""

from __future__ import annotations

import json
from dataclasses import replace

from corpus.cases import Case, Kept, kept_from, kept_tree, load, save
from corpus.making import all_cases
from corpus.playing import all_plays, kept_play
from corpus.running import results
from corpus.sameness import roundings

__all__ = ["main"]


def main() -> None:
    """Run every case, and keep what comes of it."""
    kept = [_kept(case) for case in all_cases()]
    commands = sum(len(each.found) for each in kept)
    before = _before()
    for each in kept:
        if before.pop(each.case.name, None) != each:
            print(f"new: {each.case.name}")
    for name in before:
        print(f"gone: {name}")
    size = save("commands.json.gz", [kept_tree(each) for each in kept])
    size += save("plays.json.gz", [kept_play(play) for play in all_plays()])
    size += save("roundings.json.gz", roundings())
    print(f"{len(kept):,} cases, {commands:,} commands, {size:,} bytes")


def _kept(case: Case) -> Kept:
    found = [each for _, each in results(case)]
    for command, each in zip(case.commands, found, strict=True):
        if each.code == 70:
            raise SystemExit(f"{case.name}: {' '.join(command)}: {each.err}")
    kept = Kept(case, tuple(found), _at_least(case))
    if kept.at_least is not None and found[0].code == 0:
        upper = float(json.loads(found[0].out)["loss"]["upper"])
        if upper < kept.at_least:
            raise SystemExit(f"{case.name}: at most {upper}, at points {kept.at_least}")
    return kept


def _at_least(case: Case) -> float | None:
    """The loss at points of the box, which its own loss cannot be below."""
    if not case.within:
        return None
    loss = ("expost", "loss", next(iter(case.within)), "--json")
    ((_, found),) = results(replace(case, files=case.within, commands=(loss,)))
    return float(json.loads(found.out)["loss"]["lower"]) if found.code == 0 else None


def _before() -> dict[str, Kept]:
    try:
        return {kept.case.name: kept for kept in map(kept_from, load("commands.json.gz"))}
    except FileNotFoundError:
        return {}


if __name__ == "__main__":
    main()

"""Make the corpus again, on purpose: ``PYTHONPATH=src:tests python -m corpus.make``.

It names the cases that have changed.
"""

from __future__ import annotations

import json
from dataclasses import replace

from corpus.cases import Case, Record, load, read_record, record_tree, save
from corpus.making import all_cases
from corpus.playing import all_plays, play
from corpus.running import outcomes
from corpus.sameness import roundings

__all__ = ["main"]


def main() -> None:
    """Run every case, and keep its outcomes."""
    records = [_run(case) for case in all_cases()]
    commands = sum(len(record.outcomes) for record in records)
    earlier = _earlier_records()
    for record in records:
        if earlier.pop(record.case.name, None) != record:
            print(f"new: {record.case.name}")
    for name in earlier:
        print(f"gone: {name}")
    size = save("commands.json.gz", [record_tree(record) for record in records])
    size += save("plays.json.gz", [play(script) for script in all_plays()])
    size += save("roundings.json.gz", roundings())
    print(f"{len(records):,} cases, {commands:,} commands, {size:,} bytes")


def _run(case: Case) -> Record:
    results = [outcome for _, outcome in outcomes(case)]
    for command, outcome in zip(case.commands, results, strict=True):
        if outcome.code == 70:
            raise SystemExit(f"{case.name}: {' '.join(command)}: {outcome.err}")
    record = Record(case, tuple(results), _loss_at_points(case))
    if record.at_least is not None and results[0].code == 0:
        upper = float(json.loads(results[0].out)["loss"]["upper"])
        if upper < record.at_least:
            raise SystemExit(f"{case.name}: at most {upper}, at points {record.at_least}")
    return record


def _loss_at_points(case: Case) -> float | None:
    """Compute the loss at points of the box, which its own loss cannot be below."""
    if not case.within:
        return None
    loss = ("expost", "loss", next(iter(case.within)), "--json")
    ((_, outcome),) = outcomes(replace(case, files=case.within, commands=(loss,)))
    return float(json.loads(outcome.out)["loss"]["lower"]) if outcome.code == 0 else None


def _earlier_records() -> dict[str, Record]:
    try:
        records = map(read_record, load("commands.json.gz"))
        return {record.case.name: record for record in records}
    except FileNotFoundError:
        return {}


if __name__ == "__main__":
    main()

"""Makes the conformance vectors: ``PYTHONPATH=src:tests python -m conformance.make``.

Each case is drawn from its own name. The library says what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from conformance import cases, sync_cases
from conformance.refusals import REFUSALS
from support.random_documents import Tree

__all__ = ["FILES", "VECTORS", "file_of", "main"]

VECTORS = Path(__file__).with_name("vectors")
FILES: dict[str, list[tuple[str, Callable[[Random], Tree], int]]] = {
    "ids": [
        ("query", cases.ids, 80),
        ("policy", cases.policies, 20),
        ("chain", cases.chains, 20),
        ("query", cases.ids_beyond_the_basic_plane, 10),
        ("policy", cases.policies_beyond_the_basic_plane, 10),
    ],
    "sync": [
        ("ticket", sync_cases.tickets, 20),
        *(("sync", sync_cases.conversation(play), 5) for play in sync_cases.CONVERSATIONS),
    ],
    "weights": [("weights", cases.weights, 80), ("weights", cases.weights_of_scores, 10)],
    "draws": [("draw", cases.draws, 160)],
    "decisions": [
        ("decision", cases.decisions, 130),
        ("decision", cases.decisions_with_noise, 20),
        ("decision", cases.decisions_in_one_place, 30),
    ],
    "changing": [
        ("frozen", cases.frozen, 30),
        ("decision", cases.decisions_about_changes, 40),
        ("decision", cases.decisions_about_distances, 20),
    ],
    "levels": [
        ("policy", cases.policies_with_levels, 20),
        ("decision", cases.decisions_by_levels, 80),
        ("decision", cases.decisions_by_several_filters, 40),
    ],
}


def _draw_cases(check: str, make: Callable[[Random], Tree], count: int) -> Iterator[Tree]:
    for seed in range(1, count + 1):
        yield cases.with_answers(check, make(Random(f"{check} {make.__name__} {seed}")))


def file_of(name: str) -> str:
    """Make the text of a file of vectors."""
    trees: list[Tree] = []
    if name == "refused":
        trees += [cases.with_answers("refused", given) for given in REFUSALS]
    for check, make, count in FILES.get(name, []):
        trees += _draw_cases(check, make, count)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in trees)
    return f'{{"conformance": 1, "cases": [\n{lines}\n]}}\n'


def main() -> None:
    VECTORS.mkdir(exist_ok=True)
    for name in (*FILES, "refused"):
        (VECTORS / f"{name}.json").write_text(file_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Print the tables, and draw the pictures into a folder if one is given."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.beyond.asking import accepted
from benchmarks.beyond.cases import (
    ANALYSTS,
    DIMENSIONS,
    EPSILONS,
    by_analyst,
    by_dimension,
    by_epsilon,
)
from benchmarks.beyond.figures import (
    analysts_figure,
    dimensions_figure,
    epsilons_figure,
    population_figure,
)
from benchmarks.beyond.population import population
from benchmarks.beyond.tables import AT, population_row, row

_WORKERS = 2


def main(folder: Path | None) -> None:
    start = time.perf_counter()
    figures = {}
    for name, make, settings, draw in (
        ("dimensions", by_dimension, DIMENSIONS, dimensions_figure),
        ("epsilons", by_epsilon, EPSILONS, epsilons_figure),
        ("analysts", by_analyst, ANALYSTS, analysts_figure),
    ):
        cases = [make(kind, at) for kind, places in settings.items() for at in places]
        done = iter(accepted(cases, _WORKERS))
        table = {kind: {at: next(done) for at in places} for kind, places in settings.items()}
        for kind, found in table.items():
            for at, each in found.items():
                print(row(kind, at, each))
        every = [each for found in table.values() for each in found.values()]
        runs, undecided = sum(len(each.runs) for each in every), sum(e.undecided for e in every)
        print(f"{runs:,} runs, undecided: {undecided}\n", flush=True)
        figures[name] = draw(table)
    people = population()
    for queries in AT:
        print(population_row(people, queries))
    total, least = int(people.answered.sum()), people.answered.min()
    print(f"{total:,} answers, at least {least} each, undecided: {people.undecided}")
    print(f"stays or has stopped {people.widest_ratio():.2f} times as likely, at most\n")
    figures["population"] = population_figure(people)
    print(f"{time.perf_counter() - start:.0f} seconds")
    if folder is not None:
        for name, figure in figures.items():
            figure.savefig(folder / f"when_{name}.png", dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)

"""Print the tables, and draw the pictures into a folder if one is given."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.budget_lifetime.asking import accepted
from benchmarks.budget_lifetime.cases import (
    ANALYSTS,
    DIMENSIONS,
    EPSILONS,
    by_analyst,
    by_dimension,
    by_epsilon,
)
from benchmarks.budget_lifetime.figures import (
    analysts_figure,
    dimensions_figure,
    epsilons_figure,
    population_figure,
)
from benchmarks.budget_lifetime.population import population
from benchmarks.budget_lifetime.tables import AT, population_row, row

_WORKERS = 2


def main(folder: Path | None) -> None:
    start = time.perf_counter()
    figures = {}
    for name, make, settings, draw in (
        ("dimensions", by_dimension, DIMENSIONS, dimensions_figure),
        ("epsilons", by_epsilon, EPSILONS, epsilons_figure),
        ("analysts", by_analyst, ANALYSTS, analysts_figure),
    ):
        cases = [make(kind, at) for kind, folders in settings.items() for at in folders]
        done = iter(accepted(cases, _WORKERS))
        table = {kind: {at: next(done) for at in folders} for kind, folders in settings.items()}
        for kind, rows in table.items():
            for at, row_ in rows.items():
                print(row(kind, at, row_))
        every = [row_ for rows in table.values() for row_ in rows.values()]
        runs, undecided = sum(len(row_.runs) for row_ in every), sum(e.undecided for e in every)
        print(f"{runs:,} runs, undecided: {undecided}\n", flush=True)
        figures[name] = draw(table)
    subjects = population()
    for queries in AT:
        print(population_row(subjects, queries))
    total, least = int(subjects.answered.sum()), subjects.answered.min()
    print(f"{total:,} answers, at least {least} each, undecided: {subjects.undecided}")
    print(f"stays or has stopped {subjects.widest_ratio():.2f} times as likely, at most\n")
    figures["population"] = population_figure(subjects)
    print(f"{time.perf_counter() - start:.0f} seconds")
    if folder is not None:
        for name, figure in figures.items():
            figure.savefig(folder / f"when_{name}.png", dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else None)

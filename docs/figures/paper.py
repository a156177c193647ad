"""The figures of docs/tutorials/paper.md, and the numbers behind its tables.

``expost reproduce --out FOLDER``, then ``python docs/figures/paper.py FOLDER``. The numbers go to
paper.json, and the lines that the page shows of them are printed;
tests/documentation/test_measured_figures.py compares both.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NUMBERS = Path(__file__).with_suffix(".json")
STATIC = Path(__file__).parent.parent / "_static"
FIGURES = {
    "linear-loss": "paper_a",
    "linear-bayesian": "paper_b",
    "logistic-steep-loss": "paper_c",
    "logistic-steep-bayesian": "paper_d",
    "logistic-smooth-loss": "paper_c_smaller_parameters",
    "logistic-smooth-bayesian": "paper_d_smaller_parameters",
}
"""Names in the folder of a reproduction, and in docs/_static."""


def page_lines(results: dict[str, Any]) -> Iterator[str]:
    """Format percentiles of accepted queries, and undecided decisions, as on the page."""
    linear, logistic = results["linear"], results["logistic"]
    yield f"| printed, groups of ten | | {linear['printed']} | |"
    yield from _percentiles("", linear)
    yield f"| printed, groups of ten | | {logistic['steep']['printed']} | |"
    named = {"parameters from [−10, 10]": "steep", "parameters from [−1, 1]": "smooth"}
    for parameters, kind in named.items():
        yield from _percentiles(f"{parameters}: ", logistic[kind])
    for parameters, kind in named.items():
        undecided, decisions = logistic[kind]["undecided"], logistic[kind]["decisions"]
        verb = "was" if undecided == 1 else "were"
        yield f"With {parameters}, {undecided} of {decisions:,} decisions {verb} undecided."


def _percentiles(prefix: str, tree: dict[str, Any]) -> Iterator[str]:
    for account, words in (("groups", "groups of ten"), ("ungrouped", "all together")):
        for kind in ("simplified", "bayesian"):
            found = tree[account][kind]["percentiles"]
            counts = (f"{found[percentile][-1]:g}" for percentile in ("10", "50", "90"))
            yield f"| {prefix}{words}, {kind.capitalize()} | {' | '.join(counts)} |"


def main(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    kept = {part: results[part] for part in ("seed", "runs", "linear", "logistic")}
    NUMBERS.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
    for name, copy in FIGURES.items():
        shutil.copyfile(folder / "figures" / f"{name}.svg", STATIC / f"{copy}.svg")
    print(*page_lines(results), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The figures of docs/tutorials/paper.md, and the numbers behind its tables.

``expost reproduce --out FOLDER``, then ``python docs/figures/paper.py FOLDER``. The numbers go to
paper.json; tests/test_measured_figures.py compares them with the pages.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

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


def main(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    kept = {part: results[part] for part in ("seed", "runs", "linear", "logistic")}
    NUMBERS.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
    for name, copy in FIGURES.items():
        shutil.copyfile(folder / "figures" / f"{name}.svg", STATIC / f"{copy}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

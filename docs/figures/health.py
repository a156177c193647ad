"""The figure of docs/tutorials/health.md, and the numbers that the page reports.

``python docs/figures/health.py`` runs the study of that page with 20,000 patients, which takes a
minute or two, in as many processes as there are processors. The numbers go to health.json;
tests/documentation/test_measured_figures.py compares them with the page.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import expost as xp
from expost.report._palette import BASIC, INK, REALIZED

DOCS = Path(__file__).parent.parent
NUMBERS = Path(__file__).with_suffix(".json")
PAGE = DOCS / "tutorials" / "health.md"
PATIENTS = 20_000


def study(patients: int) -> dict[str, Any]:
    """Run the Python of the page, up to its first audit, with so many patients."""
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    typed = [line[4:] for line in shown if line.startswith((">>>", "..."))]
    source = "\n".join(typed).split("broken = ")[0]
    # The same program, but for its size, and for who is told how far it is.
    for own, ours in (
        ("patients = 60\n", f"patients = {patients}\n"),
        ("    queries=queries,\n", "    queries=queries,\n    search=search,\n"),
        ("filter=panel.filter)", "filter=panel.filter, progress=audited)"),
    ):
        assert source.count(own) == 1, own
        source = source.replace(own, ours)
    search = xp.panel.Search(processes=os.cpu_count() or 1, progress=_told("searches"))
    names: dict[str, Any] = {"search": search, "audited": _told("subjects audited")}
    exec(source, names)
    return names


def _told(what: str) -> Callable[[int, int], None]:
    """Say after every tenth how much is done."""
    tenths = 0

    def told(done: int, total: int) -> None:
        nonlocal tenths
        now = 10 * done // total
        if now != tenths:
            print(f"{done:,} of {total:,} {what}", file=sys.stderr)
        tenths = now

    return told


def draw(refused: list[int], audit: xp.audits.Audit) -> Figure:
    """Who refused in which round, and the losses at the end."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    rounds = np.arange(1, len(refused) + 1)
    left.bar(rounds, np.array(refused) / len(audit) * 100, color=REALIZED)
    left.axvline(8.5, color=BASIC, linestyle="--")
    left.annotate("basic composition\nstops here", (8.3, 0.97), xycoords=("data", "axes fraction"),
                  ha="right", va="top", color=INK)  # fmt: skip
    left.set(xlabel="round", ylabel="patients who refused (%)", xticks=rounds)
    right.hist(audit.to_polars()["upper"].to_numpy(), bins=40, range=(0, 2), color=REALIZED)
    right.axvline(2, color=INK, linestyle="--")
    right.set(xlabel="loss after twelve rounds (nats); the budget is 2", ylabel="patients")
    return figure


def main() -> None:
    names = study(PATIENTS)
    found: xp.audits.Audit = names["audit"]
    draw(names["refused"], found).savefig(DOCS / "_static" / "health_study.png", dpi=110)
    frame = found.to_polars()
    numbers = {
        "refused": names["refused"],
        "answers": int(frame["exchanges"].sum()),
        "twelve": int((frame["exchanges"] == 12).sum()),
        "respected": found.respected,
        "undecided": found.undecided,
        "median": frame["upper"].median(),
        "largest": frame["peak"].max(),
        "used_up": found.used_up,
    }
    NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

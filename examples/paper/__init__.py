"""The experiments of the paper (section 6 and appendix E), repeated with certified losses."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from examples.paper import figures, results
from examples.paper.figures import Drawn
from examples.paper.report import report
from examples.paper.runner import PARTS, Plan, Watcher, carry_out, put
from examples.paper.runs import Run
from examples.paper.streams import STREAMS
from expost.errors import at
from expost.files.kinds import PAGE, PICTURE, RESULTS, RUNS, check_replaceable
from expost.files.regular import read_text
from expost.report._chart import svg_file

__all__ = ["PARTS", "Plan", "reproduce"]


def reproduce(plan: Plan, out: Path, jobs: int, progress: Watcher, *, date: str) -> dict[str, Any]:
    """Run what is missing, and write figures, raw results, numbers and the report, of this date.

    Other parts that are already in the folder stay in the report.
    """
    plan = plan.joined(_earlier(out / "results.json"))
    pictures = out / "figures"
    _check_outputs(out, pictures)
    pictures.mkdir(parents=True, exist_ok=True)
    runs = carry_out(plan, out / "runs", jobs, progress)
    tree = _tree(plan, runs, progress)
    progress.stage("figures")
    drawn = _drawn(tree, runs)
    for name, figure in drawn.items():
        put(pictures / f"{name}.svg", svg_file((figure.title, figure.chart), alt=figure.alt))
    put(out / "runs.csv", _raw(runs))
    results_text = json.dumps(tree, indent=1, allow_nan=False) + "\n"
    put(out / "results.json", results_text)
    content_id = hashlib.sha256(results_text.encode()).hexdigest()
    put(out / "report.html", report(tree, drawn, content_id=content_id, date=date))
    return tree


def _check_outputs(out: Path, pictures: Path) -> None:
    """Refuse, before any work, a folder in which the report would replace something else."""
    kinds = {out / "runs.csv": RUNS, out / "results.json": RESULTS, out / "report.html": PAGE}
    for path, kind in {**kinds, **dict.fromkeys(pictures.glob("*.svg"), PICTURE)}.items():
        with at(str(path), ": "):
            check_replaceable(path, kind)


def _earlier(path: Path) -> dict[str, Any]:
    """The numbers of an earlier report; empty if they cannot be read."""
    try:
        tree = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _tree(plan: Plan, runs: dict[str, list[Run]], progress: Watcher) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "seed": plan.seed,
        "runs": dict(plan.runs),
        "gap": plan.gap,
        "versions": results.versions(),
    }
    compositions = {
        name: results.composition(STREAMS[name], stream_runs) for name, stream_runs in runs.items()
    }
    if "linear" in plan.parts:
        tree["linear"] = compositions["linear"]
    if "logistic" in plan.parts:
        progress.stage("two points of a box")
        steep = "logistic.steep"
        compositions[steep]["proof"] = results.proof(STREAMS[steep], plan.seed, runs[steep])
        tree["logistic"] = {"steep": compositions[steep], "smooth": compositions["logistic.smooth"]}
    if "health" in plan.parts:
        progress.stage("the sixteen outcomes of the health table")
        tree["health"] = results.health_tree()
    if "examples" in plan.parts:
        tree["examples"] = results.examples_tree()
    return tree


_TITLES = {
    "linear": ("(a) Linear regressions", "(b) Linear regressions"),
    "logistic.steep": tuple(
        f"({label}) Logistic regressions, parameters from [−10, 10]" for label in "cd"
    ),
    "logistic.smooth": tuple(
        f"({label}) Logistic regressions, parameters from [−1, 1]" for label in "cd"
    ),
}
"""Titles of a stream's loss and acceptance figures, labeled as in the paper."""


def _drawn(tree: dict[str, Any], runs: dict[str, list[Run]]) -> dict[str, Drawn]:
    """All figures by name."""
    drawn = {}
    for name, of_stream in runs.items():
        stream_tree = tree
        for key in name.split("."):
            stream_tree = stream_tree[key]
        stem = name.replace(".", "-")
        steep = name == "logistic.steep"
        loss_title, accepted_title = _TITLES[name]
        drawn[f"{stem}-loss"] = figures.loss_figure(loss_title, stream_tree, of_stream, steep=steep)
        for kind in ("simplified", "bayesian"):
            drawn[f"{stem}-{kind}"] = figures.accepted_figure(accepted_title, stream_tree, kind)
    if "health" in tree:
        drawn["health"] = figures.health_figure(tree["health"])
    return drawn


def _raw(runs: dict[str, list[Run]]) -> str:
    """Every loss of every run as CSV. The query that was refused last has no row."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["experiment", "run", "account", "answered", "response", "lower", "upper"])
    for name, of_stream in runs.items():
        for run_index, run in enumerate(of_stream):
            for account, trace in run.traces.items():
                for answered, loss in enumerate(trace.losses):
                    response = run.responses[answered - 1] if answered else ""
                    rows.writerow(
                        [name, run_index, account, answered, response, loss.lower, loss.upper]
                    )
    return text.getvalue()

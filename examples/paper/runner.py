"""Carry out a plan: several runs at once, each saved, so that nothing is done twice."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from examples.paper.results import versions
from examples.paper.runs import EFFORT, Run, Trace, run
from examples.paper.streams import STREAMS, Stream
from expost.errors import InvalidInput
from expost.files.durable import replace
from expost.files.regular import LARGEST_TABLE, read_text
from expost.numbers import Enclosure
from expost.solver import NODES, Effort, load_kernels

__all__ = ["PARTS", "Plan", "Watcher", "carry_out", "put"]

PARTS = {
    "linear": ("linear",),
    "logistic": ("logistic.steep", "logistic.smooth"),
    "health": (),
    "examples": (),
}
"""The parts of a report, and the streams that each of them runs."""

_RUNS = 50
_QUICK_RUNS = {"linear": 10, "logistic.steep": 10, "logistic.smooth": 3}
_QUICK_GAP = 0.02

# The relative time of a run, for the estimate and to start with the longest.
_COST = {"linear": 1.0, "logistic.steep": 0.1, "logistic.smooth": 8.0}


class Watcher(Protocol):
    """Is told how far the runs are."""

    def runs(self, done: int, total: int, share: float) -> None:
        """``done`` of ``total`` runs are finished, and this share of the work."""
        ...

    def stage(self, text: str) -> None:
        """What is being done now."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. The results depend only on this and on the versions in use."""

    parts: tuple[str, ...]
    runs: Mapping[str, int]
    seed: int
    gap: float

    @classmethod
    def of(cls, part: str, *, runs: int | None, seed: int, quick: bool) -> Plan:
        """The plan for a part or for ``"all"``, with the usual number of runs by default."""
        parts = tuple(PARTS) if part == "all" else (part,)
        names = [name for part_name in parts for name in PARTS[part_name]]
        usual = _QUICK_RUNS if quick else dict.fromkeys(STREAMS, _RUNS)
        counts = {name: usual[name] if runs is None else runs for name in names}
        return cls(parts, counts, seed, _QUICK_GAP if quick else EFFORT.gap)

    def joined(self, earlier: Mapping[str, Any]) -> Plan:
        """This plan with the other parts of an earlier report, if that was made in the same way."""
        earlier_parts = [part for part in PARTS if part in earlier and part not in self.parts]
        if not earlier_parts:
            return self
        settings: dict[str, Any] = {"seed": self.seed, "gap": self.gap, "versions": versions()}
        try:
            names = [name for part in earlier_parts for name in PARTS[part]]
            runs = {name: int(earlier["runs"][name]) for name in names}
            if runs and not self.runs:  # what is left of this plan does not depend on these
                settings |= {"seed": earlier["seed"], "gap": earlier["gap"]}
            matter = settings if runs and self.runs else {"versions"}
            differing = [
                name for name in settings if name in matter and settings[name] != earlier[name]
            ]
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("its results.json is damaged; take another folder", "out") from None
        if differing:
            labels = [
                "gap (--quick has a wider one)" if name == "gap" else name for name in differing
            ]
            origin = f"{' and '.join(earlier_parts)}, made with another {' and '.join(labels)}"
            raise InvalidInput(f"holds the numbers of {origin}; take another folder", "out")
        return Plan(
            tuple(part for part in PARTS if part in (*self.parts, *earlier_parts)),
            {**runs, **self.runs},
            settings["seed"],
            settings["gap"],
        )


@dataclass(frozen=True, slots=True)
class _Task:
    stream: Stream
    seed: int
    run_index: int
    gap: float

    @property
    def file(self) -> str:
        return f"{self.stream.name}-{self.seed}-{self.gap:g}-{self.run_index:04}.json"


def carry_out(plan: Plan, folder: Path, jobs: int, progress: Watcher) -> dict[str, list[Run]]:
    """All runs of a plan by stream; saved ones are read from the directory."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = versions()
    tasks = [
        _Task(STREAMS[name], plan.seed, run_index, plan.gap)
        for name, count in plan.runs.items()
        for run_index in range(count)
    ]
    trees = {task: _load_run(folder, task, settings) for task in tasks}
    pending = sorted(
        (task for task, tree in trees.items() if tree is None),
        key=lambda task: -_COST[task.stream.name],
    )
    total_cost = remaining_cost = sum(_COST[task.stream.name] for task in pending)
    if pending:
        load_kernels()  # once, and not in every worker
    with _workers(min(jobs, len(pending))) as work:
        for done, (task, tree) in enumerate(work(_perform, pending), len(tasks) - len(pending) + 1):
            text = json.dumps({"settings": _settings(task, settings), "run": tree})
            put(folder / task.file, text)
            trees[task] = tree
            remaining_cost -= _COST[task.stream.name]
            progress.runs(done, len(tasks), 1 - remaining_cost / total_cost)
    runs: dict[str, list[Run]] = {name: [] for name in plan.runs}
    for task, tree in trees.items():
        assert tree is not None
        runs[task.stream.name].append(_run_of(tree))
    return runs


def put(path: Path, text: str) -> None:
    """Write a file completely, or leave it as it was."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)  # left by a process that was killed
    replace(path, partial(str, text), unfinished, most=LARGEST_TABLE)


def _perform(task: _Task) -> tuple[_Task, dict[str, Any]]:
    saved_run = run(task.stream, task.seed, task.run_index, Effort(gap=task.gap, nodes=NODES))
    return task, {
        "responses": list(saved_run.responses),
        "traces": {
            name: {
                "losses": [[loss.lower, loss.upper] for loss in trace.losses],
                "accepted": trace.accepted,
                "decisions": trace.decisions,
                "undecided": trace.undecided,
            }
            for name, trace in saved_run.traces.items()
        },
    }


def _run_of(tree: dict[str, Any]) -> Run:
    traces = {
        name: Trace(
            [Enclosure(*ends) for ends in trace["losses"]],
            trace["accepted"],
            trace["decisions"],
            trace["undecided"],
        )
        for name, trace in tree["traces"].items()
    }
    return Run(tree["responses"], traces)


def _settings(task: _Task, versions_: Mapping[str, str]) -> dict[str, Any]:
    return {**asdict(task), "versions": versions_}


def _load_run(folder: Path, task: _Task, versions_: Mapping[str, str]) -> dict[str, Any] | None:
    """A saved run, if it was made in the same way."""
    try:
        tree = json.loads(read_text(folder / task.file))
        saved_run: dict[str, Any] = tree["run"]
        _run_of(saved_run)  # raises if it is damaged
        return saved_run if tree["settings"] == _settings(task, versions_) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A function like ``map`` whose results come as soon as they are ready."""
    if jobs <= 1:
        yield map
        return
    # An interrupt is for the parent, which ends the workers; they would only complain.
    with multiprocessing.get_context("spawn").Pool(
        jobs, signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        yield pool.imap_unordered

"""Hostile files of a megabyte: the time and memory of commands, compared with their limits.

No input of up to a megabyte may cost more than 5 s of processor time or 1 GB of memory. Only a
replay on a box may take five minutes, because it makes each decision with the limit of a session.
Each case is a command on files of nearly that size, in a process of its own. It answers, or refuses
by a line.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.solver_cases import QUICK

__all__ = ["CASES", "Case", "Cost", "cost", "run"]

SECONDS = 5.0
REPLAY_SECONDS = 300.0
MEMORY = 1e9
SIZE = 2**20
PATIENCE = 2
"""Limits of processor time after which a command is ended."""

Files = dict[str, str]


@dataclass(frozen=True)
class Case:
    """A command, and the files that it reads."""

    name: str
    command: Sequence[str]
    files: Callable[[random.Random], Files]
    seconds: float = SECONDS


@dataclass(frozen=True)
class Cost:
    """What a command took, and how it ended."""

    seconds: float
    memory: float
    code: int
    size: int


def run() -> bool:
    """Return whether every case is within both limits."""
    print(f"{len(CASES)} hostile megabytes: processor time / {SECONDS:g} s", end="")
    print(f" ({REPLAY_SECONDS:g} s for a replay on a box), memory / 1 GB")
    print(f"  {'':<60}{'size':>8}{'time':>9}{'memory':>9}{'exit':>6}")
    within_limits = []
    for case in CASES[:3] if QUICK else CASES:
        used = cost(case)
        time, memory = used.seconds / case.seconds, used.memory / MEMORY
        print(
            f"  {case.name:<60}{used.size / 1e6:>5.2f} MB{time:>7.2f} ×{memory:>7.2f} ×"
            f"{used.code:>6}",
            flush=True,
        )
        within_limits.append(max(time, memory) <= 1)
    return all(within_limits)


def cost(case: Case) -> Cost:
    """Run a command on its files."""
    files = case.files(random.Random(1))
    size = sum(len(text) for text in files.values())
    assert size <= SIZE, (case.name, size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        start = [sys.executable, "-c", _START, f"{PATIENCE * case.seconds:.0f}", *case.command]
        process = subprocess.Popen(
            start, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, process.returncode, size)


_START = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
del sys.argv[1]
from expost.cli.main import main
main()
"""


def transcript(domain: Any, exchanges: list[Any], budget: str) -> str:
    filter_ = {"kind": "bayesian", "epsilon": budget}
    content = {"version": 1, "domain": domain, "filter": filter_, "exchanges": exchanges}
    return json.dumps(content, separators=(",", ":"))


def exchange(kind: str, response: Any, **fields: Any) -> dict[str, Any]:
    return {"query": {"kind": kind, **fields}, "response": response}


def one_coordinate(draw: random.Random) -> Files:
    """Logistic queries that all differ."""
    exchanges = [
        exchange(
            "logistic", draw.randrange(2), weights=[round(draw.uniform(-9, 9), 3)], epsilon="0.1"
        )
        for _ in range(11_000)
    ]
    return {"t.json": transcript({"box": [[-1, 1]]}, exchanges, "801")}


def many_coordinates(draw: random.Random) -> Files:
    """A box as wide as boxes may be."""
    exchanges = [
        exchange(
            "logistic",
            draw.randrange(2),
            weights=[round(draw.gauss(0, 1), 1) for _ in range(300)],
            epsilon="0.1",
        )
        for _ in range(490)
    ]
    return {"t.json": transcript({"box": [[-1, 1]] * 300}, exchanges, "30")}


def patterns_on_a_box(draw: random.Random) -> Files:
    """Subjects of whom no two answered alike, a few answers each."""
    return _table(draw, [[-1, 1]] * 2, queries=200, subjects=15_000, answers=3)


def long_patterns_on_a_box(draw: random.Random) -> Files:
    """The same with many answers each, whose extremes are hard to find."""
    return _table(draw, [[-1, 1]] * 9, queries=60, subjects=1_500, answers=40)


def _table(draw: random.Random, box: Any, *, queries: int, subjects: int, answers: int) -> Files:
    query_documents = {
        f"{i}": {
            "kind": "logistic",
            "weights": [round(draw.uniform(-9, 9), 2) for _ in box],
            "epsilon": "0.1",
        }
        for i in range(queries)
    }
    rows = [
        f"{subject},{query},{draw.randrange(2)}"
        for subject in range(subjects)
        for query in draw.sample(range(queries), answers)
    ]
    content = {"version": 1, "domain": {"box": box}, "queries": query_documents}
    table = "\n".join(["subject,query,response", *rows, ""])
    return {"q.json": json.dumps(content), "t.csv": table}


def wide_attributes(draw: random.Random) -> Files:
    """Pairs of attributes with many values each, all linked."""
    names = [f"a{i}" for i in range(12)]
    domain = {"attributes": {name: list(range(64)) for name in names}}
    exchanges = [
        exchange(
            "randomized_response",
            [draw.randrange(64), draw.randrange(64)],
            epsilon=f"0.{draw.randrange(1000, 9999)}",
            about=draw.sample(names, 2),
        )
        for _ in range(8_000)
    ]
    return {"t.json": transcript(domain, exchanges, "5")}


def many_components(draw: random.Random) -> Files:
    """Thousands of attributes that have nothing to do with each other."""
    names = [f"a{i}" for i in range(5_000)]
    domain = {"attributes": {name: ["n", "y"] for name in names}}
    exchanges = [
        exchange("randomized_response", draw.choice("ny"), epsilon="0.1", about=[name])
        for name in names
    ]
    return {"t.json": transcript(domain, exchanges, "5")}


def long_chain(draw: random.Random) -> Files:
    """An attribute that may change at every one of thousands of steps."""
    domain = {"attributes": {"a": {"changing": list(range(8)), "times": 40}}}
    exchanges = [
        exchange("randomized_response", draw.randrange(8), epsilon="0.1", about=["a"], at=step)
        for step in range(1, 8_001)
    ]
    return {"t.json": transcript(domain, exchanges, "5")}


def shuffled_chain(draw: random.Random) -> Files:
    """As many steps as can be followed, asked about in any order, no two queries alike."""
    domain = {"attributes": {"a": {"changing": list(range(8)), "times": 40}}}
    exchanges = [
        exchange(
            "randomized_response",
            draw.randrange(8),
            epsilon=f"0.{1000 + step}",
            about=["a"],
            at=step,
        )
        for step in range(1, 476)
    ]
    draw.shuffle(exchanges)
    return {"t.json": transcript(domain, exchanges, "5")}


def tied_chain(draw: random.Random) -> Files:
    """Steps of which every decision is a tie with the budget."""
    domain = {"attributes": {"a": {"changing": ["n", "y"], "times": 3}}}
    exchanges = [
        exchange("randomized_response", "ny"[step % 2], epsilon="0.5", about=["a"], at=step)
        for step in range(1, 541)
    ]
    return {"t.json": transcript(domain, exchanges, "2.5")}


def folder_of_transcripts(draw: random.Random) -> Files:
    """Many small files, each with a box of its own subject."""
    files = {}
    for i in range(1_200):
        exchanges = [
            exchange(
                "logistic",
                draw.randrange(2),
                weights=[round(draw.uniform(-9, 9), 2) for _ in range(4)],
                epsilon="0.1",
            )
            for _ in range(6)
        ]
        files[f"f/{i}.json"] = transcript({"box": [[-1, 1]] * 4}, exchanges, "5")
    return files


def client(draw: random.Random) -> Files:
    """A claim with many responses, and as many reports as there is room for."""
    claim = {"kind": "unary_encoding", "variant": "optimized", "epsilon": "1"}
    rows = [f"{draw.randrange(12)},{draw.getrandbits(12):012b}" for _ in range(60_000)]
    return {
        "c.json": json.dumps(claim),
        "d.json": json.dumps({"values": list(range(12))}),
        "t.csv": "\n".join(["input,output", *rows, ""]),
    }


def client_of_records(draw: random.Random) -> Files:
    """Reports about nearly as many records as can be compared."""
    names = [f"a{i}" for i in range(6)]
    claim = {"kind": "randomized_response", "epsilon": "1", "about": names[:2]}
    rows = [
        f'{",".join(str(draw.randrange(6)) for _ in names)},"[{draw.randrange(6)}, 1]"'
        for _ in range(40_000)
    ]
    return {
        "c.json": json.dumps(claim),
        "d.json": json.dumps({"attributes": {name: list(range(6)) for name in names}}),
        "t.csv": "\n".join([",".join([*names, "output"]), *rows, ""]),
    }


def study(draw: random.Random) -> Files:
    """Answers whose distribution over many values is hard to estimate."""
    return _study(draw, subjects=12_000, values=400)


def resampled_study(draw: random.Random) -> Files:
    """Answers that are just not too many to be resampled."""
    return _study(draw, subjects=12_000, values=40)


def _study(draw: random.Random, *, subjects: int, values: int) -> Files:
    queries = {f"{i}": {"kind": "randomized_response", "epsilon": f"0.{i + 1}"} for i in range(9)}
    content = {"version": 1, "domain": {"values": list(range(values))}, "queries": queries}
    rows = [
        f"{subject},{draw.randrange(9)},{draw.randrange(values)}"
        for subject in range(subjects)
        for _ in range(5)
    ]
    table = "\n".join(["subject,query,response", *rows, ""])
    return {"q.json": json.dumps(content), "t.csv": table}


MANY = ["loss", "--many", "t.csv", "--queries", "q.json", "--json"]

ESTIMATE = ["estimate", "t.csv", "--queries", "q.json"]
CLIENT = ["check-client", "t.csv", "--query", "c.json", "--domain", "d.json"]
EXPLAIN = ["explain", "t.json"]
CERTIFY = ["certify", "t.json", "-o", "p.json"]

CASES = [
    Case("explain: 11,000 queries on one coordinate", EXPLAIN, one_coordinate, REPLAY_SECONDS),
    Case("explain --html: the same", [*EXPLAIN, "--html", "p"], one_coordinate, REPLAY_SECONDS),
    Case("certify: 490 queries on 300 coordinates", CERTIFY, many_coordinates, REPLAY_SECONDS),
    Case("loss --many: 15,000 patterns on a box", MANY, patterns_on_a_box),
    Case("loss --many: 1,500 long patterns on a box", MANY, long_patterns_on_a_box),
    Case("loss --many: a folder of 1,200 boxes", ["loss", "--many", "f"], folder_of_transcripts),
    Case("explain: pairs of 12 wide attributes", EXPLAIN, wide_attributes),
    Case("explain: 5,000 attributes apart", EXPLAIN, many_components),
    Case("explain: 8,000 steps of a changing attribute", EXPLAIN, long_chain),
    Case("compare: the same", ["compare", "t.json"], long_chain),
    Case("certify: the same", CERTIFY, long_chain),
    Case("explain: as many steps as can be followed", EXPLAIN, shuffled_chain),
    Case("certify: the same", CERTIFY, shuffled_chain),
    Case("explain: 540 steps, each a tie", EXPLAIN, tied_chain),
    Case("compare: the same", ["compare", "t.json"], tied_chain),
    Case("check-client: 60,000 reports of bits", CLIENT, client),
    Case("check-client: 40,000 reports about records", CLIENT, client_of_records),
    Case("estimate: 12,000 subjects, 400 values", ESTIMATE, study),
    Case("estimate: 12,000 subjects, 40 values", ESTIMATE, resampled_study),
]

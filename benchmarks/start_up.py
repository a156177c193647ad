"""The start-up time of commands, beyond that of bare Python.

With bytecode, as it is after an installation.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

RUNS = 20
COMMAND = "from expost.cli.main import main; main()"
TRANSCRIPT = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "filter": {"kind": "bayesian", "epsilon": "1"},
    "exchanges": [
        {"query": {"kind": "randomized_response", "epsilon": "0.5"}, "response": response}
        for response in ("yes", "no", "yes")
    ],
}


def run() -> bool:
    print("start, processor seconds beyond bare Python")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "transcript.json"
        file.write_text(json.dumps(TRANSCRIPT))
        cases = {
            "import expost": (["import expost"], 0.05),
            "expost --help": ([COMMAND, "--help"], 0.15),
            "expost loss, finite": ([COMMAND, "loss", str(file)], 0.3),
        }
        programs = [["pass"], ["import numpy"], *(program for program, _ in cases.values())]
        times = [[seconds(program) for program in programs] for _ in range(RUNS + 1)]
    # The first of all may have written bytecode.
    bare, numpy, *ours = map(min, zip(*times[1:], strict=True))
    for (name, (_, limit)), time in zip(cases.items(), ours, strict=True):
        extra = time - bare
        print(
            f"  {name:<20} {extra:.3f}, {time / bare:4.1f} × bare Python, "
            f"{extra / limit:.2f} of what is allowed   (limit {limit:g})"
        )
    print(f"  {'import numpy':<20} {numpy - bare:.3f}, {numpy / bare:4.1f} × bare Python")
    allowed = (limit for _, limit in cases.values())
    return all(time - bare <= limit for time, limit in zip(ours, allowed, strict=True))


def seconds(program: Sequence[str]) -> float:
    """Processor seconds of one process, of all its threads."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", *program], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

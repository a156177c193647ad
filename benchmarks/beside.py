"""A comparison with another checkout, case by case and in turns: nothing may become slower.

    python -m benchmarks.beside ../other

Both have to be set up, and the other one needs ``benchmarks/timed_cases.py`` too. The least
processor time of several runs counts, because noise only ever adds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

LIMIT = 1.10
RUNS, ENOUGH = 15, 6.0
"""Runs of a case, and seconds after which there are no more."""
# What is above the limit was perhaps disturbed, and is measured again.
TRIES = 3


class Checkout:
    """The cases of one version, in a separate process."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [folder / ".venv/bin/python", "-m", "benchmarks.timed_cases"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names: list[str] = json.loads(self._line())

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a case failed")
        return line


def least(ours: Checkout, other: Checkout, name: str) -> tuple[float, float]:
    """Return the least seconds of either checkout, run in turns."""
    times = [(ours.seconds(name), other.seconds(name))]
    for _ in range(TRIES):
        spent = 0.0
        for _ in range(RUNS):
            times.append((ours.seconds(name), other.seconds(name)))
            spent += sum(times[-1])
            if spent > 2 * ENOUGH:
                break
        our_least, other_least = (min(column) for column in zip(*times, strict=True))
        if our_least <= LIMIT * other_least:
            break
    return our_least, other_least


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("--only", default="", help="cases with this in their names")
    arguments = parser.parse_args()
    ours, other = Checkout(Path.cwd()), Checkout(arguments.other)
    slower = []
    for name in ours.names:
        if name not in other.names or arguments.only not in name:
            continue
        our_seconds, other_seconds = least(ours, other, name)
        print(
            f"  {name:<52} {our_seconds / other_seconds:5.2f} ×   {1e3 * our_seconds:9.2f} ms",
            flush=True,
        )
        if our_seconds > LIMIT * other_seconds:
            slower.append(name)
    raise SystemExit(f"slower: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()

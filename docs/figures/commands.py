"""The figure in the docs that a command draws: ``python docs/figures/commands.py``."""

from __future__ import annotations

import subprocess
from pathlib import Path

STATIC = Path(__file__).parent.parent / "_static"


def main() -> None:
    subprocess.run(["expost", "demo", "--out", STATIC / "odometer.png"], check=True)


if __name__ == "__main__":
    main()

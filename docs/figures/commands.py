"""The pictures in the docs that commands draw: ``python docs/figures/commands.py``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

STATIC = Path(__file__).parent.parent / "_static"


def main() -> None:
    subprocess.run(["expost", "demo", "--out", STATIC / "odometer.png"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["expost", "reproduce", "linear", "--out", folder], check=True)
        drawn = Path(folder) / "figures" / "linear-bayesian.svg"
        shutil.copyfile(drawn, STATIC / "linear_accepted.svg")


if __name__ == "__main__":
    main()

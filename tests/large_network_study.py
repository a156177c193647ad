"""Play a large study over HTTP alone, with three kills: ``make collector``.

    python tests/large_network_study.py [--devices 2000] [--kills 3] [--seed 36]

What must hold is in tests/support/network_study.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.backup_sites import FileSite
from support.network_study import NetworkStudy


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=36)
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        study = NetworkStudy(FileSite(Path(folder)), Path(folder), options.devices, options.seed)
        try:
            report = study.play(kills=options.kills)
        finally:
            study.close()
    print(f"{options.devices:,} devices, {report.exchanges:,} exchanges, {dict(report.counts)}")
    print(f"truth {report.truth:.3f}; {report.estimates}")
    print(f"{time.monotonic() - start:.0f} s: everything holds")


if __name__ == "__main__":
    main()

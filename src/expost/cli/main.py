"""The way into the command line: it imports nothing by itself, so an interrupt never shows a trace.

Up to the first result most of the time goes into imports, and so do most interrupts.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Any error is one line on standard error, and an exit code."""
    # Threads of NumPy's linear algebra wait for each other in loops. With the small matrices of an
    # estimate, next to other work, that took several times the time of the work itself.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from expost.cli.commands import run

        run()
    except KeyboardInterrupt:
        print("expost: interrupted", file=sys.stderr)
        sys.exit(130)

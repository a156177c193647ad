"""The way into the command line: it imports nothing by itself, so an interrupt never shows a trace.

Up to the first result most of the time goes into imports, and so do most interrupts.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Any error is one line on standard error, and an exit code."""
    # Threads of NumPy's linear algebra wait for work in a loop at first, and there is none yet. The
    # loop would cost a tenth of a second, a third of a short command, so they sleep.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        from expost.cli.commands import run

        run()
    except KeyboardInterrupt:
        print("expost: interrupted", file=sys.stderr)
        sys.exit(130)

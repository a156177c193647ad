"""Programs that run where some packages are missing, without uninstalling them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

__all__ = ["COMMAND_LINE", "run_without"]

COMMAND_LINE = "from expost.cli.main import main\nmain()"
"""The program ``expost``."""

_HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def run_without(
    names: Iterable[str], program: str, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in which packages of these names cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", _HIDE.format(names=set(names)) + program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
    )

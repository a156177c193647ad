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
from importlib import metadata

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

def from_name(name, found=metadata.Distribution.from_name):
    if name in {names!r}:
        raise metadata.PackageNotFoundError(name)
    return found(name)

sys.meta_path.insert(0, Hidden())
metadata.Distribution.from_name = from_name
"""


def run_without(
    names: Iterable[str], program: str, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in which there is no module, and no package, of these names."""
    return subprocess.run(
        [sys.executable, "-c", _HIDE.format(names=set(names)) + program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
    )

"""Stack frames of the package, wherever the clone is and whatever its folder is called."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import expost

__all__ = ["in_package", "text_with_locals"]

_PACKAGE = str(Path(str(expost.__file__)).parent) + os.sep


def in_package(filename: str) -> bool:
    """Return whether a source file belongs to the package, and not to its tests."""
    return filename.startswith(_PACKAGE)


def text_with_locals(error: BaseException) -> str:
    """Return what a tool that prints local variables shows of an error and those behind it.

    This includes every message, and the variables of all frames in the package.
    """
    shown: list[str] = []
    errors, frames = [error], 0
    for current in errors:
        shown.append(str(current))
        report = traceback.TracebackException.from_exception(current, capture_locals=True)
        for frame in report.stack:
            if in_package(frame.filename):
                frames += 1
                shown += (frame.locals or {}).values()
        errors += filter(None, (current.__context__, current.__cause__))
    assert frames, "the traceback has no frame of the package"
    return "\n".join(shown)

"""Files that a command writes: one rule for which existing files it may replace."""

from __future__ import annotations

from pathlib import Path

from expost.errors import at
from expost.files.kinds import check_replaceable
from expost.files.regular import check_apart

__all__ = ["check_output"]


def check_output(out: Path, kind: str, *read: Path | None) -> None:
    """Refuse an output file that the command also reads, or that has content of another kind.

    Call it before the work. A new file, an empty one, and one of the same kind may be written.
    """
    check_apart(out, *(path for path in read if path is not None))
    with at(str(out), ": "):
        check_replaceable(out, kind)

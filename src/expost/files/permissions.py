"""Who else may read or write a file, where the system tells."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

__all__ = ["can_be_written", "others_may_read", "others_may_write"]


def others_may_read(status: os.stat_result) -> bool:
    """Whether somebody besides the owner may read a file."""
    return os.name == "posix" and bool(status.st_mode & (stat.S_IRGRP | stat.S_IROTH))


def others_may_write(status: os.stat_result) -> bool:
    """Whether somebody besides the owner may write to a file, or replace what a directory has.

    In a sticky directory, such as ``/tmp``, everybody replaces only what is theirs. A group with
    the number of its owner is the owner's alone, as many systems make one for every user.
    """
    if os.name != "posix" or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return False
    group = 0 if status.st_gid == status.st_uid else stat.S_IWGRP
    return bool(status.st_mode & (group | stat.S_IWOTH))


def can_be_written(directory: Path) -> bool:
    """Whether files can be made in a directory, or below the nearest one that is there.

    By trying it, for modes do not tell of a full disk or of one that is mounted to be read.
    """
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False

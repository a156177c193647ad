"""Files that survive a crash: replaced as a whole, durably, and by one process at a time."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from expost.errors import InvalidInput

__all__ = ["locked", "replace"]


def replace(target: Path, text: Callable[[], str], temporary: Path) -> None:
    """Put a new text in the place of a file; a crash leaves the old file or the new one.

    When this returns, the new one survives a loss of power too. Up to then ``temporary`` holds it,
    in the same directory. The text is a function, so that no traceback can show what is in it.
    """
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        # What is not recorded yet is for nobody else to read, whoever may read the file itself.
        create = partial(os.open, mode=0o666 if mode is None else 0o600)
        with open(temporary, "x", encoding="utf-8", opener=create) as file:
            file.write(text())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        if mode is not None:
            os.chmod(target, mode)
        _sync_directory(target.parent)
    except OSError as error:
        # The user knows the target, not the temporary file.
        raise type(error)(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """Make a new name in a directory durable."""
    if sys.platform == "win32":
        return  # where directories cannot be opened
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Wait until no other process holds a file, and hold it.

    The lock is on another file beside it, which stays for good. The file itself gets replaced, and
    whoever had waited for a lock on the old one would then hold nothing.
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InvalidInput("cannot be locked: this system has no flock") from None
    try:
        lock = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InvalidInput(f"cannot be locked: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise InvalidInput(f"cannot be locked: {error.strerror}") from None
        yield
    finally:
        os.close(lock)

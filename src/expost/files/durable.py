"""Files that survive a crash: replaced as a whole, durably, and by one process at a time."""

from __future__ import annotations

import os
import stat
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from expost._types import PathLike
from expost.errors import InvalidInput
from expost.files.regular import LARGEST, open_regular

__all__ = ["create", "lock_file", "replace", "resolve_path", "save", "sync_directory", "write_at"]

_PATIENCE = 1.0
# A limit, in case a disk gives its files new numbers each time.
_MOST_TRIES = 10_000
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def save(path: PathLike, text: Callable[[], str | bytes], *, most: int = LARGEST) -> None:
    """Put a text into a file that no other process continues, as :func:`replace` does."""
    target = Path(path)
    replace(target, text, target.with_name(f".{target.name}.{uuid.uuid4().hex}"), most=most)


def replace(
    target: Path,
    text: Callable[[], str | bytes],
    temporary: Path,
    held: BinaryIO | None = None,
    *,
    most: int = LARGEST,
) -> None:
    """Replace the text of a file; a crash leaves the old file or the new one.

    When this returns, the new file survives a loss of power. Until then ``temporary`` holds the
    text, in the same directory. The text is a function, so that no traceback can show it. Owner,
    group and mode of the file do not change. More than ``most`` bytes are refused, because readers
    would refuse them.

    A caller that has locked the file with :func:`lock_file` passes the open file as ``held``. Then
    nothing is replaced if the file is no longer the locked one, and the new file is locked too
    until all is done.
    """
    try:
        old = target.stat() if target.exists() else None
        if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
            raise InvalidInput("cannot be replaced: not a regular file")
        # Only the owner may read a new exchange before it is recorded.
        create = partial(os.open, mode=0o666 if old is None else 0o600)
        with open(temporary, "xb", opener=create) as file:
            if held is not None:
                _flock(file.fileno())
            content = text()
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            _check_size(file.fileno(), most)
            if old is not None:
                _keep_owner(file.fileno(), old)
            os.fsync(file.fileno())
            if sys.platform != "win32":  # where what is open has its name for good
                _put(file.fileno(), temporary, target, old, held)
        if sys.platform == "win32":
            os.replace(temporary, target)
    except OSError as error:
        # The user knows the target, not the temporary file.
        raise type(error)(error.errno, error.strerror, str(target)) from None
    finally:
        temporary.unlink(missing_ok=True)


def create(target: Path, text: str) -> None:
    """Write a new file durably. An existing file stays as it is and is refused."""
    try:
        with open(target, "x", encoding="utf-8", newline="\n") as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                target.unlink(missing_ok=True)  # half a file would be in the way of the next try
                raise
    except FileExistsError:
        raise InvalidInput("already exists; not overwritten") from None
    if sys.platform != "win32":  # where a directory cannot be opened
        sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def write_at(descriptor: int, data: bytes, start: int) -> None:
    """Write all of the data at an offset."""
    while data:
        count = os.pwrite(descriptor, data, start)
        data, start = data[count:], start + count


def _put(
    descriptor: int,
    temporary: Path,
    target: Path,
    old: os.stat_result | None,
    held: BinaryIO | None,
) -> None:
    """Give a finished file its name, durably, and then to those who may read it."""
    if held is not None and not _is_at(held.fileno(), target):
        raise InvalidInput("was replaced by another program while it was locked")
    os.replace(temporary, target)
    if old is not None:
        # By its descriptor: by now the name could lead to another user's file.
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    sync_directory(target.parent)


def resolve_path(path: PathLike, *, strict: bool = True) -> Path:
    """Follow all links to a file: one file has one lock, whatever links lead to it."""
    try:
        return Path(os.path.realpath(path, strict=strict))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput("cannot be read: not a file name") from None


def _check_size(descriptor: int, most: int) -> None:
    size = os.fstat(descriptor).st_size
    if size > most:
        raise InvalidInput(f"would have {size:,} bytes, and at most {most >> 20:,} MiB are read")


def _keep_owner(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
        return
    try:
        os.chown(descriptor, old.st_uid, old.st_gid)
    except PermissionError:
        changed = "group" if new.st_uid == old.st_uid else "owner"
        reason = f"its {changed} would change; its owner can"
        raise InvalidInput(f"cannot be replaced: {reason}") from None


@contextmanager
def lock_file(target: Path, waiting: Callable[[], None] | None = None) -> Iterator[BinaryIO]:
    """Wait until no other process holds a file, hold it, and give it, open for reading.

    The lock is on the file itself. If the file was replaced while a process waited, the process
    starts again with the new one. ``waiting`` is called if it takes longer than a second. A file
    with several names is refused: it would be replaced under one of them, and have a budget under
    each.
    """
    with open(_locked(target, waiting), "rb") as file:
        links = os.fstat(file.fileno()).st_nlink
        if links > 1:
            raise InvalidInput(
                f"has {links} names (hard links), and each would get its own budget; remove all "
                "but one"
            )
        yield file


def _locked(target: Path, waiting: Callable[[], None] | None) -> int:
    patience = threading.Timer(_PATIENCE, waiting or (lambda: None))
    patience.daemon = True
    try:
        for _ in range(_MOST_TRIES):
            # Not through a link, for its name was followed to the end before.
            descriptor = open_regular(target, os.O_RDWR | _NO_LINK, to_be="locked")
            try:
                if not _flock(descriptor, wait=False):
                    if patience.ident is None:
                        patience.start()
                    _flock(descriptor)
                if _is_at(descriptor, target):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise InvalidInput("cannot be locked: it is replaced again and again")
    finally:
        patience.cancel()


def _flock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock a file; False if another process holds it and this one is not to wait."""
    try:
        import fcntl
    except ModuleNotFoundError:
        raise InvalidInput("cannot be locked: this system has no flock") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise InvalidInput(f"cannot be locked: {error.strerror}") from None
    return True


def _is_at(descriptor: int, target: Path) -> bool:
    """Return whether a file is still the one that has this name."""
    try:
        named = target.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), named)

"""Files that a user names: regular ones only, and none above a stated size.

Opening a pipe can block, and reading a device never ends.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from expost.errors import InvalidInput, at, expect

if TYPE_CHECKING:
    from expost._types import PathLike  # brings numpy along, and expost doctor runs without it

__all__ = [
    "LARGEST",
    "LARGEST_TABLE",
    "can_be_written",
    "check_not_input",
    "check_size",
    "open_for_reading",
    "open_regular",
    "others_may_read",
    "others_may_write",
    "read_contents",
    "read_file",
    "read_text",
]

T = TypeVar("T")

#: In bytes: of a transcript, a query or a secret, which are read as a whole.
LARGEST = 64 << 20

#: In bytes: of a prior, or a table with a row per answer.
LARGEST_TABLE = 1 << 30

# Neither waits for a writer of a pipe, nor takes a terminal; not every system has all of these.
_CAREFUL = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


def open_regular(path: PathLike, flags: int = os.O_RDONLY, *, to_be: str = "read") -> int:
    """Open a regular file; return its descriptor."""
    try:
        descriptor = os.open(path, flags | _CAREFUL)
    except OSError as error:
        raise InvalidInput(f"cannot be {to_be}: {error.strerror}") from None
    except ValueError:
        raise InvalidInput(f"cannot be {to_be}: not a file name") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    problem = "Is a directory" if stat.S_ISDIR(mode) else "not a regular file"
    raise InvalidInput(f"cannot be {to_be}: {problem}")


@contextmanager
def open_for_reading(path: PathLike, most: int = LARGEST) -> Iterator[BinaryIO]:
    """Open a regular file of at most ``most`` bytes for reading."""
    with open(open_regular(path), "rb") as file:
        check_size(os.fstat(file.fileno()).st_size, most)
        try:
            yield file
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror or error}") from None


def read_contents(file: BinaryIO) -> str:
    """Read an open file as text; refuse one that is not UTF-8 or is too large."""
    try:
        # One more than may be there, for a file can grow after it was opened.
        content = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    check_size(len(content))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8 text") from None


def read_text(path: PathLike) -> str:
    """Read a file as text."""
    with open_for_reading(path) as file:
        return read_contents(file)


def read_file(path: Any, read: Callable[[str], T], expected: str = "the name of a file") -> T:
    """Return what a reader makes of the text of a file; an error names the file."""
    expect(path, (str, os.PathLike), expected)
    with at(os.fspath(path), ": "):
        return read(read_text(path))


def check_not_input(out: PathLike, *read: PathLike) -> None:
    """Refuse to write over a file that is read: a transcript is all that is known of a budget."""
    for path in read:
        try:
            same = os.path.samefile(out, path)
        except (OSError, ValueError):
            continue  # one of them is not there, and whoever opens it says so
        if same:
            raise InvalidInput("would overwrite an input of the command", os.fspath(out))


def check_size(size: int, most: int = LARGEST) -> None:
    """Refuse a file of more bytes than are read."""
    if size > most:
        raise InvalidInput(f"has {size:,} bytes, and at most {most >> 20:,} MiB are read")


def others_may_read(status: os.stat_result) -> bool:
    """Return whether others than the owner may read a file."""
    return os.name == "posix" and bool(status.st_mode & (stat.S_IRGRP | stat.S_IROTH))


def others_may_write(status: os.stat_result) -> bool:
    """Return whether others may write to a file, or replace the entries of a directory.

    In a sticky directory, such as ``/tmp``, users replace only their own entries. A group with
    the number of its owner is the owner's alone, as many systems make one for every user.
    """
    if os.name != "posix" or (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return False
    group = 0 if status.st_gid == status.st_uid else stat.S_IWGRP
    return bool(status.st_mode & (group | stat.S_IWOTH))


def can_be_written(directory: Path) -> bool:
    """Try whether files can be created in a directory, or below its nearest existing parent.

    By trying it, for modes do not tell of a full disk or of one that is mounted to be read.
    """
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False

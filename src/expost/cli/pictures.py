"""Pictures that a command draws: a name that will not do is told before the work, not after it."""

from __future__ import annotations

from pathlib import Path

from expost.cli.outputs import check_output
from expost.errors import InvalidInput, printable
from expost.files.kinds import PICTURE

__all__ = ["check_picture", "where"]

_FORMATS = (".png", ".svg", ".pdf")


def check_picture(picture: Path, *read: Path | None) -> None:
    """Refuse a name of no known format, in no folder, or of a file that must not be replaced."""
    check_output(picture, PICTURE, *read)
    if picture.suffix.lower() not in _FORMATS:
        raise InvalidInput("the name of a picture ends in .png, .svg or .pdf", str(picture))
    if not picture.parent.is_dir():
        reason = f"the picture cannot be saved: there is no folder {picture.parent}"
        raise InvalidInput(reason, str(picture))


def where(picture: Path) -> str:
    """The line that says where it is."""
    return printable(f"The picture is in {picture}.")

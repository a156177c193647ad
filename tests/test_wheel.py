"""The wheel: what is in it, what it says of itself, and that it works where it is unpacked.

``make test-wheel`` installs it into clean environments.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import expost as xp
from installations import EXTRAS, PROJECT, PYTHONS, ROOT
from support.installation_programs import PROGRAMS

pytestmark = pytest.mark.slow  # builds the wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel and of the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    program = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[ZipFile]:
    (path,) = built.glob("*.whl")
    with ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{_about()}/METADATA").decode())


def _about() -> str:
    return f"expost-{xp.__version__}.dist-info"


def test_the_wheel_has_the_package_and_nothing_else(wheel: ZipFile) -> None:
    source = ROOT / "src"
    package = {
        path.relative_to(source).as_posix()
        for path in (source / "expost").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert set(wheel.namelist()) == package | {f"{_about()}/{name}" for name in about}


def test_the_wheel_says_what_it_needs_and_where(metadata: Message) -> None:
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]

    def asked(extra: str, platform: str) -> set[str]:
        place = {"extra": extra, "sys_platform": platform}
        return {each.name for each in needed if not each.marker or each.marker.evaluate(place)}

    for platform in ("linux", "darwin", "win32"):
        assert asked("", platform) == {"click", "llvmlite", "numba", "numpy"}
    for platform in ("emscripten", "ios", "android"):
        assert asked("", platform) == {"click", "numpy"}
    assert metadata.get_all("Provides-Extra") == list(EXTRAS)
    for extra in EXTRAS:
        assert extra in PROGRAMS  # make test-wheel tries it
        assert len(asked(extra, "linux")) > len(asked("", "linux"))


def test_the_oldest_python_that_is_allowed_is_tested(metadata: Message) -> None:
    assert metadata["Requires-Python"] == PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_unpacked_wheel_works(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    program = (
        "import sys, expost\n"
        "from support.installation_programs import finite\n"
        "assert expost.__file__.startswith(sys.argv[1])\n"
        "finite()"
    )
    search = [str(tmp_path), str(ROOT / "tests")]
    subprocess.run(
        [sys.executable, "-P", "-c", program, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        check=True,
    )


def test_the_source_distribution_has_what_make_and_readers_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "pyproject.toml", "uv.lock", "src/expost/__init__.py"} <= names
    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE"} <= names

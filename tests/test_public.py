"""The public names, in one list."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import expost as xp

STUB = Path(str(xp.__file__)).with_suffix(".pyi").read_text("utf-8")
ROOMS = re.findall(r"^from expost import (\w+) as \1$", STUB, re.MULTILINE)
FIRST = re.findall(r"^from expost\.\S+ import (\w+) as \1$", STUB, re.MULTILINE)


def test_the_public_names_are_listed_once_and_are_there() -> None:
    assert 40 <= len(FIRST) <= 50, "only what a first program needs; export others from packages"
    assert sorted([*FIRST, *ROOMS]) == sorted(xp.__all__)
    assert all(getattr(xp, name) is not None for name in xp.__all__)
    assert set(xp.__all__) <= set(dir(xp))


def test_a_room_names_what_it_offers() -> None:
    for name in ROOMS:
        room = getattr(xp, name)
        assert all(hasattr(room, offered) for offered in room.__all__), name


@pytest.mark.parametrize("name", FIRST)
def test_a_first_name_explains_its_parameters(name: str) -> None:
    offered = getattr(xp, name)
    if not (isinstance(offered, type) and issubclass(offered, Exception)):
        explained = re.findall(r"^    \**(\w+): ", inspect.getdoc(offered) or "", re.MULTILINE)
        assert set(inspect.signature(offered).parameters) <= set(explained)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = xp.missing  # type: ignore[attr-defined]


def test_importing_expost_imports_nothing_heavy() -> None:
    program = "import expost, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_what_make_installs_by_itself_has_a_version() -> None:
    lines = (Path(__file__).parent.parent / "Makefile").read_text("utf-8").splitlines()
    installed = [line for line in lines if "pip install" in line]
    assert any(re.search(r" uv==\$\(UV_VERSION\);", line) for line in installed)
    assert all(re.search(r"==(\$\(UV_VERSION\)|\d+\.\d+\.\d+)", line) for line in installed)
    assert any(re.fullmatch(r"UV_VERSION := \d+\.\d+\.\d+", line) for line in lines)

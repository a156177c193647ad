"""The line about compiling: when it is true, and only then."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from expost.solver.warm_up import announced

KERNELS = """
from numba import njit

@njit(cache=True)
def inner(x):
    return x + 1

@njit(cache=True)
def outer(x):
    return inner(x) * 2
"""


def loaded(path: Path) -> ModuleType:
    """The module as a new process would have it: nothing compiled, but what is on the disk."""
    spec = importlib.util.spec_from_file_location("some_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compiling_is_said_once_and_loading_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "some_kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    with announced():
        assert loaded(path).outer(1) == 4
    assert [record.message for record in caplog.records] == [
        "compiling the optimizer, once; this takes about a minute"
    ]
    caplog.clear()
    with announced():
        assert loaded(path).outer(1) == 4
    assert not caplog.records

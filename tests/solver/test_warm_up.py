"""Machine code: kept on disk, made anew where it is not, and the line about compiling is true."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from expost.solver import BranchAndBound
from expost.solver.kernels import compiled, problems
from expost.solver.kernels.compiled import (
    JitKernel,
    MachineCode,
    cache_directories,
    load_or_build,
    machine_code,
)
from support.box_cases import some_case
from support.optimizer_parts import kernels, packed_of, solver_of

SAID = "compiling the optimizer, once; this takes about a minute"


@pytest.fixture(scope="module")
def image() -> bytes:
    """The code that is in use, from where it is kept."""
    machine_code()
    return load_or_build(list(cache_directories()), lambda: pytest.fail("it is on the disk"))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.message for record in caplog.records]
    caplog.clear()
    return messages


def test_compiling_is_said_once_and_loading_is_not(
    tmp_path: Path, image: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert load_or_build([tmp_path / "kernels-1"], lambda: lambda: image) == image
    assert said(caplog) == [SAID]
    assert load_or_build([tmp_path / "kernels-1"], lambda: lambda: b"") == image
    assert not said(caplog)


def test_code_that_was_written_in_part_is_made_anew(
    tmp_path: Path, image: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    load_or_build([tmp_path], lambda: lambda: image)
    (file,) = tmp_path.iterdir()
    for damaged in (b"", file.read_bytes()[:-1], file.read_bytes()[:-1] + b"\0\0"):
        file.write_bytes(damaged)
        caplog.clear()
        assert load_or_build([tmp_path], lambda: lambda: image) == image
        assert said(caplog) == [SAID]
    assert load_or_build([tmp_path], lambda: lambda: b"") == image


def test_code_of_another_numba_is_not_taken(
    tmp_path: Path, image: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kept"
    load_or_build([cache], lambda: lambda: image)
    other = tmp_path / "installed" / "numba-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(other.parent)
    assert load_or_build([cache], lambda: lambda: b"made anew") == b"made anew"
    assert len(list(cache.iterdir())) == 2


def test_where_nothing_can_be_written_the_next_place_is_taken_or_none(
    tmp_path: Path, image: bytes
) -> None:
    (tmp_path / "file").write_text("no directory")
    closed, open_ = tmp_path / "file" / "kernels-1", tmp_path / "open" / "kernels-1"
    assert load_or_build([closed], lambda: lambda: image) == image
    assert load_or_build([closed, open_], lambda: lambda: image) == image
    assert load_or_build([closed, open_], lambda: lambda: b"") == image


def test_code_that_cannot_be_saved_names_a_setting_that_helps(
    tmp_path: Path, image: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    load_or_build([tmp_path / "file" / "kernels-1"], lambda: lambda: image)
    (compiling, unsaved) = said(caplog)
    assert compiling == SAID
    assert unsaved == (
        f"the compiled optimizer cannot be saved in {tmp_path / 'file'}, so the next process "
        "compiles it again; set NUMBA_CACHE_DIR to a writable directory"
    )


def test_a_user_without_a_home_directory_has_one_place_for_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)  # no such user
    (beside,) = cache_directories()
    assert beside.parent == Path(compiled.__file__).parent / "__pycache__"


def test_older_code_beside_the_sources_is_removed_and_elsewhere_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_HERE", tmp_path)
    for parent, remaining in ((tmp_path / "__pycache__", 1), (tmp_path / "cache", 2)):
        for name in ("kernels-1", "kernels-2"):
            load_or_build([parent / name], lambda: lambda: b"code")
        assert len(list(parent.iterdir())) == remaining


def test_the_directory_is_named_by_all_sources_and_is_where_numba_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "links.py").write_text("a")
    (tmp_path / "bound.py").write_text("b")
    monkeypatch.setattr(compiled, "_HERE", tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    (before,) = cache_directories()
    assert before.parent == tmp_path / "chosen"
    assert before.name.startswith("kernels-")
    (tmp_path / "bound.py").write_text("c")
    assert list(cache_directories()) != [before]
    (tmp_path / "bound.py").write_text("b")
    assert list(cache_directories()) == [before]


@pytest.mark.parametrize("seed", range(6))
def test_machine_code_does_what_the_sources_say(seed: int, image: bytes) -> None:
    """Bit for bit: the same nodes, and the same bounds."""
    code, derive_fields = MachineCode(image), cast("JitKernel", problems.derive_fields)
    assert machine_code() is not None
    for highest in packed_of(some_case(random.Random(seed))):
        before = highest.words.copy()
        code.function(derive_fields)(*highest.reference)
        assert np.array_equal(highest.words, before)
        native, plain = BranchAndBound(highest), BranchAndBound(highest)
        native.advance(1e-3, 12)
        with solver_of(kernels):
            plain.advance(1e-3, 12)
        assert (native.nodes, native.lower, native.upper) == (
            plain.nodes, plain.lower, plain.upper,
        )  # fmt: skip


def test_a_search_needs_no_compiler_and_none_at_all_if_told_so() -> None:
    program = (
        "import sys, expost as xp\n"
        "t = xp.Transcript(xp.Box(x=(-1, 1))).add(xp.logistic({'x': 2}, epsilon=1), 1)\n"
        "print(xp.realized_loss(t), *(name in sys.modules for name in ('numba', 'llvmlite')))"
    )
    for disabled, modules in (("0", "False True"), ("1", "False False")):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert run.stdout.strip().endswith(modules)

"""``expost doctor``, where things are really broken."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.cli.doctor import EXTRAS
from expost.solver.kernels.compiled import cache_directories, machine_code
from support.missing_packages import COMMAND_LINE, run_without

Run = Callable[..., tuple[int, str, str]]
OF_EXTRAS = ("matplotlib", "polars", "sklearn", "scikit-learn")
PROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def kernels() -> None:
    """Compiled, wherever they are kept."""
    machine_code()


@pytest.fixture
def doctor(run: Run) -> Callable[..., tuple[int, dict[str, Any]]]:
    def call(*arguments: object) -> tuple[int, dict[str, Any]]:
        code, out, err = run("doctor", "--json", *arguments)
        assert err == ""
        return code, json.loads(out)

    return call


Doctor = Callable[..., tuple[int, dict[str, Any]]]


def only_problem(printed: dict[str, Any]) -> str:
    """The one thing that is wrong, and how to fix it."""
    (problem,) = printed["problems"]
    return f"{problem['problem']} | {problem['fix']}"


def test_a_whole_installation_has_nothing_wrong(doctor: Doctor, run: Run) -> None:
    code, printed = doctor()
    assert (code, printed["problems"]) == (0, [])
    assert printed["expost"] == xp.__version__
    assert printed["python"] == ".".join(map(str, sys.version_info[:3]))
    for name in ("numpy", "numba", "llvmlite", "click"):
        assert printed["packages"][name] == metadata.version(name)
    assert printed["extras"]["plot"] == {"matplotlib": metadata.version("matplotlib")}
    assert printed["kernels"]["compiled"] is True
    assert Path(printed["kernels"]["file"]).parent in cache_directories()
    code, out, _ = run("doctor")
    assert code == 0
    assert "kernels         compiled for this computer\n" in out
    assert out.endswith("problems        none\n")


def test_every_extra_is_listed_with_what_it_is_for() -> None:
    extras = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    assert list(EXTRAS) == sorted(extras)


def test_without_numba_it_says_what_does_not_work() -> None:
    result = run_without(["numba", "llvmlite", *OF_EXTRAS], COMMAND_LINE, "doctor", "--json")
    assert (result.returncode, result.stderr) == (1, "")
    printed = json.loads(result.stdout)
    assert printed["kernels"] is printed["packages"]["numba"] is None
    assert printed["extras"]["sklearn"] == {"scikit-learn": None}  # which is not wrong
    said = {problem["problem"]: problem["fix"] for problem in printed["problems"]}
    assert len(said) == 2
    for name in ("numba", "llvmlite"):
        why = f"{name} cannot be imported: No module named '{name}'"
        fix = said[f"{why}; finite domains work without it, boxes do not"]
        assert fix.startswith(f"pip install --upgrade '{name}>=")


def test_it_works_where_numpy_is_missing(tmp_path: Path) -> None:
    xp.Transcript(xp.FiniteSet(["no", "yes"])).save(tmp_path / "t.json")
    hidden = ["numpy", "numba", "llvmlite", *OF_EXTRAS]
    result = run_without(hidden, COMMAND_LINE, "doctor", tmp_path / "t.json")
    assert (result.returncode, result.stderr) == (1, "")
    assert "numpy cannot be imported: No module named 'numpy'\n" in result.stdout
    assert "pip install --upgrade 'numpy>=" in result.stdout


def test_a_package_that_is_too_old_is_wrong(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "numpy-1.26.4.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
    monkeypatch.syspath_prepend(tmp_path)
    code, printed = doctor()
    assert code == 1
    assert only_problem(printed).startswith("numpy 1.26.4 is older than 2.")


def test_a_cache_that_cannot_be_written_is_wrong_until_kernels_are_there(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(doctor()[1]["kernels"]["file"])
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    code, printed = doctor()
    assert code == 1
    assert [place["writable"] for place in printed["kernels"]["cache"]] == [False]
    assert only_problem(printed).endswith("| set NUMBA_CACHE_DIR to a directory of your own")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert doctor()[0] == 0
    monkeypatch.delenv("NUMBA_DISABLE_JIT")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    code, printed = doctor()
    assert (code, printed["kernels"]["compiled"]) == (0, False)
    assert not (tmp_path / "empty").exists()  # it was looked at, and not made
    (place,) = cache_directories()
    place.mkdir(parents=True)
    (place / copy.name).write_bytes(copy.read_bytes())
    code, printed = doctor()
    assert (code, printed["kernels"]["compiled"]) == (0, True)
    (place / copy.name).write_bytes(copy.read_bytes()[:-1])
    assert doctor()[1]["kernels"]["compiled"] is False


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing there")
def test_kernels_that_others_may_change_are_wrong(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(doctor()[1]["kernels"]["file"])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "shared"))
    (place,) = cache_directories()
    place.mkdir(parents=True)
    (place / copy.name).write_bytes(copy.read_bytes())
    assert doctor()[0] == 0
    (tmp_path / "shared").chmod(0o777)
    code, printed = doctor()
    assert code == 1
    assert only_problem(printed).endswith(f"| chmod go-w {tmp_path / 'shared'}")


@pytest.mark.skipif(sys.platform == "win32", reason="modes say nothing there")
def test_files_that_others_may_read_or_write_are_wrong(doctor: Doctor, tmp_path: Path) -> None:
    secret, transcript = tmp_path / "secret.json", tmp_path / "transcript.json"
    secret.write_text('"yes"')
    secret.chmod(0o600)
    xp.Transcript(xp.FiniteSet(["no", "yes"])).save(transcript)
    assert doctor(transcript, "--secret", secret)[0] == 0
    secret.chmod(0o644)
    assert (
        only_problem(doctor("--secret", secret)[1])
        == f"others may read {secret} | chmod 600 {secret}"
    )
    transcript.chmod(0o666)
    code, printed = doctor(transcript)
    assert code == 1
    assert only_problem(printed).endswith(f"| chmod go-w {transcript}")
    transcript.chmod(0o644)
    tmp_path.chmod(0o777)
    assert only_problem(doctor(transcript)[1]).endswith(f"| chmod go-w {tmp_path}")
    tmp_path.chmod(0o1777)  # sticky: others cannot replace what is not theirs
    assert doctor(transcript)[0] == 0


def test_files_that_cannot_be_used_are_wrong(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"version": 1}')
    code, printed = doctor(tmp_path / "bad.json")
    assert code == 1
    assert "bad.json: 'domain' is missing" in only_problem(printed)
    assert "cannot be read" in only_problem(doctor("--secret", tmp_path / "nowhere.json")[1])


def test_the_page_about_installation_shows_what_it_prints(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the versions and places of a computer."""
    page = (PROJECT.parent / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    shown = page.partition("```text\n")[2].partition("```")[0]
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("secret.json").write_text('"yes"', encoding="utf-8")
    Path("secret.json").chmod(0o644)
    code, out, _ = run("doctor", "--secret", "secret.json")
    assert code == 1
    assert [line[:13] for line in shown.splitlines()] == [line[:13] for line in out.splitlines()]
    assert shown.splitlines()[-2:] == out.splitlines()[-2:]
    for extra, purpose in EXTRAS.items():
        assert f"| `{extra}` |" in page
        assert f"(for {purpose})" in shown

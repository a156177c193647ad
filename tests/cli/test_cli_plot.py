"""``expost plot``: a picture of every kind of transcript."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

YES = xp.randomized_response(epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "transcript.json"
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1).spec)
    transcript.add(YES, "yes").add(YES, "no").add(YES, "yes").save(path)
    return path


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_suffix_gives_the_format(
    run: Run, file: Path, tmp_path: Path, suffix: str, start: bytes
) -> None:
    picture = tmp_path / f"odometer.{suffix}"
    code, out, err = run("plot", file, "-o", picture)
    assert (code, out, err) == (0, f"The picture is in {picture}.\n", "")
    assert picture.read_bytes().startswith(start)


def test_for_programs(run: Run, file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "odometer.svg"
    code, out, _ = run("plot", file, "--out", picture, "--json")
    result = json.loads(out)
    assert code == 0
    assert (result["picture"], result["exchanges"]) == (str(picture), 3)
    assert result["loss"]["lower"] <= 0.5


@pytest.mark.parametrize("out", ["missing/odometer.png", "odometer.xyz", "."])
def test_a_picture_that_cannot_be_saved_is_one_line(
    run: Run, file: Path, tmp_path: Path, out: str
) -> None:
    code, shown, err = run("plot", file, "-o", tmp_path / out)
    assert (code, shown) == (2, "")
    assert err.startswith("expost: ")
    assert err.count("\n") == 1


def test_without_matplotlib_it_says_what_to_install(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = run("plot", file)
    assert code == 2
    assert err == "expost: a picture needs the extra: pip install 'expost[plot]'\n"


def test_a_long_search_says_which_response_it_is_at(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.cli.progress._PATIENCE", 0.0)
    path = tmp_path / "box.json"
    query = xp.logistic({"x": 1}, epsilon="0.5")
    xp.Transcript(xp.Box(x=(-1, 1))).add(query, 1).add(query, 1).save(path)
    code, _, err = run("plot", path, "-o", tmp_path / "box.png")
    assert code == 0
    assert err.startswith("response 0 of 2\n")

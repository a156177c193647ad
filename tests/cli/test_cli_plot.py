"""``expost plot``: a picture of every kind of transcript."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.report._chart import Chart
from expost.report._figures import odometer_chart

Run = Callable[..., tuple[int, str, str]]

YES = xp.randomized_response(epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "transcript.json"
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    transcript.add(YES, "yes").add(YES, "no").add(YES, "yes").save(path)
    return path


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")]
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
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", 0.0)
    path = tmp_path / "box.json"
    query = xp.logistic({"x": 1}, epsilon="0.5")
    xp.Transcript(xp.Box(x=(-1, 1))).add(query, 1).add(query, 1).save(path)
    code, _, err = run("plot", path, "-o", tmp_path / "box.png")
    assert code == 0
    assert err.startswith("response 0 of 2\n")


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, list[float]] | None]:
    """What the figure is given, call by call."""
    seen: list[dict[str, list[float]] | None] = []

    def chart(odometer: xp.Odometer, losses: Any, *, costs: Any) -> Chart:
        seen.append(costs)
        return odometer_chart(odometer, losses, costs=costs)

    monkeypatch.setattr("expost.cli.plot.odometer_chart", chart)
    return seen


def test_rules_are_drawn_where_there_is_a_delta(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = drawn(monkeypatch)
    tenth = xp.randomized_response(epsilon="0.1")
    for filter_, options, rules in [
        (xp.BayesianFilter(epsilon="0.3"), [], False),
        (xp.BayesianFilter(epsilon="0.3"), ["--delta", "1e-6"], True),
        (xp.ApproximateFilter(epsilon="0.3", delta="1e-3"), [], True),
    ]:
        transcript = xp.Transcript(xp.FiniteSet([0, 1]), filter_)
        for response in (0, 1, 0, 1, 0):
            transcript = transcript.add(tenth, response)
        path = tmp_path / "t.json"
        transcript.save(path, overwrite=True)
        code, _, err = run("plot", path, "-o", tmp_path / "t.png", *options)
        assert (code, err) == (0, "")
        costs = seen.pop()
        assert (costs is not None) == rules
        if costs is None:
            continue
        assert list(costs) == ["basic", "whitehouse", "renyi", "mixture"]
        # Three of 0.1 fit 0.3 exactly; a double that is a little above it does not hide that.
        assert costs["basic"] == pytest.approx([0, 0.1, 0.2, 0.3])
        assert costs["whitehouse"] == pytest.approx([0, 0.1, 0.2, 0.3])
        for index, cost in enumerate(costs["mixture"]):
            beginning = xp.Transcript(xp.FiniteSet([0, 1]), filter_)
            for _ in range(index):
                beginning = beginning.add(tenth, 0)
            delta = None if isinstance(filter_, xp.filters.CompositionFilter) else "1e-6"
            said = (
                xp.report.compare(xp.Odometer(beginning), delta=delta).standings if index else None
            )
            assert cost == (0 if said is None else pytest.approx(said["mixture"].spent))


def test_an_empty_transcript_with_a_delta_is_drawn(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    filter_ = xp.ApproximateFilter(epsilon=1, delta="1e-6")
    xp.Transcript(xp.FiniteSet(["no", "yes"]), filter_).save(path)
    assert run("plot", path, "-o", tmp_path / "t.png")[0] == 0

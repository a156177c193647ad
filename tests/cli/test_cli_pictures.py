"""A name that will not do is told before any work; where a picture is, after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

DRAWING = {
    "plot": ["plot", "transcript.json", "-o"],
    "estimate": ["estimate", "data.csv", "--queries", "queries.json", "--frequencies", "-o"],
    "loss": ["loss", "--many", "data.csv", "--queries", "queries.json", "--plot"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", DRAWING.values(), ids=DRAWING)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("drawn", "the name of a picture must end in .png, .svg or .pdf"),
        ("drawn.jpg", "the name of a picture must end in .png, .svg or .pdf"),
        ("no/such/drawn.png", "the picture cannot be saved: there is no folder no/such"),
    ],
)
def test_a_bad_name_is_told_before_anything_is_read(
    run: Run, folder: Path, command: list[str], name: str, reason: str
) -> None:
    # There is nothing to read, and nobody comes to notice.
    if command[0] == "estimate" and "must end in" in reason:  # it also writes tables
        reason = f"got a name that ends in {Path(name).suffix!r}; expected a table (.csv, .jsonl, "
        reason += ".parquet) or a picture (.png, .svg, .pdf)"
    assert run(*command, name) == (2, "", f"expost: {name}: {reason}\n")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("command", DRAWING.values(), ids=DRAWING)
def test_it_is_said_where_a_picture_is(run: Run, folder: Path, command: list[str]) -> None:
    values, query = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon=1)
    xp.Transcript(values).add(query, "no").save("transcript.json")
    xp.audits.save_queries(values, {"q": query}, "queries.json")
    Path("data.csv").write_text("subject,query,response\nann,q,no\nbob,q,yes\n", encoding="utf-8")
    code, out, err = run(*command, "drawn.SVG")
    assert (code, err) == (0, "")
    assert out.endswith("The picture is in drawn.SVG.\n")
    assert Path("drawn.SVG").read_text("utf-8").startswith("<svg")

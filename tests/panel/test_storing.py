"""A panel in a file: what was answered counts after loading as it did before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import expost as xp
from expost.sampling import InsecureSource
from support import panels


def played(subjects: list[str | int]) -> xp.Panel:
    queries = {str(i): query for i, query in enumerate(panels.families(3, "0.3"))}
    panel = xp.Panel(
        xp.FiniteSet(range(3)),
        filter=xp.BayesianFilter("0.8"),
        subjects=subjects,
        queries=queries,
        source=InsecureSource(3),
    )
    generator = np.random.default_rng(1)
    for _ in range(8):
        values = generator.integers(0, 3, len(subjects))
        panel.ask(generator.choice(list(queries), len(subjects)), values)
    panel.record("0", [0] * 4, subjects[:1] * 4)
    assert panel.closed.any()
    assert panel.answers().refused
    return panel


@pytest.mark.parametrize(
    "subjects", [["a", "b", "ü\n,"], [3, 2, 1], ["1", 1, "x"], [1 << 70, 1]], ids=repr
)
def test_a_loaded_panel_is_what_was_saved(subjects: list[str | int], tmp_path: Path) -> None:
    panel, path = played(subjects), tmp_path / "panel.parquet"
    panel.save(path)
    loaded = xp.Panel.load(path)
    assert loaded.subjects == panel.subjects
    assert loaded.filter == panel.filter
    assert loaded.queries == panel.queries
    for name in ("loss", "peak", "spent"):
        before, after = getattr(panel, name), getattr(loaded, name)
        assert (after.lower == before.lower).all()
        assert (after.upper == before.upper).all()
    assert (loaded.closed == panel.closed).all()
    assert (loaded.remaining == panel.remaining).all()
    assert loaded.answers().refused == panel.answers().refused
    for subject in panel.subjects:
        assert loaded.transcript(subject) == panel.transcript(subject)


def test_nothing_answered_is_loaded_as_nothing(tmp_path: Path) -> None:
    panel = xp.Panel(xp.FiniteSet([0, 1]), filter=xp.BasicFilter(1), subjects=["a"])
    panel.save(tmp_path / "panel.parquet")
    assert xp.Panel.load(tmp_path / "panel.parquet").loss.upper.tolist() == [0]


def test_large_positions_are_stored(tmp_path: Path) -> None:
    panel = xp.Panel(xp.FiniteSet(range(70)), filter=xp.BasicFilter(3), subjects=["a", "b"])
    panel.ask(xp.unary_encoding(epsilon=1), [0, 1])
    panel.save(tmp_path / "panel.parquet")
    assert xp.Panel.load(tmp_path / "panel.parquet").transcript("b") == panel.transcript("b")


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    panel, path = played(["a", "b", "c"]), tmp_path / "panel.parquet"
    panel.save(path)
    said = pl.read_parquet_metadata(path)["expost"]
    frame = pl.read_parquet(path)
    answered = pl.col("order") > 0
    damaged = {
        "a response less": frame.filter(~(answered & (pl.col("order") == 2))),
        "somebody open again": frame.with_columns(closed=pl.lit(False)),
        "another response": frame.with_columns(
            response=pl.when(answered).then(0).otherwise("response")
        ),
        "a column less": frame.drop("closed"),
        "a gap": frame.with_columns(query=pl.when(answered).then("query")),
    }
    for name, table in damaged.items():
        table.write_parquet(path, metadata={"expost": said})
        with pytest.raises(xp.InvalidInput) as caught:
            xp.Panel.load(path)
        assert "\n" not in str(caught.value), name
        assert str(path) in str(caught.value), name
    frame.write_parquet(path)
    with pytest.raises(xp.InvalidInput, match="another program wrote it"):
        xp.Panel.load(path)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(xp.InvalidInput, match="not a Parquet file"):
        xp.Panel.load(path)
    with pytest.raises(xp.InvalidInput, match="cannot be read"):
        xp.Panel.load(tmp_path / "missing.parquet")

"""Whatever a user names to be read: regular files only, and none above a stated size."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from expost.files.regular import LARGEST, LARGEST_TABLE

Run = Callable[..., tuple[int, str, str]]
Reader = Callable[[Path, Path], object]

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERY = {"kind": "randomized_response", "epsilon": "1"}
QUERIES = {"version": 1, "domain": {"values": ["no", "yes"]}, "queries": {"q": QUERY}}

TEXTS: dict[str, Reader] = {
    "load": lambda file, _: xp.load_transcript(file),
    "FileSession": lambda file, _: xp.FileSession(file, "yes"),
    "queries of load_answers": lambda file, good: xp.load_answers(good / "data.csv", file),
    "queries of a table": lambda file, _: xp.load_answers({}, file),
}
TABLES: dict[str, Reader] = {
    suffix: lambda file, good: xp.load_answers(file, good / "queries.json")
    for suffix in ("csv", "jsonl", "parquet")
}
PRIOR: dict[str, Reader] = {"prior": lambda file, _: xp.knowledge.load_prior(file, DOMAIN)}
ALL = TEXTS | TABLES | PRIOR


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A directory with a file of every kind that can be read."""
    xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=1)).save(tmp_path / "transcript.json")
    (tmp_path / "queries.json").write_text(json.dumps(QUERIES))
    (tmp_path / "query.json").write_text(json.dumps(QUERY))
    (tmp_path / "data.csv").write_text("subject,query,response\nann,q,yes\n")
    (tmp_path / "pairs.csv").write_text("input,output\nno,yes\n")
    return tmp_path


def _unfit(directory: Path, suffix: str) -> list[tuple[Path, str]]:
    """What must not be read, and what is said of it."""
    pipe = directory / f"pipe.{suffix}"
    os.mkfifo(pipe)
    device = directory / f"device.{suffix}"
    device.symlink_to("/dev/null")
    folder = directory / f"folder.{suffix}"
    folder.mkdir()
    return [
        (pipe, "cannot be read: not a regular file"),
        (device, "cannot be read: not a regular file"),
        # A folder may be one of transcripts, where a table could be.
        (folder, "cannot be read: Is a directory" if suffix == "json"
         else "has no transcripts, whose names end in .json"),
    ]  # fmt: skip


def _too_large(directory: Path, suffix: str, size: int) -> Path:
    file = directory / f"large.{suffix}"
    file.touch()
    os.truncate(file, size)  # without taking any room
    return file


@pytest.mark.parametrize("kind", ALL)
def test_pipes_devices_and_folders_are_not_read(good: Path, kind: str) -> None:
    for file, message in _unfit(good, kind if kind in TABLES else "json"):
        with pytest.raises(xp.InvalidInput) as caught:
            ALL[kind](file, good)
        assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize("kind", TEXTS)
def test_a_file_above_the_stated_size_is_not_read(good: Path, kind: str) -> None:
    file = _too_large(good, "json", LARGEST + 1)
    with pytest.raises(xp.InvalidInput) as caught:
        TEXTS[kind](file, good)
    assert str(caught.value) == f"{file}: has 67,108,865 bytes, and at most 64 MiB are read"


@pytest.mark.parametrize("kind", [*TABLES, *PRIOR])
def test_a_table_above_the_stated_size_is_not_read(good: Path, kind: str) -> None:
    file = _too_large(good, kind, LARGEST_TABLE + 1)
    with pytest.raises(xp.InvalidInput, match=r"bytes, and at most 1,024 MiB are read$"):
        ALL[kind](file, good)


def test_a_table_of_too_many_equal_rows_is_not_read(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    file = good / "bomb.parquet"
    polars.DataFrame({"subject": ["a"] * 500}).write_parquet(file)
    monkeypatch.setattr("expost.files.tables._MOST_ROWS", 499)
    with pytest.raises(xp.InvalidInput, match="has 500 rows, and at most 499 are read"):
        xp.load_answers(file, good / "queries.json")


@pytest.mark.parametrize(
    "arguments",
    [
        "loss BAD",
        "loss --many data.csv --queries BAD",
        "decide BAD --query query.json",
        "decide transcript.json --query BAD",
        "ask transcript.json --query query.json --secret BAD",
        "explain transcript.json --prior BAD --statement value=yes",
        "check-client BAD --query query.json --domain queries.json",
        "check-client pairs.csv --query BAD --domain queries.json",
        "check-client pairs.csv --query query.json --domain BAD",
        "verify BAD proof.json",
    ],
)
def test_no_command_reads_a_pipe(
    run: Run, good: Path, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.chdir(good)
    os.mkfifo("pipe.csv")
    code, out, err = run(*arguments.replace("BAD", "pipe.csv").split())
    assert (code, out) == (2, "")
    assert err.startswith("expost: ")
    assert err.endswith("cannot be read: not a regular file\n")
    assert err.count("\n") == 1


def test_a_file_on_standard_input_is_read(
    run: Run, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (good / "transcript.json").open() as file:
        assert run("loss", f"/dev/fd/{file.fileno()}")[0] == 0

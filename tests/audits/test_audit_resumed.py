"""An audit that was killed goes on where it was, unless the log has changed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import polars
import pytest

import expost as xp
from support.answer_logs import some_log

GUARD = xp.BayesianFilter(epsilon="0.6")
MEMORY = 12_000

# The process dies when the third part is finished, and before it has its name.
_KILLED = """
import os, signal, sys
import expost as xp
named = []
def replace(source, target, rename=os.replace):
    named.append(target)
    if len(named) == 4:  # the first is the digest
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = replace
log, queries, folder, memory = sys.argv[1:]
guard = xp.BayesianFilter(epsilon="0.6")
xp.audit(log, queries, filter=guard, memory=int(memory), resume=folder)
"""


# A time of change that no part has unless the test gave it: a new file may get an old inode.
LONG_AGO = 1_000_000_000


def parts(folder: Path) -> set[str]:
    """The names of the parts that are done."""
    return {file.name for file in folder.glob("*.parquet")}


def untouched(folder: Path) -> set[str]:
    """The parts that nobody has written since their time was set back."""
    return {name for name in parts(folder) if (folder / name).stat().st_mtime == LONG_AGO}


def test_an_audit_that_was_killed_goes_on_with_the_parts_that_are_missing(tmp_path: Path) -> None:
    logged = some_log(random.Random(2), "set", subjects=80)
    log, folder = tmp_path / "log.csv", tmp_path / "parts"
    queries = logged.save_queries(tmp_path / "queries.json")
    frame = logged.frame().sample(fraction=1, shuffle=True, seed=5)
    frame.write_csv(log)
    whole = xp.audit(log, queries, filter=GUARD).to_polars()

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _KILLED, str(log), str(queries), str(folder), str(MEMORY)]
    killed = subprocess.run(command, env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    before = parts(folder)
    assert len(before) == 2
    for name in before:
        os.utime(folder / name, (LONG_AGO, LONG_AGO))

    def again() -> polars.DataFrame:
        return xp.audit(log, queries, filter=GUARD, memory=MEMORY, resume=folder).to_polars()

    assert again().equals(whole)
    assert len(parts(folder)) > 3
    assert untouched(folder) == before

    # A log that has changed is audited from the start.
    shorter = [row for row in logged.rows if row[0] != "s7"]
    logged.frame(shorter).write_csv(log)
    assert again().equals(whole.filter(polars.col("subject") != "s7"))
    assert not untouched(folder)


def test_parts_of_another_version_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = some_log(random.Random(3), "set", subjects=20)
    log, folder = tmp_path / "log.csv", tmp_path / "parts"
    queries = logged.save_queries(tmp_path / "queries.json")
    logged.frame().write_csv(log)

    def again() -> set[str]:
        xp.audit(log, queries, filter=GUARD, memory=MEMORY, resume=folder)
        left = untouched(folder)
        for name in parts(folder):
            os.utime(folder / name, (LONG_AGO, LONG_AGO))
        return left

    again()
    assert again() == parts(folder) != set()
    monkeypatch.setattr(xp, "__version__", "0.0.0")
    assert again() == set()


@pytest.mark.parametrize("name", ["thesis.txt", ".git", "losses.parquet", "000000.parquet"])
def test_a_folder_with_something_else_in_it_is_left_as_it_is(name: str, tmp_path: Path) -> None:
    logged = some_log(random.Random(3), "set", subjects=5)
    log, folder = tmp_path / "log.csv", tmp_path / "mine"
    queries = logged.save_queries(tmp_path / "queries.json")
    logged.frame().write_csv(log)
    folder.mkdir()
    (folder / name).write_text("years of work")
    with pytest.raises(xp.InvalidInput, match="has files of something else in it"):
        xp.audit(log, queries, filter=GUARD, resume=folder)
    assert (folder / name).read_text("utf-8") == "years of work"
    (folder / name).unlink()
    (folder / ".000000").write_text("torn")
    whole = xp.audit(log, queries, filter=GUARD, resume=folder).to_polars()
    assert whole.equals(xp.audit(log, queries, filter=GUARD).to_polars())
    # A bad row ends an audit, and its parts, but nothing else.
    with log.open("a") as file:
        file.write("ann,1,nothing,a\n")
    with pytest.raises(xp.audits.BadRows):
        xp.audit(log, queries, filter=GUARD, resume=folder)
    assert not folder.exists()

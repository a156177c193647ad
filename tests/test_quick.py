"""``make quick`` leaves out the listed slow tests, and no part of the package."""

from __future__ import annotations

import re
from pathlib import Path

from slow_tests import LIST

TESTS = Path(__file__).parent


def test_every_test_that_is_listed_as_slow_exists() -> None:
    for line in LIST.read_text("utf-8").splitlines():
        file, *_, name = line.split("::")
        source = (TESTS.parent / file).read_text("utf-8")
        assert file.startswith("src/") or f"def {name}(" in source, f"{line} is gone: remove it"


def test_every_folder_of_tests_has_some_that_are_not_slow() -> None:
    slow = [Path(line.partition("::")[0]).parent for line in LIST.read_text("utf-8").splitlines()]
    folders = {path.parent for path in TESTS.rglob("test_*.py")} - {TESTS / "browser"}
    for folder in folders:
        sources = [path.read_text("utf-8") for path in folder.glob("test_*.py")]
        tests = sum(len(re.findall(r"^ *def test_", source, re.MULTILINE)) for source in sources)
        assert slow.count(folder.relative_to(TESTS.parent)) < tests, f"all of {folder} is slow"

"""The map of the paper covers everything that it numbers, and leads to code that exists."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "paper.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## From the paper to the code")[1].splitlines()
    if line.startswith("| ")
][1:]
NUMBERED = {
    "Definition": ["2.1", "3.1", "3.2", "3.3", *(f"4.{number}" for number in range(1, 8))],
    "Lemma": ["3.1", "3.2"],
    "Theorem": ["3.1", "3.2", "3.3", "4.1", "4.2"],
    "Corollary": ["3.1", "4.1"],
    "Proposition": ["A.1", "A.2"],
    "Algorithm": ["1", "2", "3", "4", "5", "6"],
    "Example": ["1", "2", "3"],
    "Figure": ["1(a)", "1(b)", "1(c)", "1(d)"],
    "Table": ["I"],
}


def test_the_map_has_everything_that_the_paper_numbers_once() -> None:
    listed = [item for row in ROWS for item in row[0].split(", ") if item.split()[0] in NUMBERED]
    numbered = [f"{kind} {number}" for kind, numbers in NUMBERED.items() for number in numbers]
    assert sorted(listed) == sorted(numbered)


@pytest.mark.parametrize(
    "name", sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[2])})
)
def test_code_in_the_map_exists(name: str) -> None:
    assert pkgutil.resolve_name(name) is not None


def test_every_row_of_the_map_leads_somewhere() -> None:
    assert len(ROWS) > 20
    for row in ROWS:
        assert len(row) == 4
        assert "](" in row[3] or row[3] == "this page"

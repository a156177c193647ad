"""The lint for prose: it finds what it should, with its line, and leaves code and titles alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lint_prose import MOST_WORDS, findings


def complaints(root: Path, path: str, text: str) -> list[str]:
    page = root / path
    page.parent.mkdir(parents=True)
    page.write_text(text, encoding="utf-8")
    return [str(finding) for finding in findings(root)]


def test_words_and_clauses_that_read_as_translated_are_reported_with_their_lines(
    tmp_path: Path,
) -> None:
    text = "# Title\n\nA plan that is fixed\nbeforehand.\n\n- What was asked is in\n  the file.\n"
    assert complaints(tmp_path, "docs/page.md", text) == [
        "docs/page.md:4: 'beforehand'; say in advance",
        "docs/page.md:6: a clause is the subject: What was asked is in …",
    ]


@pytest.mark.parametrize("path", ["docs/how-to/page.md", "docs/tutorials/page.md"])
def test_long_sentences_are_reported_where_people_work(tmp_path: Path, path: str) -> None:
    words = " ".join(["word"] * MOST_WORDS)
    (finding,) = complaints(tmp_path, path, f"{words}. (More {words}.)\n{words}.\n")
    assert finding.startswith(f"{path}:1: {MOST_WORDS + 1} words in a sentence: (More word")


def test_code_titles_and_questions_are_left_alone(tmp_path: Path) -> None:
    text = (
        "# What is guaranteed\n\nWhat is it? See [What is guaranteed](page.md) and `mend anew`.\n\n"
        "```text\nWhat was beforehand is anew.\n```\n"
    )
    assert complaints(tmp_path, "docs/how-to/page.md", text) == []


def test_messages_and_docstrings_are_read_too(tmp_path: Path) -> None:
    text = (
        '"""What was asked is here.\n\nIt is anew."""\n\nprint(f"{1} is written over")\n'
        "# At hand.\n"
    )
    assert complaints(tmp_path, "src/expost/module.py", text) == [
        "src/expost/module.py:1: a clause is the subject: What was asked is here. …",
        "src/expost/module.py:3: 'anew'; say again, or from scratch",
        "src/expost/module.py:5: 'written over'; say overwritten",
        "src/expost/module.py:6: 'At hand'; say available",
    ]

"""The lint for names: it finds what it should, and accepts an exception that gives a reason."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from lint_names import findings


def complaints(folder: Path, source: str) -> list[str]:
    (folder / "module.py").write_text(dedent(source), encoding="utf-8")
    return [str(finding) for finding in findings(folder)]


def test_every_kind_of_vague_name_is_reported_with_its_line(tmp_path: Path) -> None:
    source = """\
        places = [1]
        class Given:
            known: int
            def method(self, seen):
                self._found = seen
        def whom(): ...
        """
    assert [complaint.split("'")[:2] for complaint in complaints(tmp_path, source)] == [
        ["module.py:1: ", "places"],
        ["module.py:2: ", "Given"],
        ["module.py:3: ", "known"],
        ["module.py:4: ", "seen"],
        ["module.py:5: ", "_found"],
        ["module.py:6: ", "whom"],
    ]


def test_locals_are_left_to_the_reader_of_their_function(tmp_path: Path) -> None:
    assert complaints(tmp_path, "def double(x):\n    found = 2 * x\n    return found\n") == []


def test_a_comment_with_a_reason_makes_an_exception(tmp_path: Path) -> None:
    assert complaints(tmp_path, "def f(number): ...  # name: a word of the file format\n") == []


def test_two_public_classes_of_one_name_and_docstrings_without_a_subject_are_reported(
    tmp_path: Path,
) -> None:
    source = """\
        class Table:
            pass
        class _Outer:
            class Table:
                '''The same within another class.'''
        """
    assert complaints(tmp_path, source) == [
        "module.py:4: class Table has a namesake in module.py:1",
        'module.py:5: a docstring begins with "The same"',
    ]

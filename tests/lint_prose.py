"""A lint for prose, which ``make check`` runs: pages, docstrings and messages in plain English.

It reports words that read as translated, sentences whose subject is a clause ("What was asked …"),
and sentences of more than 30 words in how-tos, tutorials and the help of commands. Code, formulas,
headings and questions are left alone. Every pattern here had no false alarm when it was added.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lint_names import Finding

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 30
SHORT_SENTENCES = ("docs/how-to/", "docs/tutorials/", "src/expost/cli/")
"""People read these while they work."""

INSTEAD = {
    r"mend(?:s|ed|ing)?\b": "fix",
    r"anew\b": "again, or from scratch",
    r"at hand\b": "available",
    r"lately\b": "recently",
    r"for good(?=[.,;:)]|$)": "permanently",
    r"beforehand\b": "in advance",
    r"written over\b": "overwritten",
    r"(?:is|are) there already\b": "already exists",
    r"(?:is|are) there twice\b": "appears twice",
    r"all else\b": "everything else",
    r"(?:whoever|whomever|whom)\b": "a noun: the subject, the analyst",
    r"per cent\b": "%",
    r"but for\b": "except",
    r"also (?:if|where)\b": "even if, even where",
}
_HEADLESS = re.compile(
    r"(?:What|Who|Whose|Whichever) (?:is|are|was|were|has|have|had|does|did|do|can|cannot|no|must"
    r"|would|comes|goes|asks|answers)\b(?!.*\?$)"
)
_FENCE = re.compile(r"^ *(```+|:::+|\$\$).*?^ *\1", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"``.+?``|`[^`]+`|\$[^$]+\$", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])[)\]”*_]*\s+")
_COMMENTS = re.compile(r"(?:^ *#:? .*\n)+", re.MULTILINE)
_ITEM = re.compile(r"\s*(?:[-*+:]|\d+\.) ")


class Passage(NamedTuple):
    """A paragraph, a list item, a table cell or a message, and the line where it begins."""

    line: int
    text: str


def complaints_about(passage: Passage, *, short: bool) -> Iterator[tuple[int, str]]:
    """Yield the lines and the complaints about the sentences of a passage."""
    text = _SPAN.sub(lambda span: "x" + "\n" * span[0].count("\n"), passage.text)
    for pattern, advice in INSTEAD.items():
        for word in re.finditer(rf"\b(?:{pattern})", text, re.IGNORECASE):
            yield _line(passage, text, word.start()), f"{word[0]!r}; say {advice}"
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        words, line = text[start:end].split(), _line(passage, text, start)
        start = end
        if _HEADLESS.match(" ".join(words)):
            yield line, f"a clause is the subject: {' '.join(words[:5])} …"
        if short and len(words) > MOST_WORDS:
            yield line, f"{len(words)} words in a sentence: {' '.join(words[:5])} …"


def _line(passage: Passage, text: str, position: int) -> int:
    return passage.line + text.count("\n", 0, position)


def passages_of_page(text: str) -> Iterator[Passage]:
    """Yield the paragraphs, list items and table cells of a page, without code and headings."""
    text = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    paragraph, start = "", 1
    for line, content in enumerate([*text.splitlines(), ""], 1):
        is_break = not content.strip() or content.lstrip().startswith(("#", "|", ">", "---"))
        item = _ITEM.match(content)
        if is_break or item:
            if paragraph.strip():
                yield Passage(start, _LINK.sub(r"“\1”", paragraph))
            paragraph, start = "", line + is_break
        if content.lstrip().startswith("|"):
            for cell in _LINK.sub(r"“\1”", content).split("|"):
                yield Passage(line, cell.strip())
        elif not is_break:
            paragraph += (content[item.end() :] if item else content) + "\n"


def passages_of_module(source: str) -> Iterator[Passage]:
    """Yield the paragraphs of docstrings, messages, comments and other strings with a space."""
    for block in _COMMENTS.finditer(source):
        text = re.sub(r"^ *#:? ", "", block[0], flags=re.MULTILINE)
        yield Passage(source.count("\n", 0, block.start()) + 1, text)
    tree = ast.parse(source)
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    pieces = {id(piece) for node in formatted for piece in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(_shown(piece) for piece in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in pieces:
            text = str(node.value)
        else:
            continue
        for paragraph in re.finditer(r"(?:[^\n]* [^\n]*\n?)+", text):
            yield Passage(node.lineno + text.count("\n", 0, paragraph.start()), paragraph[0])


def _shown(piece: ast.expr) -> str:
    return str(piece.value) if isinstance(piece, ast.Constant) else "x"


def findings(root: Path) -> list[Finding]:
    """Return what is wrong with the prose of all pages and modules of a project, in order."""
    result = []
    for path in _files(root):
        relative = path.relative_to(root)
        passages = passages_of_page if path.suffix == ".md" else passages_of_module
        short = relative.as_posix().startswith(SHORT_SENTENCES)
        for passage in passages(path.read_text(encoding="utf-8")):
            for line, complaint in complaints_about(passage, short=short):
                result.append(Finding(relative, line, complaint))
    return sorted(result)


def _files(root: Path) -> Iterator[Path]:
    yield from root.glob("*.md")
    for folder in ("docs", "benchmarks", "examples"):
        yield from (root / folder).rglob("*.md")
    yield from (root / "src").rglob("*.py")


if __name__ == "__main__":
    complaints = findings(ROOT)
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)

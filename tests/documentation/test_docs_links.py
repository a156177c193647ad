"""Links and searches lead to pages, as text and as built, and every page can be reached."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.search.en import SearchEnglish

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEXTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for part in ("benchmarks", "docs", "examples")
            for page in (ROOT / part).rglob("*.md")
        ),
    ]
)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
TOCTREE = re.compile(r"^```\{toctree\}\n(?P<entries>.*?)^```$", re.MULTILINE | re.DOTALL)


def anchor(title: str) -> str:
    """The anchor that GitHub and MyST give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading["title"]) for heading in HEADING.finditer(page.read_text("utf-8"))}


def dead_links(page: Path) -> Iterator[str]:
    for link in LINK.finditer(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = urlsplit(link["target"])
        if target.scheme:
            continue
        there = (page.parent / target.path) if target.path else page
        if not there.exists() or (target.fragment and target.fragment not in anchors(there)):
            yield link["target"]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    assert not list(dead_links(page))


def links(page: Path) -> Iterator[tuple[str, Path]]:
    """Yield the text of each link to another page, and that page."""
    text = page.read_text(encoding="utf-8")
    for words, target in re.findall(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+\.md)(?:#[^)]*)?\)", text):
        yield " ".join(words.split()), (page.parent / target).resolve()


def test_pages_of_commands_are_linked_by_their_titles() -> None:
    text = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    table = text[text.index("| to | run | page |") : text.index("## All commands")]
    rows = re.findall(r"`.*\| \[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\) \|$", table, re.MULTILINE)
    assert len(rows) == table.count("](../")
    for words, target in rows:
        (title, *_) = HEADING.findall((DOCS / "reference" / target).read_text(encoding="utf-8"))
        assert words == title


def test_links_called_panel_lead_to_the_page_on_many_subjects() -> None:
    targets = {
        target for page in TEXTS for words, target in links(page) if words in ("panel", "panels")
    }
    assert targets == {DOCS / "how-to" / "many_subjects.md"}


def test_every_page_is_in_a_table_of_contents_once() -> None:
    listed = []
    for page in DOCS.rglob("*.md"):
        for toctree in TOCTREE.finditer(page.read_text(encoding="utf-8")):
            for entry in re.findall(r"^[^:\s]\S*$", toctree["entries"], re.MULTILINE):
                listed.append((page.parent / f"{entry}.md").relative_to(DOCS))
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md")} - {Path("index.md")}
    assert sorted(listed) == sorted(pages)


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## Duchi's mechanism\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#duchis-mechanism) [c](https://example.org) `[d](no.md)`\n"
        "[e](gone.md) [f](there.md#gone) [g](#gone)\n",
        encoding="utf-8",
    )
    assert list(dead_links(page)) == ["gone.md", "there.md#gone", "#gone"]


class Page(HTMLParser):
    """What a built page links to and loads, and which places it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(value for name in ("id", "name") if (value := given.get(name)))
        if tag in ("a", "link", "script", "img") and (
            target := given.get("href") or given.get("src")
        ):
            self.targets.append(target)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The documentation, built as ``make docs`` does; a warning is an error."""
    out = tmp_path_factory.mktemp("html")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(DOCS), str(out)]
    build += [
        "-D",
        "toc_object_entries=0",
    ]  # a list of all names beside the API: a third of the time
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path: Page(path) for path in out.rglob("*.html")}


@pytest.mark.slow
def test_links_in_the_built_pages_lead_somewhere(built: dict[Path, Page]) -> None:
    dead = []
    for path, page in built.items():
        for link in page.targets:
            target = urlsplit(link)
            if target.scheme:
                continue
            there = (path.parent / unquote(target.path)).resolve() if target.path else path
            place = unquote(target.fragment)
            if not there.exists() or (
                place and there.suffix == ".html" and place not in built[there].places
            ):
                dead.append((path.name, link))
    assert not dead


@pytest.mark.slow
def test_the_built_pages_need_no_network(built: dict[Path, Page]) -> None:
    """Fonts, formulas and the search come with them, so that they can be read from a disk."""
    for path in built:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|link)\b[^>]*(?:src|href)=\"(https?:)?//", text)
        assert not loaded, path.name
    index = next(path for path in built if path.name == "search.html").parent / "searchindex.js"
    assert index.read_text(encoding="utf-8").startswith("Search.setIndex(")


SEARCHES = {
    "k-RR": "reference/queries",
    "GRR": "reference/queries",
    "direct encoding": "reference/queries",
    "SUE": "reference/queries",
    "OUE": "reference/queries",
    "OLH": "reference/queries",
    "BLH": "reference/queries",
    "RAPPOR": "reference/queries",
    "1BitMean": "reference/queries",
    "frequency oracle": "reference/queries",
    "local randomizer": "reference/queries",
    "privacy filter": "reference/filters",
    "privacy odometer": "reference/filters",
    "privacy loss random variable": "explanation/dp_readers",
    "PLD": "explanation/dp_readers",
    "OpenDP": "explanation/dp_readers",
    "advanced composition": "explanation/dp_readers",
    "FAQ": "how-to/troubleshooting",
    "refused": "how-to/troubleshooting",
    "negative estimate": "how-to/troubleshooting",
    "limits": "reference/limits",
    "stability": "reference/limits",
    "deploy": "how-to/ledger",
    "quickstart": "index",
}


def search(index: dict[str, Any], query: str) -> set[str]:
    """Return the pages that have every word of a query, as the search of the built docs does."""
    english = SearchEnglish({})
    split = english.split(query.lower())
    words = [english.stem(word) for word in split if english.word_filter(word)]
    assert words
    pages = []
    for word in words:
        listed = [index[part].get(word, []) for part in ("terms", "titleterms")]
        numbers = [[found] if isinstance(found, int) else found for found in listed]
        pages.append({index["docnames"][number] for part in numbers for number in part})
    return set.intersection(*pages)


@pytest.mark.slow
def test_the_words_of_the_literature_and_of_readers_lead_to_pages(built: dict[Path, Page]) -> None:
    folder = next(path for path in built if path.name == "search.html").parent
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    missed = [query for query, page in SEARCHES.items() if page not in search(index, query)]
    assert not missed
    assert search(index, "blockchain") == set()


@pytest.mark.slow
def test_signatures_name_their_types_and_examples_can_be_copied(built: dict[Path, Page]) -> None:
    for path in built:
        text = path.read_text(encoding="utf-8")
        assert "ForwardRef" not in text, path.name
        assert 'class="highlight' not in text or "copybutton.js" in text, path.name

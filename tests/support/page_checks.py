"""What every page has to be, as far as its text tells: well formed, complete, on its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "checked", "parsed"]

_VOID = {"meta", "br", "hr", "img", "input", "link"}
_ALWAYS = ("file", "date", "budget")
_DIGESTS = ("content id", "files digest", "root")


@dataclass
class Element:
    """An element of a page, with what is inside of it."""

    tag: str
    attributes: dict[str, str]
    above: Element | None = None
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, tag: str, kind: str = "") -> list[Element]:
        """All elements inside with this tag, and perhaps of this class."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if child.tag == tag and (not kind or kind in child.attributes.get("class", "")):
                    found.append(child)
                found += child.all(tag, kind)
        return found

    @property
    def rows(self) -> list[list[str]]:
        """The cells of all tables inside."""
        return [
            [c.text for c in row.children if isinstance(c, Element) and c.tag in ("td", "th")]
            for row in self.all("tr")
        ]

    @property
    def facts(self) -> dict[str, str]:
        """What the header says, by name; of the digest of the content all digits."""
        (table,) = self.all("table", "facts")
        facts = dict(table.rows)
        (name,) = facts.keys() & _DIGESTS
        explained, _, digits = facts[name].rpartition("All digits")
        assert explained.startswith(f"{digits[:12]}… ")
        assert len(explained) > 40
        return {**facts, name: digits}

    @property
    def alts(self) -> list[str]:
        """The words for each picture."""
        return [svg.attributes["aria-label"] for svg in self.all("svg", "chart")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.here = self.top = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(element)
        if tag not in _VOID:
            self.here = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.here.children.append(Element(tag, {n: v or "" for n, v in attrs}, self.here))

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag, f"<{self.here.tag}> is closed by </{tag}>"
        assert self.here.above is not None
        self.here = self.here.above

    def handle_data(self, data: str) -> None:
        self.here.children.append(data)


def parsed(text: str) -> Element:
    """A page as a tree; every element has to be closed where it was opened."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.here is reader.top, f"<{reader.here.tag}> is not closed"
    return reader.top


def checked(text: str) -> Element:
    """The same, of a page that has all that every page has to have."""
    page = parsed(text)
    assert len(page.all("h1")) == 1
    assert page.all("html")[0].attributes["lang"] == "en"
    assert page.all("title")[0].text == page.all("h1")[0].text.replace("\xa0", " ")
    assert all(page.facts[name] for name in _ALWAYS)
    _needs_nothing(page, text)
    for svg in page.all("svg", "chart"):
        assert svg.attributes["role"] == "img"
        assert len(svg.attributes["aria-label"]) > 20
        figure = svg.above
        assert figure is not None
        assert figure.tag == "figure"
        assert figure.all("figcaption")[0].text
        (details,) = figure.all("details")
        assert len(details.rows) > 1, "the numbers of a figure are missing"
    for table in page.all("table"):
        widths = {len(row) for row in table.rows}
        assert len(widths) == 1, f"rows of {sorted(widths)} cells"
    return page


def _needs_nothing(page: Element, text: str) -> None:
    """Nothing is loaded, nothing runs, and the policy says so."""
    (policy,) = [m for m in page.all("meta") if "http-equiv" in m.attributes]
    assert policy.attributes["http-equiv"] == "Content-Security-Policy"
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'sha256-")
    for tag in ("script", "link", "img", "iframe", "object", "embed", "form", "base"):
        assert not page.all(tag)
    # A digest in the policy may have two slashes in a row.
    rest = text.replace(policy.attributes["content"], "")
    assert not re.search(r"https?:|//|url\(|@import", rest)
    for element in _all(page):
        # The policy forbids styles in attributes: they would silently do nothing.
        assert not {"src", "href", "style"} & set(element.attributes)
        assert not any(name.startswith("on") for name in element.attributes)


def _all(element: Element) -> list[Element]:
    inside = [child for child in element.children if isinstance(child, Element)]
    return [each for child in inside for each in (child, *_all(child))]

"""Pages of HTML that need nothing from anywhere else: no script, no font, no other file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["facts", "page", "picture", "table", "text"]

_STYLE = """
body { font-family: system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; line-height: 1.5; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin-top: 2rem; } p, li, h1, figcaption { max-width: 46rem; }
.first { font-size: 1.1rem; } .note, figcaption { color: #555; font-size: .9rem; }
svg, img { max-width: 100%; height: auto; } img { width: 36rem; } figure { margin: 1.2rem 0; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 0 1rem; }
.wide { overflow-x: auto; background-repeat: no-repeat;
  background-size: 2.5rem 100%, 2.5rem 100%, .8rem 100%, .8rem 100%;
  background-attachment: local, local, scroll, scroll;
  background-image: linear-gradient(to right, #fff 30%, #fff0),
    linear-gradient(to left, #fff 30%, #fff0),
    linear-gradient(to right, #0003, #0000), linear-gradient(to left, #0003, #0000);
  background-position: 0 0, 100% 0, 0 0, 100% 0; }
table { border-collapse: collapse; margin: .4rem 0; }
th, td { padding: .15rem .7rem .15rem 0; text-align: right; vertical-align: top; }
th { border-bottom: 1px solid #999; font-weight: 600; }
th:first-child, td:first-child, .words th, .words td, .facts th, .facts td { text-align: left; }
.words td:nth-child(2) { min-width: 12rem; }
.facts th { border: 0; white-space: nowrap; } .facts td { overflow-wrap: anywhere; }
"""


def page(title: str, body: str) -> str:
    """A document; the body is HTML, the title is text."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def picture(svg: str, *, alt: str, caption: str) -> str:
    """A drawing with words for those who do not see it, and a line below it."""
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    words: bool = False,
) -> str:
    """A table of numbers, or of ``words``; it scrolls on its own where it is too wide."""
    kind = ' class="words"' if words else ""
    lines = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    above = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return (
        f'<figure>{above}<div class="wide"><table{kind}>'
        f"<thead><tr>{_cells(head, 'th')}</tr></thead><tbody>{lines}</tbody></table></div></figure>"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, in two columns; a long word is broken where the screen ends."""
    rows = (
        f'<tr><th scope="row">{text(name)}</th><td>{text(what)}</td></tr>' for name, what in pairs
    )
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'


def text(words: object) -> str:
    """Text as HTML; a number stays on one line with its sign."""
    return escape(str(words)).replace(" %", "&nbsp;%").replace("ε = ", "ε&nbsp;=&nbsp;")


def _cells(cells: Sequence[object], kind: str) -> str:
    return "".join(f"<{kind}>{text(cell)}</{kind}>" for cell in cells)

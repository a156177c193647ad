"""A browser for all tests, and every page as a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from browser.browsers import browser
from browser.samples import SAMPLES

CACHE = Path(__file__).parents[2] / "build" / "browser"

Open = Callable[..., playwright.Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[playwright.Browser]:
    installed = browser(CACHE)
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(
            executable_path=installed.path,
            env={**os.environ, **installed.environment},
            # Pages of our own, on machines where tests run as root.
            args=["--no-sandbox"],
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, made when it is first asked for."""
    written: dict[str, Path] = {}

    def page(name: str) -> Path:
        if name not in written:
            folder = tmp_path_factory.mktemp(name)
            written[name] = folder / "page.html"
            written[name].write_text(SAMPLES[name](folder), encoding="utf-8")
        return written[name]

    return page


@pytest.fixture
def opened(chromium: playwright.Browser) -> Iterator[Open]:
    """A function that opens a file; whatever is asked for or complained of fails the test."""
    heard: list[str] = []
    contexts = []

    def open_(file: Path, width: int = 800, scheme: str = "light") -> playwright.Page:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url))
        page.goto(file.as_uri())
        assert heard.pop(0) == file.as_uri()
        return page

    yield open_
    for context in contexts:
        context.close()
    assert heard == []

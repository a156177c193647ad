"""Shared by all tests.

Hypothesis has no deadline, because machines differ. Where changes are judged (``CI`` is set) its
examples are always the same, so that nothing but the change decides; elsewhere they are new ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from expost.cli.main import main
from slow_tests import LIST

if TYPE_CHECKING:
    from support.collectors import Study

settings.register_profile(
    "expost", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("expost")

Run = Callable[..., tuple[int, str, str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are listed as slow."""
    slow = set(LIST.read_text("utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["expost", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        code = exit_.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The DSN of a PostgreSQL that runs: the one that is named, or one of our own."""
    from support.postgres_server import named_server, shared_server

    return named_server() or shared_server().dsn


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    """The DSN of an empty schema."""
    from support.postgres_server import fresh

    with fresh(postgres_server) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """A study on a collector, which the tests of a module share."""
    from support.collectors import Study

    shared = Study(tmp_path_factory.mktemp("study"))
    yield shared
    shared.close()

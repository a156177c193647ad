"""A study that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.collectors import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    shared = Study(tmp_path_factory.mktemp("study"))
    yield shared
    shared.close()

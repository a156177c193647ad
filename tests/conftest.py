"""Shared by all tests.

Hypothesis has no deadline, because machines differ. Where changes are judged (``CI`` is set) its
examples are always the same, so that nothing but the change decides; elsewhere they are new ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
from hypothesis import settings

from expost.cli.main import main

settings.register_profile(
    "expost", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("expost")

Run = Callable[..., tuple[int, str, str]]


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

"""Copies of ``device.py`` with a fault, which tests must notice."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

from expost.device import device

__all__ = ["mutated"]

SOURCE = Path(device.__file__).read_text("utf-8")


def mutated(*replaced: tuple[str, str]) -> Any:
    """Return the device with some lines replaced."""
    source = SOURCE
    for old, new in replaced:
        assert source.count(old) == 1, (source.count(old), old)
        source = source.replace(old, new)
    module = types.ModuleType("a_mutant")
    module.__file__ = device.__file__
    exec(compile(source, "a_mutant.py", "exec"), module.__dict__)
    return module

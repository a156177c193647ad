"""Telling the objects of a library apart without importing it.

An object can only be one of its models if it is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_a"]


def is_a(thing: Any, module: str, *names: str) -> bool:
    """Whether this is an instance of such a class itself; a subclass may predict otherwise."""
    home = sys.modules.get(module)
    return any(type(thing) is getattr(home, name, None) for name in names)

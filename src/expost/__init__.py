"""Privacy accounting for local differential privacy, based on the answers actually given.

What a first program needs is here; the rest is in its room, such as ``xp.knowledge``. All names
are listed once, in ``__init__.pyi``, and imported when they are first used.

>>> import expost as xp
>>> session = xp.Session(
...     xp.FiniteSet(["no", "yes"]), "yes", filter=xp.BayesianFilter(epsilon=2)
... )
>>> session.ask(xp.randomized_response(epsilon="0.5")) in ("no", "yes")
True
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_HOME = {
    name: module
    for module, name in re.findall(
        r"^from (\S+) import (\w+) as \2$",
        Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from expost.errors import did_you_mean

        raise AttributeError(
            f"module 'expost' has no attribute {name!r}{did_you_mean(name, __all__)}"
        )
    home = _HOME[name]
    value = (
        import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""Fitted objects of other libraries, which are recognized without importing these.

An object can only be an instance of a class whose module is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from expost.errors import InvalidInput

__all__ = ["is_a", "is_search", "leader", "learned", "steps_of"]


def learned(step: Any, name: str) -> Any:
    """What a step has learned from data."""
    try:
        return getattr(step, name)
    except AttributeError:
        raise InvalidInput(f"this {type(step).__name__} is not fitted") from None


def steps_of(pipeline: Any) -> list[tuple[str, Any]]:
    """The steps of a pipeline that do something, with their names."""
    return [
        (name, step)
        for name, step in pipeline.steps
        if step is not None and not isinstance(step, str)
    ]


def leader(step: Any) -> Any:
    """What takes the columns first, and so knows how many there are and their names."""
    parts: list[tuple[str, Any]] = []
    if is_a(step, "sklearn.pipeline", "Pipeline"):
        parts = steps_of(step)
    elif is_a(step, "sklearn.pipeline", "FeatureUnion"):
        parts = [(name, part) for name, part in step.transformer_list if not isinstance(part, str)]
    elif is_search(step):
        parts = [("", learned(step, "best_estimator_"))]
    return leader(parts[0][1]) if parts else step


def is_search(model: Any) -> bool:
    """Whether this is a search for parameters, which predicts what its best model does."""
    return is_a(model, "sklearn.model_selection", "GridSearchCV", "RandomizedSearchCV")


def is_a(thing: Any, module: str, *names: str) -> bool:
    """Whether this is an instance of such a class itself; a subclass may predict otherwise."""
    home = sys.modules.get(module)
    return any(type(thing) is getattr(home, name, None) for name in names)

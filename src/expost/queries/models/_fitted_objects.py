"""Fitted objects of other libraries, which are recognized without importing these.

An object can only be an instance of a class whose module is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from expost.errors import InvalidInput

__all__ = ["first_step", "fitted_attribute", "is_a", "is_search", "steps_of"]


def fitted_attribute(step: Any, name: str) -> Any:
    """Return an attribute that fitting a step has set."""
    try:
        return getattr(step, name)
    except AttributeError:
        raise InvalidInput(f"this {type(step).__name__} is not fitted") from None


def steps_of(pipeline: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline that do something, with their names."""
    return [
        (name, step)
        for name, step in pipeline.steps
        if step is not None and not isinstance(step, str)
    ]


def first_step(step: Any) -> Any:
    """Return the step that takes the columns first: it knows their count and names."""
    parts: list[tuple[str, Any]] = []
    if is_a(step, "sklearn.pipeline", "Pipeline"):
        parts = steps_of(step)
    elif is_a(step, "sklearn.pipeline", "FeatureUnion"):
        parts = [(name, part) for name, part in step.transformer_list if not isinstance(part, str)]
    elif is_search(step):
        parts = [("", fitted_attribute(step, "best_estimator_"))]
    return first_step(parts[0][1]) if parts else step


def is_search(model: Any) -> bool:
    """Return whether this is a search for parameters, which predicts as its best model."""
    return is_a(model, "sklearn.model_selection", "GridSearchCV", "RandomizedSearchCV")


def is_a(model: Any, module: str, *names: str) -> bool:
    """Return whether the type is exactly such a class; a subclass may predict differently."""
    loaded_module = sys.modules.get(module)
    return any(type(model) is getattr(loaded_module, name, None) for name in names)

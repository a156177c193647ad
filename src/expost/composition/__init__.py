"""Composition rules: what a sequence of queries takes of an (epsilon, delta) budget."""

from __future__ import annotations

from typing import Any

from expost.composition.base import Rule, Total
from expost.composition.mixture import Mixture
from expost.composition.renyi import Renyi
from expost.composition.rogers import Rogers
from expost.composition.sums import Sums
from expost.composition.whitehouse import Whitehouse
from expost.reading import of_kind

__all__ = [
    "RULES",
    "Mixture",
    "Renyi",
    "Rogers",
    "Rule",
    "Sums",
    "Total",
    "Whitehouse",
    "rule_from_json",
]

RULES: dict[str, type[Rule]] = {
    rule.kind: rule for rule in (Sums, Rogers, Whitehouse, Renyi, Mixture)
}


def rule_from_json(value: Any) -> Rule:
    """The rule of a file, by its kind."""
    kind, fields = of_kind(value, RULES, "rule")
    return kind.from_json(fields)

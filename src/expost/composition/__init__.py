"""Composition rules: what a sequence of queries takes of an (epsilon, delta) budget."""

from __future__ import annotations

from typing import Any

from expost.composition.base import Rule, Total
from expost.composition.mixture import Mixture
from expost.composition.renyi import Renyi
from expost.composition.rogers import Rogers
from expost.composition.sums import Sums
from expost.composition.whitehouse import Whitehouse
from expost.errors import InvalidInput, at
from expost.reading import members, text

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
    fields = members(value, required=("kind",), optional=None)
    with at("kind"):
        kind = text(fields["kind"])
        rule = RULES.get(kind)
        if rule is None:
            raise InvalidInput(f"unknown rule; known: {', '.join(RULES)}")
    return rule.from_json({name: field for name, field in fields.items() if name != "kind"})

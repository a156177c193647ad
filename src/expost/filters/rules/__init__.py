"""Composition rules: how much of an (epsilon, delta) budget a sequence of queries takes.

A rule looks at the queries and never at the responses. :class:`Mixture` is the default. If you know
roughly how large the queries will be, :class:`Renyi` accepts slightly more; if you know how many
there will be as well, :class:`Declared` accepts as many as possible. The others are for
comparison.

>>> from expost.filters.rules import Mixture, Renyi
>>> Mixture.for_budget(epsilon=5, delta="1e-6")
Mixture(4 lambdas from 5.116)
>>> Renyi.for_plan(epsilon=5, delta="1e-6", query_epsilon="0.1")
Renyi(order=6.399)
"""

from __future__ import annotations

from typing import Any

from expost.files.reading import split_kind
from expost.filters.rules._martingale import best_exponent_for_small
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total
from expost.filters.rules.declared import Declared
from expost.filters.rules.mixture import Mixture
from expost.filters.rules.renyi import Renyi
from expost.filters.rules.rogers import Rogers
from expost.filters.rules.sums import Sums
from expost.filters.rules.whitehouse import Whitehouse

__all__ = [
    "RULES",
    "UNAFFORDABLE",
    "Declared",
    "Mixture",
    "Renyi",
    "Rogers",
    "Rule",
    "Sums",
    "Total",
    "Whitehouse",
    "best_exponent_for_small",
    "rule_from_json",
]

RULES: dict[str, type[Rule]] = {
    rule.kind: rule for rule in (Sums, Rogers, Whitehouse, Renyi, Mixture, Declared)
}


def rule_from_json(value: Any) -> Rule:
    """Read the rule that a transcript file describes, by its ``kind``.

    >>> rule_from_json({"kind": "whitehouse", "delta_prime": "5e-7"})
    Whitehouse(delta_prime=0.0000005)
    """
    kind, fields = split_kind(value, RULES, "rule")
    return kind.from_fields(fields)

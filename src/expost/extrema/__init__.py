"""Maximum and minimum of a log-likelihood over a domain."""

from expost.extrema.choose import (
    all_compared,
    capped,
    compared,
    concave_spreads,
    realized_spread,
)
from expost.extrema.effort import GAP, NODES, NODES_OF_DECISION, Effort, Progress
from expost.extrema.finite import exact_spread, spread, spread_with
from expost.extrema.pairs import exact_spread_apart, spread_of_pair, widest_pair

__all__ = [
    "GAP",
    "NODES",
    "NODES_OF_DECISION",
    "Effort",
    "Progress",
    "all_compared",
    "capped",
    "compared",
    "concave_spreads",
    "exact_spread",
    "exact_spread_apart",
    "realized_spread",
    "spread",
    "spread_of_pair",
    "spread_with",
    "widest_pair",
]

"""Maximum and minimum of a log-likelihood over a domain."""

from expost.extrema.finite import exact_spread, spread, spread_with

__all__ = ["exact_spread", "spread", "spread_with"]

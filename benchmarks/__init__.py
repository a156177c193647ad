"""Benchmarks on the public API; peers and limits are measured beside us in the same run."""

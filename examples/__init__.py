"""Worked examples: health data with the public API, and the experiments of the paper."""

"""The extremes of a sum of links of affine scores over a box."""

from expost.solver._effort import GAP, NODES, Effort, Progress

__all__ = ["GAP", "NODES", "Effort", "Progress"]

"""The extremes of a sum of links of affine scores over a box."""

from expost.solver.effort import GAP, NODES, NODES_OF_DECISION, Effort, Progress

__all__ = ["GAP", "NODES", "NODES_OF_DECISION", "Effort", "Progress"]

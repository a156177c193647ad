"""Compile the kernels, or load them from disk if they were compiled before.

``python -m expost.solver.warm_up`` compiles them ahead of time.
"""

from __future__ import annotations

from expost.solver.kernels.compiled import machine_code

__all__ = ["ready"]


def ready() -> None:
    """Load all kernels, or compile them with a message."""
    machine_code()


if __name__ == "__main__":
    ready()

"""The kernels, compiled. The first use ever says so; from then on they come from the disk.

``python -m expost.solver.warm_up`` compiles them ahead of time.
"""

from __future__ import annotations

from expost.solver.kernels.compiled import machine_code

__all__ = ["ready"]


def ready() -> None:
    """Load all kernels, or compile them, and say so then."""
    machine_code()


if __name__ == "__main__":
    ready()

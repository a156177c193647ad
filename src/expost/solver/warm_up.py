"""Compiling the kernels, or loading them from disk, ahead of time.

``python -m expost.solver.warm_up`` compiles them ahead of time.
"""

from __future__ import annotations

from expost.solver.kernels.compiled import machine_code

__all__ = ["load_kernels"]


def load_kernels() -> None:
    """Load all kernels, or compile them with a message."""
    machine_code()


if __name__ == "__main__":
    load_kernels()

"""Losses with a proof, and ``verify.py``, which checks the proof and needs nothing else."""

from __future__ import annotations

from expost.proof._certificates import Certificate, certificate

__all__ = [
    "Certificate",
    "certificate",
]

"""Losses with a proof, and the checker that needs nothing else."""

from __future__ import annotations

from expost.proof.certificates import Certificate, certificate

__all__ = [
    "Certificate",
    "certificate",
]

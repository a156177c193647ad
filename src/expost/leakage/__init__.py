"""Quantitative information flow: what an adversary with a given goal gains from responses."""

from __future__ import annotations

from expost.leakage.gains import Gain, GainMatrix, Identity, Nearness, Property, Tries
from expost.leakage.measures import (
    average_leakage,
    bayes_capacity,
    capacity,
    expected_vulnerability,
    leakage_history,
    max_case_leakage,
    posterior_vulnerability,
    realized_leakage,
    vulnerability,
)

__all__ = [
    "Gain",
    "GainMatrix",
    "Identity",
    "Nearness",
    "Property",
    "Tries",
    "average_leakage",
    "bayes_capacity",
    "capacity",
    "expected_vulnerability",
    "leakage_history",
    "max_case_leakage",
    "posterior_vulnerability",
    "realized_leakage",
    "vulnerability",
]

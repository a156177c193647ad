"""Quantitative information flow: what an adversary with a given goal gains from responses.

A :class:`Gain` is the goal: what each guess is worth for each value. The :func:`vulnerability` is
the expected gain of the best guess, and a leakage is the logarithm of the factor by which
responses raise it. No leakage exceeds the realized loss, whatever the goal and the prior.

===========================  ===============================  ==========================
about                        under a given belief             under any belief
===========================  ===============================  ==========================
responses that were given    :func:`realized_leakage`         :func:`capacity`
the worst response           :func:`max_case_leakage`         :func:`capacity`
responses on average         :func:`average_leakage`          :func:`bayes_capacity`
===========================  ===============================  ==========================

>>> import expost as xp
>>> from expost import leakage
>>> pin = xp.FiniteSet(range(100))
>>> query = xp.randomized_response(epsilon=2)
>>> round(leakage.capacity(leakage.Identity(), query, pin).upper, 3)
1.938
"""

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

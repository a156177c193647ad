"""Knowledge of an observer: beliefs, statements, knowledge gain and leakage.

A :class:`Belief` says what an observer considers likely, and a :class:`Statement` what they want to
know. :func:`confidence` is how sure the belief makes them of the statement, and
:func:`knowledge_gain` how much the responses changed that, in nats. It never exceeds the realized
loss, whatever the belief and the statement; a :func:`witness` shows that the loss can be attained.
Over :class:`Attributes` a :class:`RecordBelief` is a belief, and on a box :class:`Samples` take its
place.

>>> import expost as xp
>>> from expost.knowledge import Belief, Statement, confidence
>>> ages = xp.FiniteSet([20, 40, 60, 80])
>>> before, old = Belief.uniform(ages), Statement(ages, "value >= 60")
>>> question = xp.perturbation([20, 40, 60, 80], range=(20, 80), epsilon=1)
>>> after = before.updated(xp.Transcript(ages).add(question, 80))
>>> confidence(before, old), round(float(confidence(after, old)), 3)
(Fraction(1, 2), 0.654)

An adversary may have another goal than a statement. A :class:`GainFunction` says what each guess is
worth for each value (quantitative information flow). The :func:`vulnerability` is the expected gain
of the best guess, and a leakage is the logarithm of the factor by which responses raise it. No
leakage exceeds the realized loss, whatever the goal and the prior.

===========================  ===============================  ==========================
about                        under a given belief             under any belief
===========================  ===============================  ==========================
responses that were given    :func:`realized_leakage`         :func:`capacity`
the worst response           :func:`max_case_leakage`         :func:`capacity`
responses on average         :func:`average_leakage`          :func:`bayes_capacity`
===========================  ===============================  ==========================

>>> pin = xp.FiniteSet(range(100))
>>> query = xp.randomized_response(epsilon=2)
>>> round(xp.knowledge.capacity(xp.knowledge.Identity(), query, pin).upper, 3)
1.938
"""

from __future__ import annotations

from expost.knowledge._belief import Belief, Composite, exact_likelihoods
from expost.knowledge._confidence_change import ConfidenceChange, confidence_change
from expost.knowledge._gain import (
    Witness,
    allowed_confidence,
    broken_limit,
    confidence,
    gain_ratio,
    knowledge_gain,
    learning_limit,
    nats_of,
    witness,
)
from expost.knowledge._gain_functions import (
    GainFunction,
    GainMatrix,
    Identity,
    Nearness,
    Property,
    Tries,
)
from expost.knowledge._grammar import coordinate_names, named_rows, parse_predicate
from expost.knowledge._leakage import (
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
from expost.knowledge._priors import load_prior
from expost.knowledge._record_belief import RecordBelief, allowed_histories
from expost.knowledge._samples import GainEstimate, Samples, estimated_gain
from expost.knowledge._statement import Statement, locate_all, read_probability

__all__ = [
    "Belief",
    "Composite",
    "ConfidenceChange",
    "GainEstimate",
    "GainFunction",
    "GainMatrix",
    "Identity",
    "Nearness",
    "Property",
    "RecordBelief",
    "Samples",
    "Statement",
    "Tries",
    "Witness",
    "allowed_confidence",
    "allowed_histories",
    "average_leakage",
    "bayes_capacity",
    "broken_limit",
    "capacity",
    "confidence",
    "confidence_change",
    "coordinate_names",
    "estimated_gain",
    "exact_likelihoods",
    "expected_vulnerability",
    "gain_ratio",
    "knowledge_gain",
    "leakage_history",
    "learning_limit",
    "load_prior",
    "locate_all",
    "max_case_leakage",
    "named_rows",
    "nats_of",
    "parse_predicate",
    "posterior_vulnerability",
    "read_probability",
    "realized_leakage",
    "vulnerability",
    "witness",
]

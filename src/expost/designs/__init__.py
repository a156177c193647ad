"""Designs: how accurate a study will be, and which strategy to choose, before the first query.

A :class:`Study` is a domain, a number of subjects with a budget each, a population, and goals
(shares, distributions or means). It also says when its questions are known: up front,
sequentially, or open-ended. A *strategy* is one way to spend the budget of a subject, such as basic
composition, one sampled question at the full budget, saturating queries with rising caps, or a
single report of the full value. ``strategies/`` has one file for each.

One call of :func:`design` goes through these steps:

1. ``study.py`` validates the study and turns it into a ``StudyModel``: arrays only.
2. ``_model_support.py`` lists the values that matter, at most 2,000, with their probabilities in
   the population. ``_goals.py`` turns each goal into a linear function of the distribution of these
   values, and into the question to ask about it.
3. ``strategies_for(study)`` lists the strategies that make sense, including ones that this study
   cannot use, which show what knowing its questions earlier would be worth.
4. Each strategy returns its ``Outcomes``: everything that an analyst sees of a subject, with exact
   probabilities where possible, and from simulated subjects otherwise.
5. ``_accuracy.py`` predicts the standard errors of maximum-likelihood estimates from these
   outcomes: asymptotically, and corrected by simulated groups, which matters if subjects are few.
6. ``_design.py`` sorts the predictions, refines those near the best one, and recommends the best
   that the study can use.

No decision about privacy depends on a design, so its numbers are estimates without outward
rounding. Proofs: docs/theory/saturating.md.

:func:`forecast` is for a study that is running: how many subjects will still answer a query.

>>> import expost as xp
>>> study = dict(subjects=2000, epsilon=2, goals=["value >= 7", "value < 2", "value == 5"])
>>> design = xp.design(xp.FiniteSet(range(10)), **study)
>>> best = design.recommended
>>> best.name
'saturating, equal steps'
>>> [round(error, 2) for error in best.accuracy.standard_errors]
[0.02, 0.02, 0.01]
>>> design.best_of("basic composition").error > 1.5 * best.error
True
"""

from __future__ import annotations

from expost.designs._design import Design, Prediction, design, design_study
from expost.designs._forecast import Forecast, forecast
from expost.designs._goals import Goal
from expost.designs.study import Arrival, Study, load_study, study_from_json

__all__ = [
    "Arrival",
    "Design",
    "Forecast",
    "Goal",
    "Prediction",
    "Study",
    "design",
    "design_study",
    "forecast",
    "load_study",
    "study_from_json",
]

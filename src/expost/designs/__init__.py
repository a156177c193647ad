"""Predictions of how accurate each study design will be, before any query, and which to choose.

>>> import expost as xp
>>> study = dict(subjects=2000, epsilon=2, goals=["value >= 7", "value < 2", "value == 5"])
>>> found = xp.design(xp.FiniteSet(range(10)), **study)
>>> found.recommended.name
'saturating, equal steps'
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

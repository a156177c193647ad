"""Predictions of how accurate each study design will be, before any query, and which to choose.

>>> import expost as xp
>>> study = dict(subjects=2000, epsilon=2, goals=["value >= 7", "value < 2", "value == 5"])
>>> found = xp.design(xp.FiniteSet(range(10)), **study)
>>> found.recommended.name
'saturating, equal steps'
"""

from __future__ import annotations

from expost.designs.designing import design, designed
from expost.designs.forecasting import Forecast, forecast
from expost.designs.goals import Goal
from expost.designs.result import Design, Prediction
from expost.designs.study import Arrival, Study
from expost.designs.study_file import load_study, study_from_json

__all__ = [
    "Arrival",
    "Design",
    "Forecast",
    "Goal",
    "Prediction",
    "Study",
    "design",
    "designed",
    "forecast",
    "load_study",
    "study_from_json",
]

"""Saturating queries, and schedules of steps in which to spend a budget.

:func:`saturating` makes the best next query given what a subject has answered: whatever the
response, the realized loss ends at a cap. The caps of several questions follow a schedule.

>>> import expost as xp
>>> from expost.saturation import equal_caps
>>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(range(10))))
>>> first = xp.saturating(start, "value >= 7", cap=equal_caps(2, questions=4)[0])
>>> after = start.add(first, 1)
>>> second = xp.saturating(after, "value == 3", cap=equal_caps(2, questions=4)[1])
>>> round(after.loss.upper, 6), round(after.add(second, 0).loss.upper, 6)
(0.5, 1.0)
"""

from __future__ import annotations

from expost.saturation._saturating import saturating
from expost.saturation.schedules import CapAssignment, equal_caps, geometric_caps, sampled_caps

__all__ = ["CapAssignment", "equal_caps", "geometric_caps", "sampled_caps", "saturating"]

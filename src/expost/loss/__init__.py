r"""The realized loss: how much the responses so far reveal, exactly or within certified bounds.

The log-likelihood of a value :math:`x` is a sum over the exchanges of a subject,

.. math:: \ell(x) = \sum_i \log P[Q_i(x) = y_i],

and the realized loss is its spread, :math:`\max_x \ell(x) - \min_x \ell(x)`. It depends on the
tally alone: how often each query had each response.

The pieces, from below:

- :class:`LogLikelihood` is :math:`\ell` of one tally. :func:`log_likelihood` chooses the kind that
  suits the domain: an array with a double per value (``_on_set``), tables per attribute that are
  eliminated one by one (``_on_attributes``, ``_components``, ``_sweeps``), or a sum of terms whose
  extremes a branch-and-bound search encloses (``_on_box``).
- On finite domains, doubles come with a bound on their error. Where that is too coarse, integer
  weights decide (``_query_marginal``, ``_exponents``). So ties are exact: three queries of 0.1 fit
  a budget of 0.3. On a box every number is an enclosure.
- :class:`Odometer` follows a transcript: one :class:`LogLikelihood` per exchange, its loss, and the
  sum of the epsilons. Filters decide on it.
- :func:`replay` decides every exchange of a transcript again, and reports whether the budget was
  respected throughout and how high the loss was at its peak.

How a decision uses them: ``filter.decide(odometer, query)`` asks the odometer for the worst loss
after the query. Its :class:`LogLikelihood` reduces :math:`\ell` to what the query can tell apart,
adds the largest log-ratio of each possible response, and compares the spread with the budget:
first in doubles, then exactly. If the query is asked and answered, ``odometer.add`` returns the
next odometer.

The loss can fall. Here the second response contradicts the first:

>>> import expost as xp
>>> query = xp.randomized_response(epsilon="1/2")
>>> start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
>>> odometer = xp.Odometer(start).add(query, "yes").add(query, "no")
>>> [round(loss.upper, 6) for loss in odometer.history], round(odometer.spent.upper, 6)
([0.0, 0.5, 0.0], 1.0)
>>> start.filter.decide(odometer, query).accepted
True
>>> result = xp.replay(odometer)
>>> result.respected, round(result.peak.upper, 6)
(True, 0.5)

:func:`realized_loss` computes the loss of a transcript alone. Proofs: docs/theory/realized_loss.md,
attributes.md, changing.md, extrema.md and filters.md.
"""

from __future__ import annotations

from expost.loss._log_likelihood import LogLikelihood, log_likelihood
from expost.loss._odometer import Odometer
from expost.loss._realized import realized_loss, share_of_basic, worst_case_loss
from expost.loss._replay import Replay, replay

__all__ = [
    "LogLikelihood",
    "Odometer",
    "Replay",
    "log_likelihood",
    "realized_loss",
    "replay",
    "share_of_basic",
    "worst_case_loss",
]

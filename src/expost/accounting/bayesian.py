"""The Bayesian filter: no response of the query may push the realized loss over the budget."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from expost.accounting.filter import Filter, WorstCase
from expost.accounting.odometer import Odometer
from expost.accounting.on_box import loss_after_response
from expost.extrema import exact_spread, spread_with
from expost.likelihood import BoxLogLikelihood, Summand
from expost.queries import Query
from expost.queries.base import Pairwise
from expost.rounding import Enclosure, Nats

__all__ = ["BayesianFilter"]


class BayesianFilter(Filter):
    r"""Accept iff every response keeps the realized loss within the budget (paper, Algorithm 2).

    .. math:: \max_{x, x'} \ell(x) - \ell(x') + D(x, x') \le \varepsilon_g, \quad
              D(x, x') = \max_y \log \frac{P[y \mid x]}{P[y \mid x']}

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "bayesian"

    def worst_case(self, odometer: Odometer, query: Query) -> WorstCase:
        total = odometer.log_likelihood
        if isinstance(total, BoxLogLikelihood):
            return loss_after_response(odometer, query, self.budget)
        likelihood = query.on(total.domain)
        if isinstance(likelihood, Pairwise):
            # D is epsilon for every pair, so the extremes of ℓ are the worst pair.
            position = likelihood.telling(int(np.argmax(total.values)))
            return WorstCase(
                odometer.loss + likelihood.epsilon.enclosure,
                exact=lambda: self.exact_loss(odometer) + likelihood.epsilon,
                response=likelihood.responses[position],
            )
        losses = [spread_with(total, likelihood.term(i)) for i in range(len(likelihood.responses))]
        lower = max(loss.lower for loss in losses)
        upper = max(loss.upper for loss in losses)

        def exact() -> Nats:
            # A response whose loss is surely below that of another one need not be looked at.
            candidates = [i for i, loss in enumerate(losses) if loss.upper >= lower]
            return max(exact_spread(total, Summand(query, i)) for i in candidates)

        worst = next(i for i, loss in enumerate(losses) if loss.upper == upper)
        return WorstCase(Enclosure(lower, upper), exact, likelihood.responses[worst])

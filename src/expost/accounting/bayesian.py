"""The Bayesian filter: no response of the query may push the realized loss over the budget."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from expost.accounting.filter import Filter, WorstCase
from expost.accounting.odometer import Odometer
from expost.extrema import exact_spread, spread_with
from expost.likelihood import Summand
from expost.queries import Query
from expost.rounding import Enclosure, Nats

__all__ = ["BayesianFilter"]


class BayesianFilter(Filter):
    r"""Accept iff every response keeps the realized loss within the budget (paper, Algorithm 2).

    .. math:: \max_{x, x'} \ell(x) - \ell(x') + D(x, x') \le \varepsilon_g, \quad
              D(x, x') = \max_y \log \frac{P[y \mid x]}{P[y \mid x']}

    Proof: docs/theory/filters.md.
    """

    kind: ClassVar[str] = "bayesian"

    def loss(self, odometer: Odometer) -> Enclosure:
        return odometer.loss

    def worst_case(self, odometer: Odometer, query: Query) -> WorstCase:
        total = odometer.log_likelihood
        likelihood = query.on(odometer.transcript.domain)
        if likelihood.extreme is None:
            # D is epsilon for every pair, so the extremes of ℓ are the worst pair.
            position = likelihood.telling(int(np.argmax(total.values)))
            return WorstCase(
                odometer.loss + likelihood.epsilon.enclosure,
                exact=lambda: exact_spread(total) + likelihood.epsilon,
                response=likelihood.responses[position],
            )
        losses = {p: spread_with(total, likelihood.term(p)) for p in likelihood.extreme}
        worst = max(losses, key=lambda position: losses[position].upper)

        def exact() -> Nats:
            # Only a response whose enclosure reaches the budget can decide.
            limit = self.budget.enclosure.lower
            doubtful = [p for p, loss in losses.items() if loss.upper > limit]
            return max(exact_spread(total, Summand(likelihood, p)) for p in doubtful)

        lower = max(loss.lower for loss in losses.values())
        return WorstCase(Enclosure(lower, losses[worst].upper), exact, likelihood.responses[worst])

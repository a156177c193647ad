"""The score of each value, from what the responses of a query say about it on average."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.estimation.decoding import probabilities
from expost.queries import Query

__all__ = ["scores_of"]

# As for decoders: the probabilities of all responses for all values.
_LARGEST_TABLE = 1 << 22


def scores_of(query: Query, domain: FiniteSet) -> NDArray[np.float64]:
    r"""The score that a query is about, for each value of a finite domain.

    Every response is an unbiased estimate of it, so it is their mean:

    .. math:: s(x) = \sum_y P[Q(x) = y]\, \mathrm{estimate}(y)

    With it, :meth:`Distribution.mean` is the mean that :func:`estimate_mean` estimates, and stays
    valid under a filter.

    >>> import expost as xp
    >>> sleep = xp.perturbation([0, 6, 12], range=(0, 12), epsilon=1)
    >>> [round(x) for x in scores_of(sleep, xp.FiniteSet(["short", "fair", "long"]))]
    [0, 6, 12]
    """
    meaning, likelihood = query.meaning(domain), query.on(domain)
    if len(likelihood.responses) * len(domain) > _LARGEST_TABLE:
        raise InvalidInput(f"has {len(likelihood.responses):,} responses, which is too many")
    worth = np.array([float(meaning.estimate(response)) for response in likelihood.responses])
    return np.asarray(probabilities(likelihood) @ worth)

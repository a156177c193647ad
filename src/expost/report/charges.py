"""What basic composition would have charged, for as long as it would have gone on."""

from __future__ import annotations

import math
from bisect import bisect_left

from expost.filters import WorstCase
from expost.loss.odometer import Odometer
from expost.numbers import Nats

__all__ = ["basic_charges", "basic_prefix"]


def basic_charges(odometer: Odometer, budget: Nats | None) -> list[float]:
    """The sums of the epsilons, as long as they are within the budget."""
    stop = len(odometer) if budget is None else basic_prefix(odometer, budget)
    charges = [charge.upper for charge in odometer.basic_history[: stop + 1]]
    return [charge for charge in charges if charge < math.inf]


def basic_prefix(odometer: Odometer, budget: Nats) -> int:
    """How many of these exchanges basic composition would have allowed on this budget."""
    exchanges, domain = odometer.transcript.exchanges, odometer.domain
    asked = (number for number, each in enumerate(exchanges) if each.query.approximate)
    most = next(asked, len(exchanges))

    def exceeded(count: int) -> bool:
        queries = (each.query for each in exchanges.first(count))
        sums = WorstCase(
            odometer.basic_history[count],
            exact=lambda: Nats.total((query.ceiling(domain), 1) for query in queries),
        )
        return not sums.within(budget)

    # The sums only grow, so few of them have to be compared, and hardly any exactly.
    return bisect_left(range(1, most + 1), True, key=exceeded)

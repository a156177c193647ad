"""Many subjects with different secrets who answer the same stream: the count who still answer.

All of them are asked the same linear queries, so their losses are worked out all at once. Each
stops at the first query that the Simplified filter refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from examples.paper.streams import LINEAR
from numpy.typing import NDArray

import expost as xp
from benchmarks.budget_lifetime.asking import BASIC, SIMPLIFIED
from expost.sampling import draw

__all__ = ["SUBJECTS", "Population", "population"]

SUBJECTS = 1000
_GAP = 0.001


@dataclass(frozen=True)
class Population:
    """How many queries each subject answered, out of so many that were asked."""

    asked: int
    answered: NDArray[np.int64]
    at_corner: NDArray[np.bool_]
    undecided: int

    def share(self, queries: int, group: NDArray[np.bool_] | None = None) -> float:
        """Of all or of a group, the share that answered at least so many."""
        counts = self.answered if group is None else self.answered[group]
        return float((counts >= queries).mean())

    def widest_ratio(self) -> float:
        """How much likelier it is to stay, or to have stopped, in one of the groups, at most."""
        ratios = [1.0]
        for queries in range(1, self.asked + 1):
            inside, corner = (
                self.share(queries, group) for group in (~self.at_corner, self.at_corner)
            )
            for ratio, other in ((inside, corner), (1 - inside, 1 - corner)):
                # A share of a few subjects says little.
                if min(ratio, other) >= 0.05:
                    ratios.append(max(ratio / other, other / ratio))
        return max(ratios)


def secrets() -> Iterator[tuple[bool, list[float]]]:
    """Half of the subjects are anywhere in the box, and half are at corners of it."""
    generator = np.random.default_rng(6)
    for subject in range(SUBJECTS):
        point = generator.uniform(-1, 1, LINEAR.dimension)
        corner = subject % 2 == 1
        yield corner, (np.sign(point) if corner else point).tolist()


def population(most: int = 300) -> Population:
    """Ask so many queries at most."""
    box, budget = LINEAR.box, SIMPLIFIED.budget.enclosure.lower
    queries = list(islice(LINEAR.queries(np.random.default_rng(7)), most))
    corners, points = zip(*secrets(), strict=True)
    sources = [xp.sampling.InsecureSource(subject) for subject in range(SUBJECTS)]
    values = [box.locate(point) for point in points]
    responses = np.zeros((SUBJECTS, most), dtype=np.int64)
    answered = np.zeros(SUBJECTS, dtype=np.int64)
    going, undecided = np.arange(SUBJECTS), 0
    odometer = xp.Odometer(xp.Transcript(box))
    basic = True
    for index, query in enumerate(queries):
        likelihood = query.on(box)
        # What basic composition accepts is accepted whatever the losses are.
        basic = basic and BASIC.accepts(odometer, query)
        if not basic:
            losses = _losses(box, queries[:index], responses[going, :index])
            epsilon = xp.loss.worst_case_loss(query, box)
            # An ulp of the sum, rounded outward.
            fits = np.nextafter(losses.upper + epsilon.upper, np.inf) <= budget
            over = np.nextafter(losses.lower + epsilon.lower, -np.inf) > budget
            undecided += int((~fits & ~over).sum())
            going = going[fits]
        for subject in going:
            value = values[subject]
            assert value is not None
            position = draw(likelihood.pmf(value), sources[subject])
            responses[subject, index] = likelihood.responses[position]
        answered[going] += 1
        if not going.size:
            break
        odometer = odometer.add(query, -1)  # for its sum of epsilons only
    return Population(most, answered, np.array(corners), undecided)


def _losses(
    box: xp.Box, queries: list[xp.queries.Query], responses: NDArray[np.int64]
) -> xp.audits.Losses:
    subjects, count = responses.shape
    names = [str(index) for index in range(count)]
    table = {
        "subject": np.repeat(np.arange(subjects), count),
        "query": names * subjects,
        "response": responses.reshape(-1),
    }
    answers = xp.Answers(box, dict(zip(names, queries, strict=True)), table)
    return xp.realized_losses(answers, gap=_GAP)

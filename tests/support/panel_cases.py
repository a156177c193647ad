"""Many subjects, played in arrays and one by one."""

from __future__ import annotations

import math
import random

import numpy as np

import expost as xp
from expost.filters import Filter
from expost.panel._kernel import Kernel
from expost.panel._state import State

EPSILONS = ("0.05", "0.1", "0.2")


def families(size: int, epsilon: str) -> list[xp.queries.Query]:
    """A query of every finite family on so many integers."""
    places = range(size)
    return [
        xp.randomized_response(epsilon),
        xp.unary_encoding(variant="symmetric", epsilon=epsilon),
        xp.unary_encoding(variant="optimized", epsilon=epsilon),
        xp.subset_selection(size=2, epsilon=epsilon),
        xp.local_hashing(seed="5eed", buckets=2, epsilon=epsilon),
        xp.hadamard_response(order=8, epsilon=epsilon),
        xp.geometric(range=(0, size - 1), sensitivity=size - 1, epsilon=epsilon),
        xp.exponential_mechanism(
            [[int(x == y) for y in range(3)] for x in places], sensitivity=1, epsilon=epsilon
        ),
        xp.perturbation(scores=[x / (size - 1) for x in places], range=(0, 1), epsilon=epsilon),
        xp.laplace({"value": 1}, range=(0, size - 1), grid="1", epsilon=epsilon),
        xp.channel([["1/2", "1/2"] if x == 0 else ["2/5", "3/5"] for x in places]),
    ]


def play(
    guard: Filter, subjects: int, seed: int, size: int = 4, rounds: int = 12
) -> tuple[Kernel, State, list[xp.Odometer]]:
    """Random queries of every finite family, on a set."""
    queries = [query for epsilon in EPSILONS for query in families(size, epsilon)]
    return play_on(xp.FiniteSet(range(size)), queries, guard, subjects, seed, rounds)


def play_on(
    domain: xp.domains.Domain,
    queries: list[xp.queries.Query],
    guard: Filter,
    subjects: int,
    seed: int,
    rounds: int,
) -> tuple[Kernel, State, list[xp.Odometer]]:
    """Ask random queries of random subjects, and compare every decision with that of one alone."""
    generator = random.Random(seed)
    kernel = Kernel(domain, guard)
    numbers = [kernel.query_index(query) for query in queries]
    state = kernel.start(subjects)
    odometers = [xp.Odometer(xp.Transcript(domain))] * subjects
    for _ in range(rounds):
        who = np.array(sorted(generator.sample(range(subjects), subjects * 9 // 10)))
        asked = np.array(generator.choices(numbers, k=len(who)))
        found = kernel.decide(state, asked, who)
        taken, positions = [], []
        for number, (place, which) in enumerate(zip(who.tolist(), asked.tolist(), strict=True)):
            query = kernel.registry[which].query
            alone = guard.decide(odometers[place], query)
            assert alone.accepted == found.accepted[number], (guard, query)
            assert alone.loss_at_worst.lower <= found.upper[number]
            assert found.lower[number] <= alone.loss_at_worst.upper
            assert math.isclose(alone.loss_at_worst.upper, found.upper[number], abs_tol=1e-9)
            if alone.accepted:
                taken.append(number)
                responses = len(query.on(domain).responses)
                positions.append(generator.randrange(min(64, responses)))
                odometers[place] = odometers[place].add_position(query, positions[-1])
        kernel.fold(state, asked[taken], np.array(positions, dtype=np.int64), who[taken])
    return kernel, state, odometers

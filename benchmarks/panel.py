"""A panel of a million subjects, compared with bare NumPy.

The peer decides by one comparison of a double with the budget, draws by comparing words of the
operating system with rounded shares, and adds logarithms up, in blocks that fit into the cache. It
certifies nothing, keeps no log, and looks no value up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

import expost as xp
from benchmarks.timing import once

LIMIT = 2.0
MICROSECONDS = 1.0
TIES_LIMIT = 2.0
MIXED_LIMIT = 2.0

SUBJECTS, VALUES = 1_000_000, 8
TIED = (100_000, 400_000, 1_000_000)
BLOCK = 1 << 13


def run() -> bool:
    return all([_rounds(), *map(_ties, TIED), _records(), _mixed()])


@dataclass
class Bare:
    """Bare passes over the questions, without any guarantee."""

    logs: NDArray[np.float64]
    shares: NDArray[np.uint64]
    places: NDArray[np.intp]
    budget: float
    epsilon: float
    sums: NDArray[np.float64] = field(init=False)
    spread: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.sums = np.zeros((VALUES, len(self.places)))
        self.spread = np.zeros(len(self.places))

    def ask(self) -> None:
        assert (self.spread + self.epsilon <= self.budget).all()
        for start in range(0, len(self.places), BLOCK):
            rows = slice(start, start + BLOCK)
            block, values = self.sums[:, rows], self.places[rows]
            random_words = np.frombuffer(os.urandom(8 * len(values)), dtype="<u8")
            drawn = np.zeros(len(values), dtype=np.intp)
            for row in self.shares:
                drawn += random_words > row.take(values)
            for sums, log in zip(block, self.logs, strict=True):
                sums += log.take(drawn)
            self.spread[rows] = block.max(axis=0) - block.min(axis=0)


def _rounds(rounds: int = 8) -> bool:
    domain, query = xp.FiniteSet(range(VALUES)), xp.randomized_response(epsilon="0.05")
    values = np.random.default_rng(1).integers(0, VALUES, SUBJECTS)
    likelihood = query.on(domain)
    logs = np.array([likelihood.term(y).logs for y in range(VALUES)]).T.copy()
    weights = np.array(
        [[likelihood.pmf(x).probability(y) for y in range(VALUES)] for x in range(VALUES)]
    )
    shares = (np.cumsum(weights, axis=1)[:, :-1].T.astype(np.float64) * 2.0**64).astype(np.uint64)
    panel = xp.Panel(domain, filter=xp.BayesianFilter("1.5"), subjects=range(SUBJECTS))
    bare = Bare(logs, shares, values, 1.5, 0.05)
    panel.ask(query, values)
    # One after the other, so that both meet the same machine.
    times = [(once(lambda: panel.ask(query, values)), once(bare.ask)) for _ in range(rounds)]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    microseconds = 1e6 * ours / SUBJECTS
    print(f"{SUBJECTS:,} subjects, {VALUES} values, a randomized response of everybody")
    print(f"  decide, draw, fold {ours / peer:5.2f} × the bare passes (limit {LIMIT:g}), ", end="")
    print(f"{microseconds:.2f} µs a subject (limit {MICROSECONDS:g})")
    print(f"  {_bytes(panel) / SUBJECTS:.0f} bytes a subject after {rounds + 1} answers")
    return bool(ours <= LIMIT * peer and microseconds <= MICROSECONDS)


def _bytes(panel: xp.Panel) -> int:
    """Sum the bytes of the arrays of a panel."""
    state = panel._state
    arrays = [array for array in vars(state).values() if isinstance(array, np.ndarray)]
    arrays += [array.codes for array in state.log.rounds]
    return sum(array.nbytes for array in arrays) + 8 * len(panel)  # and the sums of the epsilons


def _ties(subjects: int, runs: int = 4) -> bool:
    """Measure a panel in which a tenth of the losses tie with the budget in doubles."""
    query, values = xp.randomized_response(epsilon="0.2"), np.zeros(subjects, dtype=np.intp)
    close = _close(_panel(subjects, 0.1), query)
    times = [
        [once(partial(_panel(subjects, share).ask, query, values)) for share in (0.1, 0.0)]
        for _ in range(runs)
    ]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    print(f"{subjects:,} subjects after 50 answers, {close:.0%} of them on a tie")
    print(f"  {ours / peer:5.2f} × a panel without ties (limit {TIES_LIMIT:g})")
    return bool(ours <= TIES_LIMIT * peer and close > 0.09)


def _panel(subjects: int, share: float) -> xp.Panel:
    """Make a panel with losses of 0.1, and a share of 0.2, where 0.2 more tie with the budget."""
    domain, query = xp.FiniteSet(range(VALUES)), xp.randomized_response(epsilon="0.1")
    panel = xp.Panel(domain, filter=xp.BayesianFilter("0.4"), subjects=range(subjects))
    kernel, state = panel._kernel, panel._state
    query_index = kernel.query_index(query)
    for answer in range(48):  # which cancel
        kernel.fold(state, query_index, np.full(subjects, answer % VALUES))
    subject_indices = np.arange(subjects)
    tied = subject_indices % 10 < 10 * share
    for step in range(2):
        kernel.fold(state, query_index, np.where(tied, 0, step * 4 + subject_indices % 4))
    return panel


def _close(panel: xp.Panel, query: xp.queries.Query) -> float:
    decisions, limit = panel.decide(query), panel.filter.budget.enclosure
    close = (decisions.loss_at_worst.lower <= limit.upper) & (
        decisions.loss_at_worst.upper > limit.lower
    )
    return float(close.mean())


def _records() -> bool:
    """Compare queries about eight single attributes with those on a set of as many values."""
    count = SUBJECTS // 10
    names, query = [f"a{i}" for i in range(8)], xp.randomized_response(epsilon="0.1")
    person = xp.Attributes({name: range(VALUES) for name in names})
    generator = np.random.default_rng(1)
    columns = {name: generator.integers(0, VALUES, count) for name in names}
    panel = xp.Panel(person, filter=xp.BayesianFilter(2), subjects=range(count))
    panel_of_set = xp.Panel(
        xp.FiniteSet(range(VALUES)), filter=xp.BayesianFilter(2), subjects=range(count)
    )
    times = [
        (
            once(partial(panel.ask, query.about(name), columns)),
            once(partial(panel_of_set.ask, query, columns[name])),
        )
        for name in names
    ]
    ours, peer = (sum(column) for column in zip(*times, strict=True))
    microseconds = 1e6 * ours / count / len(names)
    print(f"{count:,} records of eight attributes, asked about one after the other")
    print(f"  {ours / peer:5.2f} × one set, {microseconds:.2f} µs a subject and question")
    return True


def _mixed(subjects: int = 50_000, answers_each: int = 20) -> bool:
    """Compare losses of subjects who were asked the same with those of a mixture."""
    generator, domain = np.random.default_rng(1), xp.FiniteSet(range(VALUES))
    epsilons = ("0.05", "0.1", "0.15", "0.2", "0.25", "0.3")
    queries = {str(i): xp.randomized_response(epsilon) for i, epsilon in enumerate(epsilons)}

    def losses(keys: NDArray[np.int64]) -> Callable[[], object]:
        table = {
            "subject": np.repeat(np.arange(subjects), answers_each),
            "query": keys.astype(str),
            "response": generator.integers(0, VALUES, subjects * answers_each),
        }
        answers = xp.Answers(domain, queries, table)
        return lambda: xp.realized_losses(answers)

    alike = losses(np.tile(np.arange(answers_each) % len(epsilons), subjects))
    mixed = losses(generator.integers(0, len(epsilons), subjects * answers_each))
    times = [(once(mixed), once(alike)) for _ in range(7)]
    ours, peer = (min(column) for column in zip(*times, strict=True))
    print(f"realized losses of {subjects:,} subjects, {answers_each} answers each")
    print(f"  asked differently {ours / peer:5.2f} × asked alike (limit {MIXED_LIMIT:g})")
    return bool(ours <= MIXED_LIMIT * peer)


if __name__ == "__main__":
    run()

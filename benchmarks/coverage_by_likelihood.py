"""The coverage of intervals around the likeliest distribution, by simulation.

Subjects are drawn from a known distribution, inside of the simplex or at its edge, and answer by
the probabilities that their queries declare: one query each, or many under a filter. A row is one
group of subjects, and has the shares of all values and the mean of a score. What is printed is the
share of 95 % intervals with the truth, and in brackets the lowest of any of these numbers.
``run`` says whether that is 93 % or more, for each number but for the error of the simulation.

``surveys`` is about one attribute of four, estimated together with the others: how many ends are
uncertified, the coverage, the mean width and the processor time.
"""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp

GROUPS = 400
SIZES = (100, 1_000)
LEAST = 0.93
NOTHING = 1e-5
"""What a search leaves where the likeliest is zero; it is shown as zero."""
Floats = NDArray[np.float64]
Draw = Callable[[Any, int, Floats], xp.Answers]

TRUTHS: dict[int, dict[str, list[float]]] = {
    2: {"inside": [0.4, 0.6], "one value": [1, 0]},
    4: {
        "inside": [0.25] * 4,
        "skewed": [0.7, 0.2, 0.08, 0.02],
        "two values": [0.6, 0.4, 0, 0],
        "one value": [1, 0, 0, 0],
    },
    10: {
        "inside": [0.1] * 10,
        "skewed": [0.4, 0.2, 0.15, 0.1, 0.05, 0.05, 0.03, 0.01, 0.01, 0],
        "two values": [0.7, 0.3, *[0.0] * 8],
        "one value": [1, *[0.0] * 9],
    },
}


def once(query: xp.queries.Query, values: int) -> Draw:
    """Let every subject answer one query."""
    domain = xp.FiniteSet(range(values))
    chances = _chances(query, domain)
    responses = list(query.on(domain).responses)

    def draw(generator: Any, subjects: int, truth: Floats) -> xp.Answers:
        mixed = truth @ chances
        counts = generator.multinomial(subjects, mixed / mixed.sum()).tolist()
        pairs = zip(responses, counts, strict=True)
        drawn = [response for response, count in pairs for _ in range(count)]
        table = {"subject": np.arange(subjects), "query": ["q"] * subjects, "response": drawn}
        return xp.Answers(domain, {"q": query}, table)

    return draw


def filtered(sets: list[set[int]], values: int, epsilon: str, budget: str, rounds: int) -> Draw:
    """Ask in turn whether the value is in each set, as long as a filter accepts."""
    domain, filter_ = xp.FiniteSet(range(values)), xp.BayesianFilter(epsilon=budget)
    level = 1 / (1 + math.exp(float(epsilon)))
    share = f"{level:.6f}"
    complement = f"{1 - float(share):.6f}"
    queries = {
        str(index): xp.channel(
            [
                [share, complement] if x in accepted_values else [complement, share]
                for x in range(values)
            ]
        )
        for index, accepted_values in enumerate(sets)
    }
    logs = [np.log(_chances(query, domain)) for query in queries.values()]

    def draw(generator: Any, subjects: int, truth: Floats) -> xp.Answers:
        true = generator.choice(values, subjects, p=truth)
        learned = np.zeros((subjects, values))
        subject_parts, query_parts, response_parts = [], [], []
        for round_index in range(rounds):
            log = logs[round_index % len(sets)]
            after = learned[:, :, None] + log
            worst = (after.max(axis=1) - after.min(axis=1)).max(axis=1)
            fits = np.flatnonzero(worst <= float(budget) + 1e-9)
            answer = (generator.random(len(fits)) < np.exp(log[true[fits], 1])).astype(int)
            learned[fits] += log[:, answer].T
            subject_parts.append(fits)
            query_parts.append(np.full(len(fits), str(round_index % len(sets))))
            response_parts.append(answer)
        table = dict(
            zip(
                xp.answers.COLUMNS,
                map(np.concatenate, (subject_parts, query_parts, response_parts)),
                strict=True,
            )
        )
        return xp.Answers(domain, queries, table, filter=filter_)

    return draw


def _chances(query: xp.queries.Query, domain: xp.FiniteSet) -> Floats:
    likelihood = query.on(domain)
    positions = range(len(likelihood.responses))
    pmfs = [likelihood.pmf(position) for position in range(len(domain))]
    return np.array([[float(pmf.probability(y)) for y in positions] for pmf in pmfs])


FAMILIES: dict[str, tuple[int, Callable[[], Draw]]] = {
    "randomized response, epsilon 1": (4, lambda: once(xp.randomized_response(epsilon=1), 4)),
    "randomized response, epsilon 3": (4, lambda: once(xp.randomized_response(epsilon=3), 4)),
    "randomized response, epsilon 8": (4, lambda: once(xp.randomized_response(epsilon=8), 4)),
    "unary encoding, epsilon 1": (4, lambda: once(xp.unary_encoding(epsilon=1), 4)),
    "randomized response, epsilon 2": (10, lambda: once(xp.randomized_response(epsilon=2), 10)),
    "hadamard response, epsilon 2": (
        10, lambda: once(xp.hadamard_response(order=16, epsilon=2), 10)
    ),
    "filter, one question, budget 2": (2, lambda: filtered([{1}], 2, "0.5", "2", 30)),
    "filter, four questions, budget 2": (
        4, lambda: filtered([{0, 1}, {0, 2}, {0}, {3}], 4, "0.3", "2", 40)
    ),
}  # fmt: skip


def coverage(draw: Draw, truth: Floats, subjects: int, groups: int, seed: int) -> NDArray[np.bool_]:
    """Return whether each interval holds the truth; a row per group, the mean last."""
    generator = np.random.default_rng(seed)
    scores = np.arange(len(truth), dtype=float)
    hits = []
    for _ in range(groups):
        distribution = xp.estimation.estimate_distribution(draw(generator, subjects, truth))
        ends = [distribution.intervals(target) for target in (None, scores)]
        lower, upper = (np.concatenate([getattr(e, n) for e in ends]) for n in ("lower", "upper"))
        true = np.append(truth, scores @ truth)
        hits.append((lower <= true + NOTHING) & (true - NOTHING <= upper))
    return np.array(hits)


def run(groups: int = GROUPS, wanted: tuple[str, ...] = ()) -> bool:
    """Measure all families, or those with one of some words in their names."""
    holds = True
    heads = [f"{truth}, n = {size:,}" for truth in TRUTHS[4] for size in SIZES]
    print(f"| | values | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}", flush=True)
    for name, (values, make) in FAMILIES.items():
        if wanted and not any(word in name for word in wanted):
            continue
        draw, cells = make(), []
        for truth in TRUTHS[4]:
            shares = TRUTHS[values].get(truth)
            for subjects in SIZES:
                if shares is None:
                    cells.append("")
                    continue
                seed = zlib.crc32(f"{name} {truth} {subjects}".encode())
                hits = coverage(draw, np.array(shares, dtype=float), subjects, groups, seed)
                error = math.sqrt(LEAST * (1 - LEAST) / groups)
                holds &= bool(hits.mean(axis=0).min() >= LEAST - 2 * error)
                holds &= bool(hits.mean() >= LEAST)
                cells.append(f"{100 * hits.mean():.1f} ({100 * hits.mean(axis=0).min():.1f})")
                print(f"  {name}, {truth}, {subjects:,}: {cells[-1]}", file=sys.stderr, flush=True)
        print(f"| {name} | {values} | {' | '.join(cells)} |", flush=True)
    return holds


SURVEYS = 200
SURVEYED = {"smokes": 2, "exercise": 3, "age": 5, "region": 11}
RESPONDENTS = 605


def survey(generator: Any, share: float, times: int, epsilon: float = 1.0) -> xp.Answers:
    """Ask everybody about four attributes, so often each; only the share of smokers is given."""
    parts, domain, queries = [], {}, {}
    for name, size in SURVEYED.items():
        domain[name] = [f"{name}{index}" for index in range(size)]
        queries[name] = xp.randomized_response(epsilon=epsilon).about(name)
        prior = [1 - share, share] if size == 2 else generator.dirichlet(np.ones(size))
        values = generator.choice(size, RESPONDENTS, p=prior)
        for _ in range(times):
            others = (values + generator.integers(1, size, RESPONDENTS)) % size
            kept = generator.random(RESPONDENTS) < 1 / (1 + (size - 1) * math.exp(-epsilon))
            responses = np.array(domain[name])[np.where(kept, values, others)]
            parts.append((np.arange(RESPONDENTS), np.full(RESPONDENTS, name), responses))
    table = dict(
        zip(xp.answers.COLUMNS, map(np.concatenate, zip(*parts, strict=True)), strict=True)
    )
    return xp.Answers(xp.Attributes(**domain), queries, table)


def surveys(count: int = SURVEYS) -> bool:
    """Measure surveys by the share of smokers and how often each question is asked."""
    print("| smokers | asked | uncertified ends | coverage | mean width | seconds |")
    print("|---|---|---|---|---|---|", flush=True)
    worst = 0.0
    cases = [(share, times) for share in (0.0, 0.02, 0.3) for times in (1, 2)]
    for share, times in cases:
        generator = np.random.default_rng(zlib.crc32(f"{share} {times}".encode()))
        rows, seconds = [], []
        for _ in range(math.ceil(count / len(cases))):
            answers, start = survey(generator, share, times), time.process_time()
            intervals = xp.estimation.estimate_distribution(answers, about="smokes").intervals()
            seconds.append(time.process_time() - start)
            lower, upper = intervals.lower[1], intervals.upper[1]
            hit = lower <= share + NOTHING and share - NOTHING <= upper
            rows.append((intervals.uncertified.mean(), hit, upper - lower))
        uncertified, hits, width = np.mean(rows, axis=0)
        worst = max(worst, float(uncertified))
        print(
            f"| {share} | {times} | {100 * uncertified:.1f} % | {100 * hits:.0f} % | {width:.3f} | "
            f"{np.median(seconds):.2f}, at most {max(seconds):.2f} |", flush=True,
        )  # fmt: skip
    return worst <= 0.01


if __name__ == "__main__":
    if sys.argv[1:] == ["surveys"]:
        sys.exit(0 if surveys() else 1)
    sys.exit(0 if run(wanted=tuple(sys.argv[1:])) else 1)

"""A long hunt for a loss that a point exceeds: ``make hunt``, or ``make hunt SEED=7``.

Every fifth case is certified too, and its certificate verified. Every third is another hunt, for
a decision or a replay on a box of integers that the exact ones of its points contradict. And every
third is one for losses and decisions over records and histories that all of them listed contradict;
each of these goes with a panel of subjects, each of whom has to be decided about as if alone.

Runs until it is stopped, and says what to run again where something is found.

``make hunt MODE=devices`` fuzzes devices instead (tests/support/device_fuzz.py).
``make hunt MODE=streams`` attacks filters on boxes (tests/support/query_streams.py).
``make hunt MODE=levels`` compares decisions by levels with all protected pairs of records
(tests/support/level_decisions.py); 100,000 take about half an hour.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import expost as xp
from expost.numbers import double_above
from expost.proof.verify import Failed, verify
from support import device_fuzz, level_decisions, panel_cases, query_streams
from support.box_cases import (
    CELLS,
    EPSILONS,
    NODES,
    Ask,
    Case,
    Examined,
    Side,
    complaints,
    exact_range,
    some_case,
    some_hills,
    some_sides,
)
from support.category_box_cases import random_study
from support.integer_boxes import complaints as contradictions
from support.integer_boxes import random_decision_case
from support.record_cases import find_contradictions as objections
from support.record_cases import random_record_case

RECORDS, SUBJECTS = 10, 100


def disagreement(seed: str) -> str | None:
    """What a panel of many subjects decides otherwise than each of them alone."""
    generator = random.Random(seed)
    budget = generator.choice(["0.3", "0.6", "0.8", "1"])
    guard = generator.choice(
        [
            xp.BayesianFilter(budget),
            xp.BayesianFilter(budget),
            xp.SimplifiedFilter(budget),
            xp.BasicFilter(budget),
            xp.BayesianFilter(ratio="9/4"),
        ]
    )
    own, size = generator.randrange(10**9), generator.randint(3, 6)
    try:
        panel_cases.play(guard, SUBJECTS, own, size=size, rounds=generator.choice([6, 12, 30]))
    except AssertionError as error:
        return f"panels.play({guard!r}, {SUBJECTS}, {own}, size={size}): {error}"
    return None


def clipped(generator: random.Random) -> Case:
    """Scores that leave their ranges on both sides, among logistic ones."""
    sides = tuple(Side(-1.0, 1.0) for _ in range(generator.randint(1, 6)))
    asks = []
    for _ in range(generator.randint(2, 12)):
        weights = tuple(generator.gauss(0, generator.choice([1, 3])) for _ in sides)
        epsilon, high = generator.choice(["0.5", "1", "2", "4"]), generator.random() < 0.5
        low, top = map(float, exact_range(sides, weights, 0.0))
        middle, width = generator.uniform(low, top), (top - low) * generator.uniform(0.02, 0.3)
        if generator.random() < 0.4:
            asks.append(Ask("logistic", weights, generator.gauss(0, 1), epsilon, high))
        else:
            ends = middle - width, middle + width
            asks.append(Ask("linear", weights, 0.0, epsilon, high, ends, clip=True))
    return Case(sides, tuple(asks))


def linear(generator: random.Random) -> Case:
    """Linear queries alone, repeated and contradicted, in more coordinates than others have."""
    sides = some_sides(generator, 16)
    epsilon = generator.choice(EPSILONS)
    asks: list[Ask] = []
    for _ in range(generator.randint(1, 30)):
        if asks and generator.random() < 0.3:
            old = generator.choice(asks)
            asks.append(replace(old, high=generator.random() < 0.5))
            continue
        reach = [max(abs(side.lo), abs(side.hi), 1e-9) for side in sides]
        weights = tuple(generator.choice([1.0, generator.gauss(0, 1)]) / r for r in reach)
        low, top = exact_range(sides, weights, 0.0)
        if low == top:
            continue
        asks.append(Ask("linear", weights, 0.0, epsilon, generator.random() < 0.5))
    return Case(sides, tuple(asks))


def windows(generator: random.Random) -> Case:
    """The piecewise mechanism, some of it asked again, among logistic queries."""
    sides = tuple(Side(-1.0, 1.0) for _ in range(generator.randint(1, 4)))
    asks: list[Ask] = []
    for _ in range(generator.randint(2, 12)):
        weights = tuple(generator.choice([0.5, 1.0, generator.gauss(0, 1)]) for _ in sides)
        epsilon, end = generator.choice(["0.5", "1", "2"]), generator.choice([0.5, 1.0, 2.0])
        intercept = generator.choice([0.0, generator.gauss(0, 1)])
        again = [ask for ask in asks if ask.kind == "piecewise"]
        if generator.random() < 0.3:
            high = generator.random() < 0.5
            asks.append(Ask("logistic", weights, intercept, epsilon, high))
        elif again and generator.random() < 0.5:
            ask = generator.choice(again)
            asks.append(replace(ask, cell=generator.randrange(CELLS + ask.window)))
        else:
            window = generator.randint(1, CELLS)
            cell = generator.randrange(CELLS + window)
            ends = -end, end
            asks.append(
                Ask("piecewise", weights, intercept, epsilon, True, ends, True, cell, window)
            )
    return Case(sides, tuple(asks))


KINDS: dict[str, Callable[[random.Random], Examined]] = {
    "mixed": some_case,
    "small": lambda generator: some_case(generator, coordinates=2, queries=5),
    "many": lambda generator: some_case(generator, queries=300),
    "clipped": clipped,
    "linear": linear,
    "windows": windows,
    "categories": random_study,
    "hills": some_hills,
}


def proved(case: Examined, options: dict[str, Any]) -> xp.numbers.Enclosure:
    """What the checker makes of a certificate."""
    nodes = min(500, options["nodes"])
    proof = xp.proof.certificate(case.transcript, gap=max(1e-3, options["gap"]), nodes=nodes)
    verdict = verify(case.transcript.to_json(), json.dumps(proof.document))
    return xp.numbers.Enclosure(0.0, double_above(Fraction(verdict.loss)))


def hunt(seed: int) -> None:
    print(f"seed {seed}", flush=True)
    counts, found, start = dict.fromkeys(KINDS, 0), 0, time.monotonic()
    told = start
    step = certified = replayed = recorded = subjects = 0
    while True:
        # Each case has a generator of its own, so that it can be had again without the others.
        generator = random.Random(f"{seed}/{step}")
        if step % 3 == 2:
            guarded = random_decision_case(generator)
            wrong = list(contradictions(guarded))
            if wrong:
                found += 1
                print(f"FOUND at {seed}/{step}: {', '.join(wrong)}\n{guarded}", flush=True)
            replayed += 1
            step += 1
            continue
        if step % 3 == 1:
            for number in range(RECORDS):
                records = random_record_case(random.Random(f"{seed}/{step}/{number}"))
                if wrong := objections(records):
                    found += 1
                    print(f"FOUND at {seed}/{step}/{number}: {wrong}\n{records}", flush=True)
            recorded += RECORDS
            if told_apart := disagreement(f"{seed}/{step}"):
                found += 1
                print(f"FOUND at {seed}/{step}: {told_apart}", flush=True)
            subjects += SUBJECTS
            step += 1
            continue
        (kind,) = generator.choices(list(KINDS), [10, 5, 1, 10, 10, 10, 10, 5])
        case = KINDS[kind](generator)
        options: dict[str, Any] = {
            "gap": generator.choice([1e-5, 1e-3, 0.01, 0.1, 0.5]),
            "nodes": generator.choice([*NODES, 500, 3000]),
            "group": generator.choice([None, None, None, 1, 4]),
            "threads": generator.choice([1, 2]),
        }
        try:
            wrong = complaints(case, xp.realized_loss(case.transcript, **options), step)
            if step % 5 == 0 and kind not in ("many", "hills"):
                wrong += [
                    f"certified: {said}" for said in complaints(case, proved(case, options), step)
                ]
                certified += 1
        except (ValueError, Failed) as error:
            wrong = [repr(error)]
        if wrong:
            found += 1
            print(f"FOUND at {seed}/{step}: {', '.join(wrong)} with {options}\n{case}", flush=True)
        counts[kind] += 1
        step += 1
        if time.monotonic() - told > 10:
            told = time.monotonic()
            listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            checked = f"{certified} certificates, {replayed} filters and replays"
            checked += f", {recorded} records, {subjects} subjects of panels, {found} found"
            print(f"{told - start:6.0f} s  {step} cases ({listed}), {checked}", flush=True)


MODES: dict[str, Callable[[int], None]] = {
    "losses": hunt,
    "devices": device_fuzz.hunt,
    "streams": query_streams.hunt,
    "levels": level_decisions.hunt,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hunt for violations until stopped.")
    parser.add_argument("seed", nargs="?", type=int, default=random.randrange(10**6))
    parser.add_argument("--mode", choices=MODES, default="losses")
    chosen = parser.parse_args()
    try:
        MODES[chosen.mode](chosen.seed)
    except KeyboardInterrupt:
        print("stopped")

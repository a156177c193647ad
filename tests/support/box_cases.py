"""Random transcripts over boxes, and the check that no enclosure may fail.

A case is written down once, in plain numbers. The library and the oracle both read it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import mpmath
import numpy as np

import expost as xp
from expost.terms import ScoreTerm
from support import oracles

Point = tuple[float, ...]

EPSILONS = ["1e-3", "0.01", "0.1", "1/3", "0.5", "1", "1", "2", "2.5", "4", "8"]
NODES = [1, 2, 5, 50]
CELLS = 8


@dataclass(frozen=True)
class Ask:
    """A query and its response; ``ends`` and ``clip`` are those of a linear one."""

    kind: str
    weights: tuple[float, ...]
    intercept: float
    epsilon: str
    high: bool
    ends: tuple[float, float] | None = None
    clip: bool = False
    cell: int = 0
    """The response with Laplace or Gaussian noise, in steps from the lower end; the range has 8.

    Of the piecewise mechanism it is the response itself.
    """
    window: int = 0

    @property
    def query(self) -> xp.queries.Query:
        if self.kind in ("laplace", "piecewise", "gaussian"):
            assert self.ends is not None
            width = Fraction(self.ends[1]) - Fraction(self.ends[0])
            options: dict[str, Any] = {
                "intercept": self.intercept,
                "range": self.ends,
                "grid": width / CELLS,
                "epsilon": self.epsilon,
            }
            if self.kind == "gaussian":
                del options["epsilon"]
                return xp.gaussian(self.weights, sigma=width / Fraction(self.epsilon), **options)
            if self.kind == "piecewise":
                return xp.piecewise(self.weights, window=self.window, **options)
            return xp.laplace(self.weights, **options)
        if self.kind == "logistic":
            return xp.logistic(self.weights, intercept=self.intercept, epsilon=self.epsilon)
        if self.kind == "probit":
            return xp.probit(self.weights, intercept=self.intercept, epsilon=self.epsilon)
        return xp.linear(
            self.weights,
            intercept=self.intercept,
            range=self.ends,
            clip=self.clip,
            epsilon=self.epsilon,
        )

    def position(self, likelihood: Any) -> int:
        """Where the response is among those of its query."""
        if self.kind == "laplace":
            return int(likelihood.sufficient[0]) + self.cell
        if self.kind == "gaussian":
            # The ends of the range are in the middle of the responses.
            beyond = (len(likelihood.responses) - 1 - CELLS) // 2
            return min(len(likelihood.responses) - 1, max(0, beyond + self.cell))
        if self.kind == "piecewise":
            return self.cell
        return int(self.high)


@dataclass(frozen=True)
class Side:
    lo: float
    hi: float
    integer: bool = False

    @property
    def argument(self) -> Any:
        return xp.integers(int(self.lo), int(self.hi)) if self.integer else (self.lo, self.hi)


@dataclass(frozen=True)
class Case:
    """A transcript over a box."""

    sides: tuple[Side, ...]
    asks: tuple[Ask, ...]

    @cached_property
    def box(self) -> xp.Box:
        return xp.Box([side.argument for side in self.sides])

    @cached_property
    def transcript(self) -> xp.Transcript:
        transcript = xp.Transcript(self.box)
        for ask in self.asks:
            query = ask.query
            likelihood = query.on(self.box)
            transcript = transcript.add(query, likelihood.responses[ask.position(likelihood)])
        return transcript

    @property
    def terms(self) -> list[ScoreTerm]:
        likelihoods = [exchange.query.on(self.box) for exchange in self.transcript.exchanges]
        pairs = zip(likelihoods, self.asks, strict=True)
        return [likelihood.term(ask.position(likelihood)) for likelihood, ask in pairs]

    @cached_property
    def oracle(self) -> oracles.OnBox:
        return oracles.OnBox(
            tuple(side.lo for side in self.sides),
            tuple(side.hi for side in self.sides),
            tuple(side.integer for side in self.sides),
            tuple(self._bit(ask) for ask in self.asks),
        )

    def _bit(self, ask: Ask) -> oracles.OneBit:
        ends = None
        if ask.ends is not None:
            ends = Fraction(ask.ends[0]), Fraction(ask.ends[1])
        elif ask.kind == "linear":
            ends = exact_range(self.sides, ask.weights, ask.intercept)
        epsilon, normal = Fraction(ask.epsilon), ask.kind == "probit"
        spot = None
        if ask.kind == "laplace":
            spot = Fraction(min(CELLS, max(0, ask.cell)), CELLS)
        window = None
        if ask.kind == "piecewise":
            window = ask.cell - ask.window + 1, ask.cell
        deviation, clamped = None, False
        if ask.kind == "gaussian":
            deviation = CELLS / epsilon
            beyond = math.ceil(9 * deviation)
            cell = min(CELLS + beyond, max(-beyond, ask.cell))
            spot, clamped = Fraction(cell, CELLS), cell in (-beyond, CELLS + beyond)
        return oracles.OneBit(
            ask.weights, ask.intercept, ends, epsilon, ask.high, normal, spot, window, CELLS,
            deviation, clamped,
        )  # fmt: skip

    @property
    def spent(self) -> Fraction:
        return sum((self._most(ask) for ask in self.asks), Fraction(0))

    def _most(self, ask: Ask) -> Fraction:
        """What a response can realize; of Gaussian noise, as the library says."""
        if ask.kind == "gaussian":
            return ask.query.ceiling(self.box).rational
        return Fraction(ask.epsilon)

    def extremes(self, generator: np.random.Generator, count: int = 300) -> tuple[Point, Point]:
        """Where the oracle finds the likelihood to be largest and smallest."""
        highest, lowest = (self.oracle.extreme(generator, sign, count) for sign in (1, -1))
        return tuple(highest.tolist()), tuple(lowest.tolist())

    def formula_loss(self, highest: Point, lowest: Point) -> mpmath.mpf:
        """What the paper's formula says about two points."""
        return rounded_down(
            self.oracle.log_likelihood(highest) - self.oracle.log_likelihood(lowest)
        )

    def sampled_loss(self, highest: Point, lowest: Point) -> mpmath.mpf:
        """What the weights say that are really sampled at two points."""
        ratio = Fraction(1)
        for exchange, ask in zip(self.transcript.exchanges, self.asks, strict=True):
            likelihood = exchange.query.on(self.box)
            response = ask.position(likelihood)
            ratio *= likelihood.pmf(highest).probability(response)
            ratio /= likelihood.pmf(lowest).probability(response)
        return rounded_down(oracles.log(ratio))


def rounded_down(number: mpmath.mpf) -> mpmath.mpf:
    """Less what mpmath may be off: a loss that is exactly the sum of the epsilons is a tie."""
    return number - mpmath.mpf(10) ** (8 - mpmath.mp.dps)


def exact_range(
    sides: tuple[Side, ...], weights: tuple[float, ...], intercept: float
) -> tuple[Fraction, Fraction]:
    """The smallest and the largest score on a box."""
    corners = [
        [side.hi if (w > 0) == top else side.lo for side, w in zip(sides, weights, strict=True)]
        for top in (False, True)
    ]
    low, high = (oracles.affine(weights, intercept, corner) for corner in corners)
    return low, high


class Examined(Protocol):
    """A transcript, and what an oracle knows of it."""

    @property
    def transcript(self) -> xp.Transcript: ...
    @property
    def spent(self) -> Fraction: ...
    def extremes(self, generator: np.random.Generator, count: int) -> tuple[Any, Any]: ...
    def formula_loss(self, highest: Any, lowest: Any) -> mpmath.mpf: ...
    def sampled_loss(self, highest: Any, lowest: Any) -> mpmath.mpf: ...


def complaints(
    case: Examined, loss: xp.numbers.Enclosure, seed: int, count: int = 300
) -> list[str]:
    """What is wrong with an enclosure of a loss; nothing, if it is any good."""
    highest, lowest = case.extremes(np.random.default_rng(seed), count)
    found = []
    with mpmath.workdps(50):
        if case.formula_loss(highest, lowest) > loss.upper:
            found.append("the formula exceeds it")
        if case.sampled_loss(highest, lowest) > loss.upper:
            found.append("what is sampled exceeds it")
    if not 0 <= loss.lower <= loss.upper:
        found.append("its ends are the wrong way round")
    nearest = float(case.spent)
    most = nearest if Fraction(nearest) >= case.spent else math.nextafter(nearest, math.inf)
    if loss.upper > most:
        found.append("it is above the sum of the epsilons")
    return found


def answered(box: xp.Box, queries: Sequence[xp.queries.Query], rows: Any) -> xp.Answers:
    """Subjects who answered all queries, with responses by their positions."""
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    for subject, row in enumerate(rows):
        for number, (query, place) in enumerate(zip(queries, row, strict=True)):
            table["subject"].append(subject)
            table["query"].append(str(number))
            table["response"].append(query.on(box).responses[place])
    return xp.Answers(box, {str(i): query for i, query in enumerate(queries)}, table)


# -- random cases --------------------------------------------------------------------------------


def some_sides(generator: random.Random, most: int) -> tuple[Side, ...]:
    """Real, integer and fixed coordinates, of sizes that need not be alike."""
    sides = []
    scale = 10.0 ** generator.choice([-6, 0, 0, 0, 0, 2, 5])
    for _ in range(generator.randint(1, most)):
        kind = generator.random()
        lo = generator.choice([-1.0, 0.0, generator.uniform(-3, 3)]) * scale
        if kind < 0.25:
            start = generator.randint(-4, 4)
            sides.append(Side(start, start + generator.choice([0, 1, 1, 2, 5, 40]), integer=True))
        elif kind < 0.33:
            sides.append(Side(lo, lo))
        else:
            sides.append(Side(lo, lo + generator.choice([1.0, 2.0, generator.random()]) * scale))
    return tuple(sides)


def some_ask(
    generator: random.Random,
    sides: tuple[Side, ...],
    steepness: float,
    epsilon: str,
    zeros: float = 0.2,
    noise: bool = True,
) -> Ask:
    """A query whose score ranges over some units of ``steepness`` on the box."""
    reach = [max(abs(side.lo), abs(side.hi), 1e-9) for side in sides]
    weights = tuple(
        0.0 if generator.random() < zeros else generator.gauss(0, 1) * steepness / r for r in reach
    )
    intercept = generator.choice([0.0, 1.0, 0.3]) * generator.gauss(0, 1) * steepness
    high = generator.random() < 0.5
    if generator.random() < 0.55:
        kind = generator.choice(["logistic", "logistic", "probit"])
        return Ask(kind, weights, intercept, epsilon, high)
    low, top = (float(end) for end in exact_range(sides, weights, intercept))
    ends = generator.randrange(3)
    if ends == 0 and low < top:
        return Ask("linear", weights, intercept, epsilon, high)
    margin = generator.choice([0.001, 0.1, 1.0, 20.0]) * (top - low + 1e-3 * steepness)
    if noise and generator.random() < 0.15 and Fraction(epsilon) >= Fraction(1, 10):
        # Ends that are multiples of the grid, as powers of two are of smaller ones.
        end = 2.0 ** math.ceil(math.log2(max(abs(low), abs(top), 1e-6)) + 0.1)
        if generator.random() < 0.5:
            end *= generator.choice([0.25, 0.5, 1.0, 2.0])
            window = generator.choice([1, 3, 5, 9])
            cell = generator.randrange(CELLS + window)
            between = -end, end
            return Ask("piecewise", weights, intercept, epsilon, high, between, True, cell, window)
        cell = generator.randint(-2, CELLS + 2)
        return Ask("laplace", weights, intercept, epsilon, high, (-end, end), cell=cell)
    if ends == 1:
        around = low - margin, top + margin * generator.random()
        return Ask("linear", weights, intercept, epsilon, high, around)
    # Clipped: inside of the scores, across an end of them, or far away from all of them.
    middle = low + (top - low) * generator.choice([0.5, 0.9, 1.1, 4.0, -3.0])
    width = margin * generator.choice([0.01, 1.0, 5.0])
    return Ask("linear", weights, intercept, epsilon, high, (middle - width, middle + width), True)


def some_case(
    generator: random.Random,
    *,
    coordinates: int = 6,
    queries: int = 14,
    epsilon: str | None = None,
    noise: bool = True,
) -> Case:
    """All kinds mixed: steep and flat, repeated and contradictory.

    Without ``noise`` none is on a grid, which is coarse here and widens every loss.
    """
    sides = some_sides(generator, coordinates)
    steepness = generator.choice([0.1, 1.0, 1.0, 3.0, 10.0, 100.0])
    same = generator.random() < 0.3
    zeros = generator.choice([0.1, 0.3, 0.75])
    common = epsilon or generator.choice(EPSILONS)
    asks: list[Ask] = []
    for _ in range(generator.randint(1, queries)):
        fate = generator.random()
        if asks and fate < 0.15:
            asks.append(generator.choice(asks))
        elif asks and fate < 0.3:
            old = generator.choice(asks)
            asks.append(Ask(**{**old.__dict__, "high": not old.high}))
        else:
            chosen = common if same else epsilon or generator.choice(EPSILONS)
            asks.append(some_ask(generator, sides, steepness, chosen, zeros, noise))
    return Case(sides, tuple(asks))


def some_hills(generator: random.Random, coordinates: int = 5, queries: int = 12) -> Case:
    """Gaussian noise, some of it clamped, among queries of all other kinds."""
    sides = some_sides(generator, coordinates)
    steepness = generator.choice([0.1, 1.0, 3.0, 100.0])
    alone = generator.random() < 0.4
    asks: list[Ask] = []
    for _ in range(generator.randint(1, queries)):
        epsilon = generator.choice(["0.1", "1/3", "1", "2", "8", "20"])
        ask = some_ask(generator, sides, steepness, epsilon)
        if alone or generator.random() < 0.6:
            low, top = map(float, exact_range(sides, ask.weights, ask.intercept))
            end = 2.0 ** math.ceil(math.log2(max(abs(low), abs(top), 1e-6)) + 0.1)
            far = int(CELLS * 9 / Fraction(epsilon))
            cell = generator.choice(
                [
                    generator.randint(-far - 2, CELLS + far + 2),
                    generator.randint(0, CELLS),
                    -far - 2,
                ]
            )
            ends = -end, end
            ask = Ask("gaussian", ask.weights, ask.intercept, epsilon, True, ends, cell=cell)
        asks += [ask] * generator.choice([1, 1, 1, 3])
    return Case(sides, tuple(asks))

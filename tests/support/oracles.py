"""Independent oracles: the paper's formulas in fractions and mpmath. Imports nothing of expost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vector = Sequence[Fraction]
"""Pr(response | value) for each value."""


def product(vectors: Sequence[Vector], size: int) -> list[Fraction]:
    """P(x), the likelihood of a transcript at every value (Algorithm 2)."""
    return [math.prod((v[x] for v in vectors), start=Fraction(1)) for x in range(size)]


def ratio(likelihoods: Vector) -> Fraction | None:
    """L = max P / min P (Definition of privacy loss); None where it is infinite."""
    return None if min(likelihoods) == 0 else max(likelihoods) / min(likelihoods)


def at_most(value: Fraction | None, *, epsilon: Fraction | None, limit: Fraction | None) -> bool:
    """Whether a ratio is at most e^epsilon, or at most a rational limit."""
    if value is None:
        return False
    if limit is not None:
        return value <= limit
    assert epsilon is not None
    for digits in (60, 400, 3000):
        with mpmath.workdps(digits):
            difference = mpmath.log(_mpf(value)) - _mpf(epsilon)
            if abs(difference) > mpmath.mpf(10) ** (10 - digits):
                return bool(difference < 0)
    raise AssertionError("a ratio equals e^epsilon only if epsilon is zero")


def epsilon_of(columns: Sequence[Vector]) -> Fraction | None:
    """e^epsilon of a channel: the worst ratio of any column that is not all zero."""
    ratios = [ratio(column) for column in columns if any(column)]
    return None if None in ratios else max(r for r in ratios if r is not None)


def bayesian_accepts(
    likelihoods: Vector,
    columns: Sequence[Vector],
    *,
    epsilon: Fraction | None,
    limit: Fraction | None,
) -> bool:
    """Algorithm 2: no response pushes max P / min P over the limit."""
    if min(likelihoods) == 0:
        return False
    return all(
        at_most(
            ratio([p * q for p, q in zip(likelihoods, column, strict=True)]),
            epsilon=epsilon,
            limit=limit,
        )
        for column in columns
        if any(column)
    )


def randomized_response(size: int, epsilon: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Probabilities of the truth and of any other value."""
    e = mpmath.exp(_mpf(epsilon))
    return e / (e + size - 1), 1 / (e + size - 1)


def perturbation(score: float, low: float, high: float, epsilon: Fraction) -> mpmath.mpf:
    """Pr(high end | score), equation (2) of the paper."""
    e = mpmath.exp(_mpf(epsilon))
    share = (mpmath.mpf(score) - low) / (mpmath.mpf(high) - low)
    return share * (e - 1) / (e + 1) + 1 / (e + 1)


Table = dict[Any, list[Fraction]]
"""Pr(response | value) by response, for each value."""


@cache
def odds(epsilon: Fraction) -> Fraction:
    """e^epsilon rounded down to a multiple of 2^-B, B = 40 + max(0, ⌈log₂ 1/epsilon⌉)."""
    bits = 40
    while epsilon * 2 ** (bits - 40) < 1:
        bits += 1
    with mpmath.workdps(400):
        return Fraction(int(mpmath.floor(mpmath.exp(_mpf(epsilon)) * 2**bits)), 2**bits)


def unary_encoding(size: int, p: Fraction, q: Fraction) -> Table:
    """Every bit is one with probability p at the value and q elsewhere (Wang et al. 2017)."""
    table: Table = {}
    for bits in itertools.product((0, 1), repeat=size):
        likelihoods = []
        for x in range(size):
            ones = [p if i == x else q for i in range(size)]
            factors = (one if bit else 1 - one for one, bit in zip(ones, bits, strict=True))
            likelihoods.append(math.prod(factors, start=Fraction(1)))
        table["".join(map(str, bits))] = likelihoods
    return table


def subset_selection(values: int, size: int, odds: Fraction) -> Table:
    """Subsets of one size by how likely they are (Ye and Barg 2018)."""
    subsets = list(itertools.combinations(range(values), size))
    weights = {s: [odds if x in s else Fraction(1) for x in range(values)] for s in subsets}
    return _normalized(weights)


def hadamard_response(values: int, order: int, odds: Fraction) -> Table:
    """Columns of Sylvester's matrix, doubled until it has the order (Acharya et al. 2019)."""
    matrix = [[1]]
    while len(matrix) < order:
        matrix = [row + row for row in matrix] + [row + [-x for x in row] for row in matrix]
    weights = {
        c: [odds if matrix[x + 1][c] == 1 else Fraction(1) for x in range(values)]
        for c in range(order)
    }
    return _normalized(weights)


def local_hashing(hashes: Sequence[int], buckets: int, odds: Fraction) -> Table:
    """Randomized response about a bucket (Wang et al. 2017)."""
    return _normalized(
        {y: [odds if h == y else Fraction(1) for h in hashes] for y in range(buckets)}
    )


def piecewise(steps: Sequence[int], cells: int, window: int, odds: Fraction) -> Table:
    """Responses in a window that starts at the step of a value are likelier (Wang et al. 2019)."""
    responses = range(cells + window)
    return _normalized(
        {k: [odds if j <= k < j + window else Fraction(1) for j in steps] for k in responses}
    )


def geometric(values: Sequence[int], low: int, high: int, alpha: Fraction) -> Table:
    """Two-sided geometric noise, clamped (Ghosh et al. 2012)."""

    def at_most(z: int) -> Fraction:
        # The sum of a geometric series.
        return alpha**-z / (1 + alpha) if z <= 0 else 1 - alpha ** (z + 1) / (1 + alpha)

    table: Table = {}
    for y in range(low, high + 1):
        above = [Fraction(1) if y == high else at_most(y - x) for x in values]
        below = [Fraction(0) if y == low else at_most(y - 1 - x) for x in values]
        table[y] = [a - b for a, b in zip(above, below, strict=True)]
    return table


def exponential_mechanism(
    utility: Sequence[Sequence[Fraction]], sensitivity: Fraction, epsilon: Fraction
) -> list[list[mpmath.mpf]]:
    """exp(εu/2Δ), normalized, in the working precision (McSherry and Talwar 2007)."""
    rows = []
    for row in utility:
        weights = [mpmath.exp(_mpf(epsilon * u / (2 * sensitivity))) for u in row]
        rows.append([weight / mpmath.fsum(weights) for weight in weights])
    return rows


def _normalized(weights: Table) -> Table:
    sums = [sum(column) for column in zip(*weights.values(), strict=True)]
    return {y: [w / s for w, s in zip(ws, sums, strict=True)] for y, ws in weights.items()}


def sigmoid(score: float | Fraction) -> mpmath.mpf:
    """The logistic function of a score."""
    return 1 / (1 + mpmath.exp(-_mpf(Fraction(score))))


def one_bit(share: mpmath.mpf, epsilon: Fraction) -> mpmath.mpf:
    """Pr(high response) at a share between 0 and 1, equation (2) of the paper."""
    e = mpmath.exp(_mpf(epsilon))
    return (1 + share * (e - 1)) / (e + 1)


def affine(weights: Sequence[float], intercept: float, point: Sequence[float]) -> Fraction:
    """A weighted sum of coordinates in rational numbers."""
    products = (Fraction(w) * Fraction(x) for w, x in zip(weights, point, strict=True))
    return sum(products, Fraction(intercept))


def score_rounding(weights: Sequence[float], intercept: float, reach: Sequence[float]) -> Fraction:
    """The most that doubles of a score are off, with coordinates up to ``reach``."""
    parts = len(weights) - weights.count(0.0)
    magnitude = affine([abs(weight) for weight in weights], abs(intercept), reach)
    return (parts + 2) * magnitude / 2**53 + Fraction(parts, 2**1074)


def logistic_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """2 artanh(tanh(e/4) tanh(z/2)), without the cancellation at large epsilon."""
    half, at = mpmath.mpf(epsilon) / 2, _mpf(z)
    return mpmath.log1p(mpmath.exp(at + half)) - mpmath.log1p(mpmath.exp(at - half)) - half


def clipped_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """log(1 + tanh(e/2) clip(z, -1, 1)), without the cancellation at large epsilon."""
    growth = mpmath.expm1(mpmath.mpf(epsilon))
    share = _mpf((1 + max(Fraction(-1), min(Fraction(1), z))) / 2)
    return mpmath.log1p(share * growth) - mpmath.log1p(growth / 2)


def probit_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """log(1 + Φ(z) (e^epsilon - 1)) - epsilon/2."""
    e = mpmath.mpf(epsilon)
    return mpmath.log1p(normal_share(z) * mpmath.expm1(e)) - e / 2


def normal_share(score: Fraction) -> mpmath.mpf:
    """Φ(score); what is beyond 100 is 0 or 1 to thousands of digits."""
    return mpmath.ncdf(_mpf(max(Fraction(-100), min(Fraction(100), score))))


def log(value: Fraction) -> mpmath.mpf:
    """The logarithm in the working precision."""
    return mpmath.log(_mpf(value))


def _mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def rising_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """log(1 + share (e^epsilon - 1)) - epsilon/2 at the share (1 + clip(z, -1, 1))/2."""
    share = _mpf((1 + max(Fraction(-1), min(Fraction(1), z))) / 2)
    e = mpmath.mpf(epsilon)
    return mpmath.log1p(share * mpmath.expm1(e)) - e / 2


def logistic_slopes(z: Fraction, epsilon: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """First and second derivative of the logistic link."""
    h, at = mpmath.mpf(epsilon) / 2, _mpf(z)
    below = mpmath.cosh(at) + mpmath.cosh(h)
    return mpmath.sinh(h) / below, -mpmath.sinh(h) * mpmath.sinh(at) / below**2


def gaussian_log(distance: mpmath.mpf, deviation: Fraction, clamped: bool) -> mpmath.mpf:
    """Up to a constant, of discrete Gaussian noise at a distance, or at least at it."""
    first, spread = -(distance**2), 2 * _mpf(deviation) ** 2
    if not clamped:
        return first / spread
    step, total, last = 0, mpmath.mpf(0), mpmath.mpf(1)
    while last > mpmath.mpf(10) ** -mpmath.mp.dps:
        last = mpmath.exp(-((distance + step) ** 2 - distance**2) / spread)
        total, step = total + last, step + 1
    return first / spread + mpmath.log(total)


@dataclass(frozen=True)
class OneBit:
    """One response to a one-bit query about an affine score, as the paper writes it."""

    weights: tuple[float, ...]
    intercept: float
    ends: tuple[Fraction, Fraction] | None
    """Where the score is clipped; None for a logistic or probit regression."""
    epsilon: Fraction
    high: bool
    normal: bool = False
    """Whether the regression is a probit one."""
    spot: Fraction | None = None
    """Of a response with noise: where it is between the ends."""
    window: tuple[int, int] | None = None
    """Of a response of the piecewise mechanism: the first and the last step it speaks for."""
    cells: int = 0
    """How many steps there are between the ends."""
    deviation: Fraction | None = None
    """Of a response with Gaussian noise: in steps."""
    clamped: bool = False
    """Whether it stands for all noise that goes farther, too."""

    def log_likelihood(self, point: Sequence[float]) -> mpmath.mpf:
        """The logarithm of equation (2), in the working precision."""
        score = affine(self.weights, self.intercept, point)
        if self.ends is None:
            share = normal_share(score) if self.normal else sigmoid(score)
        else:
            low, top = self.ends
            share = _mpf(min(Fraction(1), max(Fraction(0), (score - low) / (top - low))))
        if self.window is not None:
            # Losses are multiples of what is sampled, which is a little less than epsilon.
            inside = self.window[0] <= mpmath.nint(share * self.cells) <= self.window[1]
            return log(odds(self.epsilon)) if inside else mpmath.mpf(0)
        if self.deviation is not None:
            assert self.spot is not None
            distance = abs(mpmath.nint(share * self.cells) - _mpf(self.spot) * self.cells)
            return gaussian_log(distance, self.deviation, self.clamped)
        if self.spot is not None:
            return -abs(share - _mpf(self.spot)) * _mpf(self.epsilon)  # up to a constant
        p = one_bit(share, self.epsilon)
        return mpmath.log(p if self.high else 1 - p)


@dataclass(frozen=True)
class OnBox:
    """A transcript of one-bit queries over a box, and where its likelihood is extreme."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    integer: tuple[bool, ...]
    bits: tuple[OneBit, ...]

    def log_likelihood(self, point: Sequence[float]) -> mpmath.mpf:
        return sum((bit.log_likelihood(point) for bit in self.bits), mpmath.mpf(0))

    def in_doubles(self, points: Floats) -> Floats:
        """The same up to a constant, for many points at once and not exactly."""
        if not self.bits:
            return np.zeros(len(points))
        slopes = np.array([bit.weights for bit in self.bits])
        total: Floats = np.zeros(len(points))
        scores = points @ slopes.T + np.array([bit.intercept for bit in self.bits])
        for column, bit in zip(scores.T, self.bits, strict=True):
            growth = math.expm1(float(bit.epsilon))
            if bit.ends is None:
                signed = column if bit.high else -column
                if bit.normal:
                    share = np.array([math.erfc(-t / math.sqrt(2)) / 2 for t in signed.tolist()])
                else:
                    share = 0.5 * (1 + np.tanh(signed / 2))
            else:
                low, top = map(float, bit.ends)
                share = np.clip((column - low) / (top - low), 0.0, 1.0)
                if bit.window is not None:
                    step = np.rint(share * bit.cells)
                    inside = (bit.window[0] <= step) & (step <= bit.window[1])
                    total += float(bit.epsilon) * inside
                    continue
                if bit.deviation is not None and bit.spot is not None:
                    distance = (share - float(bit.spot)) * bit.cells / float(bit.deviation)
                    total -= distance**2 / 2
                    continue
                if bit.spot is not None:
                    total -= np.abs(share - float(bit.spot)) * float(bit.epsilon)
                    continue
                share = share if bit.high else 1 - share
            total += np.log1p(share * growth)
        return total

    def snapped(self, points: Floats) -> Floats:
        """Into the box, and integers where they must be."""
        rounded = np.where(self.integer, np.rint(points), points)
        return np.clip(rounded, self.lo, self.hi)

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points all over the box, on its faces and at its corners."""
        lo, hi = np.array(self.lo), np.array(self.hi)
        shape = count, len(lo)
        u = np.where(generator.random((count, 1)) < 0.5, generator.random(shape), 2.0)
        ends = generator.integers(0, 2, shape)
        mixed = np.where(u > 1, np.where(generator.random(shape) < 0.5, ends, 0.5), u)
        corners = generator.random((count, 1)) < 0.25
        return self.snapped(lo + np.where(corners, ends, mixed) * (hi - lo))

    def extreme(self, generator: np.random.Generator, sign: int, count: int = 300) -> Floats:
        """The best point of a sample, an enumeration of integers and a climb by patterns."""
        d = len(self.lo)
        width = np.array(self.hi) - np.array(self.lo)
        points = np.vstack([self.sample(generator, count), self._whole_numbers(count)])
        values = sign * self.in_doubles(points)
        best = points[np.argsort(-values, kind="stable")[:4]]
        heights = sign * self.in_doubles(best)
        step = 0.25
        for _ in range(28):
            moves = np.vstack([np.eye(d), -np.eye(d), generator.normal(0, 0.7, (4, d))]) * step
            moves = moves * width
            # An integer moves by one at least.
            moves = np.where(self.integer, np.sign(moves) * np.ceil(np.abs(moves)), moves)
            tried = self.snapped((best[:, None, :] + moves).reshape(-1, d))
            reached = (sign * self.in_doubles(tried)).reshape(len(best), -1)
            top = reached.argmax(axis=1)
            rows = np.arange(len(best))
            better = reached[rows, top] > heights
            best[better] = tried.reshape(len(best), -1, d)[rows, top][better]
            heights = np.maximum(heights, reached[rows, top])
            if not better.any():
                step /= 3
        return np.asarray(best[heights.argmax()])

    def _whole_numbers(self, most: int) -> Floats:
        """Every combination of integers, where there are only integers and not too many."""
        if not all(self.integer):
            return np.empty((0, len(self.lo)))
        ranges = [range(int(a), int(b) + 1) for a, b in zip(self.lo, self.hi, strict=True)]
        if math.prod(map(len, ranges)) > most:
            return np.empty((0, len(self.lo)))
        return np.array(list(itertools.product(*ranges)), dtype=np.float64)


def cumulant(epsilon: Fraction, exponent: Fraction) -> mpmath.mpf:
    """log E e^(λL) of randomized response: K(λ) as the issue of Rényi filters writes it."""
    e, rate = _mpf(epsilon), _mpf(exponent)
    raised = mpmath.exp((rate + 1) * e) + mpmath.exp(-rate * e)
    return mpmath.log(raised / (mpmath.exp(e) + 1))


def whitehouse_budget(squares: Fraction, delta_prime: Fraction) -> mpmath.mpf:
    """√(2 log(1/δ′) Σε²) + ½ Σε²."""
    v = _mpf(squares)
    return mpmath.sqrt(2 * mpmath.log(1 / _mpf(delta_prime)) * v) + v / 2


def rogers_accepts(budget: mpmath.mpf, squares: Fraction, mean: Fraction, delta: Fraction) -> bool:
    """Theorem 5.1 of Rogers et al. 2016, as printed."""
    v, log = _mpf(squares), mpmath.log(1 / _mpf(delta))
    extra = budget**2 / (mpmath.mpf("28.04") * log)
    inside = 2 * (v + extra) * (1 + mpmath.log(v / extra + 1) / 2) * mpmath.log(2 / _mpf(delta))
    return bool(_mpf(mean) + mpmath.sqrt(inside) <= budget)


Parts = Sequence[tuple[Fraction, Fraction, Fraction]]
"""Weights, exponents λ and sums of cumulants."""


def mixture_accepts(budget: mpmath.mpf, parts: Parts, delta: Fraction) -> bool:
    """1 - e^-u <= δ Σ w e^(λ(budget + u) - S) for all u >= 0: at the least of the difference."""
    terms = [
        (_mpf(delta * weight) * mpmath.exp(_mpf(rate) * budget - _mpf(cumulants)), _mpf(rate))
        for weight, rate, cumulants in parts
    ]

    def slope(u: mpmath.mpf) -> mpmath.mpf:
        return sum(rate * a * mpmath.exp(rate * u) for a, rate in terms) - mpmath.exp(-u)

    low, high = mpmath.mpf(0), mpmath.mpf(1)
    if slope(low) >= 0:
        return True  # the difference only grows, and starts above zero
    while slope(high) < 0:
        high *= 2
    while high - low > mpmath.mpf(10) ** (-mpmath.mp.dps // 2):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    least = sum(a * mpmath.exp(rate * low) for a, rate in terms) + mpmath.expm1(-low)
    return bool(least >= 0)


def optimal_epsilon(epsilon: Fraction, times: int, delta: Fraction) -> mpmath.mpf:
    """The least ε at which so many randomized responses are (ε, δ)-LDP, in integers.

    With odds m/n, at least j of k truths have the likelihoods Σ C(k,i) m^i n^(k-i) and, for the
    other value, Σ C(k,i) n^i m^(k-i), over (m + n)^k; the excess is linear in e^ε in between.
    """
    m, n = odds(epsilon).as_integer_ratio()
    total, likely, unlikely = (m + n) ** times, 0, 0
    for truths in range(times, 0, -1):
        count = math.comb(times, truths)
        likely += count * m**truths * n ** (times - truths)
        unlikely += count * n**truths * m ** (times - truths)
        above = likely * delta.denominator - total * delta.numerator
        if above > 0:
            found = mpmath.log(mpmath.mpf(above) / (unlikely * delta.denominator))
            if found >= (2 * (truths - 1) - times) * mpmath.log(mpmath.mpf(m) / n):
                return found
    raise AssertionError("some excess is always below delta")


def excess(ratios: Sequence[Fraction], limit: Fraction) -> Fraction:
    """δ at e^ε = limit of randomized responses with these odds, over all their responses."""
    total = Fraction(0)
    for truths in itertools.product((True, False), repeat=len(ratios)):
        query_loss = math.prod(
            (r if t else Fraction(1) for r, t in zip(ratios, truths, strict=True))
        )
        other = math.prod((Fraction(1) if t else r for r, t in zip(ratios, truths, strict=True)))
        total += max(Fraction(0), query_loss - limit * other)
    return total / math.prod(1 + r for r in ratios)

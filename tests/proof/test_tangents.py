"""Points of tangency: next to the maximum, and where the curve is concave."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from expost.proof import verify
from expost.proof._tangents import tangents


def curve(kind: str, epsilon: str) -> verify.Curve:
    with localcontext(verify.ROUNDED):
        size = Decimal(epsilon).exp() - 1
        ends = {"logistic": (-100, 100), "probit": (-18, 18), "linear": (-1, 2)}[kind]
        low, high = map(Decimal, ends)
        return verify.Curve(kind, Fraction(epsilon), size, low, high, Decimal(0))


@pytest.mark.parametrize("kind", ["logistic", "probit", "linear"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "6"])
def test_the_bound_is_next_to_the_largest_value(kind: str, epsilon: str) -> None:
    generator = random.Random(epsilon + kind)
    own = curve(kind, epsilon)
    with localcontext(verify.EXACT):
        for _ in range(25):
            m = generator.choice([1, -1, 3])
            low = generator.uniform(-8, 4)
            high = low + generator.choice([0.1, 2, 8])
            slope = max(float(own.at(Decimal(t) / 2)[1]) for t in range(-20, 10))
            lam = generator.choice([-1, 0, 0.3, 1, 1]) * generator.random() * slope * m
            q = generator.choice([0, 0.2]) * generator.random() * slope if kind == "logistic" else 0
            middle = generator.uniform(low, high)
            points = tangents(own, m, lam, q, middle, low, high)
            y, curvature, centre, left, right = map(Decimal, (lam, q, middle, low, high))
            given = [Decimal(p) for p in points]
            bound = verify.top(own, m, y, curvature, centre, left, right, given)
            places = [low + (high - low) * k / 80 for k in range(81)]
            places += [t for t in (float(own.low), float(own.high)) if low <= t <= high]
            best = max(
                m * float(own.at(Decimal(t))[0]) - lam * t - q / 2 * (t - middle) ** 2
                for t in places
            )
            assert best - 1e-12 <= float(bound) <= best + 2e-3 * abs(m) * slope

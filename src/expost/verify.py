"""Check a proof that the realized loss of a transcript is at most a given number.

    python verify.py TRANSCRIPT.json PROOF.json

This file is a program of its own. It needs Python 3.11 or later and nothing else, and shares no
code with the solver whose work it checks: it reads the queries, works out every likelihood again,
and takes from the proof only how to cut the domain into parts and which multipliers to use in
each. Any multipliers give a bound that holds; the proof is good if those bounds are as stated.

Over a finite domain the loss is worked out exactly from integer weights. Over a box all numbers
have 40 digits, and every bound is lifted by 1e-30 of the sizes of all that was summed, which is
far more than their rounding can come to.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

__all__ = ["Failed", "Verdict", "verify"]

DIGITS = 40
SLACK = Decimal("1e-30")
AGREE = Decimal("1e-9")  # how far a bound may be below what the proof says it is
UNIT = Decimal(2) ** -53
NO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620900")
FAR = Decimal(5000)  # beyond this a logistic link is level to thousands of digits
ENDLESS = Decimal("inf")


class Failed(Exception):
    """The proof does not hold; the message says where."""


@dataclass(frozen=True)
class Verdict:
    """What was proved: the realized loss is at most ``loss``."""

    loss: Decimal
    budget: Decimal | None
    leaves: int

    @property
    def within_budget(self) -> bool | None:
        return None if self.budget is None else self.loss <= self.budget


def verify(transcript: str, proof: str, tell: Callable[[int], None] = lambda _: None) -> Verdict:
    """Check a proof (JSON text) about a transcript (JSON text). Raises :class:`Failed`.

    ``tell`` is called with the number of leaves that were checked.
    """
    leaves = 0

    def agree(leaf: Any, found: Decimal, place: str) -> None:
        nonlocal leaves
        close(found, leaf.get("bound"), f"{place}.bound")
        leaves += 1
        tell(leaves)

    with localcontext(Context(prec=DIGITS)):
        try:
            claim, statement = read(proof, "proof"), read(transcript, "transcript")
            fields(claim, "proof", "version", "statement", "loss", optional=("groups",))
            same(meaning(statement), meaning(claim["statement"]), "")
            # The same, but coordinates are numbered as in the proof.
            statement = claim["statement"]
            if claim["version"] != "1" or statement.get("version") != "1":
                raise Failed("version: only version 1 is known")
            if "box" in statement["domain"]:
                loss = loss_on_box(statement, claim.get("groups", []), agree)
            else:
                loss = loss_on_values(statement)
            close(loss, claim["loss"], "loss")
            return Verdict(loss, budget(statement.get("filter")), leaves)
        except (
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            AttributeError,
            RecursionError,
        ):
            raise Failed("a place that has not the shape of a proof") from None


# -- reading ---------------------------------------------------------------------------------------


class Number(str):
    """A number of a file, as it was written."""


def read(text: str, what: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise Failed(f"{what}: a field is given twice")
        return dict(pairs)

    try:
        return json.loads(
            text,
            parse_float=Number,
            parse_int=Number,
            parse_constant=Number,
            object_pairs_hook=once,
        )
    except (json.JSONDecodeError, RecursionError):
        raise Failed(f"{what}: not JSON") from None


def fields(value: Any, place: str, *required: str, optional: tuple[str, ...] = ()) -> None:
    if not isinstance(value, dict) or not set(required) <= set(value) <= {*required, *optional}:
        raise Failed(f"{place}: must have the fields {', '.join(required)}")


def meaning(tree: Any, inside: str = "") -> Any:
    """A document whose numbers are what they mean, with defaults written out."""
    if isinstance(tree, dict):
        defaults = DEFAULTS.get(str(tree.get("kind")), {})
        entries = {**defaults, **tree}
        return {
            name: meaning(entry, inside if inside in INNER else name)
            for name, entry in entries.items()
        }
    if isinstance(tree, list):
        return [meaning(entry, inside) for entry in tree]
    if inside in EXACT:
        return exact(tree)
    if inside == "seed" and isinstance(tree, str):
        return tree.lower()
    return double(tree) if isinstance(tree, Number) else tree


# Numbers that are exact as written; all others are doubles.
EXACT = {"epsilon", "ratio", "delta", "probabilities", "utility", "sensitivity", "grid"}
INNER = EXACT | {"box", "weights"}  # what is in these goes by names that a person chose
DEFAULTS: dict[str, dict[str, Any]] = {
    "linear": {"intercept": Number(0), "clip": False},
    "logistic": {"intercept": Number(0)},
    "probit": {"intercept": Number(0)},
    "duchi": {"intercept": Number(0)},
    "laplace": {"intercept": Number(0)},
}


def same(ours: Any, theirs: Any, place: str) -> None:
    """Whether transcript and proof are about the same."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            if name not in ours or name not in theirs:
                raise Failed(f"{place}{name}: only one of transcript and proof has it")
            same(ours[name], theirs[name], f"{place}{name}.")
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            raise Failed(f"{place[:-1]}: {len(ours)} entries, and {len(theirs)} in the proof")
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            same(*pair, f"{place}{index}.")
    elif type(ours) is not type(theirs) or ours != theirs:
        raise Failed(f"{place[:-1]}: transcript and proof differ")


def exact(number: Any) -> Fraction:
    """A number or a text such as "0.1" or "2/3", as the fraction that was written."""
    try:
        # Nobody writes more digits, or larger exponents; and they would take for ever.
        if len(number) > 2000 or abs(int(number.lower().partition("e")[2] or 0)) > 600:
            raise ValueError
        return Fraction(number)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError):
        raise Failed("a number is not written as one") from None


def double(number: Any) -> float:
    """The double that is nearest to what was written."""
    try:
        result = float(number)
    except (TypeError, ValueError):
        raise Failed("a number is not written as one") from None
    if not math.isfinite(result):
        raise Failed("a number is not finite")
    return result


def decimal(number: Fraction | float) -> Decimal:
    """A double is a decimal, exactly; a fraction need not be."""
    if isinstance(number, Fraction):
        return Decimal(number.numerator) / number.denominator
    return Decimal(number)


def close(found: Decimal, stated: Any, place: str) -> None:
    try:
        claimed = Decimal(str(stated))
    except InvalidOperation:
        raise Failed(f"{place}: not a number") from None
    if not (found == claimed or (found.is_finite() and 0 <= claimed - found <= AGREE)):
        raise Failed(f"{place}: it is {found:.10f}, not {str(stated)[:40]} as stated")


def budget(guard: Any) -> Decimal | None:
    if guard is None:
        return None
    return (
        decimal(exact(guard["epsilon"]))
        if "epsilon" in guard
        else decimal(exact(guard["ratio"])).ln()
    )


# -- integer weights -------------------------------------------------------------------------------


@cache
def two_weights(epsilon: Fraction) -> tuple[int, int]:
    """(⌊2^B e^epsilon⌋, 2^B) with B = 40 + max(0, ⌈log₂ 1/epsilon⌉)."""
    if not 0 < epsilon <= 500:
        raise Failed("an epsilon is not above 0, or above 500")
    bits = 40
    while epsilon * 2 ** (bits - 40) < 1:
        bits += 1
    return scaled_exp(epsilon, bits), 2**bits


def scaled_exp(exponent: Fraction, bits: int) -> int:
    """⌊2^bits e^exponent⌋, with as many digits as it takes to tell it from an integer."""
    digits = bits + 40
    while True:
        with localcontext(Context(prec=digits)):
            number = decimal(exponent).exp() * 2**bits
            off = number.scaleb(10 - digits)
            if not exponent or int(number - off) == int(number + off):
                return int(number)
        digits *= 2


def below(fraction: Fraction) -> float:
    """The largest double that is not above a fraction."""
    nearest = float(fraction)
    return nearest if Fraction(nearest) <= fraction else math.nextafter(nearest, -math.inf)


def span_of(epsilon: Fraction) -> tuple[int, int, int]:
    """Light, heavy, and how far the high weight of a one-bit query can rise above light."""
    heavy, light = two_weights(epsilon)
    return light, heavy, int(below(Fraction(heavy - light)))


# -- finite domains --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """The values of a finite domain: labels and numbers, or rows of numbers with names."""

    rows: list[Any]
    names: list[str]

    @property
    def keys(self) -> list[Any]:
        return [key(row) for row in self.rows]


def key(value: Any) -> Any:
    """What makes two values the same: 1 and 1.0 are, 1 and "1" are not."""
    if isinstance(value, list):
        return tuple(key(entry) for entry in value)
    return double(value) if isinstance(value, Number) else value


def loss_on_values(statement: Any) -> Decimal:
    """max - min over values of the sum of log-weights."""
    domain = statement["domain"]
    points = domain.get("points") or {"rows": domain["values"], "names": ["value"]}
    values = Values(points["rows"], points["names"])
    sums, error = [NO] * len(values.rows), NO
    for index, exchange in enumerate(statement["exchanges"]):
        query, response = exchange["query"], exchange["response"]
        try:
            if query["kind"] in (
                "linear",
                "duchi",
                "logistic",
                "probit",
                "laplace",
                "perturbation",
            ):
                logs, own = logs_of_scores(query, response, values)
            else:
                logs, own = [ln(w) for w in FAMILIES[query["kind"]](query, response, values)], NO
        except (KeyError, TypeError, ValueError, Failed) as problem:
            raise Failed(f"exchanges.{index}: {problem}") from None
        sums = [a + b for a, b in zip(sums, logs, strict=True)]
        error += 2 * own + SLACK
    if -ENDLESS in sums:
        return ENDLESS
    return max(sums) - min(sums) + error


@cache
def ln(weight: int) -> Decimal:
    return Decimal(weight).ln()  # minus infinity for 0


def expect(condition: bool) -> None:
    if not condition:
        raise Failed("the response is none of this query, or the query none of this domain")


def two_level(epsilon: Fraction, spoken_for: list[bool]) -> list[int]:
    """Heavy for the values that a response speaks for, light for the others."""
    heavy, light = two_weights(epsilon)
    return [heavy if yes else light for yes in spoken_for]


def randomized_response(query: Any, response: Any, values: Values) -> list[int]:
    expect(key(response) in values.keys)
    return two_level(exact(query["epsilon"]), [own == key(response) for own in values.keys])


def unary_encoding(query: Any, response: Any, values: Values) -> list[int]:
    expect(len(response) == len(values.rows) and set(response) <= {"0", "1"})
    ones = [bit == "1" for bit in response]
    if query["variant"] == "optimized":
        return two_level(exact(query["epsilon"]), ones)
    expect(query["variant"] == "symmetric")
    return [weight**2 for weight in two_level(exact(query["epsilon"]) / 2, ones)]


def subset_selection(query: Any, response: Any, values: Values) -> list[int]:
    chosen = [int(index) for index in response]
    expect(chosen == sorted({*chosen}) and len(chosen) == int(query["size"]) < len(values.rows))
    expect(chosen[0] >= 0 and chosen[-1] < len(values.rows))
    return two_level(exact(query["epsilon"]), [i in chosen for i in range(len(values.rows))])


def local_hashing(query: Any, response: Any, values: Values) -> list[int]:
    seed, buckets = bytes.fromhex(query["seed"]), int(query["buckets"])
    expect(0 <= int(response) < buckets)
    digests = [hashlib.sha256(seed + canonical(row)).digest() for row in values.rows]
    hashed = [int.from_bytes(digest[:8]) % buckets for digest in digests]
    return two_level(exact(query["epsilon"]), [bucket == int(response) for bucket in hashed])


def canonical(value: Any) -> bytes:
    """A value as content ids encode it."""

    def leaf(entry: Any) -> Any:
        if isinstance(entry, list):
            return [leaf(x) for x in entry]
        if isinstance(entry, Number):
            return (double(entry) + 0.0).hex()
        return "'" + entry if entry.startswith(("0x", "-0x", "'")) else entry

    return json.dumps(leaf(value), separators=(",", ":"), ensure_ascii=False).encode()


def hadamard_response(query: Any, response: Any, values: Values) -> list[int]:
    column, order = int(response), int(query["order"])
    expect(0 <= column < order and len(values.rows) < order and order.bit_count() == 1)
    even = [((i + 1) & column).bit_count() % 2 == 0 for i in range(len(values.rows))]
    return two_level(exact(query["epsilon"]), even)


def geometric(query: Any, response: Any, values: Values) -> list[int]:
    """Noise z with probability (1 - a)/(1 + a) a^|z|, a = light/heavy, clamped to the range."""
    low, high = (int(end) for end in query["range"])
    numbers, y = [int(row) for row in values.rows], int(response)
    expect(low <= y <= high and max(numbers) - min(numbers) <= exact(query["sensitivity"]))
    heavy, light = two_weights(exact(query["epsilon"]) / exact(query["sensitivity"]))
    a, shares = Fraction(light, heavy), []
    for x in numbers:
        if low < y < high:
            shares.append((1 - a) * a ** abs(y - x))
        elif x < low if y == low else x > high:
            shares.append(1 + a - a ** (abs(y - x) + 1))
        else:
            shares.append(a ** abs(y - x))
    return whole(shares)


def exponential_mechanism(query: Any, response: Any, values: Values) -> list[int]:
    """Rounded powers of e in every row, and one small weight more for all of them."""
    epsilon, sensitivity = exact(query["epsilon"]), exact(query["sensitivity"])
    rows = [[epsilon * exact(u) / (2 * sensitivity) for u in row] for row in query["utility"]]
    column = [key(label) for label in query["responses"]].index(key(response))
    width = len(query["responses"])
    expect(len(rows) == len(values.rows) and all(len(row) == width for row in rows))
    mixed = (width + 2) * (1 + math.ceil(2 / epsilon))
    spread = max(max(row) - min(row) for row in rows)
    bits = 40 + (mixed * width).bit_length() + math.ceil(spread * Fraction(3, 2))
    weights = []
    for row in rows:
        scaled = [scaled_exp(u - max(row), bits + (width + 1).bit_length()) for u in row]
        own = [(weight << bits) // sum(scaled) for weight in scaled]
        own[row.index(max(row))] += (1 << bits) - sum(own)
        weights.append(own[column] + mixed)
    return weights


def whole(shares: list[Fraction]) -> list[int]:
    """Fractions as integers, by a common factor."""
    common = math.lcm(*(share.denominator for share in shares))
    return [int(share * common) for share in shares]


def channel(query: Any, response: Any, values: Values) -> list[int]:
    column = [key(label) for label in query["responses"]].index(key(response))
    return whole([exact(row[column]) for row in query["probabilities"]])


def logs_of_scores(query: Any, response: Any, values: Values) -> tuple[list[Decimal], Decimal]:
    """A one-bit query about a score per value, by its formula, and how far off that can be."""
    if query["kind"] == "perturbation":
        rows, names = [[score] for score in query["scores"]], ["value"]
        query = {**query, "kind": "linear", "weights": {"value": Number(1)}}
    else:
        rows, names = [row if isinstance(row, list) else [row] for row in values.rows], values.names
    points = [[decimal(double(x)) for x in row] for row in rows]
    columns = list(zip(*points, strict=True))
    box = Box(names, [min(c) for c in columns], [max(c) for c in columns], [False] * len(names))
    term = term_of(query, response, box, points)
    return [term.at(term.score(point)) for point in points], term.error


FAMILIES: dict[str, Callable[[Any, Any, Values], list[int]]] = {
    "channel": channel,
    "randomized_response": randomized_response,
    "unary_encoding": unary_encoding,
    "subset_selection": subset_selection,
    "local_hashing": local_hashing,
    "hadamard_response": hadamard_response,
    "geometric": geometric,
    "exponential_mechanism": exponential_mechanism,
}


# -- boxes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    names: list[str] | None
    lower: list[Decimal]
    upper: list[Decimal]
    whole: list[bool]


def read_box(box: Any) -> Box:
    sides = list(box.values()) if isinstance(box, dict) else box
    bounds = [side["integers"] if isinstance(side, dict) else side for side in sides]
    return Box(
        names=list(box) if isinstance(box, dict) else None,
        lower=[decimal(double(low)) for low, _ in bounds],
        upper=[decimal(double(high)) for _, high in bounds],
        whole=[isinstance(side, dict) for side in sides],
    )


@dataclass(frozen=True)
class Term:
    """log-weight of a response = constant + link(z), z = a·x + c, within ``error``.

    The link is increasing: for "logistic" 2 artanh(tanh(ε/4) tanh(z/2)), for "linear"
    log(1 + tanh(ε/2) clip(z, -1, 1)), for "probit" log(1 + (e^ε - 1) Φ(z)), up to a constant.
    ``sign`` is -1 where the smallest sum is looked for: then what is maximized is -link(-t) of
    t = -z. All are convex left of ``bend`` and concave right of it; but a "tent" is -|z|.
    """

    link: str
    epsilon: Decimal
    a: tuple[Decimal, ...]
    c: Decimal
    error: Decimal
    sign: int = 1

    def score(self, point: Sequence[Decimal]) -> Decimal:
        return sum((a * x for a, x in zip(self.a, point, strict=True)), self.c)

    def negated(self) -> Term:
        flipped = tuple(-x for x in self.a)
        return Term(self.link, self.epsilon, flipped, -self.c, self.error, -self.sign)

    @cached_property
    def half(self) -> Decimal:
        """e^(ε/2)."""
        return (self.epsilon / 2).exp()

    @cached_property
    def foot(self) -> Decimal:
        """1 + tanh(ε/2) z = (foot + 1 + z) / (foot + 1)."""
        return 2 / (self.half**2 - 1)

    def at(self, t: Decimal) -> Decimal:
        if self.link == "tent":
            return -self.sign * abs(t)
        if self.link == "logistic":  # odd, so the sign makes no difference
            y = min(FAR, max(-FAR, t)).exp()
            return ((self.half * y + 1) / (y + self.half)).ln()
        z = self.sign * t
        risen = normal(z)[0] if self.link == "probit" else 1 + min(ONE, max(-ONE, z))
        return self.sign * (((risen + self.foot) / self.foot).ln() - self.epsilon / 2)

    def slopes(self, t: Decimal) -> tuple[Decimal, Decimal]:
        """First and second derivative; the second of a logistic link only, and linear ones within
        [-1, 1]."""
        if self.link == "linear":
            return 1 / (1 + self.sign * t + self.foot), NO
        if self.link == "probit":
            risen, density = normal(self.sign * t)
            return density / (risen + self.foot), NO
        y, e = min(FAR, max(-FAR, t)).exp(), self.half
        sinh, below_it = (e - 1 / e) / 2, (y + 1 / y + e + 1 / e) / 2
        return sinh / below_it, -sinh * (y - 1 / y) / 2 / below_it**2

    @cached_property
    def bend(self) -> Decimal:
        if self.link == "logistic":
            return NO
        if self.link == "linear":
            return Decimal(-self.sign)
        # ψ'' = -ψ'(z + ψ'), so it is where the slope is -z.
        a, b = Decimal(-50), NO
        for _ in range(4 * DIGITS):
            z = (a + b) / 2
            a, b = (z, b) if z + self.slopes(self.sign * z)[0] < 0 else (a, z)
        return self.sign * b

    def rough(
        self, m: int, lam: Decimal, q: Decimal, mid: Decimal
    ) -> Callable[[float], tuple[float, float]]:
        """The derivatives of m ψ(t) - λt - q/2 (t - mid)², in doubles."""
        e, slant, curve, centre = float(self.half), float(lam), float(q), float(mid)

        def slopes(t: float) -> tuple[float, float]:
            y = math.exp(min(300.0, max(-300.0, t)))
            sinh, below_it = (e - 1 / e) / 2, (y + 1 / y + e + 1 / e) / 2
            first, second = sinh / below_it, -sinh * (y - 1 / y) / 2 / below_it / below_it
            return m * first - slant - curve * (t - centre), m * second - curve

        return slopes


def term_of(query: Any, response: Any, box: Box, points: list[list[Decimal]] | None = None) -> Term:
    """The formula of a one-bit query, and how far from it the sampled weights can be.

    On finitely many points the range of a score is that on those, else that on the box.
    """
    given = query["weights"]
    if isinstance(given, dict) and not set(given) <= set(box.names or []):
        raise Failed("a weight names no coordinate")
    if isinstance(given, dict):
        given = [given.get(name, 0) for name in box.names or []]
    w, c = [decimal(double(x)) for x in given], decimal(double(query.get("intercept", 0)))
    sides = list(zip(w, box.lower, box.upper, strict=True))
    epsilon = exact(query["epsilon"])
    eps, used = decimal(epsilon), sum(x != 0 for x in w)
    if eps < Decimal("1e-25"):
        return constant(eps, len(w))  # too little to tell from roundings
    reach = sum((abs(x) * max(abs(a), abs(b)) for x, a, b in sides), abs(c))
    rounding = (used + 2) * UNIT * reach + used * TWO**-1074
    light, heavy, span = span_of(epsilon)
    growth = decimal(Fraction(span, light))
    corners = points or [[a if x * sign > 0 else b for x, a, b in sides] for sign in (1, -1)]
    scores = [exact_score(w, c, corner) for corner in corners]
    if query["kind"] == "laplace":
        return tent(query, response, scores, w, c, rounding)
    if query["kind"] in ("logistic", "probit"):
        sign = 1 if is_high(response, 0, 1) else -1
        scale, shift, share, slope = Decimal(sign), eps / 2, 10 * UNIT, min(eps / 4, ONE)
        if query["kind"] == "probit":
            shift, slope = NO, growth * 2 / 5
    elif query["kind"] in ("linear", "duchi"):
        low, high = ends_of(query, scores)
        answers = low, high
        if query["kind"] == "duchi":
            middle = Fraction(low) / 2 + Fraction(high) / 2
            half = (Fraction(high) - Fraction(low)) / 2 * Fraction(2 * light + span, span)
            answers = float(middle - half), float(middle + half)
        sign = 1 if is_high(response, *answers) else -1
        width, sum_of_ends = decimal(high) - decimal(low), decimal(high) + decimal(low)
        scale, shift = 2 * sign / width, -sign * sum_of_ends / width
        share, slope = 5 * UNIT, growth / 2
    else:
        raise Failed(f"no query about a score: {query['kind']}")
    share *= min(growth, ONE) if sign > 0 else growth
    if query["kind"] == "probit":
        share = 514 * UNIT * growth
    error = slope * abs(scale) * rounding + share
    error += ONE / (2 * light) + ONE / heavy + Decimal(heavy - light - span) / (light + span)
    a = tuple(scale * x for x in w)
    if error >= eps / 2:
        return constant(eps, len(w))
    link = "linear" if query["kind"] == "duchi" else query["kind"]
    return Term(link, eps, a, scale * c + shift, error)


def constant(eps: Decimal, size: int) -> Term:
    """All weights are within epsilon of each other, so within half of it of a constant."""
    return Term("logistic", eps, (NO,) * size, NO, eps / 2)


def tent(
    query: Any,
    response: Any,
    scores: list[Fraction],
    w: list[Decimal],
    c: Decimal,
    rounding: Decimal,
) -> Term:
    """Noise on a grid: the logarithm falls by epsilon per width of the range, on either side."""
    low, high = map(double, query["range"])
    steps = [exact(repr(end)) / exact(query["grid"]) for end in (low, high)]
    width, cells = Fraction(high) - Fraction(low), steps[1] - steps[0]
    expect(all(step.denominator == 1 for step in steps) and cells > 0)
    # What leaves the range by more than is forgiven would be another query.
    forgiven = Fraction(1, 10**12)
    if min(scores) < low - forgiven * width or max(scores) > high + forgiven * width:
        raise Failed("the score leaves its range")
    cell = min(cells, max(Fraction(0), int(response) - steps[0]))
    eps = decimal(exact(query["epsilon"]))
    scale = eps / decimal(width)
    shift = -scale * decimal(low) - eps * decimal(cell / cells)
    # Half a step of the grid, what is forgiven, roundings, and weights just below e^(ε/cells).
    off = decimal(1 / (2 * cells) + forgiven) + 8 * UNIT + TWO**-40
    error = scale * rounding + eps * off
    if error >= eps / 2:
        return constant(eps, len(w))
    return Term("tent", eps, tuple(scale * x for x in w), scale * c + shift, error)


def is_high(response: Any, low: float, high: float) -> bool:
    if double(response) not in (low, high):
        raise Failed("the response is no end of the range")
    return double(response) == high


def exact_score(w: list[Decimal], c: Decimal, point: list[Decimal]) -> Fraction:
    return sum((Fraction(a) * Fraction(x) for a, x in zip(w, point, strict=True)), Fraction(c))


def ends_of(query: Any, scores: list[Fraction]) -> tuple[float, float]:
    """The range of a linear query: as written, or the range of its score, rounded outward."""
    if "range" in query:
        low, high = map(double, query["range"])
        return low, high
    return below(min(scores)), -below(-max(scores))


def loss_on_box(statement: Any, groups: Any, seen: Callable[[Any, Decimal, str], None]) -> Decimal:
    """The sum over groups of their largest and of their largest negative sum; never above Σ ε."""
    box = read_box(statement["domain"]["box"])
    terms = []
    for index, exchange in enumerate(statement["exchanges"]):
        try:
            terms.append(term_of(exchange["query"], exchange["response"], box))
        except (KeyError, TypeError, ValueError, Failed) as error:
            raise Failed(f"exchanges.{index}: {error}") from None
    free = set(range(len(terms)))
    total = NO
    for g, group in enumerate(groups):
        place = f"groups.{g}"
        fields(group, place, "terms", "largest", "smallest")
        counted: list[tuple[Term, int]] = []
        for alike in group["terms"]:
            indices = [int(index) for index in alike]
            if not indices or not free.issuperset(indices) or len(set(indices)) < len(indices):
                raise Failed(f"{place}.terms: an exchange is not there, or counted twice")
            if len({terms[index] for index in indices}) > 1:
                raise Failed(f"{place}.terms: these exchanges are not alike")
            free.difference_update(indices)
            counted.append((terms[indices[0]], len(indices)))
        total += sum((2 * m * term.error for term, m in counted), NO)
        for side in ("largest", "smallest"):
            own = counted if side == "largest" else [(term.negated(), m) for term, m in counted]
            bound = -ENDLESS
            for leaf, part, here in leaves_of(box, len(own), group[side], f"{place}.{side}"):
                found = bound_of_leaf(own, part, leaf, here)
                seen(leaf, found, here)
                bound = max(bound, found)
            total += bound
    for index in free:
        # In no group: what its own likelihood can vary by.
        term = terms[index]
        low, high = score_range(term, box.lower, box.upper)
        range_of_it = top(term, 1, NO, low, high) + top(term.negated(), 1, NO, -high, -low)
        total += min(term.epsilon, range_of_it + 2 * term.error + SLACK)
    with localcontext(Context(prec=DIGITS, rounding=ROUND_CEILING)):
        charges = [exact(exchange["query"]["epsilon"]) for exchange in statement["exchanges"]]
        return max(NO, min(total, decimal(sum(charges, Fraction(0)))))


def score_range(term: Term, lower: list[Decimal], upper: list[Decimal]) -> tuple[Decimal, Decimal]:
    low = high = term.c
    size = 1 + abs(term.c)
    for a, least, most in zip(term.a, lower, upper, strict=True):
        low += min(a * least, a * most)
        high += max(a * least, a * most)
        size += abs(a) * max(abs(least), abs(most))
    return low - SLACK * size, high + SLACK * size


@dataclass(frozen=True)
class Part:
    """A part of the domain: a box of coordinates, and intervals of scores."""

    lower: list[Decimal]
    upper: list[Decimal]
    low: list[Decimal]
    high: list[Decimal]


def leaves_of(box: Box, terms: int, tree: Any, place: str) -> Iterator[tuple[Any, Part, str]]:
    """The leaves of a tree and their parts of the domain, which they cover.

    Nodes come parent first, then all that is below its cut, then all that is above.
    """
    waiting = [Part(box.lower, box.upper, [-ENDLESS] * terms, [ENDLESS] * terms)]
    for index, node in enumerate(tree):
        here = f"{place}.{index}"
        if not waiting:
            raise Failed(f"{here}: there is nothing left to cover")
        part = waiting.pop()
        if "split" in node:
            waiting += reversed(cut(part, node, box, here))
        else:
            yield node, part, here
    if waiting:
        raise Failed(f"{place}: a part of the domain is not covered; leaves are missing")


def cut(part: Part, node: Any, box: Box, place: str) -> list[Part]:
    """What is below and what is above a cut; what lies on it is in both, or is an integer."""
    fields(node, place, "split", "of", "at")
    at, kind, index = decimal(double(node["at"])), node["split"], int(node["of"])
    ends = (part.lower, part.upper) if kind == "coordinate" else (part.low, part.high)
    if kind not in ("coordinate", "score") or not 0 <= index < len(ends[0]):
        raise Failed(f"{place}: there is no such {kind}")
    whole = kind == "coordinate" and box.whole[index]
    first = Decimal(math.floor(at)) if whole else at
    second = first + 1 if whole else at
    below_it, above_it = list(ends[1]), list(ends[0])
    below_it[index] = min(below_it[index], first)
    above_it[index] = max(above_it[index], second)
    if kind == "coordinate":
        return [
            Part(part.lower, below_it, part.low, part.high),
            Part(above_it, part.upper, part.low, part.high),
        ]
    return [
        Part(part.lower, part.upper, part.low, below_it),
        Part(part.lower, part.upper, above_it, part.high),
    ]


def bound_of_leaf(terms: list[tuple[Term, int]], part: Part, leaf: Any, place: str) -> Decimal:
    r"""No point of the part has a larger sum than this. For any λ, q, x̂ and D - Σ q a aᵀ ⪰ 0:

    Σ_i max_t (m ψ(t) - λ_i t - q_i/2 (t - t̂_i)²) + λ·c + Σ_j max_x ((Aᵀλ)_j x + D_j/2 (x - x̂_j)²)
    """
    low, high = list(part.low), list(part.high)
    for i, (term, _) in enumerate(terms):
        least, most = score_range(term, part.lower, part.upper)
        low[i], high[i] = max(low[i], least), min(high[i], most)
    pairs = [*zip(low, high, strict=True), *zip(part.lower, part.upper, strict=True)]
    if any(a > b for a, b in pairs):
        return -ENDLESS  # there is no such point
    if "corners" in leaf:
        fields(leaf, place, "corners", "bound")
        return best_corner(terms, part, low, place)
    fields(leaf, place, "multipliers", "bound", optional=("curvatures", "centre", "diagonal"))
    n, d = len(terms), len(part.lower)
    lam = vector(leaf["multipliers"], n, f"{place}.multipliers")
    q, centre, diagonal = [NO] * n, list(part.lower), [NO] * d
    if "curvatures" in leaf:
        q = vector(leaf["curvatures"], n, f"{place}.curvatures")
        centre = vector(leaf.get("centre"), d, f"{place}.centre")
        diagonal = vector(leaf.get("diagonal"), d, f"{place}.diagonal")
        check_diagonal(terms, part, q, centre, diagonal, f"{place}.diagonal")
    total, size = NO, NO
    slopes, weight = [NO] * d, [NO] * d
    for i, (term, m) in enumerate(terms):
        middle = term.score(centre)
        if q[i]:
            largest = curved_top(
                term, m, lam[i], q[i], middle, low[i], high[i], f"{place}.curvatures.{i}"
            )
        else:
            largest = top(term, m, lam[i], low[i], high[i])
        total += largest + lam[i] * term.c
        size += abs(largest) + abs(lam[i]) * (abs(term.c) + abs(low[i]) + abs(high[i]))
        # Not |middle|: what cancels in it was rounded all the same.
        far = sum((abs(a * x) for a, x in zip(term.a, centre, strict=True)), abs(term.c))
        size += m * term.epsilon + abs(q[i]) * (abs(low[i]) + abs(high[i]) + far) ** 2
        for j in range(d):
            slopes[j] += lam[i] * term.a[j]
            weight[j] += abs(lam[i] * term.a[j])
    for j in range(d):
        total += max(
            slopes[j] * x + diagonal[j] / 2 * (x - centre[j]) ** 2
            for x in (part.lower[j], part.upper[j])
        )
        reach = abs(part.lower[j]) + abs(part.upper[j]) + abs(centre[j])
        size += (weight[j] + diagonal[j] * reach) * reach
    return total + SLACK * (1 + size)


def vector(numbers: Any, length: int, place: str) -> list[Decimal]:
    if not isinstance(numbers, list) or len(numbers) != length:
        raise Failed(f"{place}: must be {length} numbers")
    try:
        return [decimal(double(number)) for number in numbers]
    except Failed as error:
        raise Failed(f"{place}: {error}") from None


@cache
def normal(z: Decimal) -> tuple[Decimal, Decimal]:
    """2Φ(z) and its derivative, by 1 + 2φ(z) Σ z^(2n+1)/(1·3·5···(2n+1))."""
    z = min(Decimal(18), max(Decimal(-18), z))  # beyond this nothing changes in 70 digits
    with localcontext(Context(prec=2 * DIGITS)):  # twice as many, for 2Φ may be small
        density = (2 / PI).sqrt() * (-z * z / 2).exp()
        term, total, n = z, z, 1
        while abs(term) > abs(total) * Decimal(10) ** (-2 * DIGITS):
            term *= z * z / (2 * n + 1)
            total, n = total + term, n + 1
        return max(NO, 1 + density * total), density


def rough_probit(term: Term, t: float) -> float:
    """The slope of a probit link, in doubles."""
    density = math.sqrt(2 / math.pi) * math.exp(-t * t / 2)
    return density / (float(term.foot) + math.erfc(-term.sign * t / math.sqrt(2)))


def tangent(value: Decimal, slope: Decimal, p: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """The largest value of a tangent on an interval: above all of a concave function there."""
    return value + max(slope * (low - p), slope * (high - p))


def top(term: Term, m: int, lam: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """An upper bound on m ψ(t) - λt over an interval."""

    def f(t: Decimal) -> Decimal:
        return m * term.at(t) - lam * t

    if term.link == "tent":  # straight on either side of 0
        return max(f(low), f(high), f(min(high, max(low, NO))))
    if term.link == "linear":
        # Level beyond -1 and 1, so the ends of all three pieces are looked at.
        left, right = max(low, -ONE), min(high, ONE)
        ends = {low, high, min(left, high), max(right, low)}
    else:
        left, right = max(low, term.bend), high
        ends = {t for t in (low, high) if t <= term.bend}
    best = max(map(f, ends), default=-ENDLESS)
    if left >= right or (term.link == "linear" and term.sign < 0):
        return best  # convex between those
    # Concave from left to right. The tangent at any point will do, best where it is level.
    p = right
    if lam > 0 and term.link == "linear":
        p = m / lam - term.foot - 1
    elif lam > 0 and term.link == "probit":
        p = decimal(bisect(lambda t: rough_probit(term, t) > lam / m, float(left), float(right)))
    elif lam > 0:
        y = (term.half - 1 / term.half) / 2 * m / lam - (term.half + 1 / term.half) / 2
        p = (y + (y * y - 1).sqrt()).ln() if y > 1 else left
    p = min(right, max(left, p))
    return max(best, tangent(f(p), m * term.slopes(p)[0] - lam, p, left, right))


def curved_top(
    term: Term,
    m: int,
    lam: Decimal,
    q: Decimal,
    mid: Decimal,
    low: Decimal,
    high: Decimal,
    place: str,
) -> Decimal:
    """An upper bound on f(t) = m ψ(t) - λt - q/2 (t - mid)² over an interval, ψ logistic.

    ψ'' rises up to a peak at -u, falls from there to its lowest point at u, and is negative right
    of 0. So where q ≥ 0, f is convex on a stretch around the peak and concave on either side: each
    side of the peak is below f at the peak, or below a tangent at a point where f'' ≤ 0.
    """
    if term.link != "logistic":
        raise Failed(f"{place}: only logistic terms can have a curvature")

    def f(t: Decimal) -> Decimal:
        return m * term.at(t) - lam * t - q / 2 * (t - mid) ** 2

    def slopes(t: Decimal) -> tuple[Decimal, Decimal]:
        first, second = term.slopes(t)
        return m * first - lam - q * (t - mid), m * second - q

    if q < 0 and not (low >= 0 and slopes(low)[1] <= 0 and slopes(high)[1] <= 0):
        raise Failed(f"{place}: negative, and the term is not concave")
    cosh = (term.half + 1 / term.half) / 2
    y = (cosh + (cosh * cosh + 8).sqrt()) / 2
    peak = min(high, max(low, -(y + (y * y - 1).sqrt()).ln()))
    best = max(f(low), f(high), f(peak))
    rough = term.rough(m, lam, q, mid)
    for outer in (low, high):
        if outer == peak or slopes(outer)[1] > 0:
            continue  # convex up to its end
        # Somewhere from the peak to this end the concave part begins, and in it f' falls. Doubles
        # will do to find a good point; whether it is concave there is then checked.
        inner = float(peak)
        if rough(inner)[1] > 0:
            inner = bisect(lambda t: rough(t)[1] > 0, inner, float(outer))
        ends = sorted((inner, float(outer)))
        p = decimal(bisect(lambda t: rough(t)[0] > 0, *ends))
        p = min(max(peak, outer), max(min(peak, outer), p))
        if slopes(p)[1] > 0:
            p = outer
        best = max(best, tangent(f(p), slopes(p)[0], p, min(peak, outer), max(peak, outer)))
    return best


def bisect(before: Callable[[float], bool], a: float, b: float) -> float:
    """The end of what comes before, from a (which does) towards b."""
    for _ in range(60):
        t = (a + b) / 2
        a, b = (t, b) if before(t) else (a, t)
    return b


def check_diagonal(
    terms: list[tuple[Term, int]], part: Part, q: list[Decimal], centre: list[Decimal],
    diagonal: list[Decimal], place: str,
) -> None:  # fmt: skip
    """D - Σ q a aᵀ is positive semidefinite, by elimination. Fixed coordinates do not matter."""
    loose = [j for j in range(len(centre)) if not part.lower[j] == part.upper[j] == centre[j]]
    rows = [
        [
            (diagonal[j] if j == k else NO)
            - sum((q[i] * term.a[j] * term.a[k] for i, (term, _) in enumerate(terms)), NO)
            for k in loose
        ]
        for j in loose
    ]
    size = sum((abs(rows[j][j]) for j in range(len(loose))), NO)
    if any(x < 0 for x in diagonal):
        raise Failed(f"{place}: must not be negative")
    for j in range(len(loose)):
        if not any(rows[j]):
            continue
        if rows[j][j] <= size * 1000 * SLACK:
            raise Failed(f"{place}: too small for these curvatures")
        for k in range(j + 1, len(loose)):
            factor = rows[k][j] / rows[j][j]
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[j], strict=True)]


def best_corner(
    terms: list[tuple[Term, int]], part: Part, low: list[Decimal], place: str
) -> Decimal:
    """The largest of Σ m (ε/2 - log((1 - t + foot)/foot)), which is convex, is at a corner.

    Left of -1 the link is level and this is not; what it lacks there is added.
    """
    shift, slack = NO, NO
    for (term, m), least in zip(terms, low, strict=True):
        if term.link != "linear" or term.sign > 0:
            raise Failed(f"{place}: only sums of linear terms, at their smallest, are convex")
        shift += m * term.epsilon / 2
        slack += m * (1 + term.epsilon)
        if least < -1:
            shift += m * ((1 - least + term.foot) / (2 + term.foot)).ln()
    sides = [sorted({*ends}) for ends in zip(part.lower, part.upper, strict=True)]
    if math.prod(map(len, sides)) > 1 << 16:
        raise Failed(f"{place}: too many corners")
    best = -ENDLESS
    for corner in itertools.product(*sides):
        product = ONE
        for term, m in terms:
            factor = (1 - term.score(corner) + term.foot) / term.foot
            if factor <= 0:
                raise Failed(f"{place}: a corner is beyond where the sum is convex")
            product *= factor**m
        best = max(best, -product.ln())
    return best + shift + SLACK * slack


# -- the command -----------------------------------------------------------------------------------


def rounded_up(loss: Decimal) -> str:
    """For people, with nine digits behind the point."""
    return f"{loss.quantize(AGREE, rounding=ROUND_CEILING):f}" if loss.is_finite() else "inf"


def unpacked(data: bytes) -> str:
    """The text of a file that may be compressed."""
    try:
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        raise Failed("the file, which is neither text nor compressed text") from None


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: verify.py TRANSCRIPT.json PROOF.json", file=sys.stderr)
        return 2
    try:
        transcript, proof = (unpacked(Path(name).read_bytes()) for name in arguments)
        verdict = verify(transcript, proof)
    except OSError as error:
        print(f"verify: cannot read: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(f"verify: the proof fails at {error}", file=sys.stderr)
        return 1
    print(f"proved: the realized loss is at most {rounded_up(verdict.loss)}")
    if verdict.budget is not None:
        word = "within" if verdict.within_budget else "above"
        print(f"that is {word} the budget of {verdict.budget:.9f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

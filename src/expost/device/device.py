"""The client on a subject's device: it decides, draws, stores and sends.

    python3 -I device.py create STORE --policy POLICY.json --subject NAME --value VALUE.json
    python3 -I device.py sync STORE
    python3 -I device.py next STORE --value CHANGES.json
    python3 -I device.py status STORE

This file is a complete program. It needs Python 3.11 or later and nothing else, so it can be copied
to a device and read there. It supports finite sets and attributes, some of which may change, and
pure filters: docs/reference/conformance.md specifies the arithmetic, docs/reference/ledger.md the
messages.

``Device.create`` makes a store with a policy and a value. ``Device(path).sync()`` returns a request
for the ledger. ``take(answer)`` reads the answer and returns the next request, or "" if there is
nothing more to send. ``next`` starts the next step of a value that changes. The commands do the
same: ``sync`` prints each request as a line and reads each answer as a line. It exits with 0 at the
end, or prints one line on standard error and exits with 1.

A query comes as a reservation, only ever in the answer to the latest request. The device promises:

- It decides from its own record, without the value, and never exceeds the budget.
- It draws at most once for a number, with exactly the probabilities that the query declares.
- It stores a message durably, then sends it. It can send the same bytes again any number of times.
- If the ledger has more exchanges, this device is an old copy: it draws nothing. If the ledger has
  another record, or the answer is not for the latest request, it draws nothing either.
- A declined query is not stored and does not bind its idempotency key.
- If the disk has no room for the longest response, it fails before it draws.
- Two processes, a forked process or two threads cannot draw for the same number.
- Neither errors nor messages show the value.

Decisions are exact: likelihoods are integers, and a quotient of two of them is compared with e^ε by
logarithms of as many digits as it takes. Doubles are for scores only, each rounded as specified.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, product
from operator import mul
from typing import Any, NamedTuple

__all__ = ["Account", "Device", "Filter", "Query", "Refused", "decide"]

COMBINATIONS = 100_000  # of the attributes that a question is about, or that are looked at together
LARGEST_INTEGER = 2**53
Text = str | bytes  # of JSON
Subject = str | int
Source = Callable[[int], bytes]  # gives so many uniform bytes
DEEPEST = 50  # levels of lists and objects in a JSON text
LARGEST_MESSAGE = 1 << 20  # bytes of a message, a reservation, a query, a request of many messages
LARGEST_ANSWER = 2 * LARGEST_MESSAGE  # bytes of a reservation with receipts


class Refused(Exception):
    """What cannot be done, in one line. It never shows a value."""


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Refused(what)


# -- reading ---------------------------------------------------------------------------------------


class Written(str):
    """A number of a JSON text, as it was written: 0.3 is 3/10 in one field, a double in another."""

    def __repr__(self) -> str:
        return str(self)


def parse(text: Text) -> Any:
    """JSON with its numbers as they were written; no name may come twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "a field is given twice")
        return dict(pairs)

    hooks: Any = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), Written)
    try:
        tree = json.loads(text, object_pairs_hook=once, **hooks)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    level: list[Iterable[Any]] = [[tree]]
    for _ in range(DEEPEST + 1):
        nested = [x for each in level for x in each if isinstance(x, dict | list)]
        level = [x.values() if isinstance(x, dict) else x for x in nested]
    need(not level, f"nested more than {DEEPEST} levels deep")
    return tree


def written(tree: Any) -> str:
    """Write compact JSON, with numbers as they were written."""
    if isinstance(tree, Written):
        return str(tree)
    if isinstance(tree, dict):
        return "{" + ",".join(f"{written(name)}:{written(x)}" for name, x in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        return "[" + ",".join(map(written, tree)) + "]"
    return json.dumps(tree, ensure_ascii=False)


DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d+))?", re.ASCII)
QUOTIENT = re.compile(r"[+-]?\d+/0*[1-9]\d*", re.ASCII)


def exact(given: Any) -> Fraction:
    """A decimal or "p/q", exactly as written; the limits keep hostile numbers short."""
    need(isinstance(given, str) and len(given) <= 2000, "must be a decimal or p/q")
    found = DECIMAL.fullmatch(given)
    need(bool(found or QUOTIENT.fullmatch(given)), "must be a decimal or p/q")
    power = (found and found["exponent"]) or "0"
    need(len(power) <= 5 and abs(int(power)) <= 600, "a number is too large or too small")
    number = Fraction(given)
    bits = max(map(int.bit_length, number.as_integer_ratio()))
    need(bits <= 3000, "a number has too many digits")
    small = number and not Fraction(1, 10**300) <= abs(number) <= 10**300
    need(not small, "a number is too large or too small")
    return number


def double(given: Any) -> float:
    """The double nearest to a number."""
    need(isinstance(given, Written), "must be a number")
    number = float(given)
    need(math.isfinite(number), "must be a finite number")
    return number


def number(given: Any) -> int | float:
    """A number of a domain or a response: 1 and 1.0 are the same integer."""
    if isinstance(given, Written) and re.fullmatch(r"-?\d+", given):
        need(len(given) < 20 and abs(int(given)) <= LARGEST_INTEGER, "an integer is above 2^53")
        return int(given)
    return short(double(given))


def short(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) <= LARGEST_INTEGER else number


def integer(given: Any, least: int | None = None) -> int:
    result = number(given)
    need(isinstance(result, int), "must be an integer")
    need(least is None or result >= least, f"must be at least {least}")
    return int(result)


def text(given: Any, what: str = "it") -> str:
    need(isinstance(given, str) and not isinstance(given, Written), f"{what} must be a text")
    need(not re.search("[\ud800-\udfff]", given), f"{what} must be a text of valid characters")
    return str(given)


Scalar = int | float | str
Value = Scalar | tuple[Scalar, ...]


def scalar(given: Any) -> Scalar:
    """A label or a number; 1 and "1" differ."""
    return number(given) if isinstance(given, Written) else text(given)


def listed(given: Any) -> list[Any]:
    need(isinstance(given, list), "must be a list")
    return list(given)


def members(given: Any, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    need(isinstance(given, dict), "must be an object")
    missing = [name for name in required if name not in given]
    need(not missing, f"{missing and missing[0]} is missing")
    need(given.keys() <= {*required, *optional}, "has a field that is not known here")
    return dict(given)


def distinct(values: Sequence[Any], what: str) -> None:
    need(len(values) > 0, f"there must be {what}s")
    need(len(set(values)) == len(values), f"a {what} is listed twice")


# -- content ids and the chain ---------------------------------------------------------------------


def utf16(name: str) -> bytes:
    """The order of keys in canonical JSON: by UTF-16 code units, as in RFC 8785."""
    return name.encode("utf-16-be", "surrogatepass")


def canonical(tree: Any) -> bytes:
    """A tree as bytes that are equal exactly for equal content."""

    def leaf(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {name: leaf(entry[name]) for name in sorted(entry, key=utf16)}
        if isinstance(entry, (list, tuple)):
            return [leaf(x) for x in entry]
        if isinstance(entry, float):
            return (entry + 0.0).hex()
        if isinstance(entry, str):  # a label must not pass for the number whose text it has
            return "'" + entry if entry.startswith(("0x", "-0x", "'")) else entry
        return str(entry) if isinstance(entry, Fraction) else entry

    return json.dumps(leaf(tree), separators=(",", ":"), ensure_ascii=False).encode()


def digest(tree: Any) -> str:
    return hashlib.sha256(canonical(tree)).hexdigest()


def value_tree(value: Value) -> Any:
    """A value or a response as it is in a tree: numbers are doubles."""
    if isinstance(value, tuple):
        return [x if isinstance(x, str) else float(x) for x in value]
    return value if isinstance(value, str) else float(value)


def plain(tree: Any) -> Any:
    """A tree as JSON: exact numbers as texts, doubles as numbers, integers without a point."""
    if isinstance(tree, dict):
        return {name: plain(x) for name, x in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(x) for x in tree]
    if isinstance(tree, float):
        return short(tree)
    return str(tree) if isinstance(tree, Fraction) else tree


# -- exact comparison ------------------------------------------------------------------------------


def context(digits: int, rounding: str = ROUND_FLOOR) -> Context:
    """Decimals of so many digits; ``exp`` and ``ln`` are correctly rounded."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def around(number: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Decimals on both sides of a rational."""
    top, bottom = Decimal(number.numerator), Decimal(number.denominator)
    return context(digits).divide(top, bottom), context(digits, ROUND_CEILING).divide(top, bottom)


@lru_cache(maxsize=4096)
def scaled_exp(exponent: Fraction, bits: int) -> int:
    """⌊2^bits · e^exponent⌋, for a rational other than zero."""
    digits = 30 + max(0, bits + int(exponent * Fraction(3, 2))) // 3
    while True:
        decimals, (below, above) = context(digits), around(exponent, digits)
        low = math.floor(Fraction(decimals.next_minus(decimals.exp(below))) * (1 << bits))
        high = math.floor(Fraction(decimals.next_plus(decimals.exp(above))) * (1 << bits))
        if low == high:
            return low
        digits *= 2  # e^exponent is irrational, so enough digits tell it from any integer


def two_weights(epsilon: Fraction) -> tuple[int, int]:
    """(⌊2^B e^ε⌋, 2^B) with B = 40 + max(0, ⌈log₂ 1/ε⌉): their quotient is just below e^ε."""
    bits = 40 + (math.ceil(1 / epsilon) - 1).bit_length()
    return scaled_exp(epsilon, bits), 1 << bits


@lru_cache(maxsize=64)
def log_of_two(digits: int) -> Decimal:
    return context(digits).ln(Decimal(2))


def log_around(top: int, bottom: int, digits: int) -> tuple[Decimal, Decimal]:
    """Decimals on both sides of log(top/bottom), of two positive integers of any length."""
    down, up = context(digits), context(digits, ROUND_CEILING)
    shift = 4 * digits - top.bit_length() + bottom.bit_length()
    # near <= 2^shift · top/bottom < near + 1
    near = (top << shift) // bottom if shift >= 0 else top // (bottom << -shift)
    two, log = log_of_two(digits), down.ln(Decimal(near))
    below, above = down.next_minus(two), up.next_plus(two)
    if shift < 0:
        below, above = above, below
    low = down.fma(Decimal(-shift), above, down.next_minus(log))
    # log(near + 1) is above log(near) by less than 1/near, which is below 10^-digits.
    higher = up.add(up.next_plus(log), Decimal(1).scaleb(-digits))
    return low, up.fma(Decimal(-shift), below, higher)


def is_within(top: int, bottom: int, limit: Fraction) -> bool:
    """Whether log(top/bottom) <= limit, exactly.

    Except at zero the logarithm of a rational is never rational (Lindemann), so enough digits
    always decide.
    """
    if not limit or not bottom:
        return top <= bottom
    if 7 * (top.bit_length() - bottom.bit_length() + 1) <= 10 * limit:  # log 2 is below 7/10
        return True
    digits = 30
    while True:
        low, high = log_around(top, bottom, digits)
        least, most = around(limit, digits)
        if high <= least or low > most:
            return high <= least
        digits *= 2


# -- domains ---------------------------------------------------------------------------------------


class Values:
    """What a question sees: labels and numbers, or rows of several that have names."""

    def __init__(self, rows: Sequence[Value], names: tuple[str, ...] = ("value",)) -> None:
        distinct(rows, "value")
        self.rows, self.names = rows, names
        self.places = {row: place for place, row in enumerate(rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, given: Any) -> Value:
        """A value as JSON has it."""
        alone = not isinstance(self.rows[0], tuple)
        value = scalar(given) if alone else tuple(scalar(x) for x in listed(given))
        need(value in self.places, "no such value")
        return value

    @cached_property
    def points(self) -> list[tuple[float, ...]]:
        """The rows as doubles."""
        rows = [row if isinstance(row, tuple) else (row,) for row in self.rows]
        labels = any(isinstance(x, str) for row in rows for x in row)
        need(not labels, "a score needs numbers, and there are labels")
        return [tuple(map(float, row)) for row in rows]


class Attribute(NamedTuple):
    """One attribute of a record, and how it may change from step to step."""

    values: Sequence[Scalar]
    tree: Any
    changes: bool = False
    times: int | None = None
    max_step: Fraction | None = None

    @classmethod
    def read(cls, given: Any) -> Attribute:
        if isinstance(given, list):
            values = [scalar(x) for x in given]
            distinct(values, "value")
            need(len(values) <= COMBINATIONS, "an attribute has too many values")
            return cls(values, [value_tree(x) for x in values])
        need(isinstance(given, dict), "an attribute must be a list or an object")
        if "changing" not in given:
            ends = [integer(x) for x in listed(members(given, ["integers"])["integers"])]
            good = len(ends) == 2 and 0 <= ends[1] - ends[0] < COMBINATIONS
            need(good, "integers must be two ends, not too far apart")
            return cls(range(ends[0], ends[1] + 1), {"integers": [float(end) for end in ends]})
        fields = members(given, ["changing"], ["times", "max_step"])
        constant = cls.read(fields["changing"])
        times = integer(fields["times"], 0) if "times" in fields else None
        max_step = exact(fields["max_step"]) if "max_step" in fields else None
        numbers = not any(isinstance(x, str) for x in constant.values)
        need(not constant.changes and (times or 0) <= 10_000, "changes too often")
        fits = max_step is None or (max_step >= 0 and numbers and times is None)
        need(fits, "max_step does not fit")
        limits = {"times": None if times is None else float(times), "max_step": max_step}
        tree = {"changing": constant.tree} | {k: x for k, x in limits.items() if x is not None}
        return cls(constant.values, tree, True, times, max_step)

    @property
    def limited(self) -> bool:
        """Whether its value at one step says something about that at another."""
        return self.times is not None or self.max_step is not None

    def distance(self, one: int, other: int) -> Fraction:
        """How far apart two values are, as the decimals that were written."""
        return abs(Fraction(repr(self.values[one])) - Fraction(repr(self.values[other])))

    def frozen(self, place: int, used: int, wanted: int) -> int:
        """Where it is next, if it has changed so often and truly is as wanted.

        True values need not keep the limits, which are public. What is answered for does.
        """
        if not self.changes or (self.times is not None and used >= self.times):
            return place
        if self.max_step is None:
            return wanted
        near = [k for k in range(len(self.values)) if self.distance(k, place) <= self.max_step]
        return min(near, key=lambda k: (self.distance(k, wanted), self.values[k]))


Variable = tuple[Any, ...]
"""An attribute and a step, None where it does not change; or how often it has changed by then."""
Scope = tuple[Variable, ...]
WHOLE: Scope = (("", None),)


class Domain:
    """A finite set, or attributes; a set is one attribute that is asked about as it is."""

    def __init__(self, given: Any) -> None:
        fields = members(given, [], ["values", "points", "attributes", "box"])
        need("box" not in fields, "a device knows finite sets and attributes, and no boxes")
        need(len(fields) == 1, "a domain has one of values, points, attributes")
        self.attributes: dict[str, Attribute] = {}
        self.whole: Values | None = None
        self._parts: dict[tuple[str, ...], Values] = {}
        if "attributes" in fields:
            named = members(fields["attributes"], [], fields["attributes"])
            need(0 < len(named) <= 1000 and "" not in named, "attributes need names, at most 1,000")
            self.attributes = {text(name): Attribute.read(x) for name, x in named.items()}
            self.tree: Any = {"attributes": {n: x.tree for n, x in self.attributes.items()}}
        elif "values" in fields:
            self.whole = Values([scalar(x) for x in listed(fields["values"])])
            self.tree = {"values": [value_tree(row) for row in self.whole.rows]}
        else:
            points = members(fields["points"], ["names", "rows"])
            names = tuple(text(name) for name in listed(points["names"]))
            distinct(names, "name")
            rows = [tuple(number(x) for x in listed(row)) for row in listed(points["rows"])]
            good = "" not in names and {len(row) for row in rows} <= {len(names)}
            need(good, "a row needs a number for each name")
            self.whole = Values(rows, names)
            trees = [value_tree(row) for row in rows]
            self.tree = {"points": {"names": list(names), "rows": trees}}

    def scope(self, query: Query) -> Scope:
        """What a question is about."""
        if self.whole is not None:
            need(query.about is None, "a finite set has no attributes to ask about")
            return WHOLE
        about, known = query.about or (), self.attributes
        need(about != () and set(about) <= known.keys(), "it must say which attributes it is about")
        changing = any(known[name].changes for name in about)
        need(changing == (query.at is not None), "a step is for what changes, and only for that")
        return tuple((name, query.at if known[name].changes else None) for name in about)

    def sizes(self, scope: Scope) -> list[int]:
        return [len(self.attributes[name].values) for name, _ in scope if scope != WHOLE]

    def seen(self, scope: Scope) -> Values:
        """The combinations of what a question is about, the last attribute fastest."""
        if self.whole is not None:
            return self.whole
        names = tuple(name for name, _ in scope)
        if names not in self._parts:
            size = math.prod(self.sizes(scope))
            need(size <= COMBINATIONS, f"{size:,} combinations are too many to ask about")
            lists = [self.attributes[name].values for name in names]
            rows: Sequence[Value] = list(product(*lists)) if len(names) > 1 else lists[0]
            self._parts[names] = Values(rows, names)
        return self._parts[names]


# -- questions -------------------------------------------------------------------------------------

Pair = tuple[int, int]
"""Two likelihoods, a larger and a smaller one; if the second is zero nothing bounds the loss."""


def widest(pairs: Iterable[Pair]) -> Pair:
    """The pair with the largest quotient."""
    found = (0, 1)
    for high, low in pairs:
        if high * found[1] > found[0] * low:
            found = high, low
    return found


class Likelihood(NamedTuple):
    """How likely each response is for each value: integer weights over one total."""

    total: int
    read: Callable[[Any], Value]  # a response as JSON has it
    column: Callable[[Any], list[int]]  # its weights for all values, up to a common factor
    draw: Callable[[int, int], Value]
    """The response for the value at a place and a uniform integer below the total.

    Candidates are selected without branches: how long it takes should not depend on the value.
    """
    worst: Callable[[list[int], list[int]], list[Pair]]
    """Pairs after this question, one of them the widest, from the likelihoods before it."""
    longest: int = 24  # characters of a response, at most


def one_of(known: Any) -> Callable[[Any], Any]:
    def read(given: Any) -> Any:
        found = scalar(given)  # a range would be searched for what is no integer
        there = (isinstance(found, int) or not isinstance(known, range)) and found in known
        need(there, "it is none of those that there are")
        return found

    return read


def telling_apart(
    weights: Pair, classes: Sequence[int], speaks: Callable[[Any], Iterable[bool]]
) -> tuple[Callable[[Any], list[int]], Callable[[list[int], list[int]], list[Pair]]]:
    """``column`` and ``worst`` of responses that speak for some values, equally against others."""
    heavy, light = weights

    def worst(highs: list[int], lows: list[int]) -> list[Pair]:
        # The extremes; and if these are of one class, which no response tells apart, each of them
        # with the best of other classes.
        places = range(len(highs))
        high, low = max(places, key=highs.__getitem__), min(places, key=lows.__getitem__)
        if classes[high] != classes[low]:
            return [(highs[high] * heavy, lows[low] * light)]
        others = [place for place in places if classes[place] != classes[high]]
        if not others:
            return [(highs[high], lows[low])]
        highest, lowest = max(highs[x] for x in others), min(lows[x] for x in others)
        apart = (highs[high] * heavy, lowest * light), (highest * heavy, lows[low] * light)
        return [(highs[high], lows[low]), *apart]

    return lambda response: [heavy if own else light for own in speaks(response)], worst


def spiked(
    query: Query, own: Sequence[int], labels: Sequence[Value], read: Any, longest: int = 24
) -> Likelihood:
    """The label of a value is heavy, all others are light."""
    heavy, light = two_weights(query["epsilon"])
    column, worst = telling_apart((heavy, light), own, lambda y: (labels[k] == y for k in own))

    def draw(place: int, uniform: int) -> Value:
        start = own[place] * light
        before, after = uniform // light, (uniform - heavy) // light + 1
        inside = (uniform >= start) * (uniform < start + heavy)
        position = (uniform < start) * before + (uniform >= start + heavy) * after
        return labels[position + inside * own[place]]

    return Likelihood(heavy + (len(labels) - 1) * light, read, column, draw, worst, longest)


def randomized_response(query: Query, values: Values) -> Likelihood:
    longest = max(len(json.dumps(row)) for row in values.rows)
    return spiked(query, range(len(values)), values.rows, values.read, longest)


def local_hashing(query: Query, values: Values) -> Likelihood:
    texts = [bytes.fromhex(query["seed"]) + canonical(value_tree(row)) for row in values.rows]
    firsts = [int.from_bytes(hashlib.sha256(text).digest()[:8], "big") for text in texts]
    buckets = range(int(query["buckets"]))
    return spiked(query, [x % len(buckets) for x in firsts], buckets, one_of(buckets))


def digits(number: int, base: int, count: int) -> list[int]:
    """The digits of a number below base^count, the lowest one first; by halves, which is faster."""
    if count <= 1:
        return [number] * count
    half = count - count // 2
    high, low = divmod(number, base**half)
    return digits(low, base, half) + digits(high, base, count - half)


def unary_encoding(query: Query, values: Values) -> Likelihood:
    size, parts = len(values), 2 if query["variant"] == "symmetric" else 1
    need(size <= 10_000, "a bit for each of so many values is too many")
    heavy, light = two_weights(query["epsilon"] / parts)  # a part for each bit that tells
    base = (heavy + light) * (1 if parts == 2 else 2)
    # The weight of a zero for the bit of the value, and for any other bit.
    own, other = (light, heavy) if parts == 2 else (heavy + light, 2 * heavy)
    weights = heavy**parts, light**parts
    column, worst = telling_apart(weights, range(size), lambda y: (bit == "1" for bit in y))

    def read(given: Any) -> Value:
        bits = text(given)
        need(len(bits) == size and set(bits) <= {"0", "1"}, "must have a bit for each value")
        return bits

    def draw(place: int, uniform: int) -> Value:
        shares = enumerate(digits(uniform, base, size))
        return "".join("01"[share >= (own if k == place else other)] for k, share in shares)

    return Likelihood(base**size, read, column, draw, worst, size + 2)


def subset_selection(query: Query, values: Values) -> Likelihood:
    (heavy, light), count, size = two_weights(query["epsilon"]), len(values), int(query["size"])
    need(size < count <= 10_000, "size must be below the number of values, at most 10,000")
    without, places = math.comb(count - 1, size), range(count)
    limit = without * light
    column, worst = telling_apart((heavy, light), places, lambda y: (k in y for k in places))

    def read(given: Any) -> Value:
        indices = tuple(integer(x) for x in listed(given))
        good = len(indices) == size and all(a < b for a, b in pairwise([-1, *indices, count]))
        need(good, f"must be {size} indices, ascending")
        return indices

    def draw(place: int, uniform: int) -> Value:
        # In the combinatorial number system subsets with the last element come last. Turning all
        # elements around takes the last one to any place.
        lacking, having = uniform // light, without + (uniform - limit) // heavy
        rank = (uniform < limit) * lacking + (uniform >= limit) * having
        flags, left, first = [0] * count, size, without
        for element in range(count - 1, -1, -1):
            taken = flags[element] = int(rank >= first)
            rank -= taken * first
            if element:  # from binom(element, left) to binom(element - 1, left - taken)
                first = first * (taken * left + (1 - taken) * (element - left)) // element
            left -= taken
        start = count - place - 1
        return tuple(k for k, flag in enumerate(flags[start:] + flags[:start]) if flag)

    total = limit + math.comb(count - 1, size - 1) * heavy
    return Likelihood(total, read, column, draw, worst, 8 * size + 2)


def hadamard_response(query: Query, values: Values) -> Likelihood:
    (heavy, light), order = two_weights(query["epsilon"]), int(query["order"])
    need(order > len(values), "order must be above the number of values")
    rows, limit = range(1, len(values) + 1), order // 2 * heavy
    column, worst = telling_apart(
        (heavy, light), rows, lambda y: ((row & y).bit_count() % 2 == 0 for row in rows)
    )

    def draw(place: int, uniform: int) -> Value:
        row, odd = place + 1, int(uniform >= limit)
        rest = (1 - odd) * (uniform // heavy) + odd * ((uniform - limit) // light)
        # All bits of the column are free but that at the row's lowest one, which sets the sign.
        free = (row & -row) - 1
        column = (rest & free) | (rest & ~free) << 1
        return column | (free + 1) * (odd ^ (column & row).bit_count() % 2)

    return Likelihood(order // 2 * (heavy + light), one_of(range(order)), column, draw, worst)


def by_columns(columns: Iterable[list[int]]) -> Callable[[list[int], list[int]], list[Pair]]:
    """``worst`` of responses that tell any two values apart as well as any other."""
    known = list(columns)
    return lambda highs, lows: [(max(map(mul, highs, c)), min(map(mul, lows, c))) for c in known]


def tabled(labels: Sequence[Scalar], columns: Sequence[list[int]]) -> Likelihood:
    """Few responses, with a column of weights for each."""
    # What no value can give is no response.
    known = {label: each for label, each in zip(labels, columns, strict=True) if any(each)}

    def draw(place: int, uniform: int) -> Value:
        ends = accumulate(column[place] for column in known.values())
        return list(known)[sum(uniform >= end for end in ends)]

    total = sum(column[0] for column in known.values())
    longest = max(len(json.dumps(label)) for label in known)
    worst = by_columns(known.values())
    return Likelihood(total, one_of(known), known.__getitem__, draw, worst, longest)


def channel(query: Query, values: Values) -> Likelihood:
    rows = query["probabilities"]
    bottom = math.lcm(*(p.denominator for row in rows for p in row))
    need(bottom.bit_length() <= 2000, "the common denominator of probabilities is too long")
    classes = [int(x) for x in query["of"]] if "of" in query else range(len(rows))
    need(len(classes) == len(values), "must have a row or a class for each value")
    columns = [[int(row[j] * bottom) for row in rows] for j in range(len(rows[0]))]
    return tabled(query.labels, [[column[k] for k in classes] for column in columns])


def exponential_mechanism(query: Query, values: Values) -> Likelihood:
    rows, width, nats = query["utility"], len(query.labels), query["epsilon"]
    need(len(rows) == len(values), "must have a row of utilities for each value")
    factor = nats / (2 * query["sensitivity"])
    reach = factor * max(max(row) - min(row) for row in rows)
    need(reach <= 500, "epsilon is too large for utilities that reach this far")
    # A small weight that is added to all makes up for what rounding does to their quotients.
    mixed = (width + 2) * (1 + math.ceil(2 / nats))
    bits = 40 + (mixed * width).bit_length() + math.ceil(reach * Fraction(3, 2))
    finer, weights = bits + (width + 1).bit_length(), []
    for row in rows:
        below = [factor * (entry - max(row)) for entry in row]
        scaled = [scaled_exp(x, finer) if x else 1 << finer for x in below]
        shares = [(weight << bits) // sum(scaled) for weight in scaled]
        shares[below.index(Fraction(0))] += (1 << bits) - sum(shares)
        weights.append([share + mixed for share in shares])
    return tabled(query.labels, [list(column) for column in zip(*weights, strict=True)])


def one_bit(query: Query, shares: Iterable[float], ends: Sequence[Scalar]) -> Likelihood:
    """One bit about a share between 0 and 1: the high response weighs light + share · span."""
    heavy, light = two_weights(query["epsilon"])
    span = int(double_below(Fraction(heavy - light)))
    highs = [light + round(share * float(span)) for share in shares]
    return tabled(ends, [[2 * light + span - high for high in highs], highs])


def double_below(number: Fraction) -> float:
    """The largest double that is not above a rational."""
    near = number.numerator / number.denominator
    return near if Fraction(near) <= number else math.nextafter(near, -math.inf)


def perturbation(query: Query, values: Values) -> Likelihood:
    (low, high), scores = query["range"], query["scores"]
    need(len(scores) == len(values), "must have a score for each value")
    shares = [(score - low) / (high - low) for score in scores]
    return one_bit(query, shares, [short(low), short(high)])


def scores_of(query: Query, values: Values) -> list[float]:
    """intercept + Σ weight·coordinate in doubles, added in the order of the names."""
    given, start, names = query["weights"], query["intercept"], values.names
    need(given.keys() <= set(names), "a weight is for no coordinate")
    order, found = sorted(range(len(names)), key=names.__getitem__), []
    reach = [(names[j], max(abs(point[j]) for point in values.points)) for j in order]
    most = sum(abs(Fraction(given.get(name, 0))) * Fraction(far) for name, far in reach)
    need(most + abs(Fraction(start)) <= 2**1023, "a score is too large for a double")
    for point in values.points:
        total = start
        for j in order:
            total += given.get(names[j], 0.0) * point[j]
        found.append(total)
    return found


def linear(query: Query, values: Values) -> Likelihood:
    scores = scores_of(query, values)
    low, high = query.get("range", (0.0, 0.0))
    if not query.get("clip", True):
        # In real numbers, not in doubles.
        used = [Fraction(query["weights"].get(name, 0)) for name in values.names]
        each = [sum(map(mul, used, map(Fraction, point))) for point in values.points]
        least, most = (Fraction(query["intercept"]) + choose(each) for choose in (min, max))
        if "range" in query:  # what roundings of decimals do is forgiven
            room = Fraction(high) - Fraction(low)
            excess = max(Fraction(low) - least, most - Fraction(high))
            need(excess <= room / 10**12, "the score leaves its range")
        else:
            need(least < most, "the score is the same everywhere")
            low, high = double_below(least) + 0.0, 0.0 - double_below(-most)
    shares = [min(max((score - low) / (high - low), 0.0), 1.0) for score in scores]
    return one_bit(query, shares, [short(low), short(high)])


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
PER_LN2 = float.fromhex("0x1.71547652b82fep+0")


def portable_exp(x: float) -> float:
    """e^x of a number that is not positive, from +, - and * alone: the same bits everywhere."""
    x = max(x, -746.0)
    power = round(x * PER_LN2)
    rest = (x - power * LN2_HIGH) - power * LN2_LOW
    series = 0.0
    for n in range(13, -1, -1):
        series = series * rest + 1 / math.factorial(n)
    return series * math.ldexp(1.0, power // 2) * math.ldexp(1.0, power - power // 2)


def logistic(query: Query, values: Values) -> Likelihood:
    scores = scores_of(query, values)
    tails = [(score, portable_exp(-abs(score))) for score in scores]
    shares = [(tail if score < 0 else 1.0) / (1.0 + tail) for score, tail in tails]
    return one_bit(query, shares, [0, 1])


def geometric(query: Query, values: Values) -> Likelihood:
    """Two-sided geometric noise with α = light/heavy, clamped to a range."""
    numbers = [row for row in values.rows if isinstance(row, int)]
    need(len(numbers) == len(values), "geometric needs a domain of integers")
    (low, high), width = map(int, query["range"]), query["sensitivity"]
    need(max(numbers) - min(numbers) <= width, "values differ by more than the sensitivity")
    heavy, light = two_weights(query["epsilon"] / width)
    reach = max(high - min(numbers), max(numbers) - low)
    modest = reach <= 1000 and reach * heavy.bit_length() <= 1 << 16
    need(modest, "the range is too wide for exact weights")
    total = (heavy + light) * heavy ** (reach - 1)

    def weight(value: int, response: int) -> Any:
        distance = abs(response - value)
        if low < response < high:
            return (heavy - light) * light**distance * heavy ** (reach - 1 - distance)
        if value < low if response == low else value > high:
            return total - light ** (distance + 1) * heavy ** (reach - 1 - distance)
        return light**distance * heavy ** (reach - distance)

    def column(response: Any) -> list[int]:
        weights = [weight(value, response) for value in numbers]
        common = math.gcd(*weights)
        return [weight // common for weight in weights]

    def draw(place: int, uniform: int) -> Value:
        rest, first = divmod(uniform, heavy + light)
        sign = (first >= heavy - light) - 2 * (first >= heavy)
        size = going = 1
        for share in digits(rest, heavy, reach - 1):
            going *= share < light
            size += going
        return max(low, min(high, numbers[place] + sign * size))

    # Likelihood ratios are monotone in the response, so the two ends suffice.
    worst = by_columns([column(low), column(high)])
    return Likelihood(total, one_of(range(low, high + 1)), column, draw, worst)


FAMILIES: dict[str, tuple[Callable[[Query, Values], Likelihood], str]] = {
    "channel": (channel, "responses probabilities"),
    "randomized_response": (randomized_response, "epsilon"),
    "unary_encoding": (unary_encoding, "variant epsilon"),
    "subset_selection": (subset_selection, "size epsilon"),
    "local_hashing": (local_hashing, "seed buckets epsilon"),
    "hadamard_response": (hadamard_response, "order epsilon"),
    "geometric": (geometric, "range sensitivity epsilon"),
    "exponential_mechanism": (exponential_mechanism, "responses utility sensitivity epsilon"),
    "perturbation": (perturbation, "scores range epsilon"),
    "linear": (linear, "weights epsilon"),
    "logistic": (logistic, "weights epsilon"),
}
OPTIONAL = {"channel": ["of"], "linear": ["intercept", "range", "clip"]}


def read_range(given: Any) -> list[float]:
    ends = [float(number(x)) for x in listed(given)]
    good = len(ends) == 2 and ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])
    need(good, "range must be two ends, the lower one first")
    return ends


def read_weights(given: Any) -> dict[str, float]:
    need(isinstance(given, dict) and given != {}, "weights must name the coordinates")
    return {text(name): double(weight) for name, weight in given.items()}


def read_table(given: Any) -> list[list[Fraction]]:
    rows = [[exact(p) for p in listed(row)] for row in listed(given)]
    need(rows != [] and {len(row) for row in rows} == {len(rows[0]) or 1}, "must be equal rows")
    return rows


READERS: dict[str, Callable[[Any], Any]] = {
    "epsilon": exact, "sensitivity": exact, "probabilities": read_table, "utility": read_table,
    "responses": lambda given: [value_tree(scalar(x)) for x in listed(given)],
    "of": lambda given: [float(integer(x, 0)) for x in listed(given)],
    "scores": lambda given: [double(x) for x in listed(given)],
    "variant": one_of(("symmetric", "optimized")), "seed": lambda given: text(given).lower(),
    "size": lambda given: float(integer(given, 1)),
    "buckets": lambda given: float(integer(given, 2)),
    "order": lambda given: float(integer(given, 2)),
    "range": read_range, "weights": read_weights, "intercept": double, "clip": lambda given: given,
}  # fmt: skip


class Query(dict[str, Any]):
    """A question: its fields as content ids encode them, with defaults written out."""

    about: tuple[str, ...] | None = None
    at: int | None = None

    @classmethod
    def read(cls, given: Any) -> Query:
        need(isinstance(given, dict) and "kind" in given, "a question has a kind")
        fields = dict(given)
        kind = fields.pop("kind")
        known = isinstance(kind, str) and kind in FAMILIES
        need(known, "this device does not know that kind of question")
        need("delta" not in fields, "a question with a delta needs a filter with a delta")
        query, required = cls(kind=text(kind)), FAMILIES[kind][1].split()
        if "about" in fields:
            query.about = tuple(text(name) for name in listed(fields.pop("about")))
            distinct(query.about, "attribute")
            query["about"] = list(query.about)
            if "at" in fields:
                query.at = integer(fields.pop("at"), 1)
                query["at"] = float(query.at)
        scored = "weights" in required
        fields = members(fields, required, OPTIONAL.get(kind, ["intercept"] if scored else []))
        query |= {"intercept": 0.0} if scored else {}
        query |= {"clip": False} if kind == "linear" else {}
        query |= {name: READERS[name](x) for name, x in fields.items()}
        query._check(kind)
        return query

    def _check(self, kind: str) -> None:
        """What concerns numbers, and several fields."""
        nats, bound = self.get("epsilon", 1), self.get("sensitivity", Fraction(1))
        need(0 < nats <= 500, "epsilon must be above 0 and at most 500")
        need(0 < bound <= 10**300, "sensitivity must be above 0")
        if kind == "linear":
            need(isinstance(self["clip"], bool), "clip must be true or false")
            need("range" in self or not self["clip"], "a clipped score needs a range")
        if kind == "local_hashing":
            hexadecimal = re.fullmatch("([0-9a-f]{2}){1,64}", self["seed"])
            need(hexadecimal is not None, "seed must be 1 to 64 bytes in hexadecimal digits")
        if kind == "hadamard_response":
            need(int(self["order"]).bit_count() == 1, "order must be a power of 2")
        if kind == "geometric":
            whole = all(isinstance(short(x), int) for x in self["range"])
            need(whole and bound.denominator == 1, "range and sensitivity must be integers")
        if kind == "perturbation":
            low, high = self["range"]
            inside = self["scores"] and all(low <= score <= high for score in self["scores"])
            need(bool(inside), "a score is outside the range")
        rows = self.get("probabilities") or self.get("utility", [])
        if "responses" in self:
            distinct(self["responses"], "response")
            need(len(rows[0]) == len(self["responses"]), "must have a column for each response")
        if kind == "channel":
            need(all(min(row) >= 0 and sum(row) == 1 for row in rows), "a row must sum to 1")
            every = set(map(float, range(len(rows))))
            need(set(self.get("of", every)) == every, "of must name every class")
        if kind == "exponential_mechanism":
            need(len(rows[0]) <= 1000 and len(rows) * len(rows[0]) <= 4000, "too many utilities")
            parts = [part for row in rows for x in row for part in x.as_integer_ratio()]
            need(max(part.bit_length() for part in parts) <= 128, "a utility has too many digits")
            wide = max(max(column) - min(column) for column in zip(*rows, strict=True))
            good = wide <= bound and all(max(row) - min(row) <= 20 * bound for row in rows)
            need(good, "utilities differ by more than they may")

    @cached_property
    def id(self) -> str:
        return digest(self)

    @property
    def labels(self) -> list[Scalar]:
        return [short(x) if isinstance(x, float) else x for x in self["responses"]]


# -- what was answered -----------------------------------------------------------------------------

Factor = tuple[Scope, dict[tuple[int, ...], int]]
"""Weights by the places of some variables; what is missing cannot be."""


class Asked(NamedTuple):
    """A question on the domain: what it is about, and how likely its responses are there."""

    query: Query
    scope: Scope
    likelihood: Likelihood
    alone: Pair  # how far apart it takes two values that nothing was said about


class Account:
    """The likelihoods of all responses so far, as integers, up to common factors."""

    def __init__(self, domain: Domain, known: dict[str, Asked] | None = None) -> None:
        self.domain = domain
        self.tables: dict[Scope, list[int]] = {}  # products of weights, by what was asked about
        self.spent = Fraction(0)  # the sum of the epsilons, but for questions that name none
        self.unnamed: Pair = (1, 1)  # the product of what those can do alone
        self._asked = {} if known is None else known  # for other accounts on this domain too

    def asked(self, query: Query) -> Asked:
        """A question on the domain; refused if it does not suit it."""
        if query.id not in self._asked:
            scope = self.domain.scope(query)
            values = self.domain.seen(scope)
            likelihood, ones = FAMILIES[query["kind"]][0](query, values), [1] * len(values)
            alone = widest(likelihood.worst(ones, ones))
            self._asked[query.id] = Asked(query, scope, likelihood, alone)
        return self._asked[query.id]

    def add(self, asked: Asked, response: Value) -> None:
        """One more response."""
        column = asked.likelihood.column(response)
        before = self.tables.get(asked.scope) or [1] * len(column)
        after = list(map(mul, before, column))
        # Powers of two that all have in common say nothing, and would make them long.
        zeros = min(((x & -x).bit_length() for x in after if x), default=1) - 1
        self.tables[asked.scope] = [x >> zeros for x in after]
        if "epsilon" in asked.query:
            self.spent += asked.query["epsilon"]
        else:
            high, low = self.unnamed
            self.unnamed = high * asked.alone[0], low * asked.alone[1]

    def seen(self, target: Scope) -> tuple[list[int], list[int]]:
        """The largest and the smallest likelihood for every combination that a question sees."""
        if self.domain.whole is not None:
            table = self.tables.get(WHOLE) or [1] * len(self.domain.whole)
            return table, table
        sizes = self.domain.sizes
        factors = [
            (scope, dict(zip(product(*map(range, sizes(scope))), table, strict=True)))
            for scope, table in self.tables.items()
        ]
        factors += self._links({v for scope in [*self.tables, target] for v in scope})
        free: Factor = (target, dict.fromkeys(product(*map(range, sizes(target))), 1))
        sides = [joined([free, eliminated([free, *factors], choose)]) for choose in (max, min)]
        highs, lows = (list(found.values()) for _, found in sides)
        return highs, lows

    def _links(self, variables: set[Variable]) -> Iterator[Factor]:
        """What limits of changes say about steps that were asked about one after the other.

        Changes so far are counted by a variable of their own. Steps in between do not matter.
        """
        for name, attribute in self.domain.attributes.items():
            steps = sorted(step for own, step in variables if own == name and step is not None)
            if not attribute.limited or len(steps) < 2:
                continue
            places, times = range(len(attribute.values)), attribute.times
            if times is not None:
                yield ((name, steps[0], "changes"),), {(0,): 1}
            for one, two in pairwise(steps):
                pairs = product(places, places)
                if times is None:
                    most = (attribute.max_step or 0) * (two - one)
                    near = [(a, b) for a, b in pairs if attribute.distance(a, b) <= most]
                    yield ((name, one), (name, two)), dict.fromkeys(near, 1)
                    continue
                counters = (name, one, "changes"), (name, two, "changes")
                used = range(min(times, len(steps)) + 1)
                moves = [(a, b, n, n + (a != b)) for (a, b), n in product(pairs, used)]
                allowed = [move for move in moves if move[3] in used]
                yield ((name, one), (name, two), *counters), dict.fromkeys(allowed, 1)


def eliminated(factors: list[Factor], choose: Any) -> Factor:
    """A factor of what the first one is about, with the best product over all the rest.

    One variable after the other goes: all factors that have it become one, with its best.
    """
    left, last, holding = dict(enumerate(factors)), len(factors), dict[Variable, set[int]]()
    for number, (scope, _) in left.items():
        for variable in scope:
            holding.setdefault(variable, set()).add(number)
    widths = dict.fromkeys((v for v in holding if v not in factors[0][0]), 0)
    changed = list(widths)
    while widths:
        for v in changed:
            widths[v] = len({w for number in holding[v] for w in left[number][0]})
        narrow = min(widths, key=widths.__getitem__)
        del widths[narrow]
        gone, last = holding.pop(narrow), last + 1
        left[last] = projected(joined([left.pop(number) for number in gone]), narrow, choose)
        for variable in left[last][0]:
            holding[variable] = holding[variable] - gone | {last}
        changed = [variable for variable in left[last][0] if variable in widths]
    return joined(sorted(left.values(), key=lambda factor: len(factor[0])))


def projected(factor: Factor, variable: Variable, choose: Any) -> Factor:
    (scope, found), k = factor, factor[0].index(variable)
    best: dict[tuple[int, ...], int] = {}
    for key, weight in found.items():
        rest = key[:k] + key[k + 1 :]
        best[rest] = choose(best[rest], weight) if rest in best else weight
    return scope[:k] + scope[k + 1 :], best


def joined(factors: list[Factor]) -> Factor:
    """The product of some factors."""
    scope, found = factors[0]
    for other, weights in factors[1:]:
        new = [k for k, v in enumerate(other) if v not in scope]
        common = [(scope.index(v), k) for k, v in enumerate(other) if v in scope]
        known: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
        for key, weight in weights.items():
            more = tuple([key[k] for k in new])
            known.setdefault(tuple([key[k] for _, k in common]), []).append((more, weight))
        result: dict[tuple[int, ...], int] = {}
        for key, weight in found.items():
            for more, factor in known.get(tuple([key[k] for k, _ in common]), ()):
                result[key + more] = weight * factor
            need(len(result) <= COMBINATIONS, "the answers so far tie too many attributes together")
        scope, found = (*scope, *(other[k] for k in new)), result
    return scope, found


# -- decisions -------------------------------------------------------------------------------------


class Filter(NamedTuple):
    """A rule, and a budget: epsilon + log(ratio), of which one is nothing."""

    kind: str
    epsilon: Fraction
    ratio: Fraction

    @classmethod
    def read(cls, given: Any) -> Filter:
        fields = members(given, ["kind"], ["epsilon", "ratio"])
        need(fields["kind"] in ("basic", "simplified", "bayesian"), "a device knows pure filters")
        need(len(fields) == 2, "a filter has either an epsilon or a ratio")
        nats, ratio = exact(fields.get("epsilon", "0")), exact(fields.get("ratio", "1"))
        good = 0 <= nats <= 10**6 and ratio >= 1 and (nats > 0 or ratio > 1)
        need(good, "a budget must be above 0, and an epsilon at most 10^6")
        return cls(text(fields["kind"]), nats, ratio)

    @property
    def tree(self) -> dict[str, Any]:
        budget = {"epsilon": self.epsilon} if self.epsilon else {"ratio": self.ratio}
        return {"kind": self.kind, **budget}


def worst_case(kind: str, account: Account, asked: Asked) -> tuple[Fraction, list[Pair]]:
    """What would count against a budget after a question: a rational plus the worst of log(p/q)."""
    added = account.spent if kind == "basic" else Fraction(0)
    if kind == "basic" and "epsilon" in asked.query:
        return added + asked.query["epsilon"], [account.unnamed]
    highs, lows = ([x] for x in account.unnamed) if kind == "basic" else account.seen(asked.scope)
    if kind != "bayesian" or not min(lows):
        return added, [(max(highs) * asked.alone[0], min(lows) * asked.alone[1])]
    return added, asked.likelihood.worst(highs, lows)


def decide(filter: Filter, account: Account, asked: Asked) -> bool:
    """Whether a question is accepted: a function of what was answered, and of nothing else."""
    (added, pairs), limit = worst_case(filter.kind, account, asked), filter.epsilon
    more, less = filter.ratio.as_integer_ratio()
    return all(is_within(high * less, low * more, limit - added) for high, low in pairs)


# -- the value and the draw ------------------------------------------------------------------------


def below(limit: int, source: Source) -> int:
    """A uniform integer in [0, limit): the first bits of some bytes, until they are below."""
    count, uniform = (limit.bit_length() + 7) // 8, limit
    while uniform >= limit:
        uniform = int.from_bytes(source(count), "big") >> (8 * count - limit.bit_length())
    return uniform


class Past:
    """The true value, and what is answered for at every step so far. No repr shows either."""

    __slots__ = ("_domain", "_true", "_used", "frozen")

    def __init__(self, domain: Domain) -> None:
        self._domain, self.frozen = domain, list[tuple[int, ...]]()
        self._true: tuple[int, ...] = ()
        self._used: list[int] = []

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not copied")

    def located(self, value: Text) -> tuple[int, ...]:
        """Where a value is, attribute by attribute; after the first step, where what changed is."""
        found: tuple[int, ...] = ()
        try:
            found = tuple(self.places(parse(value)))
        except Exception:
            del value  # whatever is wrong with a value, an error could show it
        need(found != (), "the value is outside the domain (and is not shown here)")
        return found

    def places(self, given: Any) -> Iterator[int]:
        whole, attributes = self._domain.whole, self._domain.attributes
        if whole is not None:
            named = isinstance(given, dict) and given.keys() == set(whole.names)
            row = [given[name] for name in whole.names] if named else given
            yield whole.places[whole.read(row)]
        need(whole is not None or given.keys() <= attributes.keys(), "other names")
        for k, (name, attribute) in enumerate(attributes.items()):
            known = self._true and name not in given
            place = self._true[k] if known else attribute.values.index(scalar(given[name]))
            need(not self._true or attribute.changes or place == self._true[k], "does not change")
            yield place

    def add(self, places: tuple[int, ...]) -> None:
        """The next step. The same is done whether or not what is answered for is true."""
        before = self.frozen[-1] if self.frozen else places
        used = self._used or [0] * len(places)
        kinds = self._domain.attributes.values()
        each = zip(kinds, before, used, places, strict=False)  # a plain set has no attributes
        after = tuple(kind.frozen(*given) for kind, *given in each) or places
        self._used = [n + (a != b) for n, a, b in zip(used, before, after, strict=True)]
        self._true = places
        self.frozen.append(after)

    @property
    def largest(self) -> list[int]:
        """Places of which none is written with fewer digits than those of any value."""
        whole, attributes = self._domain.whole, self._domain.attributes.values()
        return [len(x.values) for x in attributes] if whole is None else [len(whole)]

    def draw(self, asked: Asked, source: Source) -> Value:
        """A response, drawn with exactly the probabilities that the question declares."""
        frozen = self.frozen[0 if asked.query.at is None else asked.query.at - 1]
        names, place = list(self._domain.attributes), 0
        if self._domain.whole is not None:
            (place,) = frozen
        sizes = self._domain.sizes(asked.scope)
        for name, size in zip(asked.query.about or (), sizes, strict=False):
            place = place * size + frozen[names.index(name)]
        return asked.likelihood.draw(place, below(asked.likelihood.total, source))


# -- the policy and the chain ----------------------------------------------------------------------


class Policy:
    """What is fixed before the first response. Its id is the name of the ledger."""

    def __init__(self, given: Any) -> None:
        fields = members(given, ["version", "study", "nonce", "domain", "filter"])
        need(fields["version"] == "1", "this device knows version 1 only")
        nonce = text(fields["nonce"])
        need(bool(re.fullmatch("[0-9a-f]{32}", nonce)), "nonce must be 16 bytes in hexadecimal")
        self.domain, self.filter = Domain(fields["domain"]), Filter.read(fields["filter"])
        self.tree = {"version": 1, "study": text(fields["study"]), "nonce": nonce}
        self.tree |= {"domain": self.domain.tree, "filter": self.filter.tree}
        self.id = digest(self.tree)


def read_subject(given: Any) -> Subject:
    whole = isinstance(given, Written)
    good = re.fullmatch(r"-?\d{1,19}", given) is not None if whole else text(given) != ""
    need(good, "a subject has a name: a text or an integer")
    return int(given) if whole else text(given)


def first_head(policy_id: str, subject: Subject) -> str:
    return digest({"ledger": 1, "policy": policy_id, "subject": subject})


def next_head(previous: str, sequence: int, query_id: str, response: Value) -> str:
    """The head after an exchange."""
    said = {"query": query_id, "response": value_tree(response), "sequence": sequence}
    return hashlib.sha256(canonical(said) + bytes.fromhex(previous)).hexdigest()


# -- the store -------------------------------------------------------------------------------------


class Store:
    """A private file of lines that only grows; when ``add`` returns, the disk has the line.

    Each line is JSON and a digest of it and of all lines before it. A last line that a crash cut
    off was never sent, and is removed; so are zeros, which ``make_room`` may have left. Anything
    else that is wrong is refused.
    """

    def __init__(self, path: str, new: bool = False) -> None:
        self.file, self.size, self.digest, self.broken = -1, 0, "", False
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if new else 0)
        try:
            self.file = os.open(path, flags, 0o600)
            check_private(self.file, "the store")
            # Two processes would each spend the whole budget.
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if new:
                folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
        except OSError as error:
            self.close()
            busy = isinstance(error, BlockingIOError)
            reason = "another process has it open" if busy else error.strerror
            raise Refused(f"the store cannot be opened: {reason}") from None

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def lines(self) -> list[Any]:
        """All that is in the file."""
        with open(self.file, "rb", closefd=False) as file:
            *whole, rest = file.read().split(b"\n")
        found: list[Any] = []
        for line in whole:
            packed, _, ending = line.rpartition(b" ")
            if self._digest(packed).encode() != ending:
                # A block that never reached the disk reads as zeros; one zero may be a flipped bit.
                lost = (b"\0\0" in line or line[:1] == b"\0") and len(found) == len(whole) - 1
                need(lost, f"the store is damaged at line {len(found) + 1}; it answers no more")
                break
            self.digest, self.size = ending.decode(), self.size + len(line) + 1
            found.append(parse(packed))
        packed, _, ending = rest[:-1].rpartition(b" ")  # with something else than a line feed
        need(self._digest(packed).encode() != ending, "the store is damaged at its end")
        if found:
            # After a sync that failed a line may be in memory only, so it is written once more.
            last = whole[len(found) - 1] + b"\n"
            self._write(last, self.size - len(last))
        return found

    def _digest(self, packed: bytes) -> str:
        return hashlib.sha256(self.digest.encode() + packed).hexdigest()[:16]

    def make_room(self, tree: Any, more: int = 0) -> None:
        """Fill the end of the file with zeros, for a line of this tree and so many characters more.

        Then a line that is not longer fits, and whether it fits does not depend on a value or a
        draw. A failure here changes nothing.
        """
        need(not self.broken, "the store failed before; start again")
        reason, zeros = "", bytes(len(written(tree).encode()) + more + 18)
        try:
            self._put(zeros, self.size)
        except OSError as error:
            reason = str(error.strerror)
            with suppress(OSError):
                os.ftruncate(self.file, self.size)
        need(not reason, f"the store has no room, and nothing was drawn: {reason}")

    def add(self, tree: Any) -> None:
        """One more line, durably. The caller sets ``broken`` to False once memory has it too."""
        need(not self.broken, "the store failed before; start again")
        self.broken, packed = True, written(tree).encode()
        self.digest = self._digest(packed)
        line = packed + b" " + self.digest.encode() + b"\n"
        self._write(line, self.size)
        self.size += len(line)

    def _put(self, data: bytes, start: int) -> None:
        while data:
            count = os.pwrite(self.file, data, start)
            data, start = data[count:], start + count

    def _write(self, data: bytes, start: int) -> None:
        """Put data at a place, which is the end of the file from then on, and sync it."""
        reason = ""
        try:
            self._put(data, start)
            os.ftruncate(self.file, start + len(data))
            os.fsync(self.file)
        except OSError as error:
            reason = str(error.strerror)
        # Raised only after the handler: as its context the error would show frames with the draw.
        need(not reason, f"the store cannot be written, and nothing was sent: {reason}")


def check_private(file: int, what: str) -> None:
    """Refuse a file that others may read or write, or that has another name."""
    status = os.fstat(file)
    need(stat.S_ISREG(status.st_mode), f"{what} is no regular file")
    need(not status.st_mode & 0o077, f"others may read or write {what}; give it mode 600")
    need(status.st_nlink == 1, f"{what} has several names (hard links); remove all but one")


# -- the device ------------------------------------------------------------------------------------

RESERVED = ("ledger", "subject", "sequence", "previous", "key", "query", "ticket")
ANSWERED = ("ledger", "subject", "nonce", "confirmed", "head", "state", "receipts", "reservation")
STATES = ("active", "suspended", "unconfirmed", "ended", "unknown")


class Device:
    """One subject's side of a ledger: the value, the record of exchanges, and their store."""

    def __init__(self, path: str, source: Source = os.urandom) -> None:
        self.old_copy = False
        """Whether the ledger has had more exchanges than this device, which draws nothing then."""
        self._source, self._process, self._lock = source, os.getpid(), threading.Lock()
        self._sent: list[str] = []  # messages, number 1 first
        self._queries: dict[str, Query] = {}
        self._documents: dict[str, str] = {}  # of these queries, by content id
        self._ids: dict[str, str] = {}  # and the other way round
        self._nonce = ""  # of the latest request, until its answer is taken
        self._offered: set[int] = set()  # numbers of the messages in the latest request
        self._declined = ""  # ticket of the last decline since sync
        self._store = Store(path)
        try:
            self._start(self._store.lines())
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: str, policy: Text, subject: Subject, value: Text) -> None:
        """Make a new store with a policy and a value, both of them JSON texts."""
        checked, name = Policy(parse(policy)), read_subject(parse(json.dumps(subject)))
        header = {"device": 2, "policy": plain(checked.tree), "subject": name}
        try:
            cls._create(path, header, Past(checked.domain), value)
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            del value

    @staticmethod
    def _create(path: str, header: dict[str, Any], past: Past, value: Text) -> None:
        places = past.located(value)
        store = Store(path, new=True)
        try:
            store.make_room({**header, "value": past.largest})
            store.add({**header, "value": places})
        finally:
            store.close()

    def _start(self, lines: list[Any]) -> None:
        need(lines != [], "the store was not finished when it was created; remove it")
        version = lines[0].pop("device", "")
        need(version == "2", f"the store has version {version}; this program reads version 2 only")
        self.policy = Policy(lines[0].pop("policy"))
        self.subject = read_subject(lines[0].pop("subject"))
        self.heads = [first_head(self.policy.id, self.subject)]
        self.account, self._past = Account(self.policy.domain), Past(self.policy.domain)
        for kind, entry in [item for line in lines for item in line.items()]:
            if kind == "value":
                self._past.add(tuple(map(int, entry)))
            elif kind == "query":
                self._learn(Query.read(entry), written(entry))
            else:
                fields = parse(entry)
                asked = self.account.asked(self._queries[fields["query"]])
                self._record(asked, asked.likelihood.read(fields["response"]), entry)
                need(fields["head"] == self.heads[-1], "the store contradicts itself")

    def close(self) -> None:
        self._store.close()

    def _learn(self, query: Query, document: str) -> None:
        self._queries[query.id], self._documents[query.id] = query, document
        self._ids[document] = query.id

    def _record(self, asked: Asked, response: Value, message: str) -> None:
        self.account.add(asked, response)
        self.heads.append(next_head(self.heads[-1], len(self.heads), asked.query.id, response))
        self._sent.append(message)

    def _check_process(self) -> None:
        need(os.getpid() == self._process, "this device was opened in another process")

    def next(self, changes: Text = "{}") -> None:
        """Start the next step, with the new values (a JSON object) of attributes that changed.

        Call it at every step, even if nothing changed: otherwise the call itself reveals a change.
        """
        try:
            self._check_process()
            with self._lock:
                self._advance(changes)
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            del changes

    def _advance(self, changes: Text) -> None:
        changing = any(x.changes for x in self.policy.domain.attributes.values())
        need(changing, "nothing changes on this domain, so there is no next step")
        places = self._past.located(changes)
        self._store.make_room({"value": self._past.largest})
        self._store.add({"value": places})
        self._past.add(places)
        self._store.broken = False

    def sync(self) -> str:
        """Begin a conversation with the ledger: return the first request, as a line of JSON."""
        self._check_process()
        with self._lock:
            self._declined = ""
            return self._request()

    def take(self, answer: Text) -> str:
        """Do what an answer asks for, and return the next request, or "" if there is none.

        The disk has every message in it before this returns.

        Raises:
            Refused: if the answer is not for the latest request of this device, if the ledger has
                more than this device or another record of it, if it did not record a message, or
                if its reservation does not follow. Nothing is drawn then. Call ``sync`` to try
                again.
        """
        self._check_process()
        with self._lock:
            fields = self._opened(answer)
            own, confirmed = len(self._sent), integer(fields["confirmed"], 0)
            need(fields["state"] in STATES, "the answer has an unknown state")
            self.old_copy = self.old_copy or confirmed > own
            copied = f"the ledger has more than the {own} exchanges of this device"
            need(not self.old_copy, f"{copied}, which is an old copy; it draws nothing")
            same = fields["head"] == self.heads[confirmed]
            need(same, "the ledger has another record of this device, which draws nothing")
            if confirmed < own:
                return self._resend(confirmed, listed(fields["receipts"]))
            reserved = fields["reservation"]
            return "" if reserved is None else self._answer(members(reserved, RESERVED))

    def _opened(self, answer: Text) -> dict[str, Any]:
        """The fields of an answer to the latest request, whose nonce it uses up."""
        need(len(answer) <= LARGEST_ANSWER, f"an answer has at most {LARGEST_ANSWER:,} bytes")
        tree = parse(answer)
        need(isinstance(tree, dict), "an answer is an object")
        ours = tree.get("ledger") == self.policy.id
        ours = ours and read_subject(tree.get("subject")) == self.subject
        need(ours, "the answer is not for this device")
        latest = self._nonce != "" and text(tree.get("nonce"), "a nonce") == self._nonce
        need(latest, "stale answer: it is not for the latest request; nothing changes")
        self._nonce = ""
        return members(tree, ANSWERED)

    def _request(self, messages: Sequence[str] = ()) -> str:
        """A request with some messages, whose nonce is the only one that ``take`` accepts."""
        nonce, sent = os.urandom(16).hex(), [json.loads(message) for message in messages]
        known = {x["query"]: Written(self._documents[x["query"]]) for x in sent if "head" in x}
        where = {"ledger": self.policy.id, "subject": self.subject, "sequence": len(self._sent)}
        rest = {"head": self.heads[-1], "nonce": nonce, "messages": messages, "queries": known}
        request = written({**where, **rest})
        self._nonce, self._offered = nonce, {x["sequence"] for x in sent if "head" in x}
        return request

    def _resend(self, confirmed: int, receipts: list[Any]) -> str:
        """A request with the messages after a number, oldest first, as many as fit."""
        number = confirmed + 1
        if number in self._offered:
            objects = [receipt for receipt in receipts if isinstance(receipt, dict)]
            reasons = [x.get("reason", "") for x in objects if x.get("sequence") == str(number)]
            reason = "".join(filter(str.isprintable, str(reasons[0] if reasons else "")))[:200]
            raise Refused(f"the ledger did not record number {number}: {reason or 'no reason'}")
        room, last, known = LARGEST_MESSAGE - len(self._request().encode()), confirmed, set[str]()
        for message in self._sent[confirmed:]:
            query = json.loads(message)["query"]
            room -= len(written(message)) + 1
            room -= 0 if query in known else len(self._documents[query].encode()) + len(query) + 4
            if room < 0 and last > confirmed:
                break
            last += 1
            known.add(query)
        return self._request(self._sent[confirmed:last])

    def _answer(self, fields: dict[str, Any]) -> str:
        """A request with the message for a reservation, or "" if that was declined just before."""
        sequence, key = integer(fields["sequence"], 1), text(fields["key"], "a key")
        need(1 <= len(key) <= 200, "a key has 1 to 200 characters")
        ticket = text(fields["ticket"], "a ticket")
        need(bool(re.fullmatch("[0-9a-f]{64}", ticket)), "a ticket is 64 hexadecimal digits")
        ours = fields["ledger"] == self.policy.id
        ours = ours and read_subject(fields["subject"]) == self.subject
        need(ours, "the reservation is not for this device")
        follows = sequence == len(self.heads) and fields["previous"] == self.heads[-1]
        here = f"the {len(self._sent)} exchanges of this device"
        need(follows, f"number {sequence} does not follow {here}, which draws nothing")
        message = {"ledger": self.policy.id, "subject": self.subject, "sequence": sequence}
        message |= {"previous": self.heads[-1], "key": key}
        document = written(fields["query"])
        message["query"] = self._ids.get(document) or content_id(fields["query"])
        message["ticket"] = ticket
        asked = self._accepted(fields, message)
        if asked is None:
            if ticket == self._declined:  # or a ledger that repeats itself would make a loop
                return ""
            request = self._request([json.dumps({**message, "declined": True})])
            self._declined = ticket
            return request
        step, now = asked.query.at or 1, len(self._past.frozen)
        need(step <= now, f"step {step} has not come; it is step {now} now")
        try:
            sent = self._released(asked, message, document)
        except BaseException as error:
            raise without_frames(error) from None
        return self._request([sent])

    def _accepted(self, fields: dict[str, Any], message: dict[str, Any]) -> Asked | None:
        """The query on the domain, if it is one, and if the filter accepts it.

        All of this is public: neither value nor response has a part in it.
        """
        try:
            need(len(written(fields).encode()) <= LARGEST_MESSAGE, "the reservation is too long")
            query = self._queries.get(message["query"]) or Query.read(fields["query"])
            asked = self.account.asked(query)
            need(asked.query.id == message["query"], "its fields are not what they seem")
            size = asked.likelihood.longest + len(json.dumps(message)) + 100
            need(size <= LARGEST_MESSAGE, "a response could be too long for a message")
            return asked if decide(self.policy.filter, self.account, asked) else None
        except Refused:
            return None

    def _released(self, asked: Asked, message: dict[str, Any], document: str) -> str:
        """Make room, draw, store, and only then return the message."""
        query = asked.query
        new = {} if query.id in self._queries else {"query": Written(document)}
        blank = json.dumps({**message, "response": "", "head": "0" * 64})
        # A message is a string in its line, where a character of JSON takes at most two.
        self._store.make_room({**new, "sent": blank}, 2 * asked.likelihood.longest)
        response = self._past.draw(asked, self._source)
        head = next_head(self.heads[-1], len(self.heads), query.id, response)
        sent = json.dumps({**message, "response": plain(value_tree(response)), "head": head})
        self._store.add({**new, "sent": sent})
        if new:
            self._learn(query, document)
        self._record(asked, response, sent)
        self._store.broken = False
        return sent


def without_frames(error: BaseException) -> BaseException:
    """An error without its frames: tools that report errors show their variables."""
    error.__traceback__ = error.__context__ = None
    return error


EXACT = {"epsilon", "delta", "sensitivity", "grid", "sigma", "probabilities", "utility"}


def content_id(query: Any) -> str:
    """The content id of a query, also of one that this device cannot answer."""

    def tree(given: Any, field: str = "") -> Any:
        if field == "seed":
            return text(given, "a seed").lower()
        if isinstance(given, dict):
            return {text(name): tree(x, field or name) for name, x in given.items()}
        if isinstance(given, list):
            return [tree(x, field) for x in given]
        if field in EXACT:
            return exact(given)
        if isinstance(given, Written):
            return double(given)
        return text(given) if isinstance(given, str) else given

    need(isinstance(query, dict), "a question is an object")
    defaults: dict[str, Any] = {"intercept": 0.0} if "weights" in query else {}
    defaults |= {"clip": False} if query.get("kind") == "linear" else {}
    return digest({**defaults, **tree(query)})


# -- the command line ------------------------------------------------------------------------------


def read_private(path: str) -> bytes:
    """Read a file that only its owner may read; - is the standard input."""
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        check_private(file.fileno(), "the file of the value")
        return file.read()


def converse(device: Device) -> int:
    """Print requests and read answers, a line each, until there is nothing more to send."""
    request = device.sync()
    while request:
        sys.stdout.buffer.write(request.encode() + b"\n")
        sys.stdout.buffer.flush()
        answer = sys.stdin.buffer.readline(LARGEST_ANSWER + 2)
        need(answer != b"", "the input ended before the answer to a request")
        request = device.take(answer.removesuffix(b"\n"))
    return 0


def main(command: str = "", path: str = "", *given: str) -> int:
    options = dict(zip(given[::2], given[1::2], strict=False))
    known = {"create": "--policy --subject --value", "next": "--value", "sync": "", "status": ""}
    if len(given) % 2 or " ".join(sorted(given[::2])) != known.get(command):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if command == "create":
            with open(options["--policy"], "rb") as file:
                policy = file.read()
            name = options["--subject"]
            subject = read_subject(parse(name)) if re.fullmatch(r'-?\d+|".+"', name) else name
            Device.create(path, policy, subject, read_private(options["--value"]))
        device = Device(path)
        if command == "sync":
            return converse(device)
        if command == "next":
            device.next(read_private(options["--value"]))
        status = {"subject": device.subject, "ledger": device.policy.id, "head": device.heads[-1]}
        print(json.dumps({**status, "answered": len(device.heads) - 1}))
        return 0
    except Refused as problem:
        print(f"device: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"device: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The client on a subject's device: it decides, draws, stores and sends.

    python3 -I device.py create STORE --policy POLICY.json --subject NAME --value VALUE.json
    python3 -I device.py enroll STORE URL --code CODE
    python3 -I device.py sync STORE [URL]
    python3 -I device.py withdraw STORE URL
    python3 -I device.py next STORE --value CHANGES.json
    python3 -I device.py status STORE

This file is a complete program. It needs Python 3.11 or later and nothing else, so it can be copied
to a device and read there. It supports finite sets and attributes, some of which may change, and
pure filters at every level of protection: docs/reference/conformance.md specifies the arithmetic,
docs/reference/ledger.md the messages.

``Device.create`` makes a store with a policy and a value. ``Device(path).sync()`` returns a request
for the ledger. ``take(answer)`` reads the answer and returns the next request, or "" if there is
nothing more to send. ``next`` starts the next step of a value that changes. The commands do the
same: ``sync`` prints each request as a line and reads each answer as a line. With the URL of a
collector it sends the requests there, with the token that ``enroll`` got for an invitation code
(in a private file, or - for standard input). ``withdraw`` ends the subject's part in the study: it
is asked nothing more. Commands exit with 0 at the end. Otherwise they print one line on standard
error and exit with 1 if something was refused, 2 if an argument or a file cannot be used, and 3 if
the collector cannot be reached: then repeat the command later.

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
from itertools import accumulate, groupby, pairwise, product
from operator import mul
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = [
    "Account",
    "Collector",
    "Device",
    "Filter",
    "Offline",
    "Query",
    "Refused",
    "decide",
    "enroll",
    "sync_with",
    "withdraw",
]

MAX_COMBINATIONS = 100_000  # of attributes in one question, or that are looked at together
LARGEST_INTEGER = 2**53
Text = str | bytes  # of JSON
Subject = str | int
Source = Callable[[int], bytes]  # gives so many uniform bytes
DEEPEST = 50  # levels of lists and objects in a JSON text
LARGEST_MESSAGE = 1 << 20  # bytes of a message, a reservation, a query, a request of many messages
LARGEST_ANSWER = 2 * LARGEST_MESSAGE  # bytes of a reservation with receipts


class Refused(Exception):
    """An operation was refused; the message is one line and never shows a value."""


class Stale(Refused):
    """An answer is not for the latest request; nothing changes."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Refused(message)


# -- reading ---------------------------------------------------------------------------------------


class NumberText(str):
    """A number of a JSON text, as it was written: 0.3 is 3/10 in one field, a double in another."""

    def __repr__(self) -> str:
        return str(self)


def parse(text: Text) -> Any:
    """Read JSON with its numbers as they were written; no name may appear twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), "a field is given twice")
        return dict(pairs)

    hooks: Any = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), NumberText)
    try:
        tree = json.loads(text, object_pairs_hook=once, **hooks)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    level: list[Iterable[Any]] = [[tree]]
    for _ in range(DEEPEST + 1):
        nested = [x for parent in level for x in parent if isinstance(x, dict | list)]
        level = [x.values() if isinstance(x, dict) else x for x in nested]
    require(not level, f"nested more than {DEEPEST} levels deep")
    return tree


def written(tree: Any) -> str:
    """Write compact JSON, with numbers as they were written."""
    if isinstance(tree, NumberText):
        return str(tree)
    if isinstance(tree, dict):
        return "{" + ",".join(f"{written(name)}:{written(x)}" for name, x in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        return "[" + ",".join(map(written, tree)) + "]"
    return json.dumps(tree, ensure_ascii=False)


DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d+))?", re.ASCII)
QUOTIENT = re.compile(r"[+-]?\d+/0*[1-9]\d*", re.ASCII)


def exact(node: Any) -> Fraction:
    """Read a decimal or "p/q" exactly; the limits keep hostile numbers short."""
    require(isinstance(node, str) and len(node) <= 2000, "must be a decimal or p/q")
    decimal = DECIMAL.fullmatch(node)
    require(bool(decimal or QUOTIENT.fullmatch(node)), "must be a decimal or p/q")
    power = (decimal and decimal["exponent"]) or "0"
    require(len(power) <= 5 and abs(int(power)) <= 600, "a number is too large or too small")
    fraction = Fraction(node)
    bits = max(map(int.bit_length, fraction.as_integer_ratio()))
    require(bits <= 3000, "a number has too many digits")
    small = fraction and not Fraction(1, 10**300) <= abs(fraction) <= 10**300
    require(not small, "a number is too large or too small")
    return fraction


def double(node: Any) -> float:
    """Return the double nearest to a number."""
    require(isinstance(node, NumberText), "must be a number")
    result = float(node)
    require(math.isfinite(result), "must be a finite number")
    return result


def read_number(node: Any) -> int | float:
    """Read a number of a domain or a response: 1 and 1.0 are the same integer."""
    if isinstance(node, NumberText) and re.fullmatch(r"-?\d+", node):
        require(len(node) < 20 and abs(int(node)) <= LARGEST_INTEGER, "an integer is above 2^53")
        return int(node)
    return shorten(double(node))


def shorten(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) <= LARGEST_INTEGER else value


def integer(node: Any, least: int | None = None) -> int:
    result = read_number(node)
    require(isinstance(result, int), "must be an integer")
    require(least is None or result >= least, f"must be at least {least}")
    return int(result)


def text(node: Any, label: str = "it") -> str:
    require(isinstance(node, str) and not isinstance(node, NumberText), f"{label} must be a string")
    require(not re.search("[\ud800-\udfff]", node), f"{label} must be a string of valid characters")
    return str(node)


Scalar = int | float | str
Value = Scalar | tuple[Scalar, ...]


def scalar(node: Any) -> Scalar:
    """Read a label or a number; 1 and "1" differ."""
    return read_number(node) if isinstance(node, NumberText) else text(node)


def read_list(node: Any) -> list[Any]:
    require(isinstance(node, list), "must be a list")
    return list(node)


def read_object(node: Any, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    require(isinstance(node, dict), "must be an object")
    missing = [name for name in required if name not in node]
    require(not missing, f"{missing and missing[0]} is missing")
    require(node.keys() <= {*required, *optional}, "has a field that is not known here")
    return dict(node)


def distinct(values: Sequence[Any], label: str) -> None:
    require(len(values) > 0, f"there must be {label}s")
    require(len(set(values)) == len(values), f"a {label} is listed twice")


# -- content ids and the chain ---------------------------------------------------------------------


def utf16(name: str) -> bytes:
    """Return the sort key of names in canonical JSON: UTF-16 code units, as in RFC 8785."""
    return name.encode("utf-16-be", "surrogatepass")


def canonical(tree: Any) -> bytes:
    """Encode a tree as bytes that are equal exactly for equal content."""

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
    """Return a value or a response for a tree: numbers are doubles."""
    if isinstance(value, tuple):
        return [x if isinstance(x, str) else float(x) for x in value]
    return value if isinstance(value, str) else float(value)


def plain(tree: Any) -> Any:
    """Return a tree for JSON: exact numbers as texts, integral doubles without a point."""
    if isinstance(tree, dict):
        return {name: plain(x) for name, x in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(x) for x in tree]
    if isinstance(tree, float):
        return shorten(tree)
    return str(tree) if isinstance(tree, Fraction) else tree


# -- exact comparison ------------------------------------------------------------------------------


def context(digits: int, rounding: str = ROUND_FLOOR) -> Context:
    """Return a context of decimals; its ``exp`` and ``ln`` are correctly rounded."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def decimal_bounds(fraction: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return decimals on both sides of a rational."""
    top, bottom = Decimal(fraction.numerator), Decimal(fraction.denominator)
    return context(digits).divide(top, bottom), context(digits, ROUND_CEILING).divide(top, bottom)


@lru_cache(maxsize=4096)
def scaled_exp(exponent: Fraction, bits: int) -> int:
    """Return ⌊2^bits · e^exponent⌋ for a rational other than zero."""
    digits = 30 + max(0, bits + int(exponent * Fraction(3, 2))) // 3
    while True:
        decimals, (below, above) = context(digits), decimal_bounds(exponent, digits)
        low = math.floor(Fraction(decimals.next_minus(decimals.exp(below))) * (1 << bits))
        high = math.floor(Fraction(decimals.next_plus(decimals.exp(above))) * (1 << bits))
        if low == high:
            return low
        digits *= 2  # e^exponent is irrational, so enough digits tell it from any integer


def two_weights(epsilon: Fraction) -> tuple[int, int]:
    """Return (⌊2^B e^ε⌋, 2^B) with B = 40 + max(0, ⌈log₂ 1/ε⌉): just below e^ε as a quotient."""
    bits = 40 + (math.ceil(1 / epsilon) - 1).bit_length()
    return scaled_exp(epsilon, bits), 1 << bits


@lru_cache(maxsize=64)
def log_of_two(digits: int) -> Decimal:
    return context(digits).ln(Decimal(2))


def log_bounds(top: int, bottom: int, digits: int) -> tuple[Decimal, Decimal]:
    """Return decimals on both sides of log(top/bottom), for positive integers of any length."""
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
    """Return whether log(top/bottom) <= limit, exactly.

    Except at zero the logarithm of a rational is never rational (Lindemann), so enough digits
    always decide.
    """
    if not limit or not bottom:
        return top <= bottom
    bits = top.bit_length() - bottom.bit_length() + 1  # top/bottom is below 2^bits
    if 7 * max(0, bits) <= 10 * limit:  # log 2 is below 7/10
        return True
    digits = 30
    while True:
        low, high = log_bounds(top, bottom, digits)
        least, most = decimal_bounds(limit, digits)
        if high <= least or low > most:
            return high <= least
        digits *= 2


# -- domains ---------------------------------------------------------------------------------------


class Values:
    """The values that a query depends on: labels and numbers, or rows of named ones."""

    def __init__(self, rows: Sequence[Value], names: tuple[str, ...] = ("value",)) -> None:
        distinct(rows, "value")
        self.rows, self.names = rows, names
        self.index_of = {row: index for index, row in enumerate(rows)}

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, node: Any) -> Value:
        """Read a value from JSON."""
        alone = not isinstance(self.rows[0], tuple)
        value = scalar(node) if alone else tuple(scalar(x) for x in read_list(node))
        require(value in self.index_of, "no such value")
        return value

    @cached_property
    def points(self) -> list[tuple[float, ...]]:
        """The rows as doubles."""
        rows = [row if isinstance(row, tuple) else (row,) for row in self.rows]
        labels = any(isinstance(x, str) for row in rows for x in row)
        require(not labels, "a score needs numbers, and there are labels")
        return [tuple(map(float, row)) for row in rows]


class Attribute(NamedTuple):
    """One attribute of a record, and how it may change from step to step."""

    values: Sequence[Scalar]
    tree: Any
    changes: bool = False
    times: int | None = None
    max_step: Fraction | None = None

    @classmethod
    def read(cls, node: Any) -> Attribute:
        if isinstance(node, list):
            values = [scalar(x) for x in node]
            distinct(values, "value")
            require(len(values) <= MAX_COMBINATIONS, "an attribute has too many values")
            return cls(values, [value_tree(x) for x in values])
        require(isinstance(node, dict), "an attribute must be a list or an object")
        if "changing" not in node:
            ends = [integer(x) for x in read_list(read_object(node, ["integers"])["integers"])]
            good = len(ends) == 2 and 0 <= ends[1] - ends[0] < MAX_COMBINATIONS
            require(good, "integers must be two ends, not too far apart")
            return cls(range(ends[0], ends[1] + 1), {"integers": [float(end) for end in ends]})
        fields = read_object(node, ["changing"], ["times", "max_step"])
        constant = cls.read(fields["changing"])
        times = integer(fields["times"], 0) if "times" in fields else None
        max_step = exact(fields["max_step"]) if "max_step" in fields else None
        numeric = not any(isinstance(x, str) for x in constant.values)
        require(not constant.changes and (times or 0) <= 10_000, "changes too often")
        fits = max_step is None or (max_step >= 0 and numeric and times is None)
        require(fits, "max_step does not fit")
        limits = {"times": None if times is None else float(times), "max_step": max_step}
        tree = {"changing": constant.tree} | {k: x for k, x in limits.items() if x is not None}
        return cls(constant.values, tree, True, times, max_step)

    @property
    def limited(self) -> bool:
        """True if its value at one step restricts its value at another."""
        return self.times is not None or self.max_step is not None

    def distance(self, index: int, other_index: int) -> Fraction:
        """Return the distance of two values, as the decimals that were written."""
        return abs(Fraction(repr(self.values[index])) - Fraction(repr(self.values[other_index])))

    def freeze(self, before: int, used: int, wanted: int) -> int:
        """Return the index that answers are drawn for: the wanted one, if the limits allow it.

        True values need not respect the limits, which are public; values of answers do.
        """
        if not self.changes or (self.times is not None and used >= self.times):
            return before
        if self.max_step is None:
            return wanted
        near = [k for k in range(len(self.values)) if self.distance(k, before) <= self.max_step]
        return min(near, key=lambda k: (self.distance(k, wanted), self.values[k]))


#: An attribute and a step, None where it does not change; or how often it has changed by then.
Variable = tuple[Any, ...]
Scope = tuple[Variable, ...]
SET_SCOPE: Scope = (("", None),)


class Domain:
    """A finite set or attributes; a set is treated as one attribute without a name."""

    def __init__(self, node: Any) -> None:
        fields = read_object(node, [], ["values", "points", "attributes", "box"])
        require("box" not in fields, "a device knows finite sets and attributes, and no boxes")
        require(len(fields) == 1, "a domain has one of values, points, attributes")
        self.attributes: dict[str, Attribute] = {}
        self.values: Values | None = None
        self._parts: dict[tuple[str, ...], Values] = {}
        if "attributes" in fields:
            named = read_object(fields["attributes"], [], fields["attributes"])
            valid = 0 < len(named) <= 1000 and "" not in named
            require(valid, "attributes need names, at most 1,000")
            self.attributes = {text(name): Attribute.read(x) for name, x in named.items()}
            self.tree: Any = {"attributes": {n: x.tree for n, x in self.attributes.items()}}
        elif "values" in fields:
            self.values = Values([scalar(x) for x in read_list(fields["values"])])
            self.tree = {"values": [value_tree(row) for row in self.values.rows]}
        else:
            points = read_object(fields["points"], ["names", "rows"])
            names = tuple(text(name) for name in read_list(points["names"]))
            distinct(names, "name")
            rows = [tuple(map(read_number, read_list(row))) for row in read_list(points["rows"])]
            good = "" not in names and {len(row) for row in rows} <= {len(names)}
            require(good, "a row needs a number for each name")
            self.values = Values(rows, names)
            trees = [value_tree(row) for row in rows]
            self.tree = {"points": {"names": list(names), "rows": trees}}

    def scope(self, query: Query) -> Scope:
        """Return the attributes, with their steps, that a query is about."""
        if self.values is not None:
            require(query.about is None, "a finite set has no attributes to ask about")
            return SET_SCOPE
        about, attributes = query.about or (), self.attributes
        listed = about != () and set(about) <= attributes.keys()
        require(listed, "it must say which attributes it is about")
        changing = any(attributes[name].changes for name in about)
        require(changing == (query.at is not None), "a step is for what changes, and only for that")
        return tuple((name, query.at if attributes[name].changes else None) for name in about)

    def sizes(self, scope: Scope) -> list[int]:
        return [len(self.attributes[name].values) for name, _ in scope if scope != SET_SCOPE]

    def combinations(self, scope: Scope) -> Values:
        """Return the combinations of values in a scope, the last attribute fastest."""
        if self.values is not None:
            return self.values
        names = tuple(name for name, _ in scope)
        if names not in self._parts:
            size = math.prod(self.sizes(scope))
            require(size <= MAX_COMBINATIONS, f"{size:,} combinations are too many to ask about")
            lists = [self.attributes[name].values for name in names]
            rows: Sequence[Value] = list(product(*lists)) if len(names) > 1 else lists[0]
            self._parts[names] = Values(rows, names)
        return self._parts[names]


# -- questions -------------------------------------------------------------------------------------

#: Two likelihoods, a larger and a smaller one; if the second is zero nothing bounds the loss.
Pair = tuple[int, int]
#: The largest likelihoods of some combinations, and which; the smallest ones of some, and which.
Row = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]
Worst = Callable[[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], list[Pair]]


def largest_quotient(pairs: Iterable[Pair]) -> Pair:
    """Return the pair with the largest quotient."""
    largest = (0, 1)
    for high, low in pairs:
        if high * largest[1] > largest[0] * low:
            largest = high, low
    return largest


class Likelihood(NamedTuple):
    """The likelihood of each response for each value: integer weights over one total."""

    total: int
    read: Callable[[Any], Value]  # a response as JSON has it
    column: Callable[[Any], list[int]]  # its weights for all values, up to a common factor
    #: The response for the value at a place and a uniform integer below the total.
    #:
    #: Candidates are selected without branches: how long it takes should not depend on the value.
    draw: Callable[[int, int], Value]
    #: Pairs after this question, one of them the widest, from the likelihoods before it.
    worst: Worst
    longest: int = 24  # characters of a response, at most


def choice_reader(choices: Any) -> Callable[[Any], Any]:
    def read(node: Any) -> Any:
        value = scalar(node)  # a range would be searched for what is no integer
        searchable = isinstance(value, int) or not isinstance(choices, range)
        require(searchable and value in choices, "it is none of those that there are")
        return value

    return read


def class_likelihoods(
    weights: Pair, classes: Sequence[int], speaks: Callable[[Any], Iterable[bool]]
) -> tuple[Callable[[Any], list[int]], Worst]:
    """Return ``column`` and ``worst`` of responses that favor some values equally."""
    heavy, light = weights

    def worst(
        highs: Sequence[int], tops: Sequence[int], lows: Sequence[int], bottoms: Sequence[int]
    ) -> list[Pair]:
        # The extremes; and if these are of one class, which no response tells apart, each of them
        # with the best of other classes.
        high = max(range(len(highs)), key=highs.__getitem__)
        low = min(range(len(lows)), key=lows.__getitem__)
        if classes[tops[high]] != classes[bottoms[low]]:
            return [(highs[high] * heavy, lows[low] * light)]
        alike, pairs = classes[tops[high]], [(highs[high], lows[low])]
        other_highs = [x for x, k in zip(highs, tops, strict=True) if classes[k] != alike]
        other_lows = [x for x, k in zip(lows, bottoms, strict=True) if classes[k] != alike]
        pairs += [(highs[high] * heavy, min(other_lows) * light)] if other_lows else []
        pairs += [(max(other_highs) * heavy, lows[low] * light)] if other_highs else []
        return pairs

    return lambda response: [heavy if good else light for good in speaks(response)], worst


def heavy_label_likelihood(
    query: Query, indices: Sequence[int], labels: Sequence[Value], read: Any, longest: int = 24
) -> Likelihood:
    """Return a likelihood with a heavy weight on the label of a value, light on all others."""
    weights = heavy, light = two_weights(query["epsilon"])
    column, worst = class_likelihoods(weights, indices, lambda y: (labels[k] == y for k in indices))

    def draw(index: int, uniform: int) -> Value:
        start = indices[index] * light
        before, after = uniform // light, (uniform - heavy) // light + 1
        inside = (uniform >= start) * (uniform < start + heavy)
        position = (uniform < start) * before + (uniform >= start + heavy) * after
        return labels[position + inside * indices[index]]

    return Likelihood(heavy + (len(labels) - 1) * light, read, column, draw, worst, longest)


def randomized_response(query: Query, values: Values) -> Likelihood:
    longest = max(len(json.dumps(row)) for row in values.rows)
    return heavy_label_likelihood(query, range(len(values)), values.rows, values.read, longest)


def local_hashing(query: Query, values: Values) -> Likelihood:
    texts = [bytes.fromhex(query["seed"]) + canonical(value_tree(row)) for row in values.rows]
    firsts = [int.from_bytes(hashlib.sha256(text).digest()[:8], "big") for text in texts]
    buckets = range(int(query["buckets"]))
    indices = [x % len(buckets) for x in firsts]
    return heavy_label_likelihood(query, indices, buckets, choice_reader(buckets))


def digits(integer: int, base: int, count: int) -> list[int]:
    """Return the digits of an integer below base^count, lowest first; by halves, for speed."""
    if count <= 1:
        return [integer] * count
    half = count - count // 2
    high, low = divmod(integer, base**half)
    return digits(low, base, half) + digits(high, base, count - half)


def unary_encoding(query: Query, values: Values) -> Likelihood:
    size, parts = len(values), 2 if query["variant"] == "symmetric" else 1
    require(size <= 10_000, "a bit for each of so many values is too many")
    heavy, light = two_weights(query["epsilon"] / parts)  # a part for each bit that tells
    base = (heavy + light) * (1 if parts == 2 else 2)
    # The weight of a zero for the bit of the value, and for any other bit.
    own_zero, other_zero = (light, heavy) if parts == 2 else (heavy + light, 2 * heavy)
    weights = heavy**parts, light**parts
    column, worst = class_likelihoods(weights, range(size), lambda y: (bit == "1" for bit in y))

    def read(node: Any) -> Value:
        bits = text(node)
        require(len(bits) == size and set(bits) <= {"0", "1"}, "must have a bit for each value")
        return bits

    def draw(index: int, uniform: int) -> Value:
        shares = enumerate(digits(uniform, base, size))
        return "".join(
            "01"[share >= (own_zero if k == index else other_zero)] for k, share in shares
        )

    return Likelihood(base**size, read, column, draw, worst, size + 2)


def subset_selection(query: Query, values: Values) -> Likelihood:
    (heavy, light), count, size = two_weights(query["epsilon"]), len(values), int(query["size"])
    require(size < count <= 10_000, "size must be below the number of values, at most 10,000")
    without, indices_of_values = math.comb(count - 1, size), range(count)
    limit = without * light
    column, worst = class_likelihoods(
        (heavy, light), indices_of_values, lambda y: (k in y for k in indices_of_values)
    )

    def read(node: Any) -> Value:
        indices = tuple(integer(x) for x in read_list(node))
        good = len(indices) == size and all(a < b for a, b in pairwise([-1, *indices, count]))
        require(good, f"must be {size} indices, ascending")
        return indices

    def draw(index: int, uniform: int) -> Value:
        # In the combinatorial number system subsets with the last element come last. Turning all
        # elements around takes the last one to any place.
        lacking, having = uniform // light, without + (uniform - limit) // heavy
        rank = (uniform < limit) * lacking + (uniform >= limit) * having
        flags, remaining, first = [0] * count, size, without
        for element in range(count - 1, -1, -1):
            taken = flags[element] = int(rank >= first)
            rank -= taken * first
            if element:  # from binom(element, left) to binom(element - 1, left - taken)
                first = first * (taken * remaining + (1 - taken) * (element - remaining)) // element
            remaining -= taken
        start = count - index - 1
        return tuple(k for k, flag in enumerate(flags[start:] + flags[:start]) if flag)

    total = limit + math.comb(count - 1, size - 1) * heavy
    return Likelihood(total, read, column, draw, worst, 8 * size + 2)


def hadamard_response(query: Query, values: Values) -> Likelihood:
    (heavy, light), order = two_weights(query["epsilon"]), int(query["order"])
    require(order > len(values), "order must be above the number of values")
    rows, limit = range(1, len(values) + 1), order // 2 * heavy
    column, worst = class_likelihoods(
        (heavy, light), rows, lambda y: ((row & y).bit_count() % 2 == 0 for row in rows)
    )

    def draw(index: int, uniform: int) -> Value:
        row, odd = index + 1, int(uniform >= limit)
        free_bits = (1 - odd) * (uniform // heavy) + odd * ((uniform - limit) // light)
        # All bits of the column are free but that at the row's lowest one, which sets the sign.
        free = (row & -row) - 1
        column = (free_bits & free) | (free_bits & ~free) << 1
        return column | (free + 1) * (odd ^ (column & row).bit_count() % 2)

    return Likelihood(
        order // 2 * (heavy + light), choice_reader(range(order)), column, draw, worst
    )


def worst_over_columns(columns: Iterable[list[int]]) -> Worst:
    """Return ``worst`` for responses that must all be compared."""
    every = list(columns)

    def worst(
        highs: Sequence[int], tops: Sequence[int], lows: Sequence[int], bottoms: Sequence[int]
    ) -> list[Pair]:
        return [
            (
                max(map(mul, highs, map(column.__getitem__, tops))),
                min(map(mul, lows, map(column.__getitem__, bottoms))),
            )
            for column in every
        ]

    return worst


def table_likelihood(labels: Sequence[Scalar], columns: Sequence[list[int]]) -> Likelihood:
    """Return a likelihood of a few responses, with a column of weights for each."""
    # A label that no value can give is no response.
    possible = {label: column for label, column in zip(labels, columns, strict=True) if any(column)}

    def draw(index: int, uniform: int) -> Value:
        ends = accumulate(column[index] for column in possible.values())
        return list(possible)[sum(uniform >= end for end in ends)]

    total = sum(column[0] for column in possible.values())
    longest = max(len(json.dumps(label)) for label in possible)
    worst = worst_over_columns(possible.values())
    return Likelihood(total, choice_reader(possible), possible.__getitem__, draw, worst, longest)


def channel(query: Query, values: Values) -> Likelihood:
    rows = query["probabilities"]
    bottom = math.lcm(*(p.denominator for row in rows for p in row))
    require(bottom.bit_length() <= 2000, "the common denominator of probabilities is too long")
    classes = [int(x) for x in query["of"]] if "of" in query else range(len(rows))
    require(len(classes) == len(values), "must have a row or a class for each value")
    columns = [[int(row[j] * bottom) for row in rows] for j in range(len(rows[0]))]
    return table_likelihood(query.labels, [[column[k] for k in classes] for column in columns])


def exponential_mechanism(query: Query, values: Values) -> Likelihood:
    rows, width, nats = query["utility"], len(query.labels), query["epsilon"]
    require(len(rows) == len(values), "must have a row of utilities for each value")
    factor = nats / (2 * query["sensitivity"])
    reach = factor * max(max(row) - min(row) for row in rows)
    require(reach <= 500, "epsilon is too large for utilities that reach this far")
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
    return table_likelihood(query.labels, [list(column) for column in zip(*weights, strict=True)])


def one_bit(query: Query, shares: Iterable[float], ends: Sequence[Scalar]) -> Likelihood:
    """Return the likelihood of one bit; the high response weighs light + share · span."""
    heavy, light = two_weights(query["epsilon"])
    span = int(double_below(Fraction(heavy - light)))
    highs = [light + round(share * float(span)) for share in shares]
    return table_likelihood(ends, [[2 * light + span - high for high in highs], highs])


def double_below(fraction: Fraction) -> float:
    """Return the largest double that is not above a rational."""
    nearest = fraction.numerator / fraction.denominator
    return nearest if Fraction(nearest) <= fraction else math.nextafter(nearest, -math.inf)


def perturbation(query: Query, values: Values) -> Likelihood:
    (low, high), scores = query["range"], query["scores"]
    require(len(scores) == len(values), "must have a score for each value")
    shares = [(score - low) / (high - low) for score in scores]
    return one_bit(query, shares, [shorten(low), shorten(high)])


def scores_of(query: Query, values: Values) -> list[float]:
    """Return intercept + Σ weight·coordinate in doubles, added in the order of names."""
    node, intercept, names = query["weights"], query["intercept"], values.names
    require(node.keys() <= set(names), "a weight is for no coordinate")
    order, scores = sorted(range(len(names)), key=names.__getitem__), []
    reach = [(names[j], max(abs(point[j]) for point in values.points)) for j in order]
    bound = sum(abs(Fraction(node.get(name, 0))) * Fraction(magnitude) for name, magnitude in reach)
    require(bound + abs(Fraction(intercept)) <= 2**1023, "a score is too large for a double")
    for point in values.points:
        total = intercept
        for j in order:
            total += node.get(names[j], 0.0) * point[j]
        scores.append(total)
    return scores


def linear(query: Query, values: Values) -> Likelihood:
    scores = scores_of(query, values)
    low, high = query.get("range", (0.0, 0.0))
    if not query.get("clip", True):
        # In real numbers, not in doubles.
        used = [Fraction(query["weights"].get(name, 0)) for name in values.names]
        exact_scores = [sum(map(mul, used, map(Fraction, point))) for point in values.points]
        intercept = Fraction(query["intercept"])
        lowest, highest = intercept + min(exact_scores), intercept + max(exact_scores)
        if "range" in query:  # what roundings of decimals do is forgiven
            width = Fraction(high) - Fraction(low)
            excess = max(Fraction(low) - lowest, highest - Fraction(high))
            require(excess <= width / 10**12, "the score leaves its range")
        else:
            require(lowest < highest, "the score is the same everywhere")
            low, high = double_below(lowest) + 0.0, 0.0 - double_below(-highest)
    shares = [min(max((score - low) / (high - low), 0.0), 1.0) for score in scores]
    return one_bit(query, shares, [shorten(low), shorten(high)])


LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
PER_LN2 = float.fromhex("0x1.71547652b82fep+0")


def portable_exp(x: float) -> float:
    """Return e^x for x <= 0 from +, - and * alone, so that its bits are equal everywhere."""
    x = max(x, -746.0)
    power = round(x * PER_LN2)
    remainder = (x - power * LN2_HIGH) - power * LN2_LOW
    series = 0.0
    for n in range(13, -1, -1):
        series = series * remainder + 1 / math.factorial(n)
    return series * math.ldexp(1.0, power // 2) * math.ldexp(1.0, power - power // 2)


def logistic(query: Query, values: Values) -> Likelihood:
    scores = scores_of(query, values)
    tails = [(score, portable_exp(-abs(score))) for score in scores]
    shares = [(tail if score < 0 else 1.0) / (1.0 + tail) for score, tail in tails]
    return one_bit(query, shares, [0, 1])


def geometric(query: Query, values: Values) -> Likelihood:
    """Return the likelihood of two-sided geometric noise with α = light/heavy, clamped."""
    integers = [row for row in values.rows if isinstance(row, int)]
    require(len(integers) == len(values), "geometric needs a domain of integers")
    (low, high), width = map(int, query["range"]), query["sensitivity"]
    require(max(integers) - min(integers) <= width, "values differ by more than the sensitivity")
    heavy, light = two_weights(query["epsilon"] / width)
    reach = max(high - min(integers), max(integers) - low)
    modest = reach <= 1000 and reach * heavy.bit_length() <= 1 << 16
    require(modest, "the range is too wide for exact weights")
    total = (heavy + light) * heavy ** (reach - 1)

    def weight(value: int, response: int) -> Any:
        distance = abs(response - value)
        if low < response < high:
            return (heavy - light) * light**distance * heavy ** (reach - 1 - distance)
        if value < low if response == low else value > high:
            return total - light ** (distance + 1) * heavy ** (reach - 1 - distance)
        return light**distance * heavy ** (reach - distance)

    def column(response: Any) -> list[int]:
        weights = [weight(value, response) for value in integers]
        common = math.gcd(*weights)
        return [weight // common for weight in weights]

    def draw(index: int, uniform: int) -> Value:
        sizes_drawn, first = divmod(uniform, heavy + light)
        sign = (first >= heavy - light) - 2 * (first >= heavy)
        size = going = 1
        for share in digits(sizes_drawn, heavy, reach - 1):
            going *= share < light
            size += going
        return max(low, min(high, integers[index] + sign * size))

    # Likelihood ratios are monotone in the response, so the two ends suffice.
    worst = worst_over_columns([column(low), column(high)])
    return Likelihood(total, choice_reader(range(low, high + 1)), column, draw, worst)


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


def read_range(node: Any) -> list[float]:
    ends = [float(read_number(x)) for x in read_list(node)]
    good = len(ends) == 2 and ends[0] < ends[1] and math.isfinite(ends[1] - ends[0])
    require(good, "range must be two ends, the lower one first")
    return ends


def read_weights(node: Any) -> dict[str, float]:
    require(isinstance(node, dict) and node != {}, "weights must name the coordinates")
    return {text(name): double(weight) for name, weight in node.items()}


def read_table(node: Any) -> list[list[Fraction]]:
    rows = [[exact(p) for p in read_list(row)] for row in read_list(node)]
    require(rows != [] and {len(row) for row in rows} == {len(rows[0]) or 1}, "must be equal rows")
    return rows


READERS: dict[str, Callable[[Any], Any]] = {
    "epsilon": exact, "sensitivity": exact, "probabilities": read_table, "utility": read_table,
    "responses": lambda node: [value_tree(scalar(x)) for x in read_list(node)],
    "of": lambda node: [float(integer(x, 0)) for x in read_list(node)],
    "scores": lambda node: [double(x) for x in read_list(node)],
    "variant": choice_reader(("symmetric", "optimized")), "seed": lambda node: text(node).lower(),
    "size": lambda node: float(integer(node, 1)),
    "buckets": lambda node: float(integer(node, 2)),
    "order": lambda node: float(integer(node, 2)),
    "range": read_range, "weights": read_weights, "intercept": double, "clip": lambda node: node,
}  # fmt: skip


class Query(dict[str, Any]):
    """A query: its fields as content ids encode them, with defaults written out."""

    about: tuple[str, ...] | None = None
    at: int | None = None

    @classmethod
    def read(cls, node: Any) -> Query:
        require(isinstance(node, dict) and "kind" in node, "a question has a kind")
        fields = dict(node)
        kind = fields.pop("kind")
        known = isinstance(kind, str) and kind in FAMILIES
        require(known, "this device does not know that kind of question")
        require("delta" not in fields, "a question with a delta needs a filter with a delta")
        query, required = cls(kind=text(kind)), FAMILIES[kind][1].split()
        if "about" in fields:
            query.about = tuple(text(name) for name in read_list(fields.pop("about")))
            distinct(query.about, "attribute")
            query["about"] = list(query.about)
            if "at" in fields:
                query.at = integer(fields.pop("at"), 1)
                query["at"] = float(query.at)
        scored = "weights" in required
        fields = read_object(fields, required, OPTIONAL.get(kind, ["intercept"] if scored else []))
        query |= {"intercept": 0.0} if scored else {}
        query |= {"clip": False} if kind == "linear" else {}
        query |= {name: READERS[name](x) for name, x in fields.items()}
        query._check(kind)
        return query

    def _check(self, kind: str) -> None:
        """Refuse fields that are out of range or contradict each other."""
        nats, bound = self.get("epsilon", 1), self.get("sensitivity", Fraction(1))
        require(0 < nats <= 500, "epsilon must be above 0 and at most 500")
        require(0 < bound <= 10**300, "sensitivity must be above 0")
        if kind == "linear":
            require(isinstance(self["clip"], bool), "clip must be true or false")
            require("range" in self or not self["clip"], "a clipped score needs a range")
        if kind == "local_hashing":
            hexadecimal = re.fullmatch("([0-9a-f]{2}){1,64}", self["seed"])
            require(hexadecimal is not None, "seed must be 1 to 64 bytes in hexadecimal digits")
        if kind == "hadamard_response":
            require(int(self["order"]).bit_count() == 1, "order must be a power of 2")
        if kind == "geometric":
            integral = all(isinstance(shorten(x), int) for x in self["range"])
            require(integral and bound.denominator == 1, "range and sensitivity must be integers")
        if kind == "perturbation":
            low, high = self["range"]
            inside = self["scores"] and all(low <= score <= high for score in self["scores"])
            require(bool(inside), "a score is outside the range")
        rows = self.get("probabilities") or self.get("utility", [])
        if "responses" in self:
            distinct(self["responses"], "response")
            require(len(rows[0]) == len(self["responses"]), "must have a column for each response")
        if kind == "channel":
            require(all(min(row) >= 0 and sum(row) == 1 for row in rows), "a row must sum to 1")
            every = set(map(float, range(len(rows))))
            require(set(self.get("of", every)) == every, "of must name every class")
        if kind == "exponential_mechanism":
            require(len(rows[0]) <= 1000 and len(rows) * len(rows[0]) <= 4000, "too many utilities")
            parts = [part for row in rows for x in row for part in x.as_integer_ratio()]
            require(max(map(int.bit_length, parts)) <= 128, "a utility has too many digits")
            wide = max(max(column) - min(column) for column in zip(*rows, strict=True))
            good = wide <= bound and all(max(row) - min(row) <= 20 * bound for row in rows)
            require(good, "utilities differ by more than they may")

    @cached_property
    def id(self) -> str:
        return digest(self)

    @property
    def labels(self) -> list[Scalar]:
        return [shorten(x) if isinstance(x, float) else x for x in self["responses"]]


# -- what was answered -----------------------------------------------------------------------------

#: Weights by the indices of some variables; missing combinations are impossible.
Factor = tuple[Scope, dict[tuple[int, ...], int]]


class Part(NamedTuple):
    """Attributes, or some of their steps, in which two records may differ."""

    names: frozenset[str]
    steps: range | None = None

    def has(self, variable: Variable) -> bool:
        return variable[0] in self.names and (self.steps is None or variable[1] in self.steps)

    def touches(self, scope: Scope) -> bool:
        return any(map(self.has, scope))


class Charge(NamedTuple):
    """A rational plus the logarithm of a quotient."""

    rational: Fraction
    pair: Pair


NO_CHARGE = Charge(Fraction(0), (1, 1))


def total(charges: Iterable[Charge]) -> Charge:
    rationals, pairs = zip(NO_CHARGE, *charges, strict=True)
    highs, lows = zip(*pairs, strict=True)
    return Charge(sum(rationals, Fraction(0)), (math.prod(highs), math.prod(lows)))


class CompiledQuery(NamedTuple):
    """A query on the domain: its scope, and the likelihood of its responses."""

    query: Query
    scope: Scope
    likelihood: Likelihood
    alone: Pair  # how far apart it takes two values that nothing was said about

    @property
    def charge(self) -> Charge:
        """Return what basic composition counts for it."""
        if "epsilon" in self.query:
            return Charge(self.query["epsilon"], (1, 1))
        return Charge(Fraction(0), self.alone)


class Account:
    """The likelihoods of all responses so far, as integers, up to common factors."""

    def __init__(self, domain: Domain, compiled: dict[str, CompiledQuery] | None = None) -> None:
        self.domain = domain
        self.tables: dict[Scope, list[int]] = {}  # products of weights, by what was asked about
        self._charges: dict[Scope, Charge] = {}  # what basic composition counts for these
        # Of parts that no response has touched since.
        self._losses: dict[Part, Pair] = {}
        self._sums: dict[Part, Charge] = {}
        # May be shared with other accounts on this domain.
        self._compiled = {} if compiled is None else compiled

    def compiled(self, query: Query) -> CompiledQuery:
        """Return a query on the domain; refuse one that does not suit it."""
        if query.id not in self._compiled:
            scope = self.domain.scope(query)
            values = self.domain.combinations(scope)
            likelihood = FAMILIES[query["kind"]][0](query, values)
            ones, every = [1] * len(values), range(len(values))
            alone = largest_quotient(likelihood.worst(ones, every, ones, every))
            self._compiled[query.id] = CompiledQuery(query, scope, likelihood, alone)
        return self._compiled[query.id]

    def add(self, compiled: CompiledQuery, response: Value) -> None:
        """Add a response."""
        column, scope = compiled.likelihood.column(response), compiled.scope
        before = self.tables.get(scope) or [1] * len(column)
        after = list(map(mul, before, column))
        # Powers of two that all have in common say nothing, and would make them long.
        zeros = min(((x & -x).bit_length() for x in after if x), default=1) - 1
        self.tables[scope] = [x >> zeros for x in after]
        self._charges[scope] = total([self._charges.get(scope, NO_CHARGE), compiled.charge])
        for part in {part for part in {*self._losses, *self._sums} if part.touches(scope)}:
            self._losses.pop(part, None)
            self._sums.pop(part, None)

    def charge(self, part: Part) -> Charge:
        """Return what basic composition counts for a part: all queries that touch it."""
        if part not in self._sums:
            charges = [x for scope, x in self._charges.items() if part.touches(scope)]
            self._sums[part] = total(charges)
        return self._sums[part]

    def loss(self, part: Part) -> Pair:
        """Return the likelihoods that are furthest apart of records that differ within a part."""
        if part not in self._losses:
            rows = self.rows(part, ())
            self._losses[part] = largest_quotient((max(x), min(y)) for x, _, y, _ in rows)
        return self._losses[part]

    def rows(self, part: Part, scope: Scope) -> Iterator[Row]:
        """Yield rows that together have all pairs of records that differ within a part.

        Such a pair has two combinations of a scope. Every pair of combinations that agree outside
        of the part is in a row, with the largest quotient of likelihoods of two such records.
        """
        if self.domain.values is not None:
            table, every = self.tables.get(SET_SCOPE), range(len(self.domain.values))
            likelihoods = table or [1] * len(every)
            yield likelihoods, every, likelihoods, every
            return
        # All other tables have the same likelihood for both records.
        tables = {x: table for x, table in self.tables.items() if part.touches(x)}
        variables = dict.fromkeys(v for x in [scope, *tables] for v in x)
        inside = tuple(v for v in scope if part.has(v))
        outside = tuple(v for v in variables if not part.has(v))
        sizes = self.domain.sizes
        few = self._can_list(outside + inside)
        rows = self._separate_rows if few else self._paired_rows
        shared = outside if few else tuple(v for v in outside if v in scope)
        factors = [
            (x, dict(zip(product(*map(range, sizes(x))), table, strict=True)))
            for x, table in tables.items()
        ]
        factors += self._links(set(variables))
        place_of = dict(zip(shared + inside, range(len(shared + inside)), strict=True))
        steps = [math.prod(sizes(scope[k + 1 :])) for k in range(len(scope))]

        def locate(key: Sequence[int]) -> int:
            return sum(key[place_of[v]] * step for v, step in zip(scope, steps, strict=True))

        yield from rows(part, shared, inside, factors, locate)

    def _can_list(self, scope: Scope) -> bool:
        return math.prod(self.domain.sizes(scope)) <= MAX_COMBINATIONS

    def _separate_rows(
        self, part: Part, shared: Scope, inside: Scope, factors: list[Factor], locate: Any
    ) -> Iterator[Row]:
        """Yield a row for all values of what the records share; then either is for itself."""
        ranges = map(range, self.domain.sizes(shared + inside))
        free: Factor = (shared + inside, dict.fromkeys(product(*ranges), 1))
        sides = [join([free, eliminate([free, *factors], choose)])[1] for choose in (max, min)]
        for _, group in groupby(sides[0], key=lambda key: key[: len(shared)]):
            keys = list(group)
            positions = list(map(locate, keys)) if shared else range(len(keys))
            highs, lows = ([side[key] for key in keys] for side in sides)
            yield highs, positions, lows, positions

    def _paired_rows(
        self, part: Part, shared: Scope, inside: Scope, factors: list[Factor], locate: Any
    ) -> Iterator[Row]:
        """Yield a row for each combination of the unlikely record.

        Variables of the part have a twin for the other record; the records share all others.
        """

        def twin(scope: Scope) -> Scope:
            return tuple(("twin", *v) if part.has(v) else v for v in scope)

        pairs: list[Factor] = []
        for scope, weights in factors:
            likely: Any = {key: Fraction(x) for key, x in weights.items()}
            if not all(weights.values()):
                yield [1], [0], [0], [0]  # an infinite loss
                return
            if not part.touches(scope):
                pairs.append((scope, likely))
                continue
            pairs += [(scope, likely), (twin(scope), {key: 1 / x for key, x in likely.items()})]
        scope = shared + inside + twin(inside)
        ranges = map(range, self.domain.sizes(shared + inside + inside))
        free: Factor = (scope, dict.fromkeys(product(*ranges), 1))
        quotients = join([free, eliminate([free, *pairs], max)])[1]
        rows: dict[tuple[int, ...], list[tuple[int, Any]]] = {}
        for key, quotient in quotients.items():
            first, second = key[: len(shared + inside)], key[: len(shared)] + key[-len(inside) :]
            rows.setdefault(second if inside else first, []).append((locate(first), quotient))
        for second, row in rows.items():
            common = math.lcm(*(quotient.denominator for _, quotient in row))
            highs = [int(quotient * common) for _, quotient in row]
            yield highs, [k for k, _ in row], [common], [locate(second)]

    def _links(self, variables: set[Variable]) -> Iterator[Factor]:
        """Yield the limits on changes as factors between consecutive steps of an attribute.

        Changes so far are counted by a variable of their own. Steps in between do not matter.
        """
        for name, attribute in self.domain.attributes.items():
            steps = sorted(step for x, step in variables if x == name and step is not None)
            if not attribute.limited or len(steps) < 2:
                continue
            indices, times = range(len(attribute.values)), attribute.times
            if times is not None:
                yield ((name, steps[0], "changes"),), {(0,): 1}
            for earlier, later in pairwise(steps):
                pairs = product(indices, indices)
                if times is None:
                    most = (attribute.max_step or 0) * (later - earlier)
                    near = [(a, b) for a, b in pairs if attribute.distance(a, b) <= most]
                    yield ((name, earlier), (name, later)), dict.fromkeys(near, 1)
                    continue
                counters = (name, earlier, "changes"), (name, later, "changes")
                used = range(min(times, len(steps)) + 1)
                moves = [(a, b, n, n + (a != b)) for (a, b), n in product(pairs, used)]
                allowed = [move for move in moves if move[3] in used]
                yield ((name, earlier), (name, later), *counters), dict.fromkeys(allowed, 1)


def eliminate(factors: list[Factor], choose: Any) -> Factor:
    """Return a factor over the first scope, optimized over all other variables.

    Each step eliminates a variable: its factors become one, with the best of its values.
    """
    remaining, last, factors_of = dict(enumerate(factors)), len(factors), dict[Variable, set[int]]()
    for factor_index, (scope, _) in remaining.items():
        for variable in scope:
            factors_of.setdefault(variable, set()).add(factor_index)
    widths = dict.fromkeys((v for v in factors_of if v not in factors[0][0]), 0)
    changed = list(widths)
    while widths:
        for v in changed:
            widths[v] = len({w for k in factors_of[v] for w in remaining[k][0]})
        narrow = min(widths, key=widths.__getitem__)
        del widths[narrow]
        merged, last = factors_of.pop(narrow), last + 1
        remaining[last] = project(join([remaining.pop(k) for k in merged]), narrow, choose)
        for variable in remaining[last][0]:
            factors_of[variable] = factors_of[variable] - merged | {last}
        changed = [variable for variable in remaining[last][0] if variable in widths]
    return join(sorted(remaining.values(), key=lambda factor: len(factor[0])))


def project(factor: Factor, variable: Variable, choose: Any) -> Factor:
    (scope, weights), k = factor, factor[0].index(variable)
    best: dict[tuple[int, ...], int] = {}
    for key, weight in weights.items():
        shorter_key = key[:k] + key[k + 1 :]
        best[shorter_key] = choose(best[shorter_key], weight) if shorter_key in best else weight
    return scope[:k] + scope[k + 1 :], best


def join(factors: list[Factor]) -> Factor:
    """Return the product of factors."""
    scope, product_weights = factors[0]
    for other, weights in factors[1:]:
        added_positions = [k for k, v in enumerate(other) if v not in scope]
        common = [(scope.index(v), k) for k, v in enumerate(other) if v in scope]
        extensions: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
        for key, weight in weights.items():
            added_key = tuple([key[k] for k in added_positions])
            common_key = tuple([key[k] for _, k in common])
            extensions.setdefault(common_key, []).append((added_key, weight))
        result: dict[tuple[int, ...], int] = {}
        for key, weight in product_weights.items():
            for added_key, factor in extensions.get(tuple([key[k] for k, _ in common]), ()):
                result[key + added_key] = weight * factor
            few = len(result) <= MAX_COMBINATIONS
            require(few, "the answers so far tie too many attributes together")
        scope, product_weights = (*scope, *(other[k] for k in added_positions)), result
    return scope, product_weights


# -- decisions -------------------------------------------------------------------------------------


class Level(NamedTuple):
    """The pairs of records that a filter protects: those that differ within one part."""

    groups: tuple[frozenset[str], ...]  # of attributes
    width: int = 0  # of windows of steps, one of which is a part too; 0 for no windows
    changing: frozenset[str] = frozenset()  # attributes that windows are about
    tree: Any = None

    @classmethod
    def read(cls, node: Any, domain: Domain) -> Level:
        if node is None:
            return cls((frozenset(domain.attributes or [""]),))
        fields, attributes = (
            read_object(node, [], ["attributes", "groups", "steps"]),
            domain.attributes,
        )
        require(len(fields) == 1, "protects has one of attributes, groups, steps")
        require(attributes != {}, "a level is for attributes; a finite set is one value")
        if "attributes" in fields:
            require(integer(fields["attributes"]) == 1, "a level is about one attribute")
            groups = tuple(frozenset([name]) for name in attributes)
            return cls(groups, tree={"attributes": 1})
        if "groups" in fields:
            names = [[text(x) for x in read_list(group)] for group in read_list(fields["groups"])]
            require(len(names) <= 1000, "at most 1,000 groups")
            for group in names:
                distinct(group, "attribute")
            covered = {name for group in names for name in group} == attributes.keys()
            require(covered, "the groups must have every attribute, and no other")
            return cls(tuple(map(frozenset, names)), tree={"groups": names})
        width = integer(fields["steps"], 1)
        require(width <= 10**6, "steps are at most 10^6")
        changing = frozenset(name for name, x in attributes.items() if x.changes)
        require(changing != set(), "a level of steps needs an attribute that changes")
        limited = any(x.limited for x in attributes.values())
        require(not limited, "a level of steps does not go with times or max_step")
        # All constants together count as one more step, which is in no window.
        constants = frozenset(attributes) - changing
        tree = {"steps": width}
        return cls((constants,) if constants else (), width, changing, tree)

    def parts(self, scopes: Iterable[Scope]) -> list[Part]:
        """Return parts with all protected pairs that queries about these scopes tell apart."""
        starts = {step for scope in scopes for _, step in scope if self.width and step is not None}
        windows = [Part(self.changing, range(k, k + self.width)) for k in sorted(starts)]
        return [Part(names) for names in self.groups] + windows


class Rule(NamedTuple):
    """A kind of filter, a budget, either epsilon or log(ratio), and a level."""

    kind: str
    epsilon: Fraction
    ratio: Fraction
    level: Level

    @classmethod
    def read(cls, node: Any, domain: Domain) -> Rule:
        fields = read_object(node, ["kind"], ["epsilon", "ratio", "protects"])
        pure = fields["kind"] in ("basic", "simplified", "bayesian")
        require(pure, "a device knows pure filters")
        require(("epsilon" in fields) != ("ratio" in fields), "a filter has an epsilon or a ratio")
        nats, ratio = exact(fields.get("epsilon", "0")), exact(fields.get("ratio", "1"))
        good = 0 <= nats <= 10**6 and ratio >= 1 and (nats > 0 or ratio > 1)
        require(good, "a budget must be above 0, and an epsilon at most 10^6")
        require("protects" not in fields or fields["protects"] is not None, "protects is empty")
        return cls(fields["kind"], nats, ratio, Level.read(fields.get("protects"), domain))

    @property
    def tree(self) -> dict[str, Any]:
        budget = {"epsilon": self.epsilon} if self.epsilon else {"ratio": self.ratio}
        protects = {"protects": self.level.tree} if self.level.tree else {}
        return {"kind": self.kind, **budget, **protects}

    def worst_cases(self, account: Account, compiled: CompiledQuery) -> dict[Fraction, Pair]:
        """Return the losses at worst after a query: rationals, each plus the largest log(p/q)."""
        pairs: dict[Fraction, Pair] = {}
        for part in self.level.parts([*account.tables, compiled.scope]):
            for rational, pair in self._charges(account, compiled, part):
                pairs[rational] = largest_quotient([pairs.get(rational, (1, 1)), pair])
        return pairs

    def _charges(self, account: Account, compiled: CompiledQuery, part: Part) -> Iterator[Charge]:
        """Yield charges for a part; one of them is the largest."""
        touched, worst = part.touches(compiled.scope), compiled.likelihood.worst
        if self.kind == "basic":
            yield total([account.charge(part), *[compiled.charge] * touched])
        elif not touched:
            yield Charge(Fraction(0), account.loss(part))
        elif self.kind == "simplified":
            alone = Account(account.domain).rows(part, compiled.scope)
            high, low = largest_quotient(pair for row in alone for pair in worst(*row))
            loss = account.loss(part)
            yield Charge(Fraction(0), (loss[0] * high, loss[1] * low))
        else:
            for row in account.rows(part, compiled.scope):
                yield Charge(Fraction(0), largest_quotient(worst(*row)))


class Filter(NamedTuple):
    """Rules that must all accept a query."""

    rules: tuple[Rule, ...]
    tree: dict[str, Any]

    @classmethod
    def read(cls, node: Any, domain: Domain) -> Filter:
        if not (isinstance(node, dict) and node.get("kind") == "all"):
            rule = Rule.read(node, domain)
            return cls((rule,), rule.tree)
        nodes = read_list(read_object(node, ["kind", "filters"])["filters"])
        require(1 <= len(nodes) <= 16, "all is about 1 to 16 filters")
        rules = tuple(Rule.read(entry, domain) for entry in nodes)
        return cls(rules, {"kind": "all", "filters": [rule.tree for rule in rules]})


def refusing(filter: Filter, account: Account, compiled: CompiledQuery) -> list[int]:
    """Return the numbers of the rules that refuse: a function of earlier responses alone."""
    return [
        number
        for number, rule in enumerate(filter.rules)
        if not all(
            is_within(
                high * rule.ratio.denominator, low * rule.ratio.numerator, rule.epsilon - added
            )
            for added, (high, low) in rule.worst_cases(account, compiled).items()
        )
    ]


def decide(filter: Filter, account: Account, compiled: CompiledQuery) -> bool:
    """Return whether a query is accepted."""
    return not refusing(filter, account, compiled)


# -- the value and the draw ------------------------------------------------------------------------


def below(limit: int, source: Source) -> int:
    """Draw a uniform integer in [0, limit): leading bits of bytes, until they are below."""
    count, uniform = (limit.bit_length() + 7) // 8, limit
    while uniform >= limit:
        uniform = int.from_bytes(source(count), "big") >> (8 * count - limit.bit_length())
    return uniform


class SecretHistory:
    """The true value, and the value that answers are drawn for at every step; never shown."""

    __slots__ = ("_domain", "_true", "_used", "frozen")

    def __init__(self, domain: Domain) -> None:
        self._domain, self.frozen = domain, list[tuple[int, ...]]()
        self._true: tuple[int, ...] = ()
        self._used: list[int] = []

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not copied")

    def locate(self, value: Text) -> tuple[int, ...]:
        """Return the indices of a value by attribute; after the first step, of its changes."""
        indices: tuple[int, ...] = ()
        try:
            indices = tuple(self._indices(parse(value)))
        except Exception:
            del value  # whatever is wrong with a value, an error could show it
        require(indices != (), "the value is outside the domain (and is not shown here)")
        return indices

    def _indices(self, node: Any) -> Iterator[int]:
        values, attributes = self._domain.values, self._domain.attributes
        if values is not None:
            named = isinstance(node, dict) and node.keys() == set(values.names)
            row = [node[name] for name in values.names] if named else node
            yield values.index_of[values.read(row)]
        require(values is not None or node.keys() <= attributes.keys(), "other names")
        for k, (name, attribute) in enumerate(attributes.items()):
            unchanged = self._true and name not in node
            index = self._true[k] if unchanged else attribute.values.index(scalar(node[name]))
            fits = not self._true or attribute.changes or index == self._true[k]
            require(fits, "does not change")
            yield index

    def add(self, indices: tuple[int, ...]) -> None:
        """Start the next step. The work does not depend on whether the value is frozen."""
        before = self.frozen[-1] if self.frozen else indices
        used = self._used or [0] * len(indices)
        kinds = self._domain.attributes.values()
        moves = zip(kinds, before, used, indices, strict=False)  # a plain set has no attributes
        after = tuple(kind.freeze(*move) for kind, *move in moves) or indices
        self._used = [n + (a != b) for n, a, b in zip(used, before, after, strict=True)]
        self._true = indices
        self.frozen.append(after)

    @property
    def largest(self) -> list[int]:
        """Indices that are written with at least as many digits as those of any value."""
        values, attributes = self._domain.values, self._domain.attributes.values()
        return [len(x.values) for x in attributes] if values is None else [len(values)]

    def draw(self, compiled: CompiledQuery, source: Source) -> Value:
        """Draw a response with exactly the probabilities that the query declares."""
        frozen = self.frozen[0 if compiled.query.at is None else compiled.query.at - 1]
        names, index = list(self._domain.attributes), 0
        if self._domain.values is not None:
            (index,) = frozen
        sizes = self._domain.sizes(compiled.scope)
        for name, size in zip(compiled.query.about or (), sizes, strict=False):
            index = index * size + frozen[names.index(name)]
        return compiled.likelihood.draw(index, below(compiled.likelihood.total, source))


# -- the policy and the chain ----------------------------------------------------------------------


class Policy:
    """The study policy, fixed before the first response. Its id is the name of the ledger."""

    def __init__(self, node: Any) -> None:
        fields = read_object(node, ["version", "study", "nonce", "domain", "filter"])
        require(fields["version"] == "1", "this device knows version 1 only")
        nonce = text(fields["nonce"])
        require(bool(re.fullmatch("[0-9a-f]{32}", nonce)), "nonce must be 16 bytes in hexadecimal")
        self.domain = Domain(fields["domain"])
        self.filter = Filter.read(fields["filter"], self.domain)
        self.tree = {"version": 1, "study": text(fields["study"]), "nonce": nonce}
        self.tree |= {"domain": self.domain.tree, "filter": self.filter.tree}
        self.id = digest(self.tree)


def read_subject(node: Any) -> Subject:
    integral = isinstance(node, NumberText)
    good = re.fullmatch(r"-?\d{1,19}", node) is not None if integral else text(node) != ""
    require(good, "the name of a subject must be a string or an integer")
    return int(node) if integral else text(node)


def first_head(policy_id: str, subject: Subject) -> str:
    return digest({"ledger": 1, "policy": policy_id, "subject": subject})


def next_head(previous: str, sequence: int, query_id: str, response: Value) -> str:
    """Return the head after an exchange."""
    exchange = {"query": query_id, "response": value_tree(response), "sequence": sequence}
    return hashlib.sha256(canonical(exchange) + bytes.fromhex(previous)).hexdigest()


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
        """Read all lines of the file, and check them."""
        with open(self.file, "rb", closefd=False) as file:
            *lines, unfinished = file.read().split(b"\n")
        trees: list[Any] = []
        for line in lines:
            packed, _, ending = line.rpartition(b" ")
            if self._digest(packed).encode() != ending:
                # A block that never reached the disk reads as zeros; one zero may be a flipped bit.
                lost = (b"\0\0" in line or line[:1] == b"\0") and len(trees) == len(lines) - 1
                require(lost, f"the store is damaged at line {len(trees) + 1}; it answers no more")
                break
            self.digest, self.size = ending.decode(), self.size + len(line) + 1
            trees.append(parse(packed))
        packed, _, ending = unfinished[:-1].rpartition(b" ")  # with something else than a line feed
        require(self._digest(packed).encode() != ending, "the store is damaged at its end")
        if trees:
            # After a sync that failed a line may be in memory only, so it is written once more.
            last = lines[len(trees) - 1] + b"\n"
            self._write(last, self.size - len(last))
        return trees

    def _digest(self, packed: bytes) -> str:
        return hashlib.sha256(self.digest.encode() + packed).hexdigest()[:16]

    def make_room(self, tree: Any, extra_characters: int = 0) -> None:
        """Fill the end of the file with zeros, for a line of this tree and so many characters more.

        Then a line that is not longer fits, and whether it fits does not depend on a value or a
        draw. A failure here changes nothing.
        """
        require(not self.broken, "the store failed before; start again")
        reason, zeros = "", bytes(len(written(tree).encode()) + extra_characters + 18)
        try:
            self._put(zeros, self.size)
        except OSError as error:
            reason = str(error.strerror)
            with suppress(OSError):
                os.ftruncate(self.file, self.size)
        require(not reason, f"the store has no room, and nothing was drawn: {reason}")

    def add(self, tree: Any) -> None:
        """Append a line, durably. The caller sets ``broken`` to False once memory has it too."""
        require(not self.broken, "the store failed before; start again")
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
        """Write data at an offset, truncate the file after it, and sync it."""
        reason = ""
        try:
            self._put(data, start)
            os.ftruncate(self.file, start + len(data))
            os.fsync(self.file)
        except OSError as error:
            reason = str(error.strerror)
        # Raised only after the handler: as its context the error would show frames with the draw.
        require(not reason, f"the store cannot be written, and nothing was sent: {reason}")


def check_private(file: int, label: str) -> None:
    """Refuse a file that others may read or write, or that has another name."""
    status = os.fstat(file)
    require(stat.S_ISREG(status.st_mode), f"{label} is no regular file")
    require(not status.st_mode & 0o077, f"others may read or write {label}; give it mode 600")
    require(status.st_nlink == 1, f"{label} has several names (hard links); remove all but one")


# -- the device ------------------------------------------------------------------------------------

RESERVED = ("ledger", "subject", "sequence", "previous", "key", "query", "ticket")
ANSWERED = ("ledger", "subject", "nonce", "confirmed", "head", "state", "receipts", "reservation")
STATES = ("active", "suspended", "unconfirmed", "ended", "unknown")


class Device:
    """One subject's side of a ledger: the value, the record of exchanges, and their store."""

    def __init__(self, path: str, source: Source = os.urandom) -> None:
        #: True if the ledger has had more exchanges than this device, which then draws nothing.
        self.old_copy = False
        #: Names this store to a collector, which binds the subject to it; "" before ``enroll``.
        self.id = ""
        self.token = ""
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
            cls._create(path, header, SecretHistory(checked.domain), value)
        except BaseException as error:
            raise without_frames(error) from None
        finally:
            del value

    @staticmethod
    def _create(path: str, header: dict[str, Any], past: SecretHistory, value: Text) -> None:
        indices = past.locate(value)
        store = Store(path, new=True)
        try:
            store.make_room({**header, "value": past.largest})
            store.add({**header, "value": indices})
        finally:
            store.close()

    def _start(self, lines: list[Any]) -> None:
        require(lines != [], "the store was not finished when it was created; remove it")
        version = lines[0].pop("device", "")
        readable = f"the store has version {version}; this program reads version 2 only"
        require(version == "2", readable)
        self.policy = Policy(lines[0].pop("policy"))
        self.subject = read_subject(lines[0].pop("subject"))
        self.heads = [first_head(self.policy.id, self.subject)]
        self.account, self._history = Account(self.policy.domain), SecretHistory(self.policy.domain)
        for kind, entry in [item for line in lines for item in line.items()]:
            if kind == "value":
                self._history.add(tuple(map(int, entry)))
            elif kind == "id":
                self.id = text(entry)
            elif kind == "token":
                self.token = text(entry)
            elif kind == "query":
                self._learn(Query.read(entry), written(entry))
            else:
                fields = parse(entry)
                compiled = self.account.compiled(self._queries[fields["query"]])
                self._record(compiled, compiled.likelihood.read(fields["response"]), entry)
                require(fields["head"] == self.heads[-1], "the store contradicts itself")

    def close(self) -> None:
        self._store.close()

    def _learn(self, query: Query, document: str) -> None:
        self._queries[query.id], self._documents[query.id] = query, document
        self._ids[document] = query.id

    def _record(self, compiled: CompiledQuery, response: Value, message: str) -> None:
        self.account.add(compiled, response)
        self.heads.append(next_head(self.heads[-1], len(self.heads), compiled.query.id, response))
        self._sent.append(message)

    def _check_process(self) -> None:
        require(os.getpid() == self._process, "this device was opened in another process")

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
        require(changing, "nothing changes on this domain, so there is no next step")
        indices = self._history.locate(changes)
        self._store.make_room({"value": self._history.largest})
        self._store.add({"value": indices})
        self._history.add(indices)
        self._store.broken = False

    def make_id(self) -> str:
        """Return the id of this device, which is drawn and stored at the first call."""
        self._check_process()
        with self._lock:
            if not self.id:
                drawn = os.urandom(32).hex()
                self._store.add({"id": drawn})
                self.id, self._store.broken = drawn, False
            return self.id

    def store_token(self, token: str) -> None:
        """Store the token with which this device speaks to a collector."""
        self._check_process()
        with self._lock:
            self._store.add({"token": token})
            self.token, self._store.broken = token, False

    def sync(self) -> str:
        """Begin a conversation with the ledger: return the first request, as a line of JSON."""
        self._check_process()
        with self._lock:
            self._declined = ""
            return self._request()

    def take(self, answer: Text) -> str:
        """Do as an answer says, and return the next request, or "" if there is none.

        The disk has every message in it before this returns.

        Raises:
            Refused: if the answer is not for the latest request of this device, if the ledger has
                more than this device or another record of it, if it did not record a message, or
                if its reservation does not follow. Nothing is drawn then. Call ``sync`` to try
                again.
        """
        self._check_process()
        with self._lock:
            fields = self._read_answer(answer)
            recorded, confirmed = len(self._sent), integer(fields["confirmed"], 0)
            require(fields["state"] in STATES, "the answer has an unknown state")
            self.old_copy = self.old_copy or confirmed > recorded
            copied = f"the ledger has more than the {recorded} exchanges of this device"
            require(not self.old_copy, f"{copied}, which is an old copy; it draws nothing")
            same_record = fields["head"] == self.heads[confirmed]
            other = "the ledger has another record of this device, which draws nothing"
            require(same_record, other)
            if confirmed < recorded:
                return self._resend(confirmed, read_list(fields["receipts"]))
            if fields["reservation"] is None:
                return ""
            return self._answer_reservation(read_object(fields["reservation"], RESERVED))

    def _read_answer(self, answer: Text) -> dict[str, Any]:
        """Return the fields of an answer to the latest request, and invalidate its nonce."""
        require(len(answer) <= LARGEST_ANSWER, f"an answer has at most {LARGEST_ANSWER:,} bytes")
        tree = parse(answer)
        require(isinstance(tree, dict), "an answer is an object")
        ours = tree.get("ledger") == self.policy.id
        ours = ours and read_subject(tree.get("subject")) == self.subject
        require(ours, "the answer is not for this device")
        latest = self._nonce != "" and text(tree.get("nonce"), "a nonce") == self._nonce
        if not latest:
            raise Stale("stale answer: it is not for the latest request; nothing changes")
        self._nonce = ""
        return read_object(tree, ANSWERED)

    def _request(self, messages: Sequence[str] = ()) -> str:
        """Return a request with messages; ``take`` accepts no nonce except its own."""
        nonce, sent = os.urandom(16).hex(), [json.loads(message) for message in messages]
        answered = [message for message in sent if "head" in message]
        documents = {x["query"]: NumberText(self._documents[x["query"]]) for x in answered}
        request: dict[str, Any] = {"ledger": self.policy.id, "subject": self.subject}
        request |= {"sequence": len(self._sent), "head": self.heads[-1], "nonce": nonce}
        request |= {"messages": messages, "queries": documents}
        self._nonce, self._offered = nonce, {x["sequence"] for x in answered}
        return written(request)

    def _resend(self, confirmed: int, receipts: list[Any]) -> str:
        """Return a request with the messages after a number, oldest first, as many as fit."""
        sequence = confirmed + 1
        if sequence in self._offered:
            objects = [receipt for receipt in receipts if isinstance(receipt, dict)]
            reasons = [x.get("reason", "") for x in objects if x.get("sequence") == str(sequence)]
            reason = "".join(filter(str.isprintable, str(reasons[0] if reasons else "")))[:200]
            raise Refused(f"the ledger did not record number {sequence}: {reason or 'no reason'}")
        free_bytes = LARGEST_MESSAGE - len(self._request().encode())
        last, included = confirmed, set[str]()
        for message in self._sent[confirmed:]:
            query = json.loads(message)["query"]
            free_bytes -= len(written(message)) + 1
            if query not in included:
                free_bytes -= len(self._documents[query].encode()) + len(query) + 4
            if free_bytes < 0 and last > confirmed:
                break
            last += 1
            included.add(query)
        return self._request(self._sent[confirmed:last])

    def _answer_reservation(self, fields: dict[str, Any]) -> str:
        """Return a request with the message for a reservation; "" after a repeated decline."""
        sequence, key = integer(fields["sequence"], 1), text(fields["key"], "a key")
        require(1 <= len(key) <= 200, "a key has 1 to 200 characters")
        ticket = text(fields["ticket"], "a ticket")
        require(bool(re.fullmatch("[0-9a-f]{64}", ticket)), "a ticket is 64 hexadecimal digits")
        ours = fields["ledger"] == self.policy.id
        ours = ours and read_subject(fields["subject"]) == self.subject
        require(ours, "the reservation is not for this device")
        follows = sequence == len(self.heads) and fields["previous"] == self.heads[-1]
        recorded = f"the {len(self._sent)} exchanges of this device"
        require(follows, f"number {sequence} does not follow {recorded}, which draws nothing")
        message = {"ledger": self.policy.id, "subject": self.subject, "sequence": sequence}
        message |= {"previous": self.heads[-1], "key": key}
        document = written(fields["query"])
        message["query"] = self._ids.get(document) or content_id(fields["query"])
        message["ticket"] = ticket
        compiled = self._accept(fields, message)
        if compiled is None:
            if ticket == self._declined:  # or a ledger that repeats itself would make a loop
                return ""
            request = self._request([json.dumps({**message, "declined": True})])
            self._declined = ticket
            return request
        step, now = compiled.query.at or 1, len(self._history.frozen)
        require(step <= now, f"step {step} has not come; it is step {now} now")
        try:
            sent = self._draw_and_store(compiled, message, document)
        except BaseException as error:
            raise without_frames(error) from None
        return self._request([sent])

    def _accept(self, fields: dict[str, Any], message: dict[str, Any]) -> CompiledQuery | None:
        """Return the query on the domain; None if it is invalid or refused by the filter.

        All of this is public: neither value nor response has a part in it.
        """
        try:
            require(len(written(fields).encode()) <= LARGEST_MESSAGE, "the reservation is too long")
            query = self._queries.get(message["query"]) or Query.read(fields["query"])
            compiled = self.account.compiled(query)
            require(compiled.query.id == message["query"], "its fields are not what they seem")
            size = compiled.likelihood.longest + len(json.dumps(message)) + 100
            require(size <= LARGEST_MESSAGE, "a response could be too long for a message")
            return compiled if decide(self.policy.filter, self.account, compiled) else None
        except Refused:
            return None

    def _draw_and_store(
        self, compiled: CompiledQuery, message: dict[str, Any], document: str
    ) -> str:
        """Make room, draw, store, and only then return the message."""
        query = compiled.query
        new_query = {} if query.id in self._queries else {"query": NumberText(document)}
        blank = json.dumps({**message, "response": "", "head": "0" * 64})
        # A message is a string in its line, where a character of JSON takes at most two.
        self._store.make_room({**new_query, "sent": blank}, 2 * compiled.likelihood.longest)
        response = self._history.draw(compiled, self._source)
        head = next_head(self.heads[-1], len(self.heads), query.id, response)
        sent = json.dumps({**message, "response": plain(value_tree(response)), "head": head})
        self._store.add({**new_query, "sent": sent})
        if new_query:
            self._learn(query, document)
        self._record(compiled, response, sent)
        self._store.broken = False
        return sent


def without_frames(error: BaseException) -> BaseException:
    """Return an error without its frames, whose variables error reports would show."""
    error.__traceback__ = error.__context__ = None
    return error


EXACT = {"epsilon", "delta", "sensitivity", "grid", "sigma", "probabilities", "utility"}


def content_id(query: Any) -> str:
    """Return the content id of a query, even of one that this device cannot answer."""

    def tree(node: Any, field: str = "") -> Any:
        if field == "seed":
            return text(node, "a seed").lower()
        if isinstance(node, dict):
            return {text(name): tree(x, field or name) for name, x in node.items()}
        if isinstance(node, list):
            return [tree(x, field) for x in node]
        if field in EXACT:
            return exact(node)
        if isinstance(node, NumberText):
            return double(node)
        return text(node) if isinstance(node, str) else node

    require(isinstance(query, dict), "a question is an object")
    defaults: dict[str, Any] = {"intercept": 0.0} if "weights" in query else {}
    defaults |= {"clip": False} if query.get("kind") == "linear" else {}
    return digest({**defaults, **tree(query)})


# -- a collector over HTTP -------------------------------------------------------------------------

ATTEMPTS = 6  # to send a request
FIRST_PAUSE = 1.0  # seconds before the second attempt; twice as many before each further one
LONGEST_PAUSE = 60.0
PATIENCE = 60.0  # seconds for an answer
CREDENTIAL = re.compile("[0-9a-f]{16}[.][0-9a-f]{64}")


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


class Offline(Exception):
    """The collector cannot be reached, or is too busy. Nothing is lost: try again later."""


class Collector:
    """A connection to a collector, with one request under way at a time."""

    def __init__(self, url: str) -> None:
        # Only these need them, and ssl is not a part of every Python.
        import http.client
        import ssl

        expected = "the URL must be like https://collector.example"
        require(bool(re.fullmatch(r"[\w.:/\[\]-]+", url, re.ASCII)), expected)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise Refused(expected) from None
        require(host != "", expected)
        local = parts.scheme == "http" and host in ("127.0.0.1", "::1", "localhost")
        require(local or parts.scheme == "https", "the URL must begin with https://")
        self.name, self._path = parts.netloc, parts.path.rstrip("/")
        self._failures = (OSError, http.client.HTTPException, UnicodeError)
        self._not_certified = ssl.SSLCertVerificationError
        if local:
            self._connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        else:  # the default context checks certificate and name
            checks = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                host, port, timeout=PATIENCE, context=checks
            )

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        token: str = "",
        read: Callable[[Any], bytes] = lambda answer: answer.read(LARGEST_ANSWER + 1),
    ) -> tuple[int, bytes]:
        """Send a request until it is answered; return the status, and what ``read`` returns.

        Raises:
            Offline: if no attempt reaches the collector, or it is too busy each time.
            Refused: if the certificate is not valid.
        """
        headers = {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        least, reason = 0.0, ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._pause(attempt, least)
            try:
                self._connection.request(method, self._path + path, body, headers)
                answer = self._connection.getresponse()
                content = read(answer)
                if not answer.isclosed():  # the rest would be read as the next answer
                    self._connection.close()
            except self._not_certified:
                raise Refused(f"the certificate of {self.name} is not valid") from None
            except self._failures as error:
                self._connection.close()
                least, reason = 0.0, str(getattr(error, "strerror", "")) or type(error).__name__
                continue
            if answer.status not in (408, 429, 502, 503, 504):
                return answer.status, content
            seconds = answer.getheader("Retry-After", "")
            least = float(seconds) if seconds.isdecimal() else 0.0
            reason = f"status {answer.status}"
        raise Offline(f"{self.name} cannot be reached ({reason}); nothing is lost, try again later")

    def _pause(self, attempt: int, least: float) -> None:
        """Wait for a random time, or many devices would come back at the same moment."""
        share = (1 + int.from_bytes(os.urandom(2), "big") / 2**16) / 2
        longest = FIRST_PAUSE * 2 ** (attempt - 1)
        wait(min(max(least, share * longest), LONGEST_PAUSE))

    def post(self, path: str, body: str, token: str = "") -> bytes:
        """Send a request that succeeds; return the content of the answer."""
        status, content = self.request("POST", path, body.encode(), token)
        if status == 200:
            return content
        detail: Any = ""
        with suppress(ValueError, RecursionError):
            problem = json.loads(content)
            detail = problem.get("detail") if isinstance(problem, dict) else ""
        detail = "".join(filter(str.isprintable, str(detail or "")))[:200]
        raise Refused(f"{self.name} answered {status}: {detail or 'no reason'}")

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()


def enroll(device: Device, collector: Collector, code: str) -> None:
    """Exchange an invitation code for a token, and store it. Repeating it does no harm."""
    require(bool(CREDENTIAL.fullmatch(code)), "the invitation code is incomplete or wrong")
    body = json.dumps({"code": code, "device": device.make_id()})
    fields = read_object(parse(collector.post("/v1/enroll", body)), ("subject", "token", "ledger"))
    require(fields["ledger"] == device.policy.id, "the invitation is for another study")
    ours = read_subject(fields["subject"]) == device.subject
    require(ours, "the invitation is for another subject")
    token = text(fields["token"])
    require(bool(CREDENTIAL.fullmatch(token)), "the collector answered without a token")
    if token != device.token:
        device.store_token(token)


NOT_ENROLLED = "the device has no token; use enroll with an invitation code"


def withdraw(device: Device, collector: Collector) -> None:
    """Withdraw the subject from the study, permanently. Repeating it does no harm."""
    require(device.token != "", NOT_ENROLLED)
    collector.post("/v1/withdrawals", json.dumps({"subject": device.subject}), device.token)


def sync_with(device: Device, collector: Collector) -> None:
    """Talk to a collector until there is nothing more to send."""
    require(device.token != "", NOT_ENROLLED)
    request, stale = device.sync(), 0
    while request:
        answer = collector.post("/v1/sync", request, device.token)
        try:
            request = device.take(answer)
        except Stale:  # perhaps something in between remembers answers; send the same again
            stale += 1
            if stale == ATTEMPTS:
                raise


# -- the command line ------------------------------------------------------------------------------


def read_private(path: str) -> bytes:
    """Read a file that only its owner may read; - is the standard input."""
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        check_private(file.fileno(), "the file")
        return file.read()


def converse(device: Device) -> int:
    """Print requests and read answers, a line each, until there is nothing more to send."""
    request = device.sync()
    while request:
        sys.stdout.buffer.write(request.encode() + b"\n")
        sys.stdout.buffer.flush()
        answer = sys.stdin.buffer.readline(LARGEST_ANSWER + 2)
        require(answer != b"", "the input ended before the answer to a request")
        request = device.take(answer.removesuffix(b"\n"))
    return 0


def main(command: str = "", path: str = "", *arguments: str) -> int:
    url = ""
    if (
        command in ("enroll", "sync", "withdraw")
        and arguments
        and not arguments[0].startswith("--")
    ):
        url, *rest = arguments
        arguments = tuple(rest)
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    option_names = {"create": "--policy --subject --value", "next": "--value"}
    option_names |= {"enroll": "--code", "sync": "", "status": "", "withdraw": ""}
    if len(arguments) % 2 or " ".join(sorted(arguments[::2])) != option_names.get(command):
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
        if command == "sync" and not url:
            return converse(device)
        if command == "sync":
            with Collector(url) as collector:
                sync_with(device, collector)
        if command == "withdraw":
            with Collector(url) as collector:
                withdraw(device, collector)
        if command == "enroll":
            code = read_private(options["--code"]).decode("ascii", "replace").strip()
            with Collector(url) as collector:
                enroll(device, collector, code)
        if command == "next":
            device.next(read_private(options["--value"]))
        status = {"subject": device.subject, "ledger": device.policy.id, "head": device.heads[-1]}
        print(json.dumps({**status, "answered": len(device.heads) - 1}))
        return 0
    except Refused as problem:
        print(f"device: {problem}", file=sys.stderr)
        return 1
    except Offline as problem:
        print(f"device: {problem}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"device: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

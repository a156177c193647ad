"""Check a proof that the realized loss of a transcript is at most a given number.

    python verify.py TRANSCRIPT.json PROOF.json

This file is a program of its own. It needs Python 3.11 or later and nothing else, and shares no
code with the solver whose work it checks. It computes every likelihood from the queries. Over
finite domains and attributes that is all it needs. Over a box it takes from the proof how to cut
the domain into parts, and which multipliers and tangents to use in each. Whatever those are, the
bound that they give is valid. The proof holds if that is as stated.

The proof is about the end of a transcript, not about whether a budget was respected on the way.
Exit codes: 0 the proof holds, 1 it fails, 2 a file cannot be read, 3 it holds but does not show
that the loss at the end is within the budget of the transcript's filter, 70 this program is broken.

Sums and products are exact here. Quotients, exponentials and logarithms have 40 digits, and every
bound is raised by 1e-27 of what it is made of, which is far more than those can lose. A loss that
may equal its budget is compared with it in integers.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial, reduce
from itertools import count, groupby, pairwise, product
from operator import add, mul
from typing import Any, NamedTuple

__all__ = ["Failed", "Verdict", "verify"]

EXACT = Context(prec=20_000)
EXACT.traps[Inexact] = True  # rounding is an error
ROUNDED = Context(prec=40)
UP = Context(prec=40, rounding=ROUND_CEILING)
DOWN = Context(prec=40, rounding=ROUND_FLOOR)
TINY = Decimal("1e-27")  # what a bound is raised by, relative to what it is made of
AGREE = Decimal("1e-9")  # how far a bound may be below what the proof says it is
LARGEST = 1 << 26  # bytes of a file
COMBINATIONS = 100_000  # of the attributes that a query is about
WIDEST = 20  # bits to number the combinations of attributes that are looked at together
VALUES = 1 << 23  # lists, dictionaries and numbers in a file
ROOM = 300_000  # units of work, of some 12 microseconds, for every megabyte of both files
LONGEST = 1 << 18  # bits of a likelihood that is written out
NOT_SHOWN = 3  # the exit code
NO, ONE, TWO, ENDLESS = Decimal(0), Decimal(1), Decimal(2), Decimal("inf")  # name: the number 1
UNIT = TWO**-53  # the relative rounding of doubles

Decimals = Sequence[Decimal]
Range = tuple[Decimal, Decimal]
Exact = Fraction | int
CheckLeaf = Callable[[Any, Decimal, str], None]
Name = tuple[str, str]
#: An attribute; or one that changes, at a step, and without a step how often it has changed.
Variable = tuple[str, int | None]
Scope = tuple[Variable, ...]
EXACT_FIELDS = {
    "epsilon", "delta", "sensitivity", "grid", "sigma", "probabilities", "utility",
}  # fmt: skip
PURE = ("basic", "simplified", "bayesian")  # filters whose budget is one of the loss
WITH_DELTA = ("composition", "approximate")  # and those whose budget is not
BAD_SHAPE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


class Failed(Exception):
    """The proof does not hold; the message says where."""


class Work:
    """How much work is left: small files must not keep the checker busy for long."""

    def __init__(self, *texts: str) -> None:
        self.room = ROOM * max(1.0, sum(map(len, texts)) / 2**20)

    def begin(self, units: float) -> None:
        self.room -= units
        need(self.room >= 0, "its length: to check it is too much work for files of this size")


class Limit(NamedTuple):
    """The budget of a filter without a delta: an epsilon or a ratio, and what it protects."""

    name: str
    limit: Fraction
    protects: Any = None

    @property
    def budget(self) -> Decimal:
        """The budget in nats, rounded down."""
        with localcontext(DOWN):
            budget = rounded(self.limit)
            return budget if self.name == "epsilon" else budget.ln() - TINY


class Comparison(NamedTuple):
    """A budget, and the loss at the end about the pairs of values that it protects.

    ``exactly`` says that an exact comparison showed the loss to be within the budget.
    """

    limit: Limit
    loss: Decimal
    exactly: bool = False

    @property
    def shows_end_within_budget(self) -> bool:
        return self.exactly or self.loss <= self.limit.budget

    def tree(self) -> dict[str, Any]:
        protects = {} if self.limit.protects is None else {"protects": self.limit.protects}
        shown = {"shows_end_within_budget": self.shows_end_within_budget}
        return {**protects, "loss": as_json(self.loss), **shown}

    @property
    def words(self) -> str:
        budget, about = f"{self.limit.budget:.9g}", about_level(self.limit.protects)
        if self.shows_end_within_budget:
            return f"at its end the loss{about} is within the budget of {budget}"
        return f"this proof does not show that the loss{about} is within the budget of {budget}"


class Verdict(NamedTuple):
    """The proved statement: at the end of the transcript the realized loss is at most ``loss``.

    That loss is about the person as a whole. ``comparisons`` has an entry for every budget of the
    filter; one with a delta does not limit the loss, and has none.
    """

    loss: Decimal
    leaves: int
    comparisons: tuple[Comparison, ...] = ()

    @property
    def budget(self) -> Decimal | None:
        """The smallest budget about the person as a whole; None if there is none."""
        budgets = [x.limit.budget for x in self.comparisons if x.limit.protects is None]
        return min(budgets, default=None)

    @property
    def shows_end_within_budget(self) -> bool | None:
        """Whether this proof shows it for every budget; None if there is no such budget."""
        shown = [comparison.shows_end_within_budget for comparison in self.comparisons]
        return all(shown) if shown else None

    def tree(self) -> dict[str, Any]:
        """Return the proved statement as JSON; infinity is ``"inf"``."""
        budgets = [comparison.tree() for comparison in self.comparisons]
        alone = all(x.limit.protects is None for x in self.comparisons) and len(budgets) < 2
        return {
            "loss": as_json(self.loss),
            "leaves": self.leaves,
            "shows_end_within_budget": self.shows_end_within_budget,
            **({} if alone else {"budgets": budgets}),
        }

    @property
    def about_budget(self) -> str:
        """Words about every budget; empty if there is none."""
        return "; ".join(comparison.words for comparison in self.comparisons)


def as_json(loss: Decimal) -> float | str:
    double = float(rounded_up(loss))
    return double if math.isfinite(double) else str(double)


def verify(transcript: str, proof: str, tell: Callable[[int], None] = lambda _: None) -> Verdict:
    """Check a proof (JSON text) about a transcript (JSON text). Raises :class:`Failed`.

    ``tell`` is called with the number of leaves that were checked.
    """
    leaves = 0

    def check_leaf(leaf: Any, bound: Decimal, path: str) -> None:
        nonlocal leaves
        agree(bound, leaf["bound"], f"{path}.bound")
        leaves += 1
        tell(leaves)

    try:
        with localcontext(EXACT):
            ours, claim = read_transcript(transcript), read(proof, "proof")
            need(ours["version"] == claim["version"] == 1, "version: only version 1 is known")
            filter_, exchanges = read_filter(ours.get("filter")), ours["exchanges"]
            need(filter_ == read_filter(claim.get("filter")), "filter: transcript and proof differ")
            count, proved = len(exchanges), len(claim["responses"])
            need(count == proved, f"exchanges: there are {count}, and the proof is about {proved}")
            for index, response in enumerate(claim["responses"]):
                same = plain(exchanges[index]["response"]) == plain(response)
                need(same, f"exchanges.{index}.response: transcript and proof differ")
            work = Work(transcript, proof)
            loss = loss_of(ours, claim.get("groups", []), check_leaf, work)
            agree(loss, claim["loss"], "loss")
            return judged(loss, ours, leaves, work)
    except BAD_SHAPE:
        raise Failed("a place that does not have the shape of a proof") from None


def agree(computed: Decimal, stated: str, path: str) -> None:
    fits = computed == Decimal(stated) or 0 <= Decimal(stated) - computed <= AGREE
    need(fits, f"{path}: it is {computed:.10f}, not {stated.strip()[:40]} as stated")


def judged(loss: Decimal, transcript: Any, leaves: int, work: Work) -> Verdict:
    """Compare losses with all budgets; exactly, if one is above by no more than a rounding."""
    comparisons = []
    for limit in limits_of(read_filter(transcript.get("filter"))):
        domain = read_domain(transcript["domain"])
        at_level = loss if limit.protects is None else loss_at(transcript, limit.protects, work)
        near = limit.budget < at_level <= limit.budget + AGREE
        exactly = near and is_within(transcript, domain, limit, work)
        comparisons.append(Comparison(limit, at_level, exactly))
    return Verdict(loss, leaves, tuple(comparisons))


def is_within(transcript: Any, domain: Records | list[Column], limit: Limit, work: Work) -> bool:
    """Return whether the loss is certainly at most a budget, even if it equals the budget.

    An epsilon is rational. A positive loss over a finite domain is not, being the logarithm of a
    rational (Lindemann), but the sum of the epsilons is, and no loss exceeds that. A ratio is
    compared with that of the largest and the smallest likelihood, in integers.
    """
    exchanges = transcript["exchanges"]
    kinds = {exchange["query"]["kind"] for exchange in exchanges}
    if limit.name == "epsilon":
        if not all(KINDS[kind].nominal for kind in kinds):
            return False
        if limit.protects is None:
            return sum_of([exact(each["query"]["epsilon"]) for each in exchanges]) <= limit.limit
        assert isinstance(domain, Records), "a box has no levels"
        epsilons: dict[Scope, list[Fraction]] = {}
        for each in exchanges:
            epsilon = exact(each["query"]["epsilon"])
            epsilons.setdefault(scope_of(each["query"], domain), []).append(epsilon)
        sums = {scope: sum_of(several) for scope, several in epsilons.items()}
        parts = parts_of(limit.protects, domain, list(sums), work)
        return all(sum_of([sums[x] for x in scopes]) <= limit.limit for _, scopes in parts)
    if isinstance(domain, list) or not all(KINDS[kind].weights for kind in kinds) or not exchanges:
        return False
    try:
        tables, bits = likelihoods(exchanges, domain, work)
        if limit.protects is None:
            high, low = extremes(tables, domain, mul, work, bits)
            return bool(high * limit.limit.denominator <= low * limit.limit.numerator)
        parts = parts_of(limit.protects, domain, list(tables), work)
        spreads = (
            spread_in_part(
                part, {x: tables[x] for x in scopes}, domain, mul, Fraction, work, 2 * bits
            )
            for part, scopes in parts
        )
        return all(spread <= limit.limit for spread in spreads)
    except Failed:  # for lack of room
        return False


def likelihoods(exchanges: Any, domain: Records, work: Work) -> tuple[dict[Scope, Table], int]:
    """Return all likelihoods, up to a common factor, and their bits, if there is room."""
    times = Counter(names := names_of(exchanges))
    different = dict(zip(names, exchanges, strict=True)).items()
    work.begin(sum(work_on_query(each["query"], domain) for _, each in different))
    columns: dict[Scope, list[list[tuple[int, int]]]] = {}
    for which, each in different:
        of_kind = KINDS[each["query"]["kind"]].weights
        assert of_kind is not None
        scope, values = seen_by(each["query"], domain)
        weights = in_integers(of_kind(each["query"], plain(each["response"]), values))
        column = [(weight, power * times[which]) for weight, power in weights]
        columns.setdefault(scope, []).append(column)
    tables, bits = {}, 0
    for scope, several in columns.items():
        rows = list(zip(*several, strict=True))
        longest = max(sum(x.bit_length() * m for x, m in row) for row in set(rows))
        need((bits := bits + longest) <= LONGEST, "likelihoods that are too long")
        work.begin(len(set(rows)) * (len(several) + longest / 100))
        found = {row: math.prod(x**m for x, m in row) for row in set(rows)}
        tables[scope] = [found[row] for row in rows]
    return tables, bits


def in_integers(weights: Weights) -> list[tuple[int, int]]:
    """Write weights as integers, up to a common factor."""
    bottom = 1
    for base, _ in weights:
        bottom = math.lcm(bottom, base.denominator)
        need(bottom.bit_length() <= LONGEST, "fractions whose common denominator is too long")
    return [(base.numerator * (bottom // base.denominator), power) for base, power in weights]


def loss_of(
    transcript: Any,
    groups: Any,
    check_leaf: CheckLeaf,
    work: Work,
    meanings: dict[Name, Any] | None = None,
) -> Decimal:
    """Bound the largest minus the smallest log-likelihood.

    ``meanings`` is filled with the meanings of exchanges, for later checks.
    """
    domain, exchanges = read_domain(transcript["domain"]), transcript["exchanges"]
    names = names_of(exchanges)  # equal exchanges are worked out once
    different = dict(zip(names, exchanges, strict=True)).values()
    work.begin(sum(work_on_query(exchange["query"], domain) for exchange in different))
    meaning: Any = read_term if isinstance(domain, list) else logs_about
    meanings = {} if meanings is None else meanings
    for index, (name, exchange) in enumerate(zip(names, exchanges, strict=True)):
        try:
            need(exchange["query"]["kind"] != "gaussian", "gaussian noise is not known here")
            need(kind_of(exchange["query"]) is not None, "unknown kind of query")
            if name not in meanings:
                response = plain(exchange["response"])
                meanings[name] = meaning(exchange["query"], response, domain)
        except (*BAD_SHAPE, Failed) as problem:
            raise Failed(f"exchanges.{index}: {problem}") from None
    if isinstance(domain, list):
        return loss_on_box(domain, [meanings[name] for name in names], groups, check_leaf, work)
    return loss_on_records(
        domain, [(times, *meanings[name]) for name, times in Counter(names).items()], work
    )


def names_of(exchanges: Any) -> list[Name]:
    """Name exchanges, equal ones equally; a query given by its id is shown once."""
    queries = {id(query := exchange["query"]): query for exchange in exchanges}
    shown = {which: repr(query) for which, query in queries.items()}
    return [(shown[id(each["query"])], repr(each["response"])) for each in exchanges]


def work_on_query(query: Any, domain: Records | list[Column]) -> float:
    """Estimate how much work a query is, by its size."""
    kind = kind_of(query)
    if isinstance(domain, list) and (kind is None or "about" not in query):
        return 10 + len(domain) / 2
    if kind is None:
        return 10.0
    if kind.cells is not None:
        return 10 + kind.cells(query)
    if isinstance(domain, list):
        rows, columns = len(domain), 1
    elif domain.plain_set is not None:
        rows, columns = len(domain.plain_set.rows), len(domain.plain_set.names)
    else:
        scope = scope_of(query, domain)
        rows, columns = domain.size(scope), len(scope)
    return 10 + rows * (kind.score * columns + kind.row)


# -- reading ---------------------------------------------------------------------------------------


def read(text: str, source: str) -> Any:
    need_size(text, source)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise Failed(f"{source}: a field is given twice")
        return dict(pairs)

    # In a proof any number will do, and short ones are enough.
    parse = partial(parse_number, longest=40) if source == "proof" else parse_number
    hooks: Any = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), parse)
    try:
        return json.loads(text, object_pairs_hook=once, **hooks)
    except (json.JSONDecodeError, RecursionError):
        raise Failed(f"{source}: not JSON") from None


def read_transcript(text: str) -> Any:
    """Read a transcript, and replace the ids of queries by the queries."""
    transcript = read(text, "transcript")
    swapped = "exchanges" not in transcript and "responses" in transcript
    need(not swapped, "the transcript, which looks like a proof: is the order of the files right?")
    table = transcript.get("queries", {})
    need(isinstance(table, dict), "queries: not an object")
    for name, query in table.items():
        need(is_id(name, query), f"queries.{name[:64]!a}: is not the id of its query")
    unused = set(table)
    for index, exchange in enumerate(transcript["exchanges"]):
        name = exchange["query"]
        if isinstance(name, str):
            need(name in table, f"exchanges.{index}.query: no query has the id {name[:64]!a}")
            exchange["query"] = table[name]
            unused.discard(name)
    need(not unused, f"queries.{min(unused, default='')!a}: no exchange names this query")
    return transcript


def is_id(name: str, query: Any) -> bool:
    """Return whether an id is the SHA-256 of a query, encoded with its defaults."""
    try:
        whole = {"intercept": NO} | query if "weights" in query else dict(query)
        if query["kind"] == "linear":
            whole.setdefault("clip", False)
        if "seed" in whole:
            whole["seed"] = whole["seed"].lower()
        whole |= {field: exactly(whole[field]) for field in EXACT_FIELDS & whole.keys()}
        return hashlib.sha256(canonical(whole)).hexdigest() == name
    except BAD_SHAPE:
        return False


def exactly(value: Any) -> Any:
    return [exactly(entry) for entry in value] if isinstance(value, list) else exact(value)


def need_size(text: str, source: str) -> None:
    """Limit the lists, dictionaries and numbers, which take far more memory than their text."""
    size, count = len(text), sum(map(text.count, ",[{"))
    reason = f"{source}: too large, {size:,} characters and {count:,} values"
    need(size <= LARGEST and count <= VALUES, reason)


def parse_number(text: str, longest: int = 2000) -> Decimal:
    """Read a number exactly as written, unless working with it would take for ever."""
    value = Decimal(text[:longest])
    if len(text) > longest or not value.is_finite() or abs(value.adjusted()) > 600:
        raise Failed(f"a number that is not finite, or has too many digits: {text[:40]!a}")
    return value


def exact(value: Any) -> Fraction:
    """Read a number or a text such as "0.1" or "2/3", as the fraction that was written."""
    if isinstance(value, Decimal):
        return Fraction(value)
    top, _, bottom = value.partition("/")
    return Fraction(parse_number(top)) / Fraction(parse_number(bottom or "1"))


def sum_of(fractions: list[Fraction]) -> Fraction:
    """Add fractions, unless their sum has too many digits to compute."""
    bottom = 1
    for fraction in fractions:
        bottom = math.lcm(bottom, fraction.denominator)
        need(bottom.bit_length() <= 30_000, "fractions whose sum has too many digits")
    return Fraction(sum(x.numerator * (bottom // x.denominator) for x in fractions), bottom)


def rounded(fraction: Exact) -> Decimal:
    return Decimal(fraction.numerator) / fraction.denominator


def epsilon_above(epsilon: Fraction) -> Decimal:
    with localcontext(UP):
        return rounded(epsilon)


def double(value: Any) -> Decimal:
    """Round what was written to the nearest double, exactly, as a decimal."""
    need(isinstance(value, Decimal) and math.isfinite(float(value)), "not a number")
    return Decimal(float(value))


def integer(value: Any) -> int:
    good = isinstance(value, Decimal) and abs(value) <= 2**53 and value == int(value)
    need(good, "not an integer, or one above 2^53")
    return int(value)


def plain(value: Any) -> Any:
    """Read a value or a response: 1 and 1.0 are the same, 1 and "1" are not."""
    if isinstance(value, list):
        return tuple(plain(entry) for entry in value)
    return value if isinstance(value, str) else double(value)


def need(condition: bool, reason: str = "no such query here, or no such response") -> None:
    if not condition:
        raise Failed(reason)


def read_filter(fields: Any) -> Any:
    """Read a filter, into equal results for equal filters."""
    if fields is None:
        return None
    kind = fields["kind"]
    if kind == "all":
        need(1 <= len(fields["filters"]) <= 16, "filter: all is about 1 to 16 filters")
        inner = tuple(map(read_filter, fields["filters"]))
        need(not any(each[0] == "all" for each in inner), "filter: all inside of all")
        return kind, inner
    (name,) = [name for name in ("epsilon", "ratio") if name in fields]
    limit = exact(fields[name])
    if kind in WITH_DELTA:
        need("protects" not in fields, "filter: no level goes with a delta")
        return kind, name, limit, exact(fields["delta"])
    need(kind in PURE, f"filter: unknown here: {str(kind)[:64]!a}")
    need("delta" not in fields, "filter: has a delta that it cannot have")
    return kind, Limit(
        name, limit, read_level(fields["protects"]) if "protects" in fields else None
    )


def limits_of(filter_: Any) -> list[Limit]:
    """Return the budgets of a filter; one with a delta has none."""
    if filter_ is None or filter_[0] in WITH_DELTA:
        return []
    kind, content = filter_
    return [x for each in content for x in limits_of(each)] if kind == "all" else [content]


def read_level(fields: Any) -> Any:
    """Read what a filter protects: {"attributes": 1}, {"groups": names} or {"steps": a number}."""
    ((name, given),) = fields.items()
    if name == "groups":
        lists = isinstance(given, list) and all(isinstance(group, list) for group in given)
        need(lists and given != [] and [] not in given, "protects: no list of groups")
        need(all(type(x) is str for group in given for x in group), "protects: no names")
        return {name: given}
    need(name in ("attributes", "steps"), "protects: unknown here")
    count = integer(given)
    need(count >= 1 and (name == "steps" or count == 1), "protects: a number that it cannot have")
    return {name: count}


class Values(NamedTuple):
    """A finite domain: labels and numbers, or rows of numbers with names."""

    rows: list[Any]
    names: list[str]


class Attribute(NamedTuple):
    """Its values, whether they change from step to step, and how often or by how much at most."""

    values: Sequence[Any]
    changes: bool = False
    times: int | None = None
    max_step: Fraction | None = None


class Records(NamedTuple):
    """A domain of attributes; a finite set is one attribute that is asked about as it is."""

    attributes: dict[str, Attribute]
    plain_set: Values | None = None

    def size(self, scope: Scope) -> int:
        return math.prod(len(self.attributes[name].values) for name, _ in scope)


class Column(NamedTuple):
    """A coordinate of a box, or one of its categories: of those exactly one column is 1."""

    name: Any
    label: str | None
    lower: Decimal
    upper: Decimal
    integer: bool


def read_domain(domain: Any) -> Records | list[Column]:
    if "attributes" in domain:
        named = domain["attributes"].items()
        return Records({name: read_attribute(given) for name, given in named})
    if "box" not in domain:
        points = domain.get("points") or {"rows": domain["values"], "names": ["value"]}
        need(len(points["rows"]) > 0)
        rows = [plain(row) for row in points["rows"]]
        return Records({"": Attribute(rows)}, Values(rows, points["names"]))
    box, columns = domain["box"], []
    # Sorted by name, because the order in which they are written means nothing.
    for name, side in sorted(box.items()) if isinstance(box, dict) else enumerate(box):
        if isinstance(side, dict) and "categories" in side:
            labels = side["categories"]
            need(labels != [] and all(isinstance(label, str) for label in labels))
            need(len(set(labels)) == len(labels))
            columns += [Column(name, label, NO, ONE, True) for label in labels]
        else:
            integer = isinstance(side, dict)
            lower, upper = map(double, side["integers"] if integer else side)
            need(lower <= upper and not (integer and (lower % 1 or upper % 1)))
            columns.append(Column(name, None, lower, upper, integer))
    return columns


def read_attribute(tree: Any) -> Attribute:
    if not isinstance(tree, dict):
        need(tree != [])
        return Attribute([plain(value) for value in tree])
    if "changing" not in tree:
        low, high = map(integer, tree["integers"])
        need(0 <= high - low < COMBINATIONS, "a range of integers that is empty, or too long")
        return Attribute(range(low, high + 1))
    values = read_attribute(tree["changing"]).values
    times = integer(tree["times"]) if "times" in tree else None
    max_step = exact(tree["max_step"]) if "max_step" in tree else None
    need(times is None or max_step is None)
    need((times or 0) >= 0 and (max_step or 0) >= 0)
    need(max_step is None or not any(isinstance(value, str) for value in values))
    return Attribute(values, True, times, max_step)


def scope_of(query: Any, domain: Records) -> Scope:
    """Return the attributes that a query is about, those that change at its step."""
    names = query["about"]
    need(len(set(names)) == len(names) > 0 and set(names) <= domain.attributes.keys())
    changing = {name for name in names if domain.attributes[name].changes}
    need(bool(changing) == ("at" in query), "at: a step is for what changes, and only for that")
    step = integer(query["at"]) if changing else None
    scope = tuple((name, step if name in changing else None) for name in names)
    sizes = [float(domain.size((variable,))) for variable in scope]
    need(math.prod(sizes) <= COMBINATIONS, "about: too many combinations")
    return scope


def seen_by(query: Any, domain: Records) -> tuple[Scope, Values]:
    """Return what a query is about, and its combinations, the last attribute fastest."""
    if domain.plain_set is not None:
        need("about" not in query and "at" not in query, "about: a finite set has no attributes")
        return (("", None),), domain.plain_set
    scope = scope_of(query, domain)
    lists = [domain.attributes[name].values for name, _ in scope]
    each = [map(Decimal, x) if isinstance(x, range) else x for x in lists]
    rows = list(product(*each)) if len(scope) > 1 else list(*each)
    return scope, Values(rows, [name for name, _ in scope])


def aligned(weights: Any, columns: list[Column]) -> list[Decimal]:
    """Return the weight of every column; 0 if it is not named, or its coordinate has weight 0."""
    given: dict[tuple[Any, str | None], Any] = {}
    for name, weight in enumerate(weights) if isinstance(weights, list) else weights.items():
        labeled = weight if isinstance(weight, dict) else {None: weight}
        given |= {(name, label): entry for label, entry in labeled.items()}
    zeros = {(column.name, None) for column in columns if given.get((column.name, None)) == 0}
    need(set(given) <= {column[:2] for column in columns} | zeros)
    return [double(given.get(column[:2], NO)) for column in columns]


def about_level(protects: Any) -> str:
    """Describe what a loss is about; empty for the person as a whole."""
    if protects is None:
        return ""
    ((kind, given),) = protects.items()
    if kind == "groups":
        return f" about any one of {len(given)} groups of attributes"
    count = f"any {given} steps in a row" if given > 1 else f"any one {kind.removesuffix('s')}"
    return f" about {count}"


# -- finite domains --------------------------------------------------------------------------------


@cache
def two_weights(epsilon: Fraction) -> tuple[int, int]:
    """Compute (⌊2^B e^epsilon⌋, 2^B) with B = 40 + max(0, ⌈log₂ 1/epsilon⌉)."""
    need(0 < epsilon <= 500, "an epsilon is not above 0, or above 500")
    bits = 40 + (math.ceil(1 / epsilon) - 1).bit_length()
    return scaled_exp(epsilon, bits), 2**bits


@cache
def scaled_exp(exponent: Fraction, bits: int) -> int:
    """Compute ⌊2^bits e^exponent⌋, with as many digits as it takes to be sure of the floor."""
    digits = 40 + max(0, bits + math.ceil(exponent * Fraction(3, 2))) // 3
    while True:
        with localcontext(Context(prec=digits)):
            value = rounded(exponent).exp() * 2**bits
            off = value.scaleb(10 - digits)
            if not exponent or int(value - off) == int(value + off):
                return int(value)
        digits *= 2


def logs_on_values(
    query: Any, response: Any, values: Values
) -> tuple[list[Decimal], Decimal, Decimal]:
    """Compute the logarithm of the weight of a response at every value, and its error.

    Also how far apart two of them can be whatever the error, if an epsilon says so.
    """
    kind, error, most = KINDS[query["kind"]], NO, ENDLESS
    with localcontext(ROUNDED):
        if kind.weights is None:
            assert kind.logs is not None
            logs, error, most = kind.logs(query, response, values)
        else:
            weights = kind.weights(query, response, values)
            known = {(base, power): power * rounded(base).ln() for base, power in set(weights)}
            logs = [known[weight] for weight in weights]
    need(len(logs) == len(values.rows))
    error += TINY * (1 + max(abs(log) for log in [NO, *logs] if log.is_finite()))
    return logs, error, most


def logs_about(
    query: Any, response: Any, domain: Records
) -> tuple[Scope, list[Decimal], Decimal, Decimal]:
    scope, values = seen_by(query, domain)
    return scope, *logs_on_values(query, response, values)


#: The exact weight of a response at every value, as a base and a power; up to a common factor.
Weights = list[tuple[Exact, int]]

#: Its logarithm, how far off that can be, and how far apart two of them can be.
Logs = tuple[list[Decimal], Decimal, Decimal]


class Kind(NamedTuple):
    """A kind of query on a finite domain: it has exact weights, or their logarithms.

    And about how much work it is: by its own cells, or by row and for each weight of a score.
    ``nominal`` says that the epsilon of such a query is looked at here, and bounds its loss.
    """

    weights: Callable[[Any, Any, Values], Weights] | None = None
    logs: Callable[[Any, Any, Values], Logs] | None = None
    row: float = 1 / 4
    score: float = 0
    cells: Callable[[Any], float] | None = None
    nominal: bool = False


def kind_of(query: Any) -> Kind | None:
    kind = query["kind"]
    return KINDS.get(kind) if isinstance(kind, str) else None


def channel(query: Any, response: Any, values: Values) -> Weights:
    column = column_of(query, response)
    rows = [[exact(p) for p in row] for row in query["probabilities"]]
    need(all(sum_of(row) == 1 and min(row) >= 0 for row in rows))
    if "of" not in query:
        return [(row[column], 1) for row in rows]
    # A row per class, and the class of each value.
    classes = {Decimal(number): (row[column], 1) for number, row in enumerate(rows)}
    need(set(query["of"]) == set(classes))
    return [classes[number] for number in query["of"]]


def channel_work(query: Any) -> float:
    return 2 * sum(map(len, query["probabilities"])) + len(query.get("of", ())) / 4


def speaking(query: Any, speaks: list[bool], bits: int = 1) -> Weights:
    """Make a response e^epsilon times as likely for its values, in ``bits`` factors."""
    heavy, light = two_weights(exact(query["epsilon"]) / bits)
    return [(heavy if yes else light, bits) for yes in speaks]


def randomized_response(query: Any, response: Any, values: Values) -> Weights:
    need(response in values.rows)
    return speaking(query, [row == response for row in values.rows])


def unary_encoding(query: Any, response: Any, values: Values) -> Weights:
    need(query["variant"] in ("symmetric", "optimized") and set(response) <= {"0", "1"})
    # In a symmetric encoding two bits differ between values, and each has half of epsilon.
    bits = 2 if query["variant"] == "symmetric" else 1
    return speaking(query, [bit == "1" for bit in response], bits)


def subset_selection(query: Any, response: Any, values: Values) -> Weights:
    chosen, count = {integer(index) for index in response}, len(values.rows)
    need(len(chosen) == len(response) == integer(query["size"]) < count)
    need(chosen <= set(range(count)))
    return speaking(query, [index in chosen for index in range(count)])


def local_hashing(query: Any, response: Any, values: Values) -> Weights:
    seed, buckets = bytes.fromhex(query["seed"]), integer(query["buckets"])
    need(0 <= integer(response) < buckets)
    digests = [hashlib.sha256(seed + canonical(row)).digest() for row in values.rows]
    return speaking(query, [int.from_bytes(d[:8]) % buckets == response for d in digests])


def hadamard_response(query: Any, response: Any, values: Values) -> Weights:
    column, order, count = integer(response), integer(query["order"]), len(values.rows)
    need(0 <= column < order and count < order and order.bit_count() == 1)
    return speaking(query, [(row & column).bit_count() % 2 == 0 for row in range(1, count + 1)])


def piecewise(query: Any, response: Any, values: Values) -> Weights:
    k, window, grid = integer(response), integer(query["window"]), Grid.of(query)
    need(window >= 1 and 0 <= k < grid.cells + window)
    return speaking(query, [k - window < step <= k for step in grid.steps(query, values)])


def canonical(value: Any) -> bytes:
    """Encode a value or a query as content ids do."""

    def leaf(entry: Any) -> Any:
        if isinstance(entry, dict):
            # By UTF-16 code units, as in RFC 8785.
            names = sorted(entry, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            return {name: leaf(entry[name]) for name in names}
        if isinstance(entry, (list, tuple)):
            return [leaf(x) for x in entry]
        if isinstance(entry, Decimal):
            return (float(entry) + 0.0).hex()
        if isinstance(entry, str):
            return "'" + entry if entry.startswith(("0x", "-0x", "'")) else entry
        return str(entry) if isinstance(entry, Fraction) else entry

    return json.dumps(leaf(value), separators=(",", ":"), ensure_ascii=False).encode()


def geometric(query: Any, response: Any, values: Values) -> Logs:
    low, high = (Decimal(integer(end)) for end in query["range"])
    numbers, width = [integer(row) for row in values.rows], exact(query["sensitivity"])
    return two_sided(query, integer(response), numbers, width, low, high)


def laplace(query: Any, response: Any, values: Values) -> Logs:
    """Tabulate two-sided noise on a grid of scores, clamped only far beyond all of them."""
    grid = Grid.of(query)
    numbers, width = [grid.first + j for j in grid.steps(query, values)], Fraction(grid.cells)
    return two_sided(query, integer(response), numbers, width, -ENDLESS, ENDLESS)


def two_sided(
    query: Any, y: int, integers: list[int], width: Fraction, low: Decimal, high: Decimal
) -> Logs:
    """Tabulate noise z: (1 - a)/(1 + a) a^|z|, a = light/heavy, clamped to the range."""
    need(low <= y <= high and max(integers) - min(integers) <= width)
    need(max(map(abs, integers)) <= 2**53, "a grid that is too fine")
    heavy, light = two_weights(exact(query["epsilon"]) / width)
    logs = []
    with localcontext(Context(prec=60)):  # a can be close to 1, and its power large
        a = Decimal(light) / heavy
        fall, inside = a.ln(), (1 - a).ln() if low < y < high else NO
        for x in integers:
            if x < low if y == low else y == high and x > high:
                logs.append((1 + a - a ** (abs(y - x) + 1)).ln())
            else:
                logs.append(inside + abs(y - x) * fall)
    return logs, NO, ENDLESS


def column_of(query: Any, response: Any) -> int:
    responses = plain(query["responses"])
    need(len(set(responses)) == len(responses))
    return int(responses.index(response))


def exponents(query: Any) -> list[list[Fraction]]:
    scale = exact(query["epsilon"]) / (2 * exact(query["sensitivity"]))
    return [[scale * exact(u) for u in row] for row in query["utility"]]


def exponential_work(query: Any) -> float:
    table = exponents(query)
    spread = float(max(max(row) - min(row) for row in table))
    return sum(map(len, table)) * (4 + 100 * math.pow(spread / 1000, 2.5))


def exponential(query: Any, response: Any, values: Values) -> Weights:
    """Tabulate rounded powers of e in every row, each plus the same small weight."""
    epsilon, rows = exact(query["epsilon"]), exponents(query)
    column, width = column_of(query, response), len(query["responses"])
    spread = max(max(row) - min(row) for row in rows)
    need(all(len(row) == width for row in rows) and 0 < epsilon <= 500 and spread <= 5000)
    mixed = (width + 2) * (1 + math.ceil(2 / epsilon))
    bits = 40 + (mixed * width).bit_length() + math.ceil(spread * Fraction(3, 2))
    weights: Weights = []
    for row in rows:
        scaled = [scaled_exp(u - max(row), bits + (width + 1).bit_length()) for u in row]
        own = [(weight << bits) // sum(scaled) for weight in scaled]
        own[row.index(max(row))] += (1 << bits) - sum(own)
        weights.append((own[column] + mixed, 1))
    return weights


def one_bit(query: Any, response: Any, values: Values) -> Logs:
    points = [row if isinstance(row, tuple) else (row,) for row in values.rows]
    sides = zip(values.names, zip(*points, strict=True), strict=True)
    box = [Column(name, None, min(side), max(side), False) for name, side in sides]
    with localcontext(EXACT):
        term = read_term(query, response, box, points)
        logs = [term.curve.at(term.score(point))[0] for point in points]
    return logs, term.curve.error, epsilon_above(exact(query["epsilon"]))


def perturbation(query: Any, response: Any, values: Values) -> Logs:
    """Read a linear query about the scores that it gives."""
    linear = {"kind": "linear", "weights": {"value": ONE}}
    linear |= {name: query[name] for name in ("range", "epsilon")}
    return one_bit(linear, response, Values(plain(query["scores"]), ["value"]))


KINDS = {
    "channel": Kind(channel, cells=channel_work),
    "exponential_mechanism": Kind(exponential, cells=exponential_work),
    "randomized_response": Kind(randomized_response, nominal=True),
    "unary_encoding": Kind(unary_encoding, nominal=True),
    "subset_selection": Kind(subset_selection, nominal=True),
    "local_hashing": Kind(local_hashing, nominal=True),
    "hadamard_response": Kind(hadamard_response, nominal=True),
    "piecewise": Kind(piecewise, score=1 / 4, nominal=True),
    "geometric": Kind(logs=geometric, row=4),
    "laplace": Kind(logs=laplace, row=4, score=1 / 4, nominal=True),
    "perturbation": Kind(logs=perturbation, row=2, score=1, nominal=True),
    "linear": Kind(logs=one_bit, row=2, score=1, nominal=True),
    "duchi": Kind(logs=one_bit, row=2, score=1, nominal=True),
    "logistic": Kind(logs=one_bit, row=2, score=1, nominal=True),
    "probit": Kind(logs=one_bit, row=10, score=1, nominal=True),
}


class Grid(NamedTuple):
    """The range of a score with noise, the number of its lower end, and how many steps it has."""

    low: Decimal
    high: Decimal
    first: int
    cells: int

    @classmethod
    def of(cls, query: Any) -> Grid:
        low, high = map(double, query["range"])
        first, last = (exact(repr(float(end))) / exact(query["grid"]) for end in (low, high))
        need(first.denominator == last.denominator == 1 and first < last)
        return cls(low, high, int(first), int(last - first))

    def steps(self, query: Any, values: Values) -> list[int]:
        """Count the steps from the lower end to the score of every value, in doubles."""
        given, low, high = query["weights"], float(self.low), float(self.high)
        need(set(given) <= set(values.names))
        found = []
        for row in values.rows:
            total = float(double(query.get("intercept", NO)))
            point = row if isinstance(row, tuple) else (row,)
            for name, x in sorted(zip(values.names, point, strict=True)):
                total += float(double(given.get(name, NO))) * float(double(x))
            found.append(round(min(1.0, max(0.0, (total - low) / (high - low))) * self.cells))
        return found


# -- records ---------------------------------------------------------------------------------------

#: The responses about a scope, for all of its combinations, the last variable fastest.
Table = list[Any]


def loss_on_records(domain: Records, said: Said, work: Work) -> Decimal:
    """Bound the largest minus the smallest sum of tables; all but the logarithms is exact.

    Every combination that a query sees is that of some record, so none may be ruled out.
    """
    tables = sums_of(said)
    if any(-ENDLESS in table for table in tables.values()):
        return ENDLESS
    high, low = extremes(tables, domain, add, work, 0) if tables else (NO, NO)
    return raised(high - low, said)


class Part(NamedTuple):
    """Variables in which two records of a protected pair may differ: attributes, or their steps."""

    names: frozenset[str]
    first: int | None = None
    last: int | None = None

    def has(self, variable: Variable) -> bool:
        name, step = variable
        if self.first is None or self.last is None:
            return name in self.names
        return name in self.names and step is not None and self.first <= step <= self.last

    def touches(self, scope: Scope) -> bool:
        return any(map(self.has, scope))


def parts_of(
    level: Any, domain: Records, scopes: Sequence[Scope], work: Work
) -> list[tuple[Part, list[Scope]]]:
    """List parts with all protected pairs which queries tell apart, and the scopes that touch them.

    All attributes must be in a part. Those that do not change are together one more step, and that
    is in no window.
    """
    need(domain.plain_set is None, "protects: a finite set has no attributes")
    attributes, ((kind, given),) = domain.attributes, level.items()
    if kind == "steps":
        changing = frozenset(name for name, each in attributes.items() if each.changes)
        free = all(each.times is None and each.max_step is None for each in attributes.values())
        need(bool(changing) and free, "protects: steps need changes, without limits on them")
        by_step: dict[int, list[Scope]] = {}
        for scope in scopes:
            for step in {step for _, step in scope if step is not None}:
                by_step.setdefault(step, []).append(scope)
        windows, steps = [], sorted(by_step)
        for index, first in enumerate(steps):
            inside = steps[index : bisect_left(steps, first + given)]
            touching = [scope for step in inside for scope in by_step[step]]
            work.begin((1 + len(touching)) / 10)
            windows.append((Part(changing, first, first + given - 1), touching))
        groups, constants = [], frozenset(attributes) - changing
        if constants:
            groups.append(constants)
    else:
        windows = []
        groups = [frozenset([name]) for name in attributes]
        if kind == "groups":
            groups = [frozenset(group) for group in given]
        covered = frozenset().union(*groups) == attributes.keys()
        need(covered, "protects: the groups must have every attribute, and no other")
    work.begin(len(groups) * (1 + len(scopes)) / 10)
    parts = [Part(group) for group in groups]
    return [(part, [x for x in scopes if part.touches(x)]) for part in parts] + windows


def loss_at(transcript: Any, level: Any, work: Work) -> Decimal:
    """Bound the difference of log-likelihoods of two records of a protected pair."""
    domain, exchanges = read_domain(transcript["domain"]), transcript["exchanges"]
    need(isinstance(domain, Records), "protects: levels are for attributes")
    assert isinstance(domain, Records)
    names = names_of(exchanges)
    different = dict(zip(names, exchanges, strict=True))
    work.begin(sum(work_on_query(each["query"], domain) for each in different.values()))
    said = [
        (times, *logs_about(different[name]["query"], plain(different[name]["response"]), domain))
        for name, times in Counter(names).items()
    ]
    tables = sums_of(said)
    if any(-ENDLESS in table for table in tables.values()):
        return ENDLESS
    by_scope: dict[Scope, Said] = {}
    for each in said:
        by_scope.setdefault(each[1], []).append(each)
    largest = NO
    for part, scopes in parts_of(level, domain, list(tables), work):
        touching = {scope: tables[scope] for scope in scopes}
        spread = spread_in_part(part, touching, domain, add, Decimal, work, 0)
        touched = [each for scope in scopes for each in by_scope[scope]]
        largest = max(largest, raised(spread, touched))
    return largest


def spread_in_part(
    part: Part, tables: dict[Scope, Table], domain: Records, combine: Any, exactly: Any, work: Work,
    bits: int,
) -> Any:  # fmt: skip
    """Maximize the difference of sums, or quotient of products, of records that differ in a part.

    All tables touch the part; others are equal for both records. Every variable of the part has a
    twin for the other record, and the records share all others.
    """

    def likely(scope: Scope) -> Any:
        return tuple((("", name), step) for name, step in scope)

    def unlikely(scope: Scope) -> Any:
        return tuple((("'" if part.has((name, x)) else "", name), x) for name, x in scope)

    pairs: dict[Any, Table] = {}
    for scope, table in tables.items():
        pairs[likely(scope)] = list(map(exactly, table))
        pairs[unlikely(scope)] = [-x if combine is add else 1 / exactly(x) for x in table]
    both: Any = {(mark, name): x for mark in ("", "'") for name, x in domain.attributes.items()}
    start = NO if combine is add else Fraction(1)
    return Elimination(pairs, Records(both), combine, max, work, bits).result() if pairs else start


Said = list[tuple[int, Scope, list[Decimal], Decimal, Decimal]]


def sums_of(said: Said) -> dict[Scope, Table]:
    """Sum the log-likelihoods of all responses about each scope."""
    tables: dict[Scope, Table] = {}
    for m, scope, logs, _, _ in said:
        before = tables.get(scope) or [NO] * len(logs)
        tables[scope] = [x + m * log for x, log in zip(before, logs, strict=True)]
    return tables


def raised(spread: Decimal, said: Said) -> Decimal:
    """Add all errors to a difference of log-likelihoods, up to what queries can do alone."""
    error = 2 * sum((m * error for m, _, _, error, _ in said), NO)
    each = [m * min(most, max(logs) - min(logs) + 2 * off) for m, _, logs, off, most in said]
    return min(spread + error, sum(each, NO))


def extremes(
    tables: dict[Scope, Table], domain: Records, combine: Any, work: Work, bits: int
) -> tuple[Any, Any]:
    """Find the largest and smallest sum of tables over all records; or product, of so many bits."""
    sides = [Elimination(tables, domain, combine, choose, work, bits) for choose in (max, min)]
    high, low = (side.result() for side in sides)
    return high, low


class Elimination:
    """The best sum or product of tables over all records, one variable after the other.

    All tables that depend on a variable become one over whatever else they depend on, with the best
    for every combination of that. Variables go step by step, those of no step when nothing later
    depends on them. So no table has two steps of an attribute whose changes are limited: its value
    does not go, but moves on to the next step that was asked about. Other steps do not matter:
    leaving them out adds no change, and a value can stay what it was.
    """

    def __init__(
        self, tables: dict[Scope, Table], domain: Records, combine: Any, choose: Any, work: Work,
        bits: int,
    ) -> None:  # fmt: skip
        self.attributes, self.combine, self.choose = domain.attributes, combine, choose
        self.work, self.bits = work, bits
        self.tables, self.counter = dict(enumerate(tables.items())), count(len(tables))
        self.sizes = {v: domain.size((v,)) for scope in tables for v in scope}
        self.holding: dict[Variable, set[int]] = {v: set() for v in self.sizes}
        self.last = dict.fromkeys(self.sizes, -math.inf)
        for which, scope in enumerate(tables):
            step = max((step for _, step in scope if step is not None), default=-math.inf)
            for variable in scope:
                self.holding[variable].add(which)
                self.last[variable] = max(self.last[variable], step)
        self.following: dict[Variable, tuple[Variable, int]] = {}  # and how far away it is
        steps = sorted((name, step) for name, step in self.sizes if step is not None)
        for name, group in groupby(steps, lambda variable: variable[0]):
            asked, limits = list(group), self.attributes[name]
            most = math.inf if limits.times is None else limits.times
            if limits.max_step is not None or most < len(asked) - 1:
                self.following |= {a: (b, b[1] - a[1]) for a, b in pairwise(asked)}
        self.within: dict[tuple[str, int], list[list[int]]] = {}

    def result(self) -> Any:
        def last(variable: Variable) -> float:
            return self.last[variable]

        for _, group in groupby(sorted(self.sizes, key=last), last):
            widths = {variable: self.width(variable) for variable in group}
            while widths:
                self.work.begin(len(widths) / 100)
                variable = min(widths, key=widths.__getitem__)
                narrow = widths.pop(variable) <= WIDEST
                need(narrow, "attributes: questions tie too many of them together")
                near = self.eliminate(variable)
                widths |= {other: self.width(other) for other in near if other in widths}
        return reduce(self.combine, (table[0] for _, table in self.tables.values()))

    def width(self, variable: Variable) -> float:
        """Count the bits that number the combinations needed to eliminate a variable."""
        scopes = [self.tables[which][0] for which in self.holding[variable]]
        self.work.begin((1 + sum(map(len, scopes))) / 10)
        return sum(math.log2(self.sizes[other]) for other in set().union(*scopes))

    def eliminate(self, variable: Variable) -> list[Variable]:
        """Put one table in the place of all that depend on a variable; return what it is over."""
        parts = []
        for which in sorted(self.holding[variable]):
            parts.append(self.tables.pop(which))
            for other in parts[-1][0]:
                self.holding[other].discard(which)
        name, step = variable
        changes = (name, None)  # how often it has changed, if that matters
        near = dict.fromkeys(other for scope, _ in parts for other in scope)
        rest = [other for other in near if other not in (variable, changes)]
        counted = [changes] if changes in near and step is not None else []
        n, k = self.sizes[variable], math.prod(self.sizes[other] for other in counted)
        others = math.prod(self.sizes[other] for other in rest)
        effort = 1 + self.bits / 1000 + (len(parts) - 1) * (1 + self.bits)
        self.work.begin((len(near) * len(parts) + others * n * (k + 1) * effort) / 100)
        axes = (*rest, *counted, variable)
        total, *more = [self.over(axes, scope, table) for scope, table in parts]
        for table in more:
            total = list(map(self.combine, total, table))
        following = self.following.get(variable)
        if following is None:
            starts = range(0, len(total), n * k)
            table, scope = [self.choose(total[i : i + n * k]) for i in starts], tuple(rest)
        else:
            rows = [[total[j * n + a :: k * n] for a in range(n)] for j in range(k)]
            later, gap = following
            rows = self.moved(name, rows, gap)
            self.sizes[changes], scope = len(rows), (changes, later, *rest)
            table = [x for row in rows for cells in row for x in cells]
        which = next(self.counter)
        self.tables[which] = scope, table
        for other in scope:
            self.holding.setdefault(other, set()).add(which)
        return rest

    def over(self, axes: Scope, scope: Scope, table: Table) -> Table:
        """Extend a table to all combinations of more variables."""
        if axes == scope:
            return table
        strides, stride = dict.fromkeys(axes, 0), 1
        for variable in reversed(scope):
            strides[variable], stride = stride, stride * self.sizes[variable]
        places = [0]
        for variable in axes:
            jumps = [k * strides[variable] for k in range(self.sizes[variable])]
            places = [place + jump for place in places for jump in jumps]
        return [table[place] for place in places]

    def moved(self, name: str, rows: list[list[Table]], gap: int) -> list[list[Table]]:
        """Return the best sums after so many changes for every value, at a later step.

        A value can stay, or be any other one with one change less; or be one that is near enough.
        """
        limits, (k, n) = self.attributes[name], (len(rows), len(rows[0]))
        each = n * len(rows[0][0]) * (1 + self.bits / 1000) / 100
        self.work.begin(n * k / 8 + each * (k if limits.max_step is None else n))
        if limits.max_step is not None:
            return [[self.best([rows[0][b] for b in near]) for near in self.near(name, gap)]]
        assert limits.times is not None
        changed = [self.best(row) for row in rows]
        return [
            [
                self.best([*(row[a] for row in rows[j : j + 1]), *changed[j - 1 : j]])
                for a in range(n)
            ]
            for j in range(min(k, limits.times) + 1)
        ]

    def best(self, several: list[Table]) -> Table:
        return several[0] if len(several) == 1 else list(map(self.choose, *several))

    def near(self, name: str, gap: int) -> list[list[int]]:
        """List the values that are near enough to each value of an attribute of limited steps."""
        if (name, gap) not in self.within:
            limits = self.attributes[name]
            assert limits.max_step is not None
            self.work.begin(len(limits.values) ** 2 / 10)
            numbers, most = [exact(repr(float(x))) for x in limits.values], gap * limits.max_step
            self.within[name, gap] = [
                [b for b, y in enumerate(numbers) if abs(x - y) <= most] for x in numbers
            ]
        return self.within[name, gap]


# -- queries about a score -------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """ψ(t), the logarithm of the weight of a response at a score, up to a constant.

    One bit: ln(1 + size·share), size = e^ε - 1, where the share rises from 0 at low to 1 at high,
    if not exactly then to 40 digits. "laplace": -size·|t - low|. "piecewise": size from low to high
    and 0 elsewhere, but within ``blur`` of these it may be either. "straight": t itself.
    """

    kind: str
    epsilon: Fraction
    size: Decimal
    low: Decimal
    high: Decimal
    #: How far the logarithm of a sampled weight can be from ψ plus a constant.
    error: Decimal
    blur: Decimal = NO

    def at(self, t: Decimal) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        """Compute ψ(t), its slopes just before and just after t, and its second derivative."""
        with localcontext(ROUNDED):
            if self.kind == "laplace":
                before = self.size if t <= self.low else -self.size
                after = self.size if t < self.low else -self.size
                return -self.size * abs(t - self.low), before, after, NO
            share, first, second = SHARES[self.kind](self, min(self.high, max(self.low, t)))
            weight = 1 + self.size * share
            slope, bend = self.size * first / weight, self.size * second / weight
            before = slope if self.low <= t <= self.high else NO
            after = slope if self.low <= t < self.high else NO
            return logarithm(weight), before, after, bend - slope * slope if before else NO

    @cached_property
    def recently(self) -> Callable[[Decimal], tuple[Decimal, Decimal, Decimal, Decimal]]:
        """The method :meth:`at`, cached: parts of a box have many scores in common."""
        return lru_cache(16)(self.at)

    @cached_property
    def bend(self) -> Decimal:
        """ψ is convex up to here and concave from here on."""
        with localcontext(ROUNDED):
            return BENDS[self.kind](self)

    @cached_property
    def reach(self) -> Decimal:
        """How far left of the bend ψ'' of a logistic curve is largest; as far right it is least.

        That of a linear one is least at the bend.
        """
        if self.kind == "linear":
            return NO
        with localcontext(ROUNDED):
            cosh = (self.size + 2) / (2 * (self.size + 1).sqrt())  # of ε/2
            y = (cosh + (cosh * cosh + 8).sqrt()) / 2
            return (y + (y * y - 1).sqrt()).ln()


def linear_share(curve: Curve, t: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    width = curve.high - curve.low
    return (t - curve.low) / width, 1 / width, NO


def logistic_share(curve: Curve, t: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    y = (-t).exp()
    share = 1 / (1 + y)
    return share, share**2 * y, share**3 * y * (y - 1)


def probit_share(curve: Curve, t: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    below, density = normal(t)
    return below, density, -t * density


#: How far up a score is, from 0 to 1, and the derivatives of that.
SHARES = {"linear": linear_share, "logistic": logistic_share, "probit": probit_share}


@cache
def probit_bend(size: Decimal) -> Decimal:
    """Find where φ(t) size / (1 + size Φ(t)), which is ψ', is -t."""
    a, b = Decimal(-18), NO
    for _ in range(140):
        t = (a + b) / 2
        below, density = normal(t)
        a, b = (t, b) if -t * (1 + size * below) > size * density else (a, t)
    return b


#: Where a curve that is convex becomes concave.
BENDS: dict[str, Callable[[Curve], Decimal]] = {
    "linear": lambda curve: curve.low,
    "logistic": lambda curve: -rounded(curve.epsilon) / 2,
    "probit": lambda curve: probit_bend(curve.size),
    "laplace": lambda _: -ENDLESS,
}


def logarithm(x: Decimal) -> Decimal:
    """Compute ln x = g + 2 artanh z, z = (x - e^g)/(x + e^g), for any g; artanh z ≈ z if small.

    That is twice as fast as the logarithm of decimals.
    """
    guess = Decimal(math.log(x))
    power = guess.exp()
    z = (x - power) / (x + power)
    need(abs(z) < Decimal("1e-13"), "a logarithm in doubles, which is wrong")
    return guess + 2 * z


def normal(t: Decimal) -> tuple[Decimal, Decimal]:
    """Compute Φ(t) = 1/2 + φ(t) Σ t^(2n+1)/(1·3·5···(2n+1)) and its derivative, with 200 bits."""
    root = Decimal("2.506628274631000502415765284811045253006986740609938316629923576")  # of 2π
    with localcontext(Context(prec=60)):
        density = (-t * t / 2).exp() / root
        term = total = int(abs(t) * 2**200)
        square, n = term * term >> 200, 1
        while term:
            n += 2
            term = (term * square >> 200) // n
            total += term
        return Decimal("0.5") + (density * total / 2**200).copy_sign(t), density


class Term(NamedTuple):
    """A curve of the score a·x + c, which for a low response is the negative of the query's."""

    a: tuple[Decimal, ...]
    c: Decimal
    curve: Curve

    def score(self, point: Decimals) -> Decimal:
        return sum((a * x for a, x in zip(self.a, point, strict=True)), self.c)


def read_term(query: Any, response: Any, box: list[Column], points: Any = None) -> Term:
    """Read the term of an exchange; its score ranges over the points, if given, or the box."""
    if "about" in query and points is None:
        return term_of_category(query, response, box)
    w, c = tuple(aligned(query["weights"], box)), double(query.get("intercept", NO))
    ends = score_range(w, c, everywhere(box))
    if points:
        scores = [sum((a * x for a, x in zip(w, point, strict=True)), c) for point in points]
        ends = min(scores), max(scores)
    # How far a score in doubles can be from the real one.
    sizes = [abs(a) * max(abs(x.lower), abs(x.upper)) for a, x in zip(w, box, strict=True)]
    used = sum(a != 0 for a in w)
    off = (used + 2) * UNIT * sum(sizes, abs(c)) + used * Decimal("5e-324")
    with localcontext(ROUNDED):
        need(query["kind"] in CURVES)
        sign, curve = CURVES[query["kind"]](query, response, ends, off)
        half = rounded(curve.epsilon) / 2
        if curve.error >= half or 2 * half < AGREE:
            # All weights are within epsilon of each other, so within half of it of a constant.
            sign, curve = 0, Curve("linear", curve.epsilon, NO, NO, ONE, half)
    return Term(tuple(sign * a for a in w), sign * c, curve)


def term_of_category(query: Any, response: Any, box: list[Column]) -> Term:
    """Read a query about one coordinate: one of its columns is 1, so the score is its log."""
    (name,) = query["about"]
    labels = {j: side.label for j, side in enumerate(box) if side.name == name and side.label}
    need(labels != {} and "at" not in query, "about: not a coordinate with categories")
    logs, error, most = logs_on_values(query, response, Values(list(labels.values()), [name]))
    highest, lowest = max(logs), min(logs)
    need(lowest.is_finite(), "a response that rules a category out")
    own = dict(zip(labels, logs, strict=True))
    a = tuple(own[j] - highest if j in own else NO for j in range(len(box)))
    spread = Fraction(min(most, highest - lowest + 2 * error))
    return Term(a, NO, Curve("straight", spread, NO, lowest - highest, NO, error))


def one_bit_curve(
    kind: str, query: Any, response: Any, ends: Range, span: Range, wrong: Decimal
) -> tuple[int, Curve]:
    """Make the curve of a share that rises over a span, and is within ``wrong`` in doubles."""
    epsilon, (low, high) = exact(query["epsilon"]), ends
    # Duchi's responses are beyond the ends of the range.
    need(0 < epsilon <= 500 and (response in ends or query["kind"] == "duchi"))
    need(not low < response < high)
    # A share that is wrong by so much makes a weight wrong by so much of the smallest one. The rest
    # is for weights that are integers.
    size = rounded(epsilon).exp() - 1
    error = size * wrong + min(ONE, rounded(epsilon)) * TWO**-39
    return 1 if response >= high else -1, Curve(kind, epsilon, size, *span, error)


def linear_curve(query: Any, response: Any, ends: Range, off: Decimal) -> tuple[int, Curve]:
    low, high = map(double, query["range"]) if "range" in query else outward(ends)
    need(low < high)
    sides, wrong = (low, high), off / (high - low) + 5 * UNIT
    sign, curve = one_bit_curve("linear", query, response, sides, sides, wrong)
    mirrored = replace(curve, low=high.copy_negate(), high=low.copy_negate())
    return sign, curve if sign > 0 else mirrored


def logistic_curve(query: Any, response: Any, ends: Range, off: Decimal) -> tuple[int, Curve]:
    span = -100 - rounded(exact(query["epsilon"])), Decimal(100)
    return one_bit_curve("logistic", query, response, (NO, ONE), span, off / 4 + 10 * UNIT)


def probit_curve(query: Any, response: Any, ends: Range, off: Decimal) -> tuple[int, Curve]:
    span, wrong = (Decimal(-18), Decimal(18)), off * 2 / 5 + 514 * UNIT
    return one_bit_curve("probit", query, response, (NO, ONE), span, wrong)


def outward(ends: Range) -> Range:
    """Return the nearest doubles that are not inside."""
    low, high = map(float, ends)
    low = low if Decimal(low) <= ends[0] else math.nextafter(low, -math.inf)
    high = high if Decimal(high) >= ends[1] else math.nextafter(high, math.inf)
    return Decimal(low), Decimal(high)


def laplace_curve(query: Any, response: Any, ends: Range, off: Decimal) -> tuple[int, Curve]:
    (low, high, first, cells), epsilon = Grid.of(query), exact(query["epsilon"])
    need(0 < epsilon <= 500)
    eps, width, forgiven = rounded(epsilon), high - low, Decimal("1e-12")
    # A score that leaves its range by a rounding is moved back.
    need(min(ends[0] - low, high - ends[1]) >= -forgiven * width)
    step = width / cells
    top = low + step * min(cells, max(0, integer(response) - first))
    error = eps * ((off + step / 2) / width + forgiven + 8 * UNIT + TWO**-40)
    return 1, Curve("laplace", epsilon, eps / width, top, top, error)


def piecewise_curve(query: Any, response: Any, ends: Range, off: Decimal) -> tuple[int, Curve]:
    (low, high, _, cells), epsilon = Grid.of(query), exact(query["epsilon"])
    k, window, (heavy, light) = integer(response), integer(query["window"]), two_weights(epsilon)
    need(window >= 1 and 0 <= k < cells + window)
    step = (high - low) / cells
    start = low + step * (k - window + ONE / 2) if k >= window else -ENDLESS
    end = low + step * (k + ONE / 2) if k < cells else ENDLESS
    # Within this of them, doubles may round a score to either side.
    blur = step * TWO**-24
    error = NO if off + 8 * UNIT * (high - low) < blur else rounded(epsilon)
    return 1, Curve("piecewise", epsilon, (Decimal(heavy) / light).ln(), start, end, error, blur)


#: The curve of a response, and whether it is one of the score (1) or of its negative (-1).
CURVES = {
    "linear": linear_curve,
    "duchi": linear_curve,
    "logistic": logistic_curve,
    "probit": probit_curve,
    "laplace": laplace_curve,
    "piecewise": piecewise_curve,
}


# -- proofs over a box -----------------------------------------------------------------------------

Choices = list[list[tuple[int, Decimal]]]
Counted = list[tuple[Term, int]]


def choices(box: list[Column], lower: Decimals, upper: Decimals) -> Choices:
    """List for every coordinate where a convex function can be largest: a column and its value.

    A number is at an end. Of the categories that are not ruled out one is 1, and all others are 0.
    """
    found = []
    for _, columns in groupby(range(len(box)), lambda j: box[j].name):
        first, *others = columns
        if box[first].label is None:
            ends = lower[first], upper[first]
            found.append([(first, x) for x in ends if ends[0] <= ends[1]])
        else:
            forced = {j for j in (first, *others) if lower[j] > 0}
            allowed = [j for j in (first, *others) if upper[j] >= 1 and forced <= {j}]
            found.append([(j, ONE) for j in allowed])
    return found


def everywhere(box: list[Column]) -> Choices:
    return choices(box, [column.lower for column in box], [column.upper for column in box])


def score_range(a: Decimals, c: Decimal, options: Choices) -> Range:
    parts = [[a[j] * x for j, x in option] for option in options]
    return sum(map(min, parts), c), sum(map(max, parts), c)


def loss_on_box(
    box: list[Column], terms: list[Term], groups: Any, check_leaf: CheckLeaf, work: Work
) -> Decimal:
    """Add over groups the largest sum and the largest negative one.

    Exchanges in no group are charged their epsilons. No loss is above the sum of all epsilons.
    """
    free, total = set(range(len(terms))), NO
    for g, group in enumerate(groups):
        path, counted = f"groups.{g}", []
        for alike in group["terms"]:
            indices = {integer(index) for index in alike}
            new = indices and indices <= free and len(indices) == len(alike)
            need(bool(new), f"{path}.terms: an exchange is not there, or counted twice")
            first = terms[min(indices)]
            same = all(terms[index] is first or terms[index] == first for index in indices)
            need(same, f"{path}.terms: these exchanges are not alike")
            free -= indices
            counted.append((first, len(indices)))
        work.begin(work_on_group(box, counted, group))
        total += sum(2 * m * term.curve.error for term, m in counted)
        for sign, side in ((1, "largest"), (-1, "smallest")):
            signed = [(term, sign * m) for term, m in counted]
            total += bound_of_tree(box, signed, group[side], f"{path}.{side}", check_leaf)
    alone = epsilon_above(sum_of([terms[index].curve.epsilon for index in free]))
    spent = epsilon_above(sum_of([term.curve.epsilon for term in terms]))
    return max(NO, min(total + alone, spent))


def work_on_group(box: list[Column], terms: Counted, group: Any) -> float:
    """Estimate how much work two trees are, by their size."""
    nodes = [node for side in ("largest", "smallest") for node in group[side]]
    leaves = [node for node in nodes if "at" not in node]
    curved = sum("curvatures" in leaf for leaf in leaves)
    n, d, values = len(terms), len(box), 0.0
    for term, _ in terms:
        values += {"laplace": 2, "piecewise": 1}.get(term.curve.kind, 4)
        if term.curve.kind == "probit":
            low, high = score_range(term.a, term.c, everywhere(box))
            values += math.pow(min(Decimal(18), max(-low, high)), 2) / 8
    bends = len({term.curve.epsilon for term, _ in terms if term.curve.kind == "probit"})
    return (
        400 * bends
        + len(nodes) * (n + d) / 100
        + len(leaves) * (values + (n + 2) * d / 10)
        + curved * (values + n * d / 20 + d * d * (3 * n + d) / 200)
    )


def bound_of_tree(
    box: list[Column], terms: Counted, tree: Any, path: str, check_leaf: CheckLeaf
) -> Decimal:
    """Return the largest bound of a leaf, if the leaves cover the box.

    A node comes before everything below its cut, and that before everything above it. Points on a
    cut are in both parts, unless they are integers. A part has an interval for every column and
    every score. If the sum is convex, only the two ends of a number count.
    """
    endless, best = [ENDLESS] * len(terms), -ENDLESS
    integers = [column.integer for column in box] + [False] * len(terms)
    low, convex = [-x for x in endless], is_convex(box, terms)
    lower = [column.lower for column in box] + low
    waiting = [(lower, [column.upper for column in box] + endless)]
    for index, node in enumerate(tree):
        here = f"{path}.{index}"
        need(bool(waiting), f"{here}: there is nothing left to cover")
        need(len(waiting) * len(lower) <= VALUES, f"{here}: too many parts are left open")
        lower, upper = waiting.pop()
        try:
            if "at" not in node:
                bound = bound_of_leaf(box, terms, lower, upper, node)
            else:
                j = integer(node["column"] if "column" in node else node["score"] + len(box))
                at = node["at"]
                if at == "ends":
                    need(convex and box[j].label is None, "at: only corners of convex sums will do")
                    uncut = lower[len(box) :] == low and upper[len(box) :] == endless
                    need(uncut, "at: a cut score")
                    above, at = replaced(lower, j, upper[j]), lower[j]
                else:
                    at = at.to_integral_value(ROUND_FLOOR) if integers[j] else at
                    above = replaced(lower, j, max(lower[j], at + integers[j]))
                waiting += [(above, upper), (lower, replaced(upper, j, min(upper[j], at)))]
        except Failed as problem:
            raise Failed(f"{here}.{problem}") from None
        except BAD_SHAPE:
            raise Failed(f"{here}: neither a cut nor a leaf, or not one of these terms") from None
        if "at" not in node:
            check_leaf(node, bound, here)
            best = max(best, bound)
    need(not waiting, f"{path}: a part of the domain is not covered; leaves are missing")
    return best


def is_convex(box: list[Column], terms: Counted) -> bool:
    """Return whether a sum is convex on the box, as minus a sum of linear queries is."""
    options = everywhere(box)
    for term, m in terms:
        (low, high), curve = score_range(term.a, term.c, options), term.curve
        if m > 0 or curve.kind != "linear" or low < curve.low or high > curve.high:
            return False
    return True


def replaced(entries: list[Decimal], j: int, x: Decimal) -> list[Decimal]:
    need(j >= 0)
    return [*entries[:j], x, *entries[j + 1 :]]


def bound_of_leaf(
    box: list[Column], terms: Counted, lower: Decimals, upper: Decimals, leaf: Any
) -> Decimal:
    """Bound the sum Σ m ψ(t) at all points of a part, for any λ, q, x̂ and D ⪰ Σ q a aᵀ, by:

    Σ_i max_t (m ψ(t) - λ_i t - q_i/2 (t - t̂_i)²) + λ·c + Σ_j max_x ((Aᵀλ)_j x + D_j/2 (x - x̂_j)²)
    """
    options, ends = choices(box, lower, upper), []
    for (term, _), least, most in zip(terms, lower[len(box) :], upper[len(box) :], strict=True):
        low, high = score_range(term.a, term.c, options) if all(options) else (ONE, NO)
        ends.append((max(low, least), min(high, most)))
    if not all(options) or any(low > high for low, high in ends):
        return -ENDLESS  # there is no such point
    lam, q = leaf["multipliers"], leaf.get("curvatures", [NO] * len(terms))
    centre, diagonal = (leaf.get(name, [NO] * len(box)) for name in ("centre", "diagonal"))
    check_diagonal(diagonal, q, [term for term, _ in terms])
    total = sum((D * x * x / 2 for D, x in zip(diagonal, centre, strict=True)), NO)
    slopes = [NO] * len(box)
    for i, (term, m) in enumerate(terms):
        slopes = [slope + lam[i] * a for slope, a in zip(slopes, term.a, strict=True)]
        middle = term.score(centre) if q[i] else NO
        total += top(term.curve, m, lam[i], q[i], middle, *ends[i], leaf["tangents"][i])
        total += lam[i] * term.c
    for option in options:
        # D/2 (x - x̂)², except for D/2 x̂² from above, which stays where a category is 0.
        total += max(slopes[j] * x + diagonal[j] * x * (x - 2 * centre[j]) / 2 for j, x in option)
    return total


def check_diagonal(diagonal: Decimals, q: Decimals, terms: list[Term]) -> None:
    """Check that D - Σ q a aᵀ is positive semidefinite, by elimination above its diagonal.

    1e-15 of D + Σ |q| a² is subtracted first, which is far more than rounding can lose.
    """
    curved = [(c, term) for c, term in zip(q, terms, strict=True) if c]
    known = all(term.curve.kind in ("logistic", "linear") for _, term in curved)
    need(known, "curvatures: neither logistic nor linear")
    need(min(diagonal) >= 0, "diagonal: negative")
    used = [j for j in range(len(diagonal)) if any(term.a[j] for _, term in curved)]
    rows = [[NO] * len(used[place:]) for place in range(len(used))]
    with localcontext(ROUNDED):
        sizes = [diagonal[j] for j in used]
        for c, term in curved:
            a = [term.a[j] for j in used]
            for j, row in enumerate(rows):
                factor = c * a[j]
                row[:] = [x - factor * y for x, y in zip(row, a[j:], strict=True)]
                sizes[j] += abs(factor * a[j])
        for j, row, size in zip(used, rows, sizes, strict=True):
            row[0] += diagonal[j] - size * Decimal("1e-15")
        for j, row in enumerate(rows):
            need(row[0] > 0, "diagonal: too small for these curvatures")
            for k, other in enumerate(rows[j + 1 :], 1):
                factor = row[k] / row[0]
                other[:] = [x - factor * y for x, y in zip(other, row[k:], strict=True)]


def top(
    curve: Curve, m: int, lam: Decimal, q: Decimal, middle: Decimal, low: Decimal, high: Decimal,
    points: Decimals,
) -> Decimal:  # fmt: skip
    """Bound f(t) = m ψ(t) - λt - q/2 (t - middle)² from above, from low to high.

    Around ``start`` f is convex; from somewhere on, if at all, it is concave on either side. So on
    a side it is below f(start), or below the tangent at any point where it is concave.
    """
    if curve.kind == "piecewise":
        return top_of_window(curve, m, lam, low, high)
    if curve.kind == "straight":
        return max((m - lam) * low, (m - lam) * high)
    need(len(points) <= 2, "tangents: more than two")
    # Between its ends ψ of a linear query bends least where it is highest.
    convex = m < 0 < q and curve.low <= low and high <= curve.high
    need(not q or curve.kind != "linear" or convex, "curvatures: a linear term, and not convex")
    at = curve.recently

    def f(t: Decimal) -> Decimal:
        return m * at(t)[0] - lam * t - q * (t - middle) ** 2 / 2

    def concave(t: Decimal) -> bool:
        return m * at(t)[3] <= q if q else m * (t - curve.bend) >= 0

    start = min(high, max(low, curve.bend - (curve.reach.copy_sign(m) if q > 0 else NO)))
    if q < 0:  # it must be concave everywhere, and is if it is at both ends of a part right of 0
        right = all(m * (t - curve.bend) >= 0 and concave(t) for t in (low, high))
        need(right, "curvatures: negative, and a term is not concave")
    best, steepest = f(start), NO
    for end in {low, high} - {start}:
        if not concave(end):
            best = max(best, f(end))  # convex up to its end
            continue
        tangents = []
        near, far = sorted((start, end))
        inside = [min(far, max(near, p)) for p in points or [curve.high]]
        for p in [p for p in inside if concave(p)] or [end]:
            # With curvature an interval ends where a curve does, and only its inner slope counts.
            least, most = sorted((m * at(p)[1], m * at(p)[1 if q else 2]))
            level = lam + q * (p - middle)
            tilt = min(most, max(least, level)) - level  # at a kink any slope between will do
            tangents.append(f(p) + max(tilt * (start - p), tilt * (end - p)))
            steepest = max(steepest, abs(least), abs(most))
        best = max(best, min(tangents))
    return best + TINY * (abs(m) + steepest * (high - low))


def top_of_window(curve: Curve, m: int, lam: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """Find the largest m ψ(t) - λt, which is straight except where the window begins and ends."""
    # A window that raises the sum counts as wide as it may be, one that lowers it as narrow.
    wide = curve.blur.copy_sign(m)
    first, last = curve.low - wide, curve.high + wide
    best = -ENDLESS
    for t in (low, high, first, last):
        if low <= t <= high:
            heavy = first <= t <= last if m > 0 else first < t < last
            best = max(best, m * curve.size * heavy - lam * t)
    return best + TINY * abs(m)


# -- the command -----------------------------------------------------------------------------------


def rounded_up(loss: Decimal) -> str:
    """Round up for people, with nine digits after the point."""
    return f"{loss.quantize(AGREE, ROUND_CEILING):f}" if loss.is_finite() else "inf"


def read_file(name: str) -> str:
    """Read the text of a regular file: a pipe may never answer, and a device never end."""
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(name, os.O_RDONLY | flags)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        with open(handle, "rb", closefd=False) as file:
            data = file.read(LARGEST + 1)
    finally:
        os.close(handle)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST:,} bytes", name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Failed("the file, which is not UTF-8 text") from None


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: verify.py TRANSCRIPT.json PROOF.json", file=sys.stderr)
        return 2
    try:
        transcript, proof = map(read_file, arguments)
        verdict = verify(transcript, proof)
    except OSError as error:
        print(f"verify: cannot read: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(f"verify: the proof fails at {error}", file=sys.stderr)
        return 1
    except Exception as error:  # our own error is not a failure of the proof
        print(f"verify: broken: {type(error).__name__}", file=sys.stderr)
        return 70
    print(f"proved: the realized loss is at most {rounded_up(verdict.loss)}")
    if verdict.about_budget:
        print(verdict.about_budget)
    if verdict.shows_end_within_budget:
        print("whether the budget was respected on the way is not checked here")
    return NOT_SHOWN if verdict.shows_end_within_budget is False else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

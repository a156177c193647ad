"""Random domains, queries, filters and values, as they are in files; nothing of the package.

A choice between families, shapes or filters goes by a hash of each, and each query is drawn from a
generator of its own. So a further family changes only the cases that choose it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from random import Random
from typing import Any, TypeVar

__all__ = [
    "BOX_SHAPES",
    "DEVICE_FAMILIES",
    "FAMILIES",
    "FAMILIES_WITH_DELTA",
    "RULES",
    "SET_SHAPES",
    "Domain",
    "Part",
    "Query",
    "Tree",
    "as_text",
    "choose",
    "decides",
    "draw_attributes",
    "draw_domain",
    "draw_finite_domain",
    "draw_query",
    "draw_query_on_values",
    "draw_subject",
    "draw_transcript",
    "draw_value",
    "families_on",
    "list_filters",
    "points_inside",
]

T = TypeVar("T")
Tree = dict[str, Any]

EPSILONS = (
    "0.1", "0.25", "0.5", "0.7", "1", "1.5", "2", "1/3", "0.05", "1.25", "2.5", "7/1000", "1e-9",
    "30.5",
)  # fmt: skip
LABELS = (
    "no", "yes", "never", "now and then", "often", "daily", "größer", "n/a", "x,y", "7", "1", "",
    "0x1p+0", "-0x", "'quoted'",
)  # fmt: skip
SMALL_NUMBERS = (0, 1, -2, 3, 7, 0.5, 1.5, -0.25)
NUMBERS = (*SMALL_NUMBERS, 12.75, 2**53, 1e300)
COORDINATES = (-3, -1, 0, 0.25, 2, 3, 5, 8)
WEIGHTS = (1, -1, 0.25, -0.5, 0.75, 2, -1.75, 3, 0.1, -0.059, -1.456, 0)
LEVELS = (0, 1, 0.1, 0.25, 0.7071067811865476)
MEANS = {
    # The responses of Duchi's mechanism are where its means are right.
    ("0.5", 100): (-154.14940825376908, 254.14940825376908),
    ("1", 100): (-58.19767068696118, 158.19767068696117),
    ("2", 100): (-15.651764274967501, 115.6517642749675),
    ("0.5", 10): (-15.41494082537691, 25.41494082537691),
    ("1", 10): (-5.819767068696118, 15.819767068696118),
    ("2", 10): (-1.5651764274967501, 11.56517642749675),
}
RULES: tuple[Tree, ...] = (
    {"kind": "basic"},
    {"kind": "rogers"},
    {"kind": "whitehouse", "delta_prime": "5e-7"},
    {"kind": "renyi", "order": "12.5"},
    {"kind": "renyi", "order": "8", "delta_prime": "5e-7"},
    {"kind": "mixture", "lambdas": ["5", "20"], "weights": ["0.9", "0.1"]},
)
SET_SHAPES = ("labels", "mixed", "integers", "numbers", "points", "attributes", "changing")
BOX_SHAPES = ("integer box", "real box", "box of all kinds", "box without names")


def choose(seed: object, options: Sequence[T]) -> T:
    """Choose by a hash of each option, so that a further one changes few choices."""
    return min(options, key=lambda option: sha256(f"{seed} {option}".encode()).digest())


def as_text(tree: Any) -> str:
    """Write a tree as the text of a file."""
    return json.dumps(tree, ensure_ascii=False)


# -- domains -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Side:
    """A coordinate: its bounds, or its categories, each of which is a number of its own."""

    name: str
    low: float = 0
    high: float = 0
    categories: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What one query sees of a domain: a list of values, or the sides of a box."""

    values: tuple[Any, ...] = ()
    sides: tuple[Side, ...] = ()
    """The coordinates of values or of a box; none if a value is a label."""
    named: bool = True


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain as it is in a file, and what its queries see."""

    tree: Tree
    sides: tuple[Side, ...] = ()
    """Of a box."""

    @property
    def on_box(self) -> bool:
        return "box" in self.tree

    @property
    def attributes(self) -> Tree | None:
        attributes: Tree | None = self.tree.get("attributes")
        return attributes

    @property
    def changes(self) -> bool:
        """Whether an attribute may change."""
        return any(_changes(attribute) for attribute in (self.attributes or {}).values())

    def part(self, about: Sequence[str] | None = None) -> Part:
        """What a query sees, which is about some attributes if there are any."""
        if self.on_box:
            return Part(sides=self.sides, named=isinstance(self.tree["box"], dict))
        if self.attributes is not None:
            assert about is not None
            lists = [_attribute_values(self.attributes[name]) for name in about]
            rows = [list(row) for row in itertools.product(*lists)]
            return _part_of_rows(about, rows, lists[0] if len(lists) == 1 else rows)
        if "points" in self.tree:
            rows = self.tree["points"]["rows"]
            return _part_of_rows(self.tree["points"]["names"], rows, rows)
        values = self.tree["values"]
        return _part_of_rows(["value"], [[value] for value in values], values)


def _part_of_rows(names: Sequence[str], rows: list[list[Any]], values: list[Any]) -> Part:
    if any(isinstance(entry, str) for row in rows for entry in row):
        return Part(tuple(values))
    columns = zip(names, zip(*rows, strict=True), strict=True)
    sides = [
        Side(name, min(column), max(column), whole=all(isinstance(x, int) for x in column))
        for name, column in columns
    ]
    return Part(tuple(values), tuple(sides))


def _attribute_values(attribute: Any) -> list[Any]:
    if isinstance(attribute, list):
        return attribute
    if "changing" in attribute:
        return _attribute_values(attribute["changing"])
    low, high = attribute["integers"]
    return list(range(low, high + 1))


def draw_domain(random: Random, shape: str, family: str | None = None) -> Domain:
    """Draw a domain of a shape, on which there are queries of a family."""
    while True:
        domain = _SHAPES[shape](random)
        if family is None or family in families_on(domain):
            return domain


def draw_finite_domain(random: Random, family: str | None = None) -> Domain:
    """Draw a domain of any shape that a device knows, on which there are queries of a family."""
    while True:
        domain = draw_domain(random, choose(random.getrandbits(64), SET_SHAPES))
        if family is None or family in families_on(domain):
            return domain


def draw_attributes(random: Random, *, changing: bool) -> Domain:
    """Draw some attributes, at least one of which changes if any may."""
    while True:
        names = random.sample(["region", "smokes", "age", "x", "größe"], random.randint(1, 4))
        attributes = {name: _draw_attribute(random, changing=changing) for name in names}
        domain = Domain({"attributes": attributes})
        if domain.changes == changing:
            return domain


def _draw_attribute(random: Random, *, changing: bool) -> Any:
    constant: Any = random.choice(
        [
            random.sample(LABELS, random.randint(1, 3)),
            {"integers": [-1, random.randint(-1, 2)]},
            random.sample(SMALL_NUMBERS, random.randint(2, 3)),
        ]
    )
    limit = random.randrange(6) if changing else 5
    if limit == 0:
        return {"changing": constant, "times": random.randint(0, 2)}
    if limit == 1:
        return {"changing": constant}
    if limit == 2 and not any(isinstance(x, str) for x in _attribute_values(constant)):
        return {"changing": constant, "max_step": random.choice(["1", "0.5", "2", "0"])}
    return constant


def _changes(attribute: Any) -> bool:
    return isinstance(attribute, dict) and "changing" in attribute


def _draw_labels(random: Random) -> Domain:
    return Domain({"values": random.sample(LABELS, random.randint(2, 6))})


def _draw_mixed(random: Random) -> Domain:
    return Domain({"values": random.sample([*LABELS, *NUMBERS], random.randint(2, 5))})


def _draw_integers(random: Random) -> Domain:
    first = random.randint(-5, 5)
    return Domain({"values": list(range(first, first + random.randint(1, 7)))})


def _draw_numbers(random: Random) -> Domain:
    if random.random() < 0.3:
        return Domain({"values": random.sample(NUMBERS, random.randint(2, 5))})
    return Domain({"values": sorted(n / 4 for n in random.sample(range(-20, 40), 4))})


def _draw_points(random: Random) -> Domain:
    names = random.sample(("age", "sex", "blood pressure", "größe"), random.randint(1, 3))
    columns = [sorted(random.sample(COORDINATES, random.randint(2, 3))) for _ in names]
    rows = [list(row) for row in itertools.product(*columns)]
    if len(rows) > 4 and random.random() < 0.5:
        rows = random.sample(rows, 4)
    return Domain({"points": {"names": names, "rows": rows}})


def _draw_box(random: Random, shape: str) -> Domain:
    """Draw a box of integers alone, of numbers, of all three kinds, or without names."""
    sides: list[Side] = []
    small = shape == "integer box"
    count = random.randint(1, 2) if small else random.randint(2, 3)
    for name in random.sample(("age", "sex", "dose", "height"), count):
        low = random.randint(-4, 2)
        width = random.randint(1, 3) if small else random.randint(1, 8)
        sides.append(Side(name, low, low + width, whole=small or random.random() < 0.3))
    if shape == "box of all kinds":
        sides.append(Side("region", categories=("north", "south", "far east")))
    trees: list[Any] = []
    for side in sides:
        bounds = [int(side.low), int(side.high)]
        if side.categories:
            trees.append({"categories": list(side.categories)})
        else:
            trees.append({"integers": bounds} if side.whole else bounds)
    if shape == "box without names":
        return Domain({"box": trees}, tuple(sides))
    names = [side.name for side in sides]
    return Domain({"box": dict(zip(names, trees, strict=True))}, tuple(sides))


_SHAPES: dict[str, Callable[[Random], Domain]] = {
    "labels": _draw_labels,
    "mixed": _draw_mixed,
    "integers": _draw_integers,
    "numbers": _draw_numbers,
    "points": _draw_points,
    "attributes": lambda random: draw_attributes(random, changing=False),
    "changing": lambda random: draw_attributes(random, changing=True),
    "integer box": lambda random: _draw_box(random, "integer box"),
    "real box": lambda random: _draw_box(random, "real box"),
    "box of all kinds": lambda random: _draw_box(random, "box of all kinds"),
    "box without names": lambda random: _draw_box(random, "box without names"),
}


def draw_subject(rng: Random) -> str | int:
    """Draw the name of a subject: a string or an integer, which may look alike."""
    names: list[str | int] = ["ann", "größe", "0x12", "'", 1, -7, 2**53, "1"]
    return rng.choice(names)


def draw_value(random: Random, domain: Domain) -> Any:
    """Draw a value of a domain: a record of attributes, a corner or an integer point of a box."""
    if domain.attributes is not None:
        attributes = domain.attributes.items()
        return {name: random.choice(_attribute_values(x)) for name, x in attributes}
    if not domain.on_box:
        return random.choice(domain.part().values)
    return {
        side.name: random.choice(side.categories or range(int(side.low), int(side.high) + 1))
        for side in domain.sides
    }


def points_inside(random: Random, box: Domain) -> Tree | None:
    """Points of a box of numbers, as a finite set: all of a small one, else corners and more."""
    if any(side.categories for side in box.sides) or not box.part().named:
        return None
    columns: list[list[float]] = []
    for side in box.sides:
        if side.whole:
            columns.append(list(range(int(side.low), int(side.high) + 1)))
        else:
            between = [side.low + random.random() * (side.high - side.low) for _ in range(3)]
            columns.append([side.low, *between, side.high])
    rows = [list(row) for row in itertools.product(*columns)]
    return {"points": {"names": [side.name for side in box.sides], "rows": rows}}


# -- queries -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """A query as it is in a file, and some of its responses."""

    tree: Tree
    responses: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Score:
    """The fields of a score that is not constant, and its exact extremes."""

    tree: Tree
    low: Fraction
    high: Fraction

    @property
    def range(self) -> tuple[int, int]:
        """Integers between which the score is."""
        return math.floor(self.low), math.ceil(self.high)


def _draw_score(random: Random, part: Part) -> Score:
    while True:
        weights: Tree = {}
        for side in part.sides:
            of_labels = {label: random.choice(WEIGHTS) for label in side.categories}
            weights[side.name] = of_labels or random.choice(WEIGHTS)
        if part.named and len(weights) > 1 and random.random() < 0.3:
            del weights[random.choice(list(weights))]
        intercept = random.choice((None, None, 0, 0.25, -0.75, -1.5, 6.177))
        low, high = _extremes(part, weights)
        if low == high:
            continue
        tree: Tree = {"weights": weights if part.named else list(weights.values())}
        if intercept is None:
            return Score(tree, low, high)
        shift = Fraction(intercept)
        return Score({**tree, "intercept": intercept}, low + shift, high + shift)


def _extremes(part: Part, weights: Tree) -> tuple[Fraction, Fraction]:
    names = [side.name for side in part.sides]
    if part.values:
        scores = []
        for value in part.values:
            row = value if isinstance(value, list) else [value]
            cells = zip(names, row, strict=True)
            scores.append(sum(Fraction(x) * Fraction(weights.get(name, 0)) for name, x in cells))
        return Fraction(min(scores)), Fraction(max(scores))
    low = high = Fraction(0)
    for side in part.sides:
        weight = weights.get(side.name, 0)
        if isinstance(weight, dict):
            ends = sorted(map(Fraction, weight.values()))
        else:
            ends = sorted(Fraction(weight) * Fraction(end) for end in (side.low, side.high))
        low, high = low + ends[0], high + ends[-1]
    return low, high


def _nearest_double(number: Fraction, direction: float) -> float:
    """Round to the nearest double that lies in one direction."""
    nearest = float(number)
    beyond = nearest > number if direction > 0 else nearest < number
    return nearest if nearest == number or beyond else math.nextafter(nearest, direction)


def _draw_epsilon(random: Random) -> str:
    return random.choice(EPSILONS)


def _draw_randomized_response(random: Random, part: Part) -> Query:
    return Query({"epsilon": _draw_epsilon(random)}, part.values)


def _draw_unary_encoding(random: Random, part: Part) -> Query:
    variant = random.choice(("symmetric", "optimized"))
    bits = ["".join(random.choice("01") for _ in part.values) for _ in range(3)]
    return Query({"variant": variant, "epsilon": _draw_epsilon(random)}, bits)


def _draw_subset_selection(random: Random, part: Part) -> Query:
    count = len(part.values)
    size = random.randint(1, count - 1)
    subsets = [sorted(random.sample(range(count), size)) for _ in range(3)]
    return Query({"size": size, "epsilon": _draw_epsilon(random)}, subsets)


def _draw_local_hashing(random: Random, part: Part) -> Query:
    buckets = random.randint(2, 5)
    seed = random.randbytes(random.randint(1, 8)).hex()
    seed = seed.upper() if random.random() < 0.2 else seed
    tree = {"seed": seed, "buckets": buckets, "epsilon": _draw_epsilon(random)}
    return Query(tree, range(buckets))


def _draw_hadamard_response(random: Random, part: Part) -> Query:
    order = 2 ** (len(part.values).bit_length() + random.randint(0, 1))
    return Query({"order": order, "epsilon": _draw_epsilon(random)}, range(order))


def _draw_geometric(random: Random, part: Part) -> Query:
    low, high = int(part.sides[0].low), int(part.sides[0].high)
    first, last = low + random.randint(-3, 1), high + random.randint(-1, 3)
    if first >= last:
        last = first + 1
    sensitivity = max(1, high - low) + random.randint(0, 2)
    tree = {
        "range": [first, last],
        "sensitivity": random.choice((sensitivity, str(sensitivity))),
        "epsilon": _draw_epsilon(random),
    }
    return Query(tree, range(first, last + 1))


def _draw_exponential_mechanism(random: Random, part: Part) -> Query:
    width = random.randint(1, 3)
    responses = random.sample(["beans", "cheese", "fish", 2], width)
    cells = (0, 1, "1/2", "1/3", "0.25", "-0.25")
    utility = [[random.choice(cells) for _ in responses] for _ in part.values]
    columns = [[Fraction(cell) for cell in column] for column in zip(*utility, strict=True)]
    largest = max(max(column) - min(column) for column in columns)
    sensitivities = [each for each in ("1", "1.25", "2", "17/3") if Fraction(each) >= largest]
    tree = {
        "responses": responses,
        "utility": utility,
        "sensitivity": random.choice(sensitivities),
        "epsilon": _draw_epsilon(random),
    }
    return Query(tree, responses)


def _draw_perturbation(random: Random, part: Part) -> Query:
    ranges: tuple[list[float], ...] = ([0, 1], [-0.5, 1.75], [-1, 3], [0, 4])
    ends = random.choice(ranges)
    levels = [quarter / 4 for quarter in range(17)] if ends == [0, 4] else LEVELS
    scores = [random.choice(levels) for _ in part.values]
    return Query({"scores": scores, "range": ends, "epsilon": _draw_epsilon(random)}, ends)


def _draw_channel(random: Random, part: Part) -> Query:
    width = random.randint(1, 3)
    responses = random.sample(["no", "yes", "perhaps", "a", 1, 0.5, "0x"], width)
    rows = [_draw_row(random, width) for _ in part.values]
    possible = [r for r, *column in zip(responses, *rows, strict=True) if {*column} != {"0"}]
    if random.random() < 0.1:  # a response that no value gives
        responses, rows = [*responses, "never"], [[*row, "0"] for row in rows]
    return Query({"responses": responses, "probabilities": rows}, possible)


def _draw_row(random: Random, width: int) -> list[str]:
    weights = [random.randint(0 if random.random() < 0.08 else 1, 9) for _ in range(width)]
    weights[0] += not any(weights)
    if sum(weights) == 10 and random.random() < 0.7:
        return [f"0.{weight}" if 0 < weight < 10 else str(weight // 10) for weight in weights]
    return [f"{weight}/{sum(weights)}" if weight else "0" for weight in weights]


def _draw_channel_of_classes(random: Random, part: Part) -> Query:
    count = random.randint(1, len(part.values))
    channel = _draw_channel(random, Part(tuple(range(count))))
    classes = [*range(count), *(random.randrange(count) for _ in part.values[count:])]
    random.shuffle(classes)
    return Query({**channel.tree, "of": classes}, channel.responses)


def _draw_channel_with_delta(random: Random, part: Part) -> Query:
    rows: list[list[Any]] = [["0.999999", "0.000001", 0], ["0.999999", 0, "0.000001"]]
    probabilities = [rows[index % 2] for index in range(len(part.values))]
    tree = {"responses": ["a", "b", "c"], "probabilities": probabilities, "delta": "0.000001"}
    return Query(tree, ("a", "a", "b"))


def _draw_linear(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    ends = score.range
    return Query({**score.tree, "range": [*ends], "epsilon": _draw_epsilon(random)}, ends)


def _draw_clipped_linear(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    ranges: tuple[list[float], ...] = ([0, 12], [-0.5, 0.5])
    ends = random.choice(ranges)
    if _is_small(part) and random.random() < 0.5:
        low, high = score.range
        ends = [low + (high - low) // 4, high - (high - low) // 4]
    tree = {**score.tree, "range": ends, "clip": True, "epsilon": _draw_epsilon(random)}
    return Query(tree, ends)


def _draw_linear_to_extremes(random: Random, part: Part) -> Query:
    """Draw a linear query without a range: its ends are the extremes of its score."""
    score = _draw_score(random, part)
    ends = _nearest_double(score.low, -math.inf), _nearest_double(score.high, math.inf)
    return Query({**score.tree, "epsilon": _draw_epsilon(random)}, ends)


def _draw_regression(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    return Query({**score.tree, "epsilon": _draw_epsilon(random)}, (0, 1))


def _draw_duchi(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    epsilon, high = random.choice(list(MEANS))
    return Query({**score.tree, "range": [0, high], "epsilon": epsilon}, MEANS[epsilon, high])


def _draw_laplace(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    low, high = score.range
    epsilon = random.choice(("0.5", "1", "2"))
    tree = {**score.tree, "range": [low, high], "grid": "0.5", "epsilon": epsilon}
    return Query(tree, range(2 * low - 3, 2 * high + 4))


def _draw_gaussian(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    low, high = score.range
    sigma = str(random.randint(1, 4) * (high - low))
    tree = {**score.tree, "range": [low, high], "grid": "0.5", "sigma": sigma}
    if random.random() < 0.4:
        tree["delta"] = "1e-7"
    return Query(tree, range(2 * low - 3, 2 * high + 4))


def _draw_piecewise(random: Random, part: Part) -> Query:
    score = _draw_score(random, part)
    low, high = score.range
    window = random.randint(1, 4)
    tree = {**score.tree, "range": [low, high], "grid": "0.25", "window": window}
    return Query({**tree, "epsilon": _draw_epsilon(random)}, range(4 * (high - low) + window))


def _is_list(part: Part) -> bool:
    return bool(part.values)


def _has_two_values(part: Part) -> bool:
    return len(part.values) > 1


def _has_scores(part: Part) -> bool:
    return any(side.categories or side.low < side.high for side in part.sides)


def _has_values_with_scores(part: Part) -> bool:
    return _is_list(part) and _has_scores(part)


def _has_small_scores(part: Part) -> bool:
    return _has_scores(part) and _is_small(part)


def _has_small_integers(part: Part) -> bool:
    integers = all(isinstance(value, int) for value in part.values)
    return _is_list(part) and integers and _is_small(part)


def _is_small(part: Part) -> bool:
    return all(-100 < side.low <= side.high < 100 for side in part.sides)


FAMILIES: dict[str, tuple[Callable[[Random, Part], Query], Callable[[Part], bool]]] = {
    "randomized_response": (_draw_randomized_response, _is_list),
    "unary_encoding": (_draw_unary_encoding, _is_list),
    "subset_selection": (_draw_subset_selection, _has_two_values),
    "local_hashing": (_draw_local_hashing, _is_list),
    "hadamard_response": (_draw_hadamard_response, _is_list),
    "exponential_mechanism": (_draw_exponential_mechanism, _is_list),
    "perturbation": (_draw_perturbation, _is_list),
    "channel": (_draw_channel, _is_list),
    "channel of classes": (_draw_channel_of_classes, _is_list),
    "channel with a delta": (_draw_channel_with_delta, _is_list),
    "geometric": (_draw_geometric, _has_small_integers),
    "linear": (_draw_linear, _has_small_scores),
    "linear with a clip": (_draw_clipped_linear, _has_scores),
    "linear to its extremes": (_draw_linear_to_extremes, _has_values_with_scores),
    "logistic": (_draw_regression, _has_scores),
    "probit": (_draw_regression, _has_scores),
    "duchi": (_draw_duchi, _has_small_scores),
    "laplace": (_draw_laplace, _has_small_scores),
    "piecewise": (_draw_piecewise, _has_small_scores),
    "gaussian": (_draw_gaussian, _has_small_scores),
}
"""How a query of each family is drawn, and on which parts of a domain there is one."""
FAMILIES_WITH_DELTA = ("channel with a delta", "gaussian")
DEVICE_FAMILIES = (
    "randomized_response",
    "unary_encoding",
    "subset_selection",
    "local_hashing",
    "hadamard_response",
    "exponential_mechanism",
    "perturbation",
    "channel",
    "channel of classes",
    "geometric",
    "linear",
    "linear with a clip",
    "linear to its extremes",
    "logistic",
)
"""Those that device.py knows."""


def _families_of(part: Part, families: Sequence[str]) -> list[str]:
    return [family for family in families if FAMILIES[family][1](part)]


def families_on(domain: Domain, families: Sequence[str] = tuple(FAMILIES)) -> list[str]:
    """List the families of which there are queries on a domain, or about one of its attributes."""
    if domain.attributes is None:
        return _families_of(domain.part(), families)
    parts = [domain.part([name]) for name in domain.attributes]
    return [family for family in families if any(FAMILIES[family][1](part) for part in parts)]


def draw_query(
    random: Random, domain: Domain, families: Sequence[str] = DEVICE_FAMILIES, *, steps: int = 3
) -> Query:
    """Draw a query of one of these families, about some of a domain's attributes if it has any."""
    while True:
        about, fields = _draw_about(random, domain, steps)
        part = domain.part(about)
        if possible := _families_of(part, families):
            query = draw_query_on_values(random, part, possible)
            return Query({**query.tree, **fields}, query.responses)


def draw_query_on_values(random: Random, part: Part, families: Sequence[str]) -> Query:
    """Draw a query of one of these families, all of which suit the values."""
    seed = random.getrandbits(64)
    family = choose(seed, families)
    query = FAMILIES[family][0](Random(f"{family} {seed}"), part)
    return Query({"kind": family.split()[0], **query.tree}, query.responses)


def _draw_about(random: Random, domain: Domain, steps: int) -> tuple[list[str] | None, Tree]:
    attributes = domain.attributes
    if attributes is None:
        return None, {}
    about = random.sample(list(attributes), random.randint(1, min(3, len(attributes))))
    if any(_changes(attributes[name]) for name in about):
        return about, {"about": about, "at": random.randint(1, steps)}
    return about, {"about": about}


# -- filters and transcripts ---------------------------------------------------------------------


def list_filters() -> list[Tree | None]:
    """No filter, and one of every kind with every rule; their budgets are drawn later."""
    pure = [{"kind": kind} for kind in ("basic", "simplified", "bayesian")]
    composed = [{"kind": "composition", "delta": "1e-6", "rule": rule} for rule in RULES]
    approximate = [{"kind": "approximate", "delta": "1e-6", "inner": rule} for rule in RULES]
    return [None, *pure, *composed, *approximate]


def decides(guard: Tree | None, family: str) -> bool:
    """Whether a filter decides about queries of a family."""
    return guard is None or "delta" in guard or family not in FAMILIES_WITH_DELTA


def draw_transcript(
    random: Random, domain: Domain, queries: Sequence[Query], guard: Tree | None, count: int
) -> Tree:
    """Draw a transcript of some exchanges of these queries, and a budget for its filter."""
    exchanges = []
    for _ in range(count):
        query = random.choice(queries)
        exchanges.append({"query": query.tree, "response": random.choice(query.responses)})
    tree: Tree = {"version": 1, "domain": domain.tree}
    if guard is not None:
        name = random.choice(("epsilon", "epsilon", "ratio"))
        amounts = ("0.5", "1", "2", "4", "10") if name == "epsilon" else ("2", "9/4", "20")
        tree["filter"] = {**guard, name: random.choice(amounts)}
    return {**tree, "exchanges": exchanges}

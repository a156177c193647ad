"""Random domains, queries with responses, filters and transcripts, all as they are in files.

Weights, bounds and scores are multiples of a quarter, so that what is drawn is what is read.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

__all__ = [
    "Asked",
    "Place",
    "a_box",
    "a_finite_set",
    "a_query",
    "document",
    "filters",
    "inside",
    "kinds_on",
    "transcript",
]

Tree = dict[str, Any]
Asked = tuple[Tree, Sequence[Any]]
"""A query, and some of its responses."""

EPSILONS = ("0.1", "0.25", "0.5", "0.7", "1", "1.5", "2", "1/3")
LABELS = ("never", "now and then", "often", "daily", "größer", "n/a", "x,y", "7")
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


@dataclass(frozen=True, slots=True)
class Side:
    """A coordinate: its bounds, or its categories, each of which is a number of its own."""

    name: str
    low: float = 0
    high: float = 0
    categories: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A domain as it is in a file, and what is needed to ask about it."""

    tree: Tree
    sides: tuple[Side, ...] = ()
    values: tuple[Any, ...] = ()
    """Of a finite set."""

    @property
    def on_box(self) -> bool:
        return "box" in self.tree

    @property
    def named(self) -> bool:
        return not isinstance(self.tree.get("box"), list)


def a_finite_set(random: Random, shape: str) -> Place:
    """Labels, numbers, integers, or points with named coordinates."""
    if shape == "labels":
        values: tuple[Any, ...] = tuple(random.sample(LABELS, random.randint(2, 6)))
        return Place({"values": list(values)}, values=values)
    if shape == "points":
        names = random.sample(("age", "sex", "blood pressure"), random.randint(1, 3))
        columns = [sorted(random.sample(range(-3, 9), random.randint(2, 3))) for _ in names]
        rows = tuple(map(list, itertools.product(*columns)))
        tree = {"points": {"names": names, "rows": list(rows)}}
        sides = [Side(name, min(x), max(x)) for name, x in zip(names, columns, strict=True)]
        return Place(tree, tuple(sides), rows)
    if shape == "integers":
        first = random.randint(-5, 5)
        numbers: list[float] = list(range(first, first + random.randint(2, 7)))
    else:
        numbers = sorted(quarter / 4 for quarter in random.sample(range(-20, 40), 4))
    side = Side("value", min(numbers), max(numbers), whole=shape == "integers")
    return Place({"values": numbers}, (side,), tuple(numbers))


def a_box(random: Random, shape: str) -> Place:
    """Of integers alone, of real coordinates, of all three kinds; or without names."""
    sides: list[Side] = []
    count = random.randint(1, 2) if shape == "integers" else random.randint(2, 3)
    for name in random.sample(("age", "sex", "dose", "height"), count):
        low = random.randint(-4, 2)
        reach = random.randint(1, 3) if shape == "integers" else random.randint(1, 8)
        whole = shape == "integers" or random.random() < 0.3
        sides.append(Side(name, low, low + reach, whole=whole))
    if shape == "mixed":
        sides.append(Side("region", categories=("north", "south", "far east")))
    trees: list[Any] = []
    for side in sides:
        bounds = [int(side.low), int(side.high)]
        if side.categories:
            trees.append({"categories": list(side.categories)})
        else:
            trees.append({"integers": bounds} if side.whole else bounds)
    if shape == "plain":
        return Place({"box": trees}, tuple(sides))
    names = [side.name for side in sides]
    return Place({"box": dict(zip(names, trees, strict=True))}, tuple(sides))


def inside(random: Random, box: Place) -> Tree | None:
    """Points of a box of numbers, as a finite set: all of a small one, else corners and others."""
    if any(side.categories for side in box.sides) or not box.named:
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


def _score(random: Random, place: Place) -> tuple[Tree, int, int]:
    """Weights with an intercept, and integers between which the score is."""
    asked = random.sample(place.sides, random.randint(1, len(place.sides)))
    intercept = random.randint(-4, 4) / 4
    low = high = intercept
    weights: dict[str, Any] = {}
    for side in place.sides:
        if side.categories:
            each = {label: random.randint(-8, 8) / 4 for label in side.categories}
            weights[side.name] = each
            low, high = low + min(each.values()), high + max(each.values())
        elif side in asked or not place.named:
            weight = random.choice((-1, 1)) * random.randint(1, 8) / 4
            weights[side.name] = weight
            ends = sorted((weight * side.low, weight * side.high))
            low, high = low + ends[0], high + ends[1]
    shown: Any = weights if place.named else list(weights.values())
    tree = {"weights": shown} if intercept == 0 else {"weights": shown, "intercept": intercept}
    return tree, math.floor(low) - (low == high), math.ceil(high)


def _epsilon(random: Random) -> str:
    return random.choice(EPSILONS)


def _randomized_response(random: Random, place: Place) -> Asked:
    return {"epsilon": _epsilon(random)}, place.values


def _unary_encoding(random: Random, place: Place) -> Asked:
    variant = random.choice(("symmetric", "optimized"))
    bits = ["".join(random.choice("01") for _ in place.values) for _ in range(3)]
    return {"variant": variant, "epsilon": _epsilon(random)}, bits


def _subset_selection(random: Random, place: Place) -> Asked:
    count = len(place.values)
    size = random.randint(1, count - 1)
    subsets = [sorted(random.sample(range(count), size)) for _ in range(3)]
    return {"size": size, "epsilon": _epsilon(random)}, subsets


def _local_hashing(random: Random, place: Place) -> Asked:
    buckets = random.randint(2, 5)
    seed = f"{random.getrandbits(64):016x}"
    return {"seed": seed, "buckets": buckets, "epsilon": _epsilon(random)}, range(buckets)


def _hadamard_response(random: Random, place: Place) -> Asked:
    order = 2 ** (len(place.values).bit_length() + random.randint(0, 1))
    return {"order": order, "epsilon": _epsilon(random)}, range(order)


def _geometric(random: Random, place: Place) -> Asked:
    low, high = int(place.sides[0].low), int(place.sides[0].high)
    first, last = low - random.randint(0, 3), high + random.randint(-1, 3)
    tree = {"range": [first, last], "sensitivity": str(high - low), "epsilon": _epsilon(random)}
    return tree, range(first, last + 1)


def _exponential_mechanism(random: Random, place: Place) -> Asked:
    responses = ["beans", "cheese", "fish"][: random.randint(2, 3)]
    choices = (0, 1, "1/2", "1/3", "0.25")
    utility = [[random.choice(choices) for _ in responses] for _ in place.values]
    tree = {"responses": responses, "utility": utility, "sensitivity": "1"}
    return {**tree, "epsilon": _epsilon(random)}, responses


def _perturbation(random: Random, place: Place) -> Asked:
    scores = [random.randint(0, 16) / 4 for _ in place.values]
    return {"scores": scores, "range": [0, 4], "epsilon": _epsilon(random)}, (0, 4)


def _channel(random: Random, place: Place) -> Asked:
    responses = ["no", "yes", "perhaps"][: random.randint(2, 3)]
    rows = []
    for _ in place.values:
        weights = [random.randint(1, 9) for _ in responses]
        rows.append([f"{weight}/{sum(weights)}" for weight in weights])
    return {"responses": responses, "probabilities": rows}, responses


def _channel_of_classes(random: Random, place: Place) -> Asked:
    classes = random.randint(2, min(3, len(place.values)))
    tree, responses = _channel(random, Place({}, values=tuple(range(classes))))
    others = [random.randrange(classes) for _ in range(len(place.values) - classes)]
    return {**tree, "of": [*range(classes), *others]}, responses


def _channel_with_delta(random: Random, place: Place) -> Asked:
    rows: list[list[Any]] = [["0.999999", "0.000001", 0], ["0.999999", 0, "0.000001"]]
    probabilities = [rows[index % 2] for index in range(len(place.values))]
    tree = {"responses": ["a", "b", "c"], "probabilities": probabilities, "delta": "0.000001"}
    return tree, ("a", "a", "b")


def _linear(random: Random, place: Place) -> Asked:
    tree, low, high = _score(random, place)
    clipped = random.random() < 0.4
    if clipped:
        low, high = low + (high - low) // 4, high - (high - low) // 4
    tree |= {"range": [low, high], "clip": True} if clipped else {"range": [low, high]}
    return {**tree, "epsilon": _epsilon(random)}, (low, high)


def _regression(random: Random, place: Place) -> Asked:
    tree, _, _ = _score(random, place)
    return {**tree, "epsilon": _epsilon(random)}, (0, 1)


def _duchi(random: Random, place: Place) -> Asked:
    tree, _, _ = _score(random, place)
    epsilon, high = random.choice(list(MEANS))
    return {**tree, "range": [0, high], "epsilon": epsilon}, MEANS[epsilon, high]


def _laplace(random: Random, place: Place) -> Asked:
    tree, low, high = _score(random, place)
    tree |= {"range": [low, high], "grid": "0.5", "epsilon": random.choice(("0.5", "1", "2"))}
    return tree, range(2 * low - 3, 2 * high + 4)


def _gaussian(random: Random, place: Place) -> Asked:
    tree, low, high = _score(random, place)
    tree |= {"range": [low, high], "grid": "0.5", "sigma": str(random.randint(1, 4) * (high - low))}
    if random.random() < 0.4:
        tree["delta"] = "1e-7"
    return tree, range(2 * low - 3, 2 * high + 4)


def _piecewise(random: Random, place: Place) -> Asked:
    tree, low, high = _score(random, place)
    window = random.randint(1, 4)
    tree |= {"range": [low, high], "grid": "0.25", "window": window, "epsilon": _epsilon(random)}
    return tree, range(4 * (high - low) + window)


Draw = Callable[[Random, Place], Asked]
_ON_SETS: dict[str, Draw] = {
    "randomized_response": _randomized_response,
    "unary_encoding": _unary_encoding,
    "subset_selection": _subset_selection,
    "local_hashing": _local_hashing,
    "hadamard_response": _hadamard_response,
    "exponential_mechanism": _exponential_mechanism,
    "perturbation": _perturbation,
    "channel": _channel,
}
_OF_SCORES: dict[str, Draw] = {
    "linear": _linear,
    "logistic": _regression,
    "probit": _regression,
    "duchi": _duchi,
    "laplace": _laplace,
    "piecewise": _piecewise,
    "gaussian": _gaussian,
}
_DRAWN: dict[str, Draw] = {
    **_ON_SETS,
    **_OF_SCORES,
    "geometric": _geometric,
    "channel with a delta": _channel_with_delta,
    "channel of classes": _channel_of_classes,
}


def kinds_on(place: Place) -> list[str]:
    """The query families that a domain allows."""
    kinds = [] if place.on_box else list(_ON_SETS)
    if place.sides:
        kinds += _OF_SCORES
    if not place.on_box and len(place.sides) == 1 and place.sides[0].whole:
        kinds.append("geometric")
    return kinds


def a_query(random: Random, place: Place, kind: str) -> Asked:
    """A query of a family, and some of its responses."""
    tree, responses = _DRAWN[kind](random, place)
    return {"kind": kind.split()[0], **tree}, responses


def filters() -> list[Tree | None]:
    """No filter, and one of every kind with every rule; their budgets are drawn later."""
    pure: list[Tree | None] = [None, *({"kind": k} for k in ("basic", "simplified", "bayesian"))]
    composed = [{"kind": "composition", "delta": "1e-6", "rule": rule} for rule in RULES]
    return [
        *pure,
        *composed,
        *({"kind": "approximate", "delta": "1e-6", "inner": r} for r in RULES),
    ]


def transcript(
    random: Random, place: Place, kinds: Sequence[str], guard: Tree | None, count: int
) -> Tree:
    """A transcript of some queries, each of which may be asked again."""
    queries = [a_query(random, place, kind) for kind in kinds]
    exchanges = []
    for _ in range(count):
        query, responses = random.choice(queries)
        exchanges.append({"query": query, "response": random.choice(responses)})
    tree: Tree = {"version": 1, "domain": place.tree}
    if guard is not None:
        name = random.choice(("epsilon", "epsilon", "ratio"))
        amounts = ("0.5", "1", "2", "4", "10") if name == "epsilon" else ("2", "9/4", "20")
        tree["filter"] = {**guard, name: random.choice(amounts)}
    return {**tree, "exchanges": exchanges}


def document(tree: Any) -> str:
    """The text of a file."""
    return json.dumps(tree, ensure_ascii=False)

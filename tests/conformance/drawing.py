"""Random domains, queries, filters and records, as they are in files."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

__all__ = [
    "Tree",
    "a_domain",
    "a_query",
    "a_subject",
    "a_value",
    "an_attribute_domain",
    "of_pairs",
    "rows_of",
]

Tree = dict[str, Any]
EPSILONS = ("0.1", "0.05", "1/3", "0.5", "1", "1.25", "2.5", "1e-9", "7/1000", "30.5")
LABELS = ("no", "yes", "now and then", "größer", "0x1p+0", "'quoted'", "1", "-0x", "")
NUMBERS = (0, 1, -2, 3, 7, 0.5, 1.5, -0.25, 12.75, 9007199254740992, 1e300)


def a_domain(rng: Random) -> Tree:
    """A domain of any kind that a device knows."""
    kind = rng.randrange(6)
    if kind == 0:
        return {"values": rng.sample([*LABELS, *NUMBERS], rng.randint(2, 5))}
    if kind == 1:
        start = rng.randint(-3, 3)
        return {"values": list(range(start, start + rng.randint(1, 6)))}
    if kind == 2:
        names = rng.sample(["age", "sex", "größe", "b"], rng.randint(1, 3))
        cells = [-1, 0, 0.25, 2, 3]
        every = list(product(cells, repeat=len(names)))
        return {"points": {"names": names, "rows": [list(x) for x in rng.sample(every, 4)]}}
    return an_attribute_domain(rng)


def an_attribute_domain(rng: Random) -> Tree:
    """Some attributes, of which some may change."""
    names = ["region", "smokes", "age", "x", "y"][: rng.randint(1, 4)]
    return {"attributes": {name: _an_attribute(rng) for name in names}}


def _an_attribute(rng: Random) -> Any:
    constant: Any = rng.choice(
        [
            rng.sample(LABELS, rng.randint(1, 3)),
            {"integers": [-1, rng.randint(-1, 2)]},
            rng.sample(NUMBERS[:8], rng.randint(2, 3)),
        ]
    )
    kind = rng.randrange(6)
    if kind == 0:
        return {"changing": constant, "times": rng.randint(0, 2)}
    if kind == 1:
        return {"changing": constant}
    if kind == 2 and not any(isinstance(x, str) for x in _listed(constant)):
        return {"changing": constant, "max_step": rng.choice(["1", "0.5", "2", "0"])}
    return constant


def _listed(attribute: Any) -> list[Any]:
    if isinstance(attribute, dict) and "changing" in attribute:
        return _listed(attribute["changing"])
    if isinstance(attribute, dict):
        low, high = attribute["integers"]
        return list(range(low, high + 1))
    return list(attribute)


def rows_of(domain: Tree, about: list[str] | None) -> list[Any]:
    """What a query sees of a domain."""
    if "values" in domain:
        return list(domain["values"])
    if "points" in domain:
        return list(domain["points"]["rows"])
    assert about is not None
    lists = [_listed(domain["attributes"][name]) for name in about]
    return lists[0] if len(lists) == 1 else [list(row) for row in product(*lists)]


def a_value(rng: Random, domain: Tree) -> Any:
    """A value of a domain, or a record of it."""
    if "attributes" not in domain:
        return rng.choice(rows_of(domain, None))
    return {name: rng.choice(_listed(x)) for name, x in domain["attributes"].items()}


def a_subject(rng: Random) -> str | int:
    names: list[str | int] = ["ann", "größe", "0x12", "'", 1, -7, 2**53, "1"]
    return rng.choice(names)


def a_query(rng: Random, domain: Tree, steps: int = 3) -> Tree:
    """A query that suits a domain, about some of its attributes if there are any."""
    about: list[str] | None = None
    extra: Tree = {}
    names: list[str] = ["value"]
    if "points" in domain:
        names = list(domain["points"]["names"])
    if "attributes" in domain:
        attributes = domain["attributes"]
        about = names = rng.sample(list(attributes), rng.randint(1, min(3, len(attributes))))
        extra["about"] = about
        if any(isinstance(attributes[n], dict) and "changing" in attributes[n] for n in about):
            extra["at"] = rng.randint(1, steps)
    rows = rows_of(domain, about)
    return {**_on_rows(rng, rows, names), **extra}


def of_pairs(rng: Random, size: int) -> Tree:
    """A query that tells values apart fully or not at all."""
    kinds = ["randomized_response", "local_hashing", "unary_encoding", "hadamard_response"]
    kind = rng.choice([*kinds, "subset_selection"])
    return _of_kind(rng, kind, list(range(size)), []) | {"epsilon": rng.choice(["0.1", "1", "2.5"])}


def _on_rows(rng: Random, rows: list[Any], names: list[str]) -> Tree:
    size = len(rows)
    flat = [x for row in rows for x in (row if isinstance(row, list) else [row])]
    kinds = ["randomized_response", "channel", "local_hashing", "exponential_mechanism"]
    kinds += ["perturbation", "unary_encoding", "of", "hadamard_response"]
    if size > 1:
        kinds.append("subset_selection")
    if all(isinstance(row, int) and abs(row) < 100 for row in rows):
        kinds += ["geometric"] * 2
    if all(isinstance(x, (int, float)) for x in flat):
        kinds += ["linear", "clipped", "logistic"]
    return _of_kind(rng, rng.choice(kinds), rows, names)


def _of_kind(rng: Random, kind: str, rows: list[Any], names: list[str]) -> Tree:
    size, epsilon = len(rows), rng.choice(EPSILONS)
    if kind == "randomized_response":
        return {"kind": kind, "epsilon": epsilon}
    if kind in ("channel", "of"):
        width = rng.randint(1, 3)
        count = size if kind == "channel" else rng.randint(1, size)
        query: Tree = {
            "kind": "channel",
            "responses": rng.sample(["a", "b", 1, 0.5, "0x"], width),
            "probabilities": [_row(rng, width) for _ in range(count)],
        }
        if rng.random() < 0.1:  # a response that no value gives
            query["responses"].append("never")
            query["probabilities"] = [[*row, "0"] for row in query["probabilities"]]
        if kind == "channel":
            return query
        classes = [*range(count), *(rng.randrange(count) for _ in range(size - count))]
        rng.shuffle(classes)
        return {**query, "of": classes}
    if kind == "local_hashing":
        seed = rng.randbytes(rng.randint(1, 4)).hex()
        seed = seed.upper() if rng.random() < 0.2 else seed
        return {"kind": kind, "seed": seed, "buckets": rng.randint(2, 5), "epsilon": epsilon}
    if kind == "unary_encoding":
        variant = rng.choice(["symmetric", "optimized"])
        return {"kind": kind, "variant": variant, "epsilon": epsilon}
    if kind == "subset_selection":
        return {"kind": kind, "size": rng.randint(1, size - 1), "epsilon": epsilon}
    if kind == "hadamard_response":
        order = 1 << (size.bit_length() + rng.randint(0, 1))
        return {"kind": kind, "order": order, "epsilon": epsilon}
    if kind == "exponential_mechanism":
        width = rng.randint(1, 3)
        cells = ["0", "1", "0.5", "1/3", "-0.25"]
        utility = [[rng.choice(cells) for _ in range(width)] for _ in range(size)]
        responses = rng.sample(["a", "b", "c", 2], width)
        sensitivity = rng.choice(["1.25", "2", "17/3"])
        return {
            "kind": kind,
            "responses": responses,
            "utility": utility,
            "sensitivity": sensitivity,
            "epsilon": epsilon,
        }
    if kind == "geometric":
        sensitivity = max(1, max(rows) - min(rows)) + rng.randint(0, 2)
        ends = [rng.randint(-6, 0), rng.randint(1, 7)]
        return {"kind": kind, "range": ends, "sensitivity": sensitivity, "epsilon": epsilon}
    if kind == "perturbation":
        scores = [rng.choice([0, 1, 0.1, 0.25, 0.7071067811865476]) for _ in rows]
        choices: list[list[float]] = [[0, 1], [-0.5, 1.75], [-1, 3]]
        ranged = rng.choice(choices)
        return {"kind": kind, "scores": scores, "range": ranged, "epsilon": epsilon}
    return _scored(rng, kind, rows, names, epsilon)


def _scored(rng: Random, kind: str, rows: list[Any], names: list[str], epsilon: str) -> Tree:
    cells = [1, -0.059, 0.1, 3, -1.456, 0]
    weights: Tree = {name: rng.choice(cells) for name in names}
    if not any(weights.values()):
        weights[names[0]] = 1
    if len(names) > 1 and rng.random() < 0.3:
        weights.pop(names[-1])
    query: Tree = {"weights": weights, "epsilon": epsilon}
    if rng.random() < 0.6:
        query["intercept"] = rng.choice([0, -1.5, 6.177])
    if kind == "logistic":
        return {"kind": kind, **query}
    if kind == "clipped":
        ends = rng.choice([[0, 12], [-0.5, 0.5]])
        return {"kind": "linear", **query, "range": ends, "clip": True}
    if rng.random() < 0.5:
        reach = 1 + sum(abs(w) for w in weights.values())
        most = max(abs(x) for row in rows for x in (row if isinstance(row, list) else [row]))
        end = math.ceil(reach * most) + 8
        if end < 10**6:
            query["range"] = [-end, end]
    return {"kind": "linear", **query}


def _row(rng: Random, width: int) -> list[str]:
    weights = [rng.randint(0 if rng.random() < 0.08 else 1, 9) for _ in range(width)]
    weights[0] += not any(weights)
    if sum(weights) == 10 and rng.random() < 0.7:
        return [f"0.{x}" if x < 10 else "1" for x in weights]
    return [f"{x}/{sum(weights)}" for x in weights]

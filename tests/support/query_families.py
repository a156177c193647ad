"""One query of every family, as a file may have it: a new family joins by a line in this table."""

from __future__ import annotations

import json
from typing import Any

import expost as xp
from expost.files.reading import parse
from expost.queries import Query, query_from_json

DOMAIN = xp.FiniteSet(range(4))
"""All queries of the table can be asked on it."""

_SCORE = {"weights": {"value": 1}, "range": [0, 3], "epsilon": "0.7"}

DOCUMENTS: dict[str, dict[str, Any]] = {
    "randomized_response": {"kind": "randomized_response", "epsilon": 0.70},
    "channel": {
        "kind": "channel",
        "responses": ["0x1", 2, "r"],
        "probabilities": [["1/3", "1/3", "1/3"], [0.5, "0.25", 0.25], [0, 0, 1], ["1/7", "6/7", 0]],
    },
    "channel, delta": {
        "kind": "channel",
        "responses": [1, 2],
        "probabilities": [["1/3", "2/3"], [0.5, 0.5]],
        "of": [0, 1, 1, 0],
        "delta": "0.25",
    },
    "unary_encoding": {"kind": "unary_encoding", "variant": "symmetric", "epsilon": "0.7"},
    "unary_encoding, optimized": {
        "kind": "unary_encoding",
        "variant": "optimized",
        "epsilon": "1/3",
    },
    "subset_selection": {"kind": "subset_selection", "size": 2, "epsilon": "0.7"},
    "local_hashing": {"kind": "local_hashing", "seed": "5EED", "buckets": 3, "epsilon": "0.7"},
    "hadamard_response": {"kind": "hadamard_response", "order": 8, "epsilon": 1},
    "geometric": {"kind": "geometric", "range": [-0.0, 2], "sensitivity": "6/2", "epsilon": "0.7"},
    "exponential_mechanism": {
        "kind": "exponential_mechanism",
        "responses": ["'a", 2, "é"],
        "utility": [[0, 1, "1/2"], [1, "1/3", 0], ["1e-3", 0, 0], [1, 1, 0]],
        "sensitivity": "1",
        "epsilon": "0.70",
    },
    "perturbation": {"kind": "perturbation", "scores": [0, 0.1, 0.7, 1], "range": [0, 1],
                     "epsilon": "1.50"},
    "linear": {"kind": "linear", "weights": {"value": -0.5}, "intercept": -0.0, "epsilon": "0.7"},
    "linear, clipped": {"kind": "linear", "clip": True, **_SCORE, "range": [0.5, 2]},
    "logistic": {"kind": "logistic", "weights": {"value": -1}, "intercept": 2, "epsilon": "1/3"},
    "probit": {"kind": "probit", "weights": {"value": 0.1}, "epsilon": "0.7"},
    "duchi": {"kind": "duchi", **_SCORE},
    "laplace": {"kind": "laplace", "grid": 1, **_SCORE, "epsilon": "3"},
    "piecewise": {"kind": "piecewise", "grid": 0.5, "window": 3, **_SCORE},
    "gaussian": {"kind": "gaussian", "weights": {"value": 1}, "range": [0, 3], "grid": "1",
                 "sigma": 2.5},
    "gaussian, delta": {"kind": "gaussian", "weights": {"value": 1}, "range": [0, 3],
                        "grid": "0.5", "sigma": "2", "delta": 1e-6},
}  # fmt: skip


def read_query(document: dict[str, Any]) -> Query:
    return query_from_json(parse(json.dumps(document)))


QUERIES: dict[str, Query] = {name: read_query(document) for name, document in DOCUMENTS.items()}

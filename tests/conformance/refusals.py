"""Queries that every implementation refuses, on domains that are all right."""

from __future__ import annotations

from support.random_documents import Tree

__all__ = ["REFUSALS"]

LABELS: Tree = {"values": ["no", "yes"]}
NUMBERS: Tree = {"values": [0, 1, 2]}
RECORDS: Tree = {"attributes": {"region": ["n", "s"], "smokes": {"changing": ["no", "yes"]}}}
ROWS = [["1/2", "1/2"], ["1/4", "3/4"]]


def _rr(**fields: object) -> Tree:
    return {"kind": "randomized_response", "epsilon": "1", **fields}


def _channel(**fields: object) -> Tree:
    return {"kind": "channel", "responses": [0, 1], "probabilities": ROWS, **fields}


def _linear(**fields: object) -> Tree:
    return {"kind": "linear", "weights": {"value": 1}, "epsilon": "1", **fields}


def _geometric(**fields: object) -> Tree:
    return {"kind": "geometric", "range": [0, 2], "sensitivity": 2, "epsilon": "1", **fields}


def _useful(**fields: object) -> Tree:
    kind = {"kind": "exponential_mechanism", "responses": ["a", "b"], "sensitivity": "1"}
    return {**kind, "utility": [["1", "0"], ["0", "1"]], "epsilon": "1", **fields}


def _hashing(**fields: object) -> Tree:
    return {"kind": "local_hashing", "seed": "5e", "buckets": 2, "epsilon": "1", **fields}


def _perturbation(**fields: object) -> Tree:
    return {"kind": "perturbation", "scores": [0, 1], "range": [0, 1], "epsilon": "1", **fields}


REFUSALS: list[Tree] = [
    {"domain": domain, "query": query}
    for domain, query in [
        (LABELS, {"kind": "no_such_kind", "epsilon": "1"}),
        (LABELS, {"epsilon": "1"}),
        (LABELS, {"kind": "randomized_response"}),
        (LABELS, _rr(epsilon="0")),
        (LABELS, _rr(epsilon="-1")),
        (LABELS, _rr(epsilon="501")),
        (LABELS, _rr(epsilon="1e-400")),
        (LABELS, _rr(epsilon="1/0")),
        (LABELS, _rr(epsilon="nan")),
        (LABELS, _rr(epsilon="1,5")),
        (LABELS, _rr(epsilon=True)),
        (LABELS, _rr(epsilon=None)),
        (LABELS, _rr(more=1)),
        (LABELS, _rr(about=["region"])),
        (LABELS, _rr(at=1)),
        (RECORDS, _rr()),
        (RECORDS, _rr(about=[])),
        (RECORDS, _rr(about=["nowhere"])),
        (RECORDS, _rr(about=["region", "region"])),
        (RECORDS, _rr(about=["region"], at=1)),
        (RECORDS, _rr(about=["smokes"])),
        (RECORDS, _rr(about=["smokes"], at=1.5)),
        (RECORDS, _rr(about="region")),
        (LABELS, _channel(probabilities=[["1/2", "1/2"]])),
        (LABELS, _channel(probabilities=[["1/2", "1/3"], ["1/4", "3/4"]])),
        (LABELS, _channel(probabilities=[["3/2", "-1/2"], ["1/4", "3/4"]])),
        (LABELS, _channel(probabilities=[["1/2", "1/2"], ["1"]])),
        (LABELS, _channel(probabilities=[])),
        (LABELS, _channel(responses=[0])),
        (LABELS, _channel(responses=[0, 0.0])),
        (LABELS, _channel(of=[0, 0])),
        (LABELS, _channel(of=[0, 2])),
        (LABELS, _channel(of=[0, 1, 1])),
        (LABELS, {"kind": "unary_encoding", "variant": "other", "epsilon": "1"}),
        (LABELS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}),
        (LABELS, {"kind": "subset_selection", "size": 0, "epsilon": "1"}),
        (LABELS, {"kind": "subset_selection", "size": 1.5, "epsilon": "1"}),
        (LABELS, {"kind": "hadamard_response", "order": 2, "epsilon": "1"}),
        (LABELS, {"kind": "hadamard_response", "order": 6, "epsilon": "1"}),
        (LABELS, _hashing(seed="")),
        (LABELS, _hashing(seed="5")),
        (LABELS, _hashing(seed="xy")),
        (LABELS, _hashing(buckets=1)),
        (LABELS, _hashing(buckets="2")),
        (LABELS, _geometric()),
        (NUMBERS, _geometric(sensitivity=1)),
        (NUMBERS, _geometric(sensitivity="3/2")),
        (NUMBERS, _geometric(range=[2, 0])),
        (NUMBERS, _geometric(range=[0, 1.5])),
        (NUMBERS, _geometric(range=[0, 2000])),
        (LABELS, _useful(utility=[["1", "0"], ["3", "1"]])),
        (LABELS, _useful(utility=[["1", "0"]])),
        (LABELS, _useful(utility=[["30", "0"], ["30", "0"]])),
        (LABELS, _useful(sensitivity="0")),
        (LABELS, _perturbation(scores=[0, 2])),
        (LABELS, _perturbation(scores=[0])),
        (LABELS, _perturbation(range=[1, 0])),
        (LABELS, _linear()),
        (NUMBERS, _linear(range=[0, 1])),
        (NUMBERS, _linear(clip=True)),
        (NUMBERS, _linear(clip=1)),
        (NUMBERS, _linear(weights={"other": 1})),
        (NUMBERS, _linear(weights={})),
        (NUMBERS, _linear(weights=[1])),
        (NUMBERS, _linear(weights={"value": {"a": 1}})),
        (NUMBERS, _linear(weights={"value": "1"})),
        (NUMBERS, _linear(weights={"value": 0})),
        (NUMBERS, _linear(intercept=None)),
        (NUMBERS, {"kind": "logistic", "weights": {"value": 1e308}, "epsilon": "1"}),
    ]
]
REFUSALS += [
    {"domain": domain, "query": query, "response": response}
    for domain, query, response in [
        (LABELS, _rr(), "maybe"),
        (LABELS, _rr(), 1),
        (LABELS, _rr(), ["no"]),
        (LABELS, _rr(), None),
        (LABELS, _rr(), True),
        (RECORDS, _rr(about=["region", "smokes"], at=1), "n"),
        (RECORDS, _rr(about=["region", "smokes"], at=1), ["no", "n"]),
        (LABELS, _channel(), "0"),
        (LABELS, _channel(), 2),
        (LABELS, _channel(probabilities=[["1", "0"], ["1", "0"]]), 1),
        (LABELS, {"kind": "unary_encoding", "variant": "optimized", "epsilon": "1"}, "012"),
        (LABELS, {"kind": "unary_encoding", "variant": "optimized", "epsilon": "1"}, "0"),
        (LABELS, {"kind": "unary_encoding", "variant": "optimized", "epsilon": "1"}, 10),
        (NUMBERS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}, [1, 0]),
        (NUMBERS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}, [1, 1]),
        (NUMBERS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}, [1, 3]),
        (NUMBERS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}, [-1, 0]),
        (NUMBERS, {"kind": "subset_selection", "size": 2, "epsilon": "1"}, [1]),
        (LABELS, _hashing(), 2),
        (LABELS, _hashing(), -1),
        (LABELS, _hashing(), 0.5),
        (LABELS, {"kind": "hadamard_response", "order": 4, "epsilon": "1"}, 4),
        (NUMBERS, _geometric(), 3),
        (NUMBERS, _geometric(), "1"),
        (LABELS, _perturbation(), 0.5),
        (NUMBERS, _linear(), 1),
    ]
]

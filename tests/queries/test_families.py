"""What families have in common on finite domains: strict files, and content ids."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest

import expost as xp
from expost.files.reading import parse
from expost.queries import query_from_json
from support.random_cases import read_back

DOMAIN = xp.FiniteSet(range(3))
FILES: list[dict[str, Any]] = [
    {"kind": "randomized_response", "epsilon": "1"},
    {"kind": "unary_encoding", "variant": "symmetric", "epsilon": "1"},
    {"kind": "subset_selection", "size": 2, "epsilon": "1"},
    {"kind": "local_hashing", "seed": "5eed", "buckets": 4, "epsilon": "1"},
    {"kind": "hadamard_response", "order": 4, "epsilon": "1"},
    {"kind": "geometric", "range": [0, 3], "sensitivity": "2", "epsilon": "1"},
    {
        "kind": "exponential_mechanism",
        "responses": ["a", 2],
        "utility": [["1/3", 0], [0.25, 1], [0, 0]],
        "sensitivity": "1",
        "epsilon": "1",
    },
]
EVERYWHERE: list[dict[str, Any]] = [
    {
        "kind": "piecewise",
        "weights": {"value": 1},
        "range": [0, 2],
        "grid": "0.5",
        "window": 3,
        "epsilon": "1",
    },
]
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "0x1", "1/2", "1/0", [], {}, [[]], [1, 2, 3], 1e300, -1e-300,
    float("nan"), float("inf"), 2**53, 2**70, 10**400, "9" * 5000,
]  # fmt: skip


def places(tree: Any) -> list[tuple[Any, ...]]:
    if isinstance(tree, (dict, list)):
        children = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [(key, *rest) for key, child in children for rest in [(), *places(child)]]
    return []


def edited(file: dict[str, Any], place: tuple[Any, ...], value: Any) -> str:
    document: Any = copy.deepcopy(file)
    *parents, last = place
    target = document
    for key in parents:
        target = target[key]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return json.dumps(document)


@pytest.mark.parametrize("file", [*FILES, *EVERYWHERE], ids=lambda file: str(file["kind"]))
def test_junk_in_any_place_is_refused_with_one_line_or_makes_a_query(file: dict[str, Any]) -> None:
    refused = 0
    for place, junk in itertools.product(places(file), [*JUNK, ...]):
        reason = ""
        try:
            query = query_from_json(parse(edited(file, place, junk)))
            query.on(DOMAIN)
        except xp.InvalidInput as error:
            reason = str(error)
        assert "\n" not in reason
        assert len(reason) < 300
        assert reason or read_back(query) == query
        refused += bool(reason)
    assert refused > 20


@pytest.mark.parametrize("file", [*FILES, *EVERYWHERE], ids=lambda file: str(file["kind"]))
def test_what_is_unknown_or_missing_is_named(file: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidInput, match="more: unknown field"):
        query_from_json(parse(json.dumps({**file, "more": 1})))
    for field in file:
        document = edited(file, (field,), ...)
        with pytest.raises(xp.InvalidInput, match=f"{field!r} is missing"):
            query_from_json(parse(document))


@pytest.mark.parametrize("file", [*FILES, *EVERYWHERE], ids=lambda file: str(file["kind"]))
def test_every_response_survives_a_file_and_moves_the_content_id(file: dict[str, Any]) -> None:
    query = query_from_json(parse(json.dumps(file)))
    ids = set()
    for response in query.on(DOMAIN).responses:
        transcript = xp.Transcript(DOMAIN).add(query, response)
        again = xp.Transcript.from_json(transcript.to_json())
        assert again == transcript
        assert again.content_id == transcript.content_id
        ids.add(again.content_id)
    assert len(ids) == len(query.on(DOMAIN).responses)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file["kind"]))
def test_a_box_is_not_a_domain_for_them(file: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidInput, match="needs a finite domain"):
        query_from_json(parse(json.dumps(file))).on(xp.Box(x=(0, 1)))

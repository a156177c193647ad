"""The page of limits has every limit with the number that the code enforces."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
ROW = re.compile(r"^\| (?!limit)(?P<limit>[^|]+) \| (?P<most>[^|]+) \|$", re.MULTILINE)
UNITS = {"": 1, "MiB": 1 << 20, "GiB": 1 << 30}

ENFORCED = {
    "a JSON file: transcript, query, study, secret or proof": "files.regular.LARGEST",
    "a prior, or a table with a row per answer": "files.regular.LARGEST_TABLE",
    "rows of a Parquet table": "files.tables._MOST_ROWS",
    "characters of an exact number, such as an epsilon": "numbers._parsing._MOST_CHARACTERS",
    "bits of its numerator, and of its denominator": "numbers._parsing._MOST_BITS",
    "an integer in a domain or a response": "files.reading.LARGEST_INTEGER",
    "epsilon of a query": "queries.LARGEST_EPSILON",
    "epsilon of a budget": "numbers.LARGEST_BUDGET",
    "coordinates of a box, counting each category": "domains._box._MOST_COLUMNS",
    "integers in a range that `--values` lists": "cli._parsing._MOST_VALUES",
    "attributes of a record": "domains._attributes._MOST_ATTRIBUTES",
    "values of an attribute, and combinations that one query is about": "domains.MOST_COMBINATIONS",
    "combinations that queries tie together": "loss._elimination.MOST_TIED",
    "`times` of an attribute that changes": "domains._attributes._MOST_TIMES",
    "combinations of values and counted changes that are followed from step to step": (
        "loss._sweeps.MOST_STATES"
    ),
    "exchanges × steps × (those combinations + 1,000), where changes are limited": (
        "loss._components.MOST_FOLLOWED"
    ),
    "`unary_encoding`: values": "queries.values.unary_encoding._MOST_VALUES",
    "`subset_selection`: values": "queries.values.subset_selection._MOST_VALUES",
    "`channel`: bits of the common denominator": "queries.tables._table._MOST_BITS",
    "`saturating`: classes of values that a query and the earlier responses tell apart": (
        "saturation._value_classes.MOST_CLASSES"
    ),
    "`geometric`: steps from a value to an end of the range": "queries.noise.geometric._MOST_STEPS",
    "`geometric`: bits of its weights": "queries.noise.geometric._MOST_BITS",
    "`laplace`: steps from a value to the farthest response": "queries.noise.laplace._MOST_STEPS",
    "`gaussian`: steps from a value to the farthest response": (
        "queries.noise._discrete_gaussian.LARGEST_REACH"
    ),
    "`piecewise`: steps of the range, and of the window": "queries.noise.piecewise._MOST_STEPS",
    "`exponential_mechanism`: utilities": "queries.tables.exponential_mechanism._MOST_UTILITIES",
    "`exponential_mechanism`: responses": "queries.tables.exponential_mechanism._MOST_RESPONSES",
    "`exponential_mechanism`: bits of a utility": "queries.tables.exponential_mechanism._MOST_BITS",
    "`exponential_mechanism`: sensitivities between two utilities of a value": (
        "queries.tables.exponential_mechanism._MOST_SPREAD"
    ),
    "`Mixture`: lambdas": "filters.rules.mixture._MOST",
    "`Declared`: queries of a plan": "filters.rules.declared._MOST_QUERIES",
    "filters in `AllOf`": "filters._all_of._MOST_FILTERS",
    "groups of attributes that a filter protects": "filters._levels._MOST_GROUPS",
    "consecutive steps that a filter protects": "filters._levels._MOST_STEPS",
    "`count_repeats`: where counting stops": "filters._acceptance_limits.MOST_REPEATS",
    "transcript: steps to set up its queries, for each megabyte": (
        "queries.query_table._PER_MEGABYTE"
    ),
    "transcript: values that doubles cannot tell apart × responses that tell them apart exactly": (
        "loss._on_set._MOST_NOTED"
    ),
    "box: nodes of each search, by default": "solver._effort.NODES",
    "box: work of a decision, in small nodes": "solver._effort.DECISION_WORK",
    "box: work of all decisions of a replay": "solver._effort.REPLAY_WORK",
    "box: work of any other call or command": "solver._effort.WORK",
    "goals of a `design`": "designs.study._MOST_GOALS",
    "subjects of a `design`": "designs.study._MOST_SUBJECTS",
    "rounds of a `design`": "designs.study.MOST_ROUNDS",
    "values, records or histories that the goals of a `design` are about": (
        "designs._model_support.MOST_VALUES"
    ),
    "values or records of `estimate_distribution`": "estimation._support.MOST_VALUES",
    "patterns of responses × (different values + 20)²": (
        "estimation._observations._MOST_STEP_PRODUCTS"
    ),
    "groups of `estimate --by`": "answers._covariates._MOST_GROUPS",
    "different queries that `compare` takes": "report._comparison._MOST_DIFFERENT",
    "different responses on a box that `certify` takes": "proof._certificates._MOST_DIFFERENT",
    "responses × values of `loss --many`, for each megabyte of its files": (
        "cli._loss_of_many._MOST_EVALUATIONS_PER_MB"
    ),
    "ledger: a message, a reservation or a query document": "ledger.tables.MAX_SIZE",
    "ledger: a sync request": "ledger._protocol._MAX_SYNC",
    "ledger: a sync answer": "device.device.LARGEST_ANSWER",
    "ledger: bytes of a subject's name in JSON": "ledger._requests.MAX_NAME",
    "ledger: characters of an idempotency key": "ledger._requests._MAX_KEY",
    "ledger: subjects in one commit; a longer call becomes several": (
        "ledger._arguments._ROWS_PER_COMMIT"
    ),
    "device: combinations of attributes that a query ties together": (
        "device.device.MAX_COMBINATIONS"
    ),
}


def shown() -> dict[str, int]:
    """Return the limits of the page, by their descriptions."""
    rows = ROW.finditer(PAGE.read_text(encoding="utf-8").partition("## Stability")[0])
    return {row["limit"]: size(row["most"]) for row in rows}


def size(text: str) -> int:
    """Return the number that a cell shows, in bytes if it has a unit."""
    number, _, unit = text.replace(",", "").partition(" ")
    base, _, exponent = number.partition("^")
    return math.prod([int(base)] * int(exponent or 1)) * UNITS[unit]


@pytest.mark.parametrize("limit", ENFORCED)
def test_a_limit_is_the_one_in_the_code(limit: str) -> None:
    module, _, name = ENFORCED[limit].rpartition(".")
    assert shown()[limit] == getattr(importlib.import_module(f"expost.{module}"), name)


def test_the_page_has_these_limits_only() -> None:
    assert shown().keys() == ENFORCED.keys()

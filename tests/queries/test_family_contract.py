"""The contract that every query family keeps, checked against fractions and mpmath.

The families are those of ``support.query_families``: a new one joins by a line there.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.files.reading import parse
from expost.queries import FAMILIES, Query, query_from_json
from expost.sampling import InsecureSource, draw
from support import oracles
from support.json_paths import paths
from support.query_families import DOCUMENTS, DOMAIN, QUERIES, read_query

VALUES = range(len(DOMAIN))
PAIRS = list(itertools.permutations(VALUES, 2))
BOX = xp.Box(value=xp.integers(0, 3))

each_family = pytest.mark.parametrize("name", DOCUMENTS)


def weights_of(query: Query) -> list[list[int]]:
    """A row of integer weights per value, a column per response."""
    likelihood = query.on(DOMAIN)
    positions = range(len(likelihood.responses))
    pmfs = [likelihood.pmf(value) for value in VALUES]
    return [[pmf.weight(position) for position in positions] for pmf in pmfs]


def largest_ratio(rows: list[list[int]], x: int, other: int) -> Fraction | None:
    """The largest likelihood ratio of one value against another; None if it is infinite."""
    pairs = [(a, b) for a, b in zip(rows[x], rows[other], strict=True) if a]
    return None if any(b == 0 for _, b in pairs) else max(Fraction(a, b) for a, b in pairs)


def test_every_family_is_in_the_table() -> None:
    assert {document["kind"] for document in DOCUMENTS.values()} == set(FAMILIES)


# -- probabilities -------------------------------------------------------------------------------


@each_family
def test_weights_are_integers_with_one_sum_and_every_response_is_possible(name: str) -> None:
    likelihood, rows = QUERIES[name].on(DOMAIN), weights_of(QUERIES[name])
    assert {type(weight) for row in rows for weight in row} == {int}
    assert all(weight >= 0 for row in rows for weight in row)
    assert {sum(row) for row in rows} == {likelihood.pmf(0).total}
    assert all(any(column) for column in zip(*rows, strict=True))
    for position, column in enumerate(zip(*rows, strict=True)):
        # Weights over the domain are probabilities up to one factor per response.
        weights = [int(weight) for weight in likelihood.weights(position)]
        assert all(a * weights[0] == column[0] * b for a, b in zip(column, weights, strict=True))


@each_family
def test_responses_have_positions_and_junk_has_none(name: str) -> None:
    likelihood = QUERIES[name].on(DOMAIN)
    for position, response in enumerate(likelihood.responses):
        assert likelihood.position(response) == position
        assert likelihood.position(json.loads(json.dumps(response))) == position
    junk: object
    for junk in (None, True, "", "junk", 0.123, -(10**9), 10**9, (), (0,), [[]], {}, math.nan):
        assert likelihood.position(junk) is None


@each_family
def test_draws_follow_the_weights_and_every_value_takes_the_same_randomness(name: str) -> None:
    likelihood, source, times = QUERIES[name].on(DOMAIN), InsecureSource(1), 2000
    for value in VALUES:
        pmf = likelihood.pmf(value)
        counts = Counter(draw(pmf, source) for _ in range(times))
        # Responses of a small probability are taken together, so that each cell expects some.
        expected: list[float] = []
        observed: list[int] = []
        for position in range(len(likelihood.responses)):
            share = times * float(pmf.probability(position))
            assert share or not counts[position]
            if not expected or expected[-1] >= 5:
                expected.append(0.0)
                observed.append(0)
            expected[-1] += share
            observed[-1] += counts[position]
        assert sum(expected) == pytest.approx(times)
        cells = [(o, e) for o, e in zip(observed, expected, strict=True) if e > 1e-9]
        statistic = sum((o - e) ** 2 / e for o, e in cells)
        # χ² with k degrees exceeds k + 2√(kt) + 2t with probability below e^-t (Laurent, Massart).
        # At t = 20 that is a false alarm for one seed in 10^8, and this one is fixed.
        degrees = len(cells) - 1
        assert statistic <= degrees + 2 * math.sqrt(20 * degrees) + 40
        assert pmf.total == likelihood.pmf(0).total


# -- guarantees ----------------------------------------------------------------------------------


@each_family
def test_epsilon_is_the_largest_ratio_of_weights_and_within_the_nominal_one(name: str) -> None:
    query, rows = QUERIES[name], weights_of(QUERIES[name])
    likelihood = query.on(DOMAIN)
    ratios = [largest_ratio(rows, *pair) for pair in PAIRS]
    finite = [ratio for ratio in ratios if ratio is not None]
    if len(finite) < len(ratios):
        assert likelihood.epsilon.is_infinite
        assert query.epsilon is None
        return
    assert likelihood.epsilon == xp.numbers.Nats(ratio=max(finite))
    with mpmath.workdps(400):
        largest = oracles.log(max(finite))
        if query.epsilon is not None:
            assert largest * query.epsilon.denominator <= query.epsilon.numerator
        if not query.delta:
            assert largest <= query.charge(DOMAIN).enclosure.upper


@each_family
def test_the_worst_case_is_the_largest_over_pairs_and_responses(name: str) -> None:
    query, rows = QUERIES[name], weights_of(QUERIES[name])
    before = xp.channel([["1/2", "1/2"], ["1/3", "2/3"], ["1/5", "4/5"], ["2/3", "1/3"]])
    chances = [before.on(DOMAIN).pmf(value).probability(0) for value in VALUES]
    odometer = xp.Odometer(xp.Transcript(DOMAIN).add(before, 0))
    worst = odometer.worst_after(query, 1, xp.numbers.Nats.budget(9)).loss
    ratios = {pair: largest_ratio(rows, *pair) for pair in PAIRS}
    if None in ratios.values():
        assert worst.upper == math.inf
        return
    largest = max(
        chances[x] / chances[other] * ratio
        for (x, other), ratio in ratios.items()
        if ratio is not None
    )
    with mpmath.workdps(60):
        exact = oracles.log(largest)
        assert worst.lower <= exact <= worst.upper
        assert worst.width < 1e-9


@each_family
def test_terms_enclose_the_logarithms_of_the_weights(name: str) -> None:
    likelihood, rows = QUERIES[name].on(DOMAIN), weights_of(QUERIES[name])
    for position, column in enumerate(zip(*rows, strict=True)):
        term = likelihood.term(position)
        for x, other in PAIRS:
            if not column[x] or not column[other]:
                assert (term.logs[x] > -math.inf) == (column[x] > 0)
                continue
            with mpmath.workdps(60):
                exact = oracles.log(Fraction(column[x], column[other]))
                computed = mpmath.mpf(float(term.logs[x])) - mpmath.mpf(float(term.logs[other]))
                assert abs(computed - exact) <= 2 * mpmath.mpf(float(term.error))


@each_family
def test_a_box_of_the_same_values_has_the_same_loss_or_is_refused_with_one_line(name: str) -> None:
    query = QUERIES[name]
    if type(query).on_box is Query.on_box:
        with pytest.raises(xp.InvalidInput, match=r"\A.* needs a finite domain, not a box\Z"):
            query.on(BOX)
        return
    responses = query.on(BOX).responses
    # Terms on a box are off by up to half a step of a grid, or nearly epsilon.
    slack = {"laplace": 1.1, "gaussian": 6.0}.get(query.kind, 0.011)
    assert responses == query.on(DOMAIN).responses
    for response in (responses[0], responses[len(responses) // 2], responses[-1]):
        loss = xp.realized_loss(xp.Transcript(BOX).add(query, response), gap=0.01)
        exact = xp.realized_loss(xp.Transcript(DOMAIN).add(query, response))
        assert loss.lower <= exact.upper
        assert exact.lower <= loss.upper <= exact.upper + slack


# -- a part of a record, and a value that changes ------------------------------------------------


@each_family
def test_about_an_attribute_it_answers_as_on_the_values_of_the_attribute(name: str) -> None:
    query = QUERIES[name]
    person = xp.Attributes(value=list(VALUES), region=["n", "s"])
    part = query.about("value").on(person)
    assert list(part.responses[:20]) == list(query.on(DOMAIN).responses[:20])
    for value in VALUES:
        for region in ("n", "s"):
            location = person.locate({"value": value, "region": region})
            assert location is not None
            pmf, second_step = part.pmf(location), query.on(DOMAIN).pmf(value)
            assert all(
                pmf.weight(position) == second_step.weight(position)
                for position in range(len(query.on(DOMAIN).responses))
            )
    assert query.about("value").content_id != query.content_id
    assert read_query(readable(query.about("value"))) == query.about("value")


@each_family
def test_about_a_changing_attribute_only_answers_of_one_step_add_up(name: str) -> None:
    query = QUERIES[name]
    person = xp.Attributes(value=xp.changing(list(VALUES)))
    with pytest.raises(xp.InvalidInput, match=r"\Aat: "):
        query.about("value").on(person)
    response = query.on(DOMAIN).responses[-1]
    first, second = (query.about("value", at=step) for step in (1, 2))
    once = xp.realized_loss(xp.Transcript(DOMAIN).add(query, response))
    twice = xp.realized_loss(xp.Transcript(DOMAIN).add(query, response).add(query, response))
    two_steps = xp.realized_loss(xp.Transcript(person).add(first, response).add(second, response))
    one_step = xp.realized_loss(xp.Transcript(person).add(first, response).add(first, response))
    second_step = xp.realized_loss(xp.Transcript(person).add(second, response))
    for ours, theirs in ((one_step, twice), (two_steps, twice), (second_step, once)):
        assert ours.lower <= theirs.upper
        assert theirs.lower <= ours.upper


# -- files, ids and words ------------------------------------------------------------------------


def readable(query: Query) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(query.to_json())
    return document


@each_family
def test_a_file_gives_an_equal_query_with_equal_weights_and_id(name: str) -> None:
    query = QUERIES[name]
    again = Query.from_json(query.to_json())
    assert again == query
    assert hash(again) == hash(query)
    assert again.content_id == query.content_id
    assert weights_of(again) == weights_of(query)
    assert type(query).from_json(query.to_json()) == query
    if query.epsilon is not None:
        half = query.with_epsilon(query.epsilon / 2)
        assert half is not None
        assert half.epsilon == query.epsilon / 2
        assert half.content_id != query.content_id
        assert half.with_epsilon(query.epsilon) == query


def test_content_ids_differ_between_all_queries() -> None:
    assert len({query.content_id for query in QUERIES.values()}) == len(QUERIES)


@each_family
def test_every_response_survives_a_transcript_and_moves_its_id(name: str) -> None:
    query = QUERIES[name]
    responses = query.on(DOMAIN).responses[:20]
    ids = set()
    for response in responses:
        transcript = xp.Transcript(DOMAIN).add(query, response)
        again = xp.Transcript.from_json(transcript.to_json())
        assert again == transcript
        assert again.content_id == transcript.content_id
        ids.add(again.content_id)
    assert len(ids) == len(responses)


@each_family
def test_its_words_fit_on_a_line(name: str) -> None:
    query = QUERIES[name]
    for sentence in (query.asks, query.asks_on(DOMAIN), repr(query)):
        assert 3 < len(sentence) < 200
        assert "\n" not in sentence
    assert repr(query).startswith(type(query).__name__)
    assert query.about("value").asks.endswith("about value")


# -- bad parameters ------------------------------------------------------------------------------


JUNK: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "0x1", "1/2", "1/0", [], {}, [[]], [1, 2, 3], 1e300, -1e-300,
    float("nan"), float("inf"), 2**53, 2**70, 10**400, "9" * 5000,
]  # fmt: skip


def edited(document: dict[str, Any], path: tuple[Any, ...], junk: Any) -> str:
    copied: Any = copy.deepcopy(document)
    *parents, last = path
    target = copied
    for key in parents:
        target = target[key]
    if junk is ...:
        del target[last]
    else:
        target[last] = junk
    return json.dumps(copied)


@each_family
def test_junk_anywhere_is_refused_with_one_line_or_makes_a_query(name: str) -> None:
    refused, fields = 0, [path for path in paths(DOCUMENTS[name]) if path]
    for path, junk in itertools.product(fields, [*JUNK, ...]):
        reason = ""
        try:
            query = query_from_json(parse(edited(DOCUMENTS[name], path, junk)))
            query.on(DOMAIN)
        except xp.InvalidInput as error:
            reason = str(error)
        assert "\n" not in reason
        assert len(reason) < 300
        assert reason or Query.from_json(query.to_json()) == query
        refused += bool(reason)
    assert refused > 20


OPTIONAL = {"intercept", "clip", "delta", "of"}


@each_family
def test_unknown_and_missing_fields_are_named(name: str) -> None:
    document = DOCUMENTS[name]
    with pytest.raises(xp.InvalidInput, match="more: unknown field"):
        read_query({**document, "more": 1})
    optional = {*OPTIONAL, "range"} if document["kind"] == "linear" else OPTIONAL
    for field in document.keys() - optional:
        with pytest.raises(xp.InvalidInput, match=f"{field!r} is missing"):
            read_query({key: entry for key, entry in document.items() if key != field})

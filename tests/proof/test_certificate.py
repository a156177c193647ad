"""Certificates: every one verifies, no point exceeds what it proves, and tampering is found out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import expost as xp
import expost.proof.verify as checker
from expost.files.canonical import readable_tree
from expost.filters import FILTERS
from expost.numbers import double_above
from expost.proof.verify import (
    KINDS,
    PURE,
    WITH_DELTA,
    Failed,
    Kind,
    Limit,
    Verdict,
    Work,
    is_within,
    read,
    read_domain,
    read_filter,
    verify,
)  # fmt: skip
from expost.solver import GAP
from support.box_cases import Examined, complaints, some_case
from support.category_box_cases import random_study
from support.json_paths import paths
from support.query_families import DOMAIN, QUERIES


def text_of(transcript: xp.Transcript) -> str:
    return json.dumps(readable_tree(transcript.tree()))


def checked(transcript: xp.Transcript, proof: xp.proof.Certificate) -> Verdict:
    return verify(text_of(transcript), json.dumps(proof.document))


# -- random transcripts --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_certificates_over_boxes_verify_and_no_point_exceeds_them(seed: int) -> None:
    generator = random.Random(8000 + seed)
    for step in range(20):
        case: Examined = some_case(generator, coordinates=generator.choice([1, 2, 4]), queries=8)
        if step % 3 == 2:
            case = random_study(generator)
        gap, nodes = generator.choice([1e-3, 0.01, 0.1]), generator.choice([1, 5, 200])
        proof = xp.proof.certificate(case.transcript, gap=gap, nodes=nodes)
        verdict = checked(case.transcript, proof)
        assert not complaints(
            case, xp.numbers.Enclosure(0.0, double_above(Fraction(verdict.loss))), step
        )
        assert proof.leaves == verdict.leaves


def test_with_nodes_enough_a_certificate_is_as_close_as_asked_for() -> None:
    generator = random.Random(81)
    for _ in range(30):
        case = some_case(generator, coordinates=2, queries=5)
        loss = xp.realized_loss(case.transcript, gap=1e-4)
        proof = xp.proof.certificate(case.transcript, gap=0.01)
        assert loss.lower <= proof.loss
        assert float(proof.loss) <= loss.upper + 0.0101


def smooth(n: int = 14, d: int = 5) -> xp.Transcript:
    """Logistic queries that are flat enough for the bound with curvature."""
    generator = random.Random(5)
    transcript = xp.Transcript(xp.Box([(-1, 1)] * d), xp.BayesianFilter(epsilon=9))
    for _ in range(n):
        weights = [generator.uniform(-1, 1) for _ in range(d)]
        query = xp.logistic(weights, intercept=generator.uniform(-1, 1), epsilon=1)
        transcript = transcript.add(query, generator.choice([0, 1]))
    return transcript


def mixed() -> xp.Transcript:
    """Queries of all kinds on reals and integers, one of them twice."""
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1), pressure=(50, 200), bmi=(10, 50))
    heart = xp.logistic({"age": -0.059, "sex": -1.456, "bmi": 0.1}, intercept=3, epsilon=1)
    sleep = xp.linear({"age": 0.0855, "sex": 3, "bmi": -0.3}, range=(0, 12), clip=True, epsilon=1)
    plain = xp.linear({"age": 1, "bmi": 0.5}, epsilon="0.5")
    transcript = xp.Transcript(box, xp.BayesianFilter(epsilon=4))
    ends = plain.on(box).responses
    return transcript.add(heart, 1).add(sleep, 0).add(heart, 1).add(plain, ends[1]).add(sleep, 12)


def linear_only() -> xp.Transcript:
    transcript = xp.Transcript(xp.Box([(-1, 1)] * 3), xp.BayesianFilter(epsilon=9))
    for weights in ([1, 2, 3], [-1, 0.5, 2], [2, -3, 1]):
        query = xp.linear(weights, epsilon=1)
        transcript = transcript.add(query, query.on(transcript.domain).responses[1])
    return transcript


def corners() -> xp.Transcript:
    """Linear queries, two of them contradicted, whose smallest sum is at one of many corners."""
    generator = random.Random(6)
    box = xp.Box([(-1, 1)] * 13 + [xp.integers(0, 3)])
    transcript = xp.Transcript(box, xp.BayesianFilter(epsilon=9))
    for step in range(30):
        weights = [generator.uniform(-1, 1) for _ in range(14)]
        query = xp.linear(weights, intercept=generator.uniform(-1, 1), epsilon="0.8")
        low, high = query.on(box).responses
        transcript = transcript.add(query, generator.choice([low, high]))
        if step < 2:
            transcript = transcript.add(query, low).add(query, high)
    return transcript


def finite() -> xp.Transcript:
    domain = xp.FiniteSet([0, 1, 2])
    transcript = xp.Transcript(domain, xp.BayesianFilter(epsilon=4))
    transcript = transcript.add(xp.randomized_response(epsilon=1), 2)
    transcript = transcript.add(xp.perturbation([0, 0.25, 1], epsilon=1), 0)
    return transcript.add(xp.channel([["1/2", "1/2"], ["1/3", "2/3"], ["1/4", "3/4"]]), 1)


TRANSCRIPTS = {
    "smooth": smooth,
    "mixed": mixed,
    "linear": linear_only,
    "corners": corners,
    "finite": finite,
}


@cache
def proof_of(name: str) -> str:
    return json.dumps(xp.proof.certificate(TRANSCRIPTS[name]()).document)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_certificate_proves_the_loss_within_its_gap(name: str) -> None:
    transcript = TRANSCRIPTS[name]()
    loss = xp.realized_loss(transcript, gap=1e-4)
    proof = xp.proof.certificate(transcript, gap=0.01)
    assert loss.lower <= proof.loss
    assert float(proof.loss) <= loss.upper + 0.0101
    assert checked(transcript, proof).shows_end_within_budget


def test_what_is_checked_uses_curvature_and_cuts_of_both_kinds() -> None:
    documents = [proof_of(name) for name in TRANSCRIPTS]
    steep = xp.Transcript(xp.Box([(-1, 1)] * 6))
    generator = random.Random(3)
    for _ in range(12):
        query = xp.logistic([generator.uniform(-9, 9) for _ in range(6)], epsilon=1)
        steep = steep.add(query, generator.choice([0, 1]))
    documents.append(json.dumps(xp.proof.certificate(steep).document))
    for word in ('"curvatures"', '"score"', '"column"', '"ends"'):
        assert any(word in document for document in documents), word


@pytest.mark.parametrize(
    "query", [xp.linear({"value": 1}, epsilon=1), xp.perturbation([0, 1], epsilon=1)]
)
def test_a_query_that_uses_up_the_budget_is_shown_to_be_within_it(query: xp.queries.Query) -> None:
    """The error of its score is no reason to say that it may tell more than its epsilon."""
    domain = xp.FiniteSet([0, 1])
    transcript = xp.Transcript(domain, xp.BayesianFilter(epsilon=1)).add(query, 1)
    proof = xp.proof.certificate(transcript)
    assert checked(transcript, proof).shows_end_within_budget
    assert proof.verdict.shows_end_within_budget


PAIR = xp.FiniteSet([0, 1])
THREE = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
TWICE = xp.randomized_response(epsilon=1)
STEEP = xp.logistic([1000], epsilon="1/3")


@pytest.mark.parametrize(
    ("domain", "guard", "exchanges"),
    [
        (PAIR, xp.BayesianFilter(ratio=3), [(THREE, 0)]),
        (PAIR, xp.SimplifiedFilter(ratio=27), [(THREE, y) for y in (0, 1, 0, 0, 0)]),
        (PAIR, xp.BayesianFilter(ratio="9/4"), [(xp.channel([["1/3", "2/3"], ["3/4", "1/4"]]), 0)]),
        (PAIR, xp.BayesianFilter(ratio=9), [(TWICE, 0), (THREE, 1), (TWICE, 1), (THREE, 1)]),
        (PAIR, xp.BasicFilter(epsilon="1/3"), [(xp.perturbation([0, 1], epsilon="1/3"), 1)]),
        (PAIR, xp.BasicFilter(epsilon="2/3"), [(xp.perturbation([0, 1], epsilon="1/3"), 1)] * 2),
        (xp.Box([(-1, 1)]), xp.BayesianFilter(epsilon="1/3"), [(STEEP, 1)]),
        (xp.Box([(-1, 1)]), xp.BayesianFilter(epsilon="2/3"), [(STEEP, 1)] * 2),
    ],
)
def test_a_loss_that_is_all_of_its_budget_is_shown_to_be_within_it(
    domain: xp.FiniteSet | xp.Box,
    guard: xp.filters.Filter,
    exchanges: list[tuple[xp.queries.Query, int]],
) -> None:
    transcript = xp.Transcript(domain, guard)
    for query, response in exchanges:
        transcript = transcript.add(query, response)
    proof = xp.proof.certificate(transcript)
    assert checked(transcript, proof).shows_end_within_budget
    assert proof.verdict.shows_end_within_budget
    assert proof.loss > guard.budget.nearest - 1e-9


@settings(max_examples=60)
@given(st.data())
def test_a_budget_that_a_loss_misses_by_next_to_nothing_is_not_shown(data: st.DataObject) -> None:
    """The oracle multiplies fractions; what is above by 1e-60 is above."""
    size = data.draw(st.integers(2, 4))
    part = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
    likelihood, exchanges = [Fraction(1)] * size, []
    for _ in range(data.draw(st.integers(1, 4))):
        shares = data.draw(st.lists(part, min_size=size, max_size=size))
        query = xp.channel([[p, 1 - p] for p in shares])
        for response in data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=5)):
            chances = [1 - p if response else p for p in shares]
            likelihood = [x * p for x, p in zip(likelihood, chances, strict=True)]
            exchanges.append((query, response))
    ratio = max(likelihood) / min(likelihood)
    assume(ratio > 1)
    little = data.draw(st.sampled_from([Fraction(1, 10**n) for n in (20, 27, 30, 60, 300)]))
    for factor, within in ((1 - little, False), (1, True), (1 + little, True)):
        guard = xp.BayesianFilter(ratio=ratio * factor)
        transcript = xp.Transcript(xp.FiniteSet(range(size)), guard)
        for query, response in exchanges:
            transcript = transcript.add(query, response)
        assert (
            checked(transcript, xp.proof.certificate(transcript)).shows_end_within_budget is within
        )


def test_an_epsilon_that_is_only_said_to_be_one_decides_nothing() -> None:
    """The sensitivity is a lie, so two values are e^10 apart at an epsilon of 1."""
    query: dict[str, Any] = {"kind": "exponential_mechanism", "epsilon": "1", "sensitivity": "1"}
    query |= {"responses": [0, 1], "utility": [[0, 20], [20, 0]]}
    tree = {"domain": {"values": [0, 1]}, "exchanges": [{"query": query, "response": 0}]}
    statement = read(json.dumps(tree), "transcript")
    domain = read_domain(statement["domain"])
    assert not is_within(statement, domain, Limit("epsilon", Fraction(1)), Work())
    assert not is_within(statement, domain, Limit("ratio", Fraction(2)), Work())


def test_an_epsilon_counts_only_for_the_kinds_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kind may have none, or one that means something else."""

    def twice(query: Any, response: Any, values: Any) -> list[tuple[Fraction | int, int]]:
        return [(1, 1), (2, 1)]

    monkeypatch.setitem(KINDS, "new", Kind(twice))
    for fields in ({}, {"epsilon": "0.5"}):
        asked = {"query": {"kind": "new", **fields}, "response": 0}
        tree = {"domain": {"values": [0, 1]}, "exchanges": [asked]}
        statement = read(json.dumps(tree), "transcript")
        domain = read_domain(statement["domain"])
        assert not is_within(statement, domain, Limit("epsilon", Fraction(1, 2)), Work())


def test_the_checker_knows_the_filters_and_which_of_them_bound_the_loss() -> None:
    for kind, each in FILTERS.items():
        assert kind == "all" or kind in (PURE if each.pure else WITH_DELTA)
    assert {*PURE, *WITH_DELTA, "all"} == FILTERS.keys()
    with pytest.raises(Failed, match=r"^filter: unknown here: 'magic'$"):
        read_filter({"kind": "magic", "epsilon": "1"})


def test_likelihoods_that_are_long_to_write_are_not_shown_and_take_no_time() -> None:
    many = 10**600
    shares = [f"{3 * many + 1}/{7 * many}", f"{4 * many - 1}/{7 * many}"]
    long = {"kind": "channel", "responses": [0, 1], "probabilities": [shares, shares[::-1]]}
    three = {**long, "probabilities": [["3/4", "1/4"], ["1/4", "3/4"]]}
    asked = [{"query": long, "response": k % 2} for k in range(140)]
    tree: dict[str, Any] = {"version": 1, "domain": {"values": [0, 1]}}
    tree |= {"filter": {"kind": "bayesian", "ratio": "3"}}
    for count, within in ((20, True), (140, False)):
        exchanges = [*asked[:count], {"query": three, "response": 0}]
        responses = [exchange["response"] for exchange in exchanges]
        proof = {"version": 1, "filter": tree["filter"], "responses": responses}
        proof["loss"] = "1.0986122887"
        verdict = verify(json.dumps({**tree, "exchanges": exchanges}), json.dumps(proof))
        assert verdict.shows_end_within_budget is within


@pytest.mark.parametrize(
    "change", [{"kind": "other"}, {"delta": "1e-6"}, {"ratio": "2"}, {"kind": "approximate"}]
)
def test_filters_that_are_none_fail(change: dict[str, str]) -> None:
    tree, proof = json.loads(text_of(finite())), json.loads(proof_of("finite"))
    tree["filter"] |= change
    proof["filter"] |= change
    with pytest.raises(Failed):
        verify(json.dumps(tree), json.dumps(proof))


# -- what cannot be proved, and what is hard to --------------------------------------------------


def on_side(ends: tuple[float, float], query: xp.queries.Query) -> xp.Transcript:
    transcript = xp.Transcript(xp.Box([ends]))
    return transcript.add(query, query.on(transcript.domain).responses[1])


@pytest.mark.parametrize(
    "transcript",
    [
        on_side((0, 1e-308), xp.logistic([1e308], epsilon=1)),
        on_side((0, 5e-324), xp.logistic([1e308], epsilon=1)),
        on_side((0, 1e-200), xp.probit([1e200], epsilon=1)),
        on_side((0, 1), xp.linear([1e-300], epsilon=1)),
        on_side((-1.7e308, 1.7e308), xp.logistic([1e-308], epsilon=1)),
        on_side((0, 1e-200), xp.queries.duchi([1e200], range=(0, 1), epsilon=1)),
    ],
)
def test_numbers_at_the_ends_of_doubles_have_certificates(transcript: xp.Transcript) -> None:
    loss = xp.realized_loss(transcript)
    proof = xp.proof.certificate(transcript)
    assert loss.lower <= checked(transcript, proof).loss <= loss.upper + 0.01


@pytest.mark.parametrize("named", [True, False])
def test_a_plain_zero_for_categories_is_a_weight_of_zero(named: bool) -> None:
    sides: dict[str, Any] = {"region": xp.categories("north", "south"), "age": (0, 1)}
    box = xp.Box(**sides) if named else xp.Box(list(sides.values()))
    query = xp.logistic({"region": 0, "age": 1} if named else [0, 1], epsilon=1)
    transcript = xp.Transcript(box).add(query, 1)
    loss = xp.realized_loss(transcript)
    assert (
        loss.lower
        <= checked(transcript, xp.proof.certificate(transcript)).loss
        <= loss.upper + GAP  # which is what a proof may leave open
    )


def test_a_box_of_very_many_coordinates_has_a_certificate() -> None:
    transcript = xp.Transcript(xp.Box([(0, 1)] * 300))
    transcript = transcript.add(xp.logistic([1] * 3 + [0] * 297, epsilon=1), 1)
    proof = xp.proof.certificate(transcript)
    assert xp.realized_loss(transcript).lower <= checked(transcript, proof).loss < 1


def test_what_is_too_much_for_the_checker_is_refused_in_a_line() -> None:
    domain = xp.FiniteSet(range(3000))
    transcript = xp.Transcript(domain)
    for k in range(50):
        query = xp.logistic({"value": 0.001}, intercept=k, epsilon="0.1")
        transcript = transcript.add(query, 1)
    with pytest.raises(xp.InvalidInput, match=r"no certificate can be checked: .* too much"):
        xp.proof.certificate(transcript)


def test_where_curvature_is_too_much_work_a_proof_does_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transcript = smooth(n=5, d=3)
    curved = xp.proof.certificate(transcript, gap=0.1)
    assert "curvatures" in json.dumps(curved.document)
    monkeypatch.setattr("expost.proof.verify.ROOM", 150)
    plain = xp.proof.certificate(transcript, gap=0.1)
    assert "curvatures" not in json.dumps(plain.document)
    assert curved.loss < checked(transcript, plain).loss


@pytest.mark.parametrize(("over", "shown"), [("1e-3", True), ("1e-5", True), ("-1e-3", False)])
def test_an_honest_transcript_is_shown_to_be_within_its_budget(over: str, shown: bool) -> None:
    """The gap lies across the budget, so the search goes on until it does not."""
    plain = smooth(n=5, d=3)
    budget = Decimal(xp.realized_loss(plain, gap=1e-6).upper) + Decimal(over)
    transcript = xp.Transcript(plain.domain, xp.BayesianFilter(epsilon=str(budget)))
    for exchange in plain.exchanges:
        transcript = transcript.add(exchange.query, exchange.response)
    proof = xp.proof.certificate(transcript, gap=0.1)
    assert proof.verdict.shows_end_within_budget is shown
    assert checked(transcript, proof).shows_end_within_budget is shown
    assert xp.proof.certificate(plain, gap=0.1).loss > budget


def test_an_infinite_loss_can_be_stated() -> None:
    transcript = xp.Transcript(xp.FiniteSet([0, 1])).add(xp.channel([[1, 0], [0, 1]]), 1)
    assert str(checked(transcript, xp.proof.certificate(transcript)).loss) == "Infinity"


def test_defaults_may_be_left_out_and_numbers_written_differently() -> None:
    tree = json.loads(text_of(mixed()))
    for exchange in tree["exchanges"]:
        if exchange["query"].get("intercept") == 0:
            del exchange["query"]["intercept"]
        exchange["query"]["epsilon"] = float(exchange["query"]["epsilon"])
    box = tree["domain"]["box"]
    tree["domain"]["box"] = dict(reversed(box.items()))
    assert verify(json.dumps(tree), proof_of("mixed")).shows_end_within_budget


# -- tampering -----------------------------------------------------------------------------------


def leaves(document: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Where leaves are that have a field, and the leaves."""
    for g, group in enumerate(document["groups"]):
        for side in ("largest", "smallest"):
            for index, node in enumerate(group[side]):
                if name in node:
                    yield f"groups.{g}.{side}.{index}", node


def tampered(name: str, change: Callable[[Any], str]) -> tuple[str, str]:
    """The place that a change of the proof should be found at, and what is said."""
    document = json.loads(proof_of(name))
    place = change(document)
    with pytest.raises(Failed) as failure:
        verify(text_of(TRANSCRIPTS[name]()), json.dumps(document))
    return place, str(failure.value)


def nudge(field: str, by: float) -> Callable[[Any], str]:
    def change(document: Any) -> str:
        place, leaf = list(leaves(document, field))[-1]
        leaf[field][0] += by
        return place

    return change


def move_split(document: Any) -> str:
    for g, group in enumerate(document["groups"]):
        for side in ("largest", "smallest"):
            for node in group[side]:
                if "at" in node:
                    node["at"] += 0.37
                    return f"groups.{g}.{side}"
    raise AssertionError


def drop_leaf(document: Any) -> str:
    nodes = document["groups"][0]["smallest"]
    nodes.pop()
    return "groups.0.smallest"


def add_leaf(document: Any) -> str:
    nodes = document["groups"][0]["largest"]
    nodes.append(nodes[-1])
    return f"groups.0.largest.{len(nodes) - 1}"


def lower_bound(document: Any) -> str:
    place, leaf = next(leaves(document, "bound"))
    leaf["bound"] = str(float(leaf["bound"]) - 1e-6)
    return place


def lower_loss(document: Any) -> str:
    document["loss"] = str(float(document["loss"]) - 1e-6)
    return "loss"


def forget_term(document: Any) -> str:
    document["groups"][0]["terms"].pop()
    return "groups.0"


def count_twice(document: Any) -> str:
    document["groups"][0]["terms"][0] = [0, 0]
    return "groups.0.terms"


def not_alike(document: Any) -> str:
    document["groups"][0]["terms"][:2] = [[0, 1]]
    return "groups.0.terms"


def other_column(number: float) -> Callable[[Any], str]:
    def change(document: Any) -> str:
        for group in document["groups"]:
            for node in (*group["largest"], *group["smallest"]):
                if "column" in node:
                    node["column"] = number
                    return "groups.0"
        raise AssertionError

    return change


def swap_response(document: Any) -> str:
    document["responses"][0] = 1 - document["responses"][0]
    return "exchanges.0.response"


def forget_response(document: Any) -> str:
    document["responses"].pop()
    return "exchanges"


def nudge_budget(document: Any) -> str:
    document["filter"]["epsilon"] = "8.999"
    return "filter"


def not_a_number(document: Any) -> str:
    _, leaf = next(leaves(document, "multipliers"))
    leaf["multipliers"][0] = float("nan")
    return "a number that is not finite"


def no_tangents(document: Any) -> str:
    place, leaf = list(leaves(document, "tangents"))[-1]
    leaf["tangents"] = [[]] * len(leaf["tangents"])
    return place


def too_few(name: str) -> Callable[[Any], str]:
    def change(document: Any) -> str:
        place, leaf = list(leaves(document, name))[-1]
        leaf[name].pop()
        return place

    return change


@pytest.mark.parametrize(
    "change",
    [
        nudge("multipliers", 0.05), nudge("multipliers", 1e-3), nudge("curvatures", 0.05),
        nudge("curvatures", -1.0), nudge("centre", 0.3), nudge("diagonal", 0.05),
        nudge("diagonal", -10.0), move_split, drop_leaf, add_leaf, lower_bound, lower_loss,
        forget_term, count_twice, not_alike, other_column(99), other_column(-1), other_column(0.5),
        swap_response, forget_response, nudge_budget, not_a_number, no_tangents,
        too_few("multipliers"), too_few("tangents"), too_few("curvatures"), too_few("diagonal"),
    ],
)  # fmt: skip
def test_tampering_with_a_proof_fails_and_the_place_is_named(change: Callable[[Any], str]) -> None:
    place, said = tampered("smooth", change)
    assert said.startswith(place)


@pytest.mark.parametrize(
    "change",
    [
        nudge("multipliers", 0.05), nudge("curvatures", 0.05), nudge("curvatures", -1.0),
        nudge("diagonal", -10.0), drop_leaf, add_leaf, other_column(99), no_tangents,
    ],
)  # fmt: skip
def test_tampering_with_a_proof_about_corners_fails_as_well(change: Callable[[Any], str]) -> None:
    place, said = tampered("corners", change)
    assert said.startswith(place)


def test_a_diagonal_that_is_too_small_proves_nothing_even_if_its_bound_is_stated() -> None:
    """The bound alone would be lower, so this is what a cheat would try."""
    document = json.loads(proof_of("smooth"))
    _, leaf = next(leaves(document, "diagonal"))
    leaf["diagonal"] = [0.0] * len(leaf["diagonal"])
    with pytest.raises(Failed, match="too small for these curvatures"):
        verify(text_of(smooth()), json.dumps(document))


def widen_domain(tree: Any) -> None:
    tree["domain"]["box"][0][1] = 1.5


def nudge_weight(tree: Any) -> None:
    tree["exchanges"][2]["query"]["weights"][1] += 1e-3


def raise_epsilon(tree: Any) -> None:
    tree["exchanges"][2]["query"]["epsilon"] = "1.1"


@pytest.mark.parametrize("change", [widen_domain, nudge_weight, raise_epsilon])
def test_tampering_with_a_transcript_fails_at_a_leaf(change: Callable[[Any], None]) -> None:
    tree = json.loads(text_of(smooth()))
    change(tree)
    with pytest.raises(Failed, match=r"^groups\.0\.largest\.\d+\.bound: it is "):
        verify(json.dumps(tree), proof_of("smooth"))


@pytest.mark.parametrize("change", [lower_loss, nudge_budget, swap_response])
def test_tampering_with_a_finite_proof_fails(change: Callable[[Any], str]) -> None:
    place, said = tampered("finite", change)
    assert said.startswith(place)


def test_a_proof_is_about_one_transcript() -> None:
    proof = proof_of("mixed")
    with pytest.raises(Failed, match="differ"):
        verify(text_of(smooth()), proof)


def test_what_is_no_proof_fails() -> None:
    for text in ("", "[]", "{}", "null", '{"version": 1}', '{"version": 1, "version": 1}'):
        with pytest.raises(Failed):
            verify(text_of(finite()), text)


@pytest.mark.parametrize("name", ["mixed", "linear", "finite"])
def test_whatever_is_put_anywhere_a_proof_holds_or_fails_and_never_breaks(name: str) -> None:
    generator = random.Random(7)
    whole = json.loads(proof_of(name))
    everywhere = list(paths(whole))[1:]
    junk: list[Any] = [
        None,
        True,
        -1,
        10**30,
        0.5,
        "",
        "x",
        "1/0",
        "nan",
        [],
        {},
        [[]],
        {"score": 0},
        {"at": 1},
    ]
    failed = 0
    for _ in range(120):
        document = json.loads(proof_of(name))
        *path, last = generator.choice(everywhere)
        inner = document
        for step in path:
            inner = inner[step]
        inner[last] = generator.choice(junk)
        try:
            verify(text_of(TRANSCRIPTS[name]()), json.dumps(document))
        except Failed:
            failed += 1
    assert failed > 80


# -- families ------------------------------------------------------------------------------------

CERTIFIED = {name: query for name, query in QUERIES.items() if not query.approximate}


def test_the_checker_knows_every_family_but_gaussian_noise() -> None:
    assert xp.queries.FAMILIES.keys() - {"gaussian"} == KINDS.keys()
    assert {query.kind for query in CERTIFIED.values()} == KINDS.keys()


@pytest.mark.parametrize("name", CERTIFIED)
def test_every_family_is_worked_out_again_by_the_checker(name: str) -> None:
    domain, query = DOMAIN, CERTIFIED[name]
    generator = random.Random(9)
    for length in (1, 1, 1, 4):
        transcript = xp.Transcript(domain)
        for _ in range(length):
            responses = query.on(domain).responses
            transcript = transcript.add(query, responses[generator.randrange(len(responses))])
        loss = xp.realized_loss(transcript)
        proof = xp.proof.certificate(transcript)
        assert checked(transcript, proof).loss >= Decimal(loss.lower)
        assert float(proof.loss) == pytest.approx(loss.upper, abs=1e-10)


def test_a_session_and_an_odometer_are_proved_as_their_transcript() -> None:
    session = xp.Session(xp.FiniteSet(["no", "yes"]), "no", filter=xp.BayesianFilter(epsilon=2))
    session.ask(xp.randomized_response(epsilon=1))
    proofs = [
        xp.proof.certificate(asked).encode()
        for asked in (session.transcript, session, xp.Odometer(session.transcript))
    ]
    assert len(set(proofs)) == 1
    with pytest.raises(xp.InvalidInput, match="must be a transcript, a session or an odometer"):
        xp.proof.certificate("transcript.json")


def test_a_response_is_worked_out_once_however_often_its_proof_is_checked() -> None:
    transcript = xp.Transcript(xp.Box([(-1, 1)] * 2), xp.BayesianFilter(epsilon="0.3"))
    for i in range(8):
        transcript = transcript.add(xp.logistic([1, i % 4], epsilon="0.1"), i % 2)
    with mock.patch.object(checker, "read_term", side_effect=checker.read_term) as read_term:
        proof = xp.proof.certificate(transcript)
    assert read_term.call_count == 4
    assert checked(transcript, proof).loss <= proof.loss

"""Finite queries about a coordinate of a box that has categories."""

from __future__ import annotations

import json
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.panel._box_state import concave_spreads
from expost.proof import certificate, verify
from expost.queries import About, Query
from support import integer_boxes, oracles

LABELS = ["north", "south", "east", "west"]
BOX = xp.Box(age=(10, 100), region=xp.categories(*LABELS), sex=xp.categories("f", "m"))
SET = xp.FiniteSet(LABELS)
PREDICTION = xp.logistic({"age": 0.05, "region": {"north": 1, "east": -1}}, epsilon=1)
QUERIES = {
    "randomized_response": xp.randomized_response(epsilon="0.7"),
    "symmetric": xp.unary_encoding(variant="symmetric", epsilon=1),
    "optimized": xp.unary_encoding(epsilon=2),
    "subset": xp.subset_selection(size=2, epsilon="1/3"),
    "large subset": xp.subset_selection(size=3, epsilon=1),
    "hashing": xp.local_hashing(seed="0c", buckets=2, epsilon=1),
    "hadamard": xp.hadamard_response(order=8, epsilon=1),
    "channel": xp.channel([["1/2", "1/2"], ["1/3", "2/3"], ["1/4", "3/4"], ["1/4", "3/4"]]),
    "exponential": xp.exponential_mechanism(
        [[0, 1], [1, 0], [2, 0], [0, 2]], sensitivity=2, epsilon=1
    ),
    "perturbation": xp.perturbation([0, 0.25, 1, 1], epsilon=1),
}


def point(label: str) -> Any:
    located = BOX.locate({"age": 34, "region": label, "sex": "m"})
    assert located is not None
    return located


@pytest.mark.parametrize("name", QUERIES)
def test_it_answers_as_on_the_set_of_the_categories(name: str) -> None:
    query = QUERIES[name]
    on_box, on_set = query.about("region").on(BOX), query.on(SET)
    positions = range(len(on_set.responses))
    columns = [np.array(x, dtype=np.float64) for x in zip(*map(point, LABELS), strict=True)]
    with mpmath.workdps(40):
        for position in positions:
            term = on_box.term(position)
            weights = on_box.weights(position, columns).tolist()
            differences = []
            for index, label in enumerate(LABELS):
                here = on_box.pmf(point(label)).weight(position)
                assert here == on_set.pmf(index).weight(position)
                form = mpmath.fsum(
                    mpmath.mpf(w) * x for w, x in zip(term.weights, point(label), strict=True)
                )
                assert form <= 0
                differences.append(oracles.log(Fraction(here)) + abs(form))
                assert Fraction(weights[index], weights[0]) == Fraction(
                    here, on_box.pmf(point(LABELS[0])).weight(position)
                )
            # One constant has to do for all categories.
            assert max(differences) - min(differences) <= 2 * mpmath.mpf(term.error) + 1e-35
    assert on_box.epsilon == on_set.epsilon.enclosure


@pytest.mark.parametrize("name", QUERIES)
def test_some_responses_tell_any_two_categories_apart_as_well_as_all_do(name: str) -> None:
    query = QUERIES[name]
    on_box, on_set = query.about("region").on(BOX), query.on(SET)
    rows = [
        [on_set.pmf(index).weight(position) for index in range(4)]
        for position in range(len(on_set.responses))
    ]
    assert on_box.sufficient is not None
    for x in range(4):
        for other in range(4):
            best = max(Fraction(row[x], row[other]) for row in rows)
            ratios = [Fraction(rows[k][x], rows[k][other]) for k in on_box.sufficient]
            assert max(ratios) == best


def test_where_too_many_responses_would_have_to_be_tried_epsilon_is_added() -> None:
    box = xp.Box(x=(0, 1), kind=xp.categories(*(f"k{j}" for j in range(70))))
    query = xp.randomized_response(epsilon=1).about("kind")
    assert query.on(box).sufficient is None
    bits_likelihood = xp.unary_encoding(epsilon=1).about("kind").on(box)
    assert (bits_likelihood.sufficient, bits_likelihood.smallest_loss_responses) == (None, None)
    odometer = xp.Odometer(xp.Transcript(box).add(query, "k1"))
    decision = xp.BayesianFilter(epsilon="1.9").decide(odometer, query)
    assert not decision.accepted
    assert xp.BayesianFilter(epsilon=2).decide(odometer, query).accepted


@pytest.mark.parametrize("name", QUERIES)
def test_alone_it_loses_what_it_loses_on_the_set(name: str) -> None:
    query, generator = QUERIES[name], random.Random(name)
    box, points = xp.Transcript(BOX), xp.Transcript(SET)
    for _ in range(4):
        position = generator.randrange(len(query.on(SET).responses))
        box = box.add_position(query.about("region"), position)
        points = points.add_position(query, position)
    loss, exact = xp.realized_loss(box), xp.realized_loss(points)
    assert loss.lower <= exact.upper
    assert exact.lower <= loss.upper <= exact.upper + 1e-9
    proved = verify.verify(box.to_json(), certificate(box).encode().decode()).loss
    assert exact.lower <= proved <= Decimal(exact.upper) + Decimal("1e-9")


def test_what_has_one_response_is_not_taken_for_a_bit() -> None:
    alone = xp.channel([["1"]] * 4).about("region")
    assert concave_spreads(BOX, [alone], np.zeros((9, 1), dtype=np.int64), 0.01) is None


def test_sessions_ask_and_files_keep_it() -> None:
    guard = xp.BayesianFilter(epsilon=3)
    source = xp.sampling.InsecureSource(3)
    session = xp.Session(
        BOX, {"age": 34, "region": "east", "sex": "f"}, filter=guard, source=source
    )
    query = QUERIES["randomized_response"].about("region")
    assert session.ask(query) in LABELS
    session.ask(PREDICTION)
    assert xp.Transcript.from_json(session.transcript.to_json()) == session.transcript
    step = xp.report.explain(xp.replay(session.transcript)).steps[0]
    assert step.question == "the value itself, about region, at epsilon 0.7"


RANDOMIZED = xp.randomized_response(epsilon=1)
REFUSED: list[tuple[Query, str]] = [
    (RANDOMIZED.about("age"), "about: age has no categories; ask about numbers with linear"),
    (RANDOMIZED.about("region", "sex"), "about: on a box, ask about one coordinate by its name"),
    (RANDOMIZED.about("region", at=3), "at: the coordinates of a box do not change; "),
    (RANDOMIZED.about("size"), "about: unknown coordinate 'size'; known: age, region, sex"),
    (
        xp.channel([["1", "0"], *[["1/2", "1/2"]] * 3]).about("region"),
        "got a response that only some categories can give",
    ),
]


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_what_a_box_cannot_be_asked_is_refused_in_a_line(query: Query, message: str) -> None:
    with pytest.raises(xp.errors.InvalidInput) as refused:
        query.on(BOX)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_box_without_names_has_nothing_to_ask_about() -> None:
    with pytest.raises(xp.errors.InvalidInput, match="by its name"):
        RANDOMIZED.about("0").on(xp.Box([xp.categories("a", "b")]))


# -- proofs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_no_point_exceeds_what_a_certificate_proves(seed: int) -> None:
    generator, examined = random.Random(f"category/{seed}"), 0
    while examined < 6:
        case = integer_boxes.random_decision_case(generator)
        if not any(isinstance(query, About) for query, _ in case.asked):
            continue
        examined += 1
        transcript = case.transcript(case.box)
        verdict = verify.verify(transcript.to_json(), certificate(transcript).encode().decode())
        exact = xp.Odometer(case.transcript(case.points)).loss
        assert exact.lower <= verdict.loss
        if all(query.kind != "laplace" for query, _ in case.asked):  # its grid is coarse here
            assert float(verdict.loss) <= exact.upper + 0.011


def mixed() -> xp.Transcript:
    transcript = xp.Transcript(BOX).add(RANDOMIZED.about("region"), "north").add(PREDICTION, 1)
    return transcript.add(QUERIES["channel"].about("region"), 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["exchanges"][0].update(response="south"),
        lambda tree: tree["exchanges"].pop(0),
        lambda tree: tree["exchanges"][0]["query"].update(about=["sex"]),
        lambda tree: tree["exchanges"][0]["query"].update(about=["age"]),
        lambda tree: tree["exchanges"][0]["query"].update(about=["region", "sex"]),
        lambda tree: tree["exchanges"][0]["query"].update(at=1),
        lambda tree: tree["exchanges"][0]["query"].update(epsilon="2"),
        lambda tree: tree["domain"]["box"]["region"]["categories"].reverse(),
        lambda tree: tree["exchanges"][2]["query"]["probabilities"][1].reverse(),
        lambda tree: tree["exchanges"][2]["query"].update(probabilities=[["1", "0"]] * 4),
    ],
)
def test_a_proof_about_another_transcript_fails(change: Any) -> None:
    transcript = mixed()
    proof, tree = certificate(transcript).encode().decode(), json.loads(transcript.to_json())
    assert verify.verify(json.dumps(tree), proof)
    change(tree)
    with pytest.raises(verify.Failed):
        verify.verify(json.dumps(tree), proof)


def test_whatever_the_multiplier_of_a_straight_term_the_bound_holds() -> None:
    tree = json.loads(xp.Transcript(BOX).add(RANDOMIZED.about("region"), "north").to_json())
    exact = RANDOMIZED.on(SET).epsilon.enclosure.lower
    bounds: list[Decimal] = []
    for lam in (-3, -1, 0, 0.5, 1, 2):
        leaf = {"multipliers": [lam], "tangents": [[]]}
        other = {"multipliers": [-1], "tangents": [[]]}
        for sides in ((leaf, other), (other, leaf)):
            group = {"terms": [[0]], "largest": [sides[0]], "smallest": [sides[1]]}
            bounds.clear()
            with localcontext(verify.EXACT):
                read = verify.read(json.dumps([group]), "proof")
                statement = verify.read_transcript(json.dumps(tree))
                verify.loss_of(statement, read, lambda _l, b, _p: bounds.append(b), verify.Work())
            assert float(bounds[0]) >= 0
            assert float(bounds[1]) >= exact - 1e-15  # errors are added later

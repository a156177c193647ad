"""The stand-alone checker: its bounds hold for any multipliers, and it needs nobody's help."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import time
from contextlib import nullcontext
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.files.canonical import readable_tree
from expost.proof import verify
from support import oracles
from support.box_cases import some_case
from support.category_box_cases import random_study

SOURCE = Path(verify.__file__)


def parsed(tree: Any) -> Any:
    return verify.read(json.dumps(tree), "document")


def columns_and_terms(transcript: xp.Transcript) -> tuple[list[verify.Column], list[verify.Term]]:
    statement = parsed(readable_tree(transcript.tree()))
    columns = verify.read_domain(statement["domain"])
    assert isinstance(columns, list)
    terms = [
        verify.read_term(e["query"], verify.plain(e["response"]), columns)
        for e in statement["exchanges"]
    ]
    return columns, terms


def real(number: Decimal) -> mpmath.mpf:
    return mpmath.mpf(str(number).replace("Infinity", "inf"))


def exact_value(curve: verify.Curve, m: int, t: Fraction) -> mpmath.mpf:
    """The largest that m times a curve can be at a score, from the formulas of the paper."""
    epsilon = mpmath.mpf(curve.epsilon.numerator) / curve.epsilon.denominator
    growth, z = mpmath.expm1(epsilon), mpmath.mpf(t.numerator) / t.denominator
    low, high = real(curve.low), real(curve.high)
    if curve.kind == "laplace":
        return -m * real(curve.size) * abs(z - low)
    if curve.kind == "piecewise":
        wide = real(curve.blur) * (1 - mpmath.mpf(10) ** -9) * (1 if m > 0 else -1)
        return m * real(curve.size) * (low - wide < z < high + wide)
    if curve.kind == "logistic":
        share = 1 / (1 + mpmath.exp(-z))
    elif curve.kind == "probit":
        share = mpmath.ncdf(z)
    else:
        share = min(1, max(0, (z - low) / (high - low)))
    return m * mpmath.log1p(growth * share) if curve.size else mpmath.mpf(0)


def exact_sum(terms: list[tuple[verify.Term, int]], point: list[Decimal]) -> mpmath.mpf:
    total = mpmath.mpf(0)
    for term, m in terms:
        a = [Fraction(x) for x in term.a]
        t = sum((w * Fraction(x) for w, x in zip(a, point, strict=True)), Fraction(term.c))
        total += exact_value(term.curve, m, t)
    return total


def some_part(
    generator: random.Random, columns: list[verify.Column]
) -> tuple[list[Decimal], list[Decimal], list[list[Decimal]]]:
    """A part of a box, and some points of it."""
    lower, upper = [], []
    for column in columns:
        width = column.upper - column.lower
        cuts = sorted(column.lower + width * Decimal(generator.random()) for _ in range(2))
        if column.label is not None:
            cuts = [column.lower, column.upper if generator.random() < 0.8 else column.lower]
        elif column.integer:
            cuts = [cut.to_integral_value(context=verify.ROUNDED) for cut in cuts]
        lower.append(cuts[0])
        upper.append(cuts[1])
    points: list[list[Decimal]] = []
    allowed: dict[Any, list[int]] = {}
    for j, column in enumerate(columns):
        if column.label is not None:
            allowed.setdefault(column.name, []).extend([j] if upper[j] else [])
    if [] in allowed.values():
        return lower, upper, []
    for _ in range(10):
        ends = list(zip(lower, upper, strict=True))
        point = [generator.choice(pair) for pair in ends]
        for j, column in enumerate(columns):
            if not column.integer and generator.random() < 0.4:
                point[j] = (lower[j] + upper[j]) / 2
        for name, places in allowed.items():
            one = generator.choice(places)
            for j, column in enumerate(columns):
                if column.name == name:
                    point[j] = Decimal(int(j == one))
        points.append(point)
    return lower, upper, points


def some_leaf(
    generator: random.Random,
    columns: list[verify.Column],
    terms: list[tuple[verify.Term, int]],
    points: list[list[Decimal]],
) -> dict[str, Any]:
    """Multipliers and tangents of about the right size; sometimes curvatures too."""
    steep, tangents = [], []
    for term, _ in terms:
        curve = term.curve
        middle = float(sum(a * x for a, x in zip(term.a, points[0], strict=True)) + term.c)
        if curve.kind == "piecewise":
            steep.append(float(curve.size))
        else:
            steep.append(float(curve.at(curve.low)[1]) if curve.kind != "logistic" else 0.2)
        several = range(generator.choice([0, 1, 2]))
        tangents.append([middle + generator.gauss(0, 2) for _ in several])
    leaf: dict[str, Any] = {
        "multipliers": [generator.gauss(0, 1) * s for s in steep],
        "tangents": tangents,
    }
    if generator.random() < 0.6:
        q = [
            generator.random() * 0.05 * float(term.curve.size) * abs(m)
            if term.curve.kind == "logistic"
            else 0.0
            for term, m in terms
        ]
        leaf["curvatures"] = q
        leaf["centre"] = [float(x) for x in generator.choice(points)]
        # A diagonal that dominates its rows is enough.
        leaf["diagonal"] = [
            1e-9
            + 1.001
            * sum(
                c * abs(float(term.a[j])) * sum(abs(float(a)) for a in term.a)
                for c, (term, _) in zip(q, terms, strict=True)
            )
            for j in range(len(columns))
        ]
    return leaf


@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_a_part_is_above_the_bound_whatever_the_multipliers(seed: int) -> None:
    generator = random.Random(seed)
    curved = seen = 0
    with localcontext(verify.EXACT), mpmath.workdps(60):
        for step in range(50):
            case: Any = some_case(generator, coordinates=generator.choice([1, 2, 3]), queries=4)
            if step % 3 == 0:
                case = random_study(generator)
            columns, found = columns_and_terms(case.transcript)
            sign = generator.choice([1, -1])
            terms = [(term, sign * generator.choice([1, 1, 3])) for term in found]
            lower, upper, points = some_part(generator, columns)
            ends = [Decimal("inf")] * len(terms)
            part = [*lower, *(-x for x in ends)], [*upper, *ends]
            if not points:
                assert verify.bound_of_leaf(columns, terms, *part, {}) == -Decimal("inf")
                continue
            leaf = parsed(some_leaf(generator, columns, terms, points))
            bound = verify.bound_of_leaf(columns, terms, *part, leaf)
            curved += "curvatures" in leaf
            for point in points:
                seen += 1
                assert exact_sum(terms, point) <= real(bound)
    assert curved > 5
    assert seen > 300


def test_logarithms_and_the_normal_distribution_have_the_digits_that_are_promised() -> None:
    generator = random.Random(12)
    with mpmath.workdps(90), localcontext(verify.ROUNDED):
        for _ in range(60):
            x = Decimal(generator.random() * 10 ** generator.uniform(-20, 200)) + 1
            assert abs(real(verify.logarithm(x)) - mpmath.log(real(x))) < mpmath.mpf(10) ** -36
            t = Decimal(generator.choice([18, 3, 1e-9]) * generator.uniform(-1, 1))
            below, density = verify.normal(t)
            assert abs(real(below) - mpmath.ncdf(real(t))) < mpmath.mpf(10) ** -53
            assert abs(real(density) / mpmath.npdf(real(t)) - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "8", "60"])
def test_integer_weights_are_those_that_are_sampled(epsilon: str) -> None:
    domain = xp.FiniteSet([0, 1, 2])
    weights = xp.randomized_response(epsilon=epsilon).on(domain).weights(1).tolist()
    heavy, light = verify.two_weights(Fraction(epsilon))
    assert weights == [light, heavy, light]


def test_what_is_sampled_is_within_the_error_of_a_term() -> None:
    generator = random.Random(11)
    with localcontext(verify.EXACT), mpmath.workdps(50):
        for step in range(60):
            case: Any = some_case(generator, coordinates=2, queries=3)
            if step % 3 == 0:
                case = random_study(generator)
            columns, terms = columns_and_terms(case.transcript)
            box = case.transcript.domain
            lower = [column.lower for column in columns]
            upper = [column.upper for column in columns]
            for exchange, term in zip(case.transcript.exchanges, terms, strict=True):
                likelihood = exchange.query.on(box)
                place = likelihood.position(exchange.response)
                found = []
                for _ in range(4):
                    *_, points = some_part(generator, columns)
                    if not points:
                        continue
                    point = [
                        Decimal(float(min(u, max(a, x))))
                        for x, a, u in zip(points[0], lower, upper, strict=True)
                    ]
                    located = [0.0] * len(point)
                    for j, column in enumerate(box.order):
                        located[column] = float(point[j])
                    weight = likelihood.pmf(tuple(located)).probability(place)
                    low, high = (
                        -exact_value(term.curve, -1, Fraction(term.score(point))),
                        exact_value(term.curve, 1, Fraction(term.score(point))),
                    )
                    found.append((oracles.log(weight) - high, oracles.log(weight) - low))
                # One constant has to do for all of them.
                error = real(term.curve.error) + mpmath.mpf(10) ** -30
                assert max((a for a, _ in found), default=0) <= (
                    min((b for _, b in found), default=0) + 2 * error
                )


def test_it_is_a_program_that_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    tree = ast.parse(SOURCE.read_text("utf-8"))
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "relative"]
        )
    }
    assert modules <= set(sys.stdlib_module_names)
    program = tmp_path / "verify.py"
    program.write_text(SOURCE.read_text("utf-8"), "utf-8")
    transcript = xp.Transcript(xp.Box([(-1, 1)])).add(xp.logistic([3], epsilon=1), 1)
    transcript.save(tmp_path / "t.json")
    xp.proof.certificate(transcript).save(tmp_path / "p.json")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # Neither the site's packages nor the environment, so there is no expost to import.
        command = [sys.executable, "-I", "-S", str(program), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    good = run("t.json", "p.json")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("proved: the realized loss is at most 0.8")
    (tmp_path / "p.json").write_text(
        (tmp_path / "p.json").read_text("utf-8").replace('"loss":"0', '"loss":"1')
    )
    bad = run("t.json", "p.json")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("verify: the proof fails at loss: it is 0.8")
    assert run("t.json", "nowhere.json").returncode == 2
    assert run().returncode == 2


# -- claims that are false -----------------------------------------------------------------------


def claimed(tree: dict[str, Any], groups: list[dict[str, Any]]) -> Decimal:
    """The loss that a proof with these groups would prove, if the checker believed it."""
    xp.Transcript.from_json(json.dumps(tree))
    with localcontext(verify.EXACT):
        return verify.loss_of(parsed(tree), parsed(groups), lambda *_: None, verify.Work())


def true_loss(tree: dict[str, Any], first: list[float], second: list[float]) -> float:
    """What two points say, by the probabilities that are sampled."""
    transcript = xp.Transcript.from_json(json.dumps(tree))
    ratio = Fraction(1)
    for exchange in transcript.exchanges:
        likelihood = exchange.query.on(transcript.domain)
        place = likelihood.position(exchange.response)
        assert place is not None
        for point, power in ((first, 1), (second, -1)):
            ratio *= likelihood.pmf(tuple(point)).probability(place) ** power
    return float(oracles.log(ratio))


def on_box(sides: list[list[float]], *exchanges: tuple[dict[str, Any], float]) -> dict[str, Any]:
    asked = [{"query": query, "response": response} for query, response in exchanges]
    return {"version": 1, "domain": {"box": sides}, "exchanges": asked}


def is_semidefinite(rows: list[list[Fraction]]) -> bool:
    """By elimination in fractions, which round nothing."""
    rows = [[*row] for row in rows]
    for j, row in enumerate(rows):
        if row[j] < 0 or (row[j] == 0 and any(row[j:])):
            return False
        for other in rows[j + 1 :]:
            factor = other[j] / row[j] if row[j] else Fraction(0)
            other[:] = [x - factor * y for x, y in zip(other, row, strict=True)]
    return True


def less_curvature(
    diagonal: list[Decimal], q: list[Decimal], terms: list[list[Decimal]]
) -> list[list[Fraction]]:
    """D - Σ q a aᵀ."""
    pairs = [(Fraction(c), [Fraction(x) for x in a]) for c, a in zip(q, terms, strict=True)]
    return [
        [(j == k) * Fraction(D) - sum(c * a[j] * a[k] for c, a in pairs) for k in range(len(q))]
        for j, D in enumerate(diagonal)
    ]


def is_taken(diagonal: list[Decimal], q: list[Decimal], terms: list[list[Decimal]]) -> bool:
    curve = verify.Curve("logistic", Fraction(1), Decimal(1), *[Decimal(0)] * 3)
    with localcontext(verify.EXACT):
        try:
            own = [verify.Term(tuple(a), Decimal(0), curve) for a in terms]
            verify.check_diagonal(diagonal, q, own)
        except verify.Failed:
            return False
    return True


def test_curvatures_that_cancel_do_not_hide_that_a_matrix_is_not_semidefinite() -> None:
    """Negative curvature makes the diagonal large, and what rounding loses with it."""
    q, terms = [-(10**43 + 250), 100], [[1, 1], [1, -1]]
    curvatures, rows = [Decimal(c) for c in q], [[Decimal(x) for x in row] for row in terms]
    diagonal = [Decimal(0)] * 2
    assert not is_semidefinite(less_curvature(diagonal, curvatures, rows))
    assert not is_taken(diagonal, curvatures, rows)


@pytest.mark.parametrize("seed", range(3))
def test_no_matrix_is_taken_that_is_not_semidefinite(seed: int) -> None:
    generator = random.Random(seed)
    taken = others = 0
    for _ in range(150):
        d, span = generator.randint(1, 6), generator.choice([0, 3, 20, 45])

        def some(span: float = span) -> Decimal:
            if generator.random() < 0.3:
                return Decimal(generator.randint(-2, 2))
            return Decimal(generator.uniform(-1, 1) * 10 ** generator.uniform(-span, span))

        terms = [[some() for _ in range(d)] for _ in range(d)]
        q = [Decimal(f"{some():.6g}") for _ in range(d)]
        if d > 1 and generator.random() < 0.5:  # what nearly cancels
            near = Decimal(generator.choice([-1, 0, 1])).scaleb(-generator.randint(1, 45))
            with localcontext(Context(prec=100)):
                terms[1], q[1] = terms[0], -q[0] * (1 + near)
        nothing = less_curvature([Decimal(0)] * d, q, terms)
        share = Decimal(generator.choice(["0", "0.5", "0.9999999", "1", "1.0000001", "2"]))
        diagonal = []
        for j, row in enumerate(nothing):  # where rows would be dominated by it
            least = max(Fraction(0), sum(map(abs, row)) - abs(row[j]) - row[j])
            diagonal.append(share * Decimal(least.numerator) / Decimal(least.denominator))
        good = is_semidefinite(less_curvature(diagonal, q, terms))
        found = is_taken(diagonal, q, terms)
        assert good or not found
        taken, others = taken + found, others + (not good)
    assert min(taken, others) > 20


def test_a_far_away_centre_does_not_hide_what_cancels() -> None:
    query = {"kind": "logistic", "weights": [1, 1, 1], "epsilon": 4}
    tree = on_box([[0, 0.5]] * 3, ({**query, "intercept": -1}, 1), ({**query, "intercept": 1}, 1))
    leaf: dict[str, Any] = {"multipliers": [0, 0], "tangents": [[], []]}
    true = true_loss(tree, [0.5] * 3, [0.0] * 3)
    for far, diagonal in ((1e45, 0), (1e45, 1e-15), (1e6, 1e-15), (1e3, 1e-13)):
        centre = {"centre": [far, -far, -1e3], "diagonal": [diagonal] * 3}
        curved = {**leaf, "curvatures": [-0.1, 0.1], **centre}
        group = {"terms": [[0], [1]], "largest": [curved], "smallest": [leaf]}
        with nullcontext() if diagonal else pytest.raises(verify.Failed, match="too small"):
            assert claimed(tree, [group]) >= true > 1


def test_a_score_that_drowns_in_its_rounding_is_a_constant() -> None:
    options = {"kind": "linear", "weights": [1, 1, 1], "clip": True, "epsilon": 0.01}
    far = {**options, "intercept": 1e16, "range": [1e16, 1e16 + 2]}
    near = {**options, "range": [0, 2]}
    tree = on_box([[-0.9, 0.9], [-0.9, 0.9], [0, 2]], (far, 1e16 + 2), (near, 0))
    true = true_loss(tree, [-0.9, -0.9, 2.0], [0.9, 0.9, 0.0])
    assert true > 0.017
    proof = xp.proof.certificate(xp.Transcript.from_json(json.dumps(tree)))
    assert proof.loss >= true
    leaf = {"multipliers": [0.0], "tangents": [[]]}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    assert claimed(tree, [group]) >= true


@pytest.mark.parametrize("response", [0, 3, 500, 1000])
def test_noise_in_no_group_is_charged_both_ways(response: int) -> None:
    query = {"kind": "laplace", "weights": [1], "range": [0, 1], "grid": "0.001", "epsilon": 1}
    tree = on_box([[0, 1]], (query, response))
    centre, far = response / 1000, 1.0 if response <= 500 else 0.0
    assert claimed(tree, []) >= true_loss(tree, [centre], [far])


def test_noise_over_a_very_wide_range_loses_nothing_to_rounding() -> None:
    """The loss is that of a power, and with a power the rounding of its base grows."""
    width = 2**53
    query = {"kind": "geometric", "range": [0, width], "sensitivity": width, "epsilon": 1}
    exchanges = [{"query": query, "response": 0}]
    tree = parsed({"domain": {"values": [0, width]}, "exchanges": exchanges})
    heavy, light = verify.two_weights(Fraction(1, width))
    with localcontext(verify.EXACT), mpmath.workdps(100):
        true = width * mpmath.log(mpmath.mpf(heavy) / light)
        assert (
            true <= real(verify.loss_of(tree, [], lambda *_: None, verify.Work())) <= true + 1e-25
        )


def test_a_loss_may_not_be_stated_below_what_is_proved() -> None:
    transcript = xp.Transcript(xp.FiniteSet([0, 1])).add(xp.randomized_response(epsilon="1e-9"), 1)
    proof = xp.proof.certificate(transcript)
    text = transcript.to_json()
    verify.verify(text, json.dumps(proof.document))
    with pytest.raises(verify.Failed, match="loss"):
        verify.verify(text, json.dumps({**proof.document, "loss": "0"}))


def test_weights_next_to_an_integer_have_the_right_one() -> None:
    """An epsilon just above a logarithm, by less than 440 digits tell."""
    with localcontext(Context(prec=1200)):
        below = (
            (Decimal(3 * 2**40 + 1) / 2**40)
            .ln()
            .quantize(Decimal(10) ** -700, rounding="ROUND_CEILING")
        )
    domain = xp.FiniteSet([0, 1])
    query = xp.randomized_response(epsilon=str(below))
    heavy = int(query.on(domain).weights(0)[0])
    assert verify.two_weights(Fraction(below)) == (heavy, 2**40) == (3 * 2**40 + 1, 2**40)


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e999999999", "1e-20000", "501", "1/0", "x"])
def test_absurd_epsilons_fail_at_once(epsilon: str) -> None:
    tree = {"version": 1, "domain": {"values": [0, 1]}, "exchanges": []}
    query = {"kind": "randomized_response", "epsilon": epsilon}
    tree["exchanges"] = [{"query": query, "response": 1}]
    proof = {"version": 1, "responses": [1], "loss": "1"}
    with pytest.raises(verify.Failed):
        verify.verify(json.dumps(tree), json.dumps(proof))


def test_a_proof_that_is_nested_too_deep_fails() -> None:
    with pytest.raises(verify.Failed):
        verify.verify("{}", "[" * 900 + "]" * 900)


def test_tiny_epsilons_have_certificates_too() -> None:
    box = xp.Box([(-1, 1)])
    transcript = xp.Transcript(box)
    for query in (
        xp.logistic([1], epsilon="1e-45"),
        xp.linear([1], range=(-1, 1), epsilon="1e-41"),
        xp.probit([1], epsilon="1e-30"),
    ):
        transcript = transcript.add(query, 1)
    proof = xp.proof.certificate(transcript)
    assert verify.verify(transcript.to_json(), json.dumps(proof.document)).loss < Decimal("1e-9")


def test_transcripts_may_be_written_in_other_words() -> None:
    box = xp.Box(epsilon=(0, 0.1), utility=(-1, 1))
    transcript = xp.Transcript(box).add(xp.logistic({"epsilon": 0.1, "utility": 1}, epsilon=1), 1)
    text = transcript.to_json().replace("0.1", "0.10000000000000000555")
    assert verify.verify(text, json.dumps(xp.proof.certificate(transcript).document)).loss < 1
    hashed = xp.Transcript(xp.FiniteSet([0, 1]))
    hashed = hashed.add(xp.local_hashing(seed="00ff", buckets=2, epsilon=1), 1)
    proof = json.dumps(xp.proof.certificate(hashed).document)
    assert verify.verify(hashed.to_json().replace("00ff", "00FF"), proof).loss <= 1


# -- categories, windows and tangents ------------------------------------------------------------


def plain_leaf(terms: int) -> dict[str, Any]:
    return {"multipliers": [0] * terms, "tangents": [[]] * terms}


REGIONS = {"categories": ["north", "south", "east"]}
ABOUT_REGIONS = {
    "kind": "logistic",
    "weights": [1, {"north": 3, "east": -2}],
    "epsilon": 1,
}


def test_of_categories_exactly_one_is_true() -> None:
    """Could all of them be, or none, scores would reach further than from -2 to 3."""
    tree = {**on_box([], (ABOUT_REGIONS, 1)), "domain": {"box": [[0, 0], REGIONS]}}
    leaves = [{"multipliers": [0], "tangents": [[point]]} for point in (3, -2)]
    group = {"terms": [[0]], "largest": leaves[:1], "smallest": leaves[1:]}
    spread = true_loss(tree, [0, 1, 0, 0], [0, 0, 0, 1])
    assert spread <= claimed(tree, [group]) <= spread + 1e-9


def test_a_part_without_a_category_is_empty_and_one_with_two_as_well() -> None:
    tree = {**on_box([], (ABOUT_REGIONS, 1)), "domain": {"box": [[0, 0], REGIONS]}}
    none = [{"column": j, "at": 0} for j in (1, 2, 3)]
    found: list[Decimal] = []
    leaf = plain_leaf(1)
    # Below all three cuts no category is left; above one and then above another there are two.
    largest = [*none, {}, leaf, leaf, {"column": 2, "at": 0}, leaf, {}]
    group = {"terms": [[0]], "largest": largest, "smallest": [leaf]}
    with localcontext(verify.EXACT):
        statement, groups = parsed(tree), parsed([group])
        verify.loss_of(statement, groups, lambda _l, bound, _p: found.append(bound), verify.Work())
    assert [bound.is_finite() for bound in found] == [False, True, True, True, False, True]
    # The parts are south (cut second), east (third) and north, which is left when the others go.
    assert max(found[1:4]) == found[3] > found[2] > found[1]


@pytest.mark.parametrize(
    "labels", [[], ["a", "a"], [None], [1, 2], ["a", ["b"]], "ab", {"a": 1, "b": 2}]
)
def test_categories_that_are_no_labels_fail(labels: Any) -> None:
    tree = {**on_box([], (ABOUT_REGIONS, 1)), "domain": {"box": [[0, 1], {"categories": labels}]}}
    with pytest.raises(verify.Failed):
        verify.verify(json.dumps(tree), json.dumps({"version": 1, "responses": [1], "loss": "1"}))


WINDOW = {
    "kind": "piecewise",
    "weights": [1],
    "range": [0, 8],
    "grid": 1,
    "window": 2,
    "epsilon": 1,
}


def test_a_window_begins_and_ends_where_scores_are_rounded_to_it() -> None:
    """Response 4 speaks for the steps 3 and 4, which are scores from 2.5 to 4.5."""
    nearly = 1e-9
    for low, high, expected in [
        (2.6, 4.4, 0), (2.4, 4.4, 1), (3, 4.6, 1), (0, 2.4, 0), (4.6, 9, 0), (2.5, 4.4, 1),
        (2.5 + nearly, 4.4, 1), (2.5 + 1e-6, 4.5 - 1e-6, 0), (0, 2.5 - nearly, 1),
        (0, 2.5 - 1e-6, 0),
    ]:  # fmt: skip
        tree, leaf = on_box([[low, high]], (WINDOW, 4)), plain_leaf(1)
        group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
        found = claimed(tree, [group])
        assert abs(found - expected) < Decimal("1e-11"), (low, high)
        if not expected:
            assert true_loss(tree, [low], [high]) == 0


def test_two_windows_are_told_apart_by_a_cut_between_them() -> None:
    """Without multipliers both seem to be possible at once; a cut shows otherwise."""
    tree = on_box([[0, 8]], (WINDOW, 2), (WINDOW, 6))
    leaf = plain_leaf(2)
    cut = [{"column": 0, "at": 3.5}, leaf, leaf]
    for largest, expected in (([leaf], 2), (cut, 1)):
        group = {"terms": [[0], [1]], "largest": largest, "smallest": [leaf]}
        assert abs(claimed(tree, [group]) - expected) < Decimal("1e-11")
    assert true_loss(tree, [2.0], [4.0]) == pytest.approx(1)


@pytest.mark.parametrize("point", [-50, -1.0, 0.3, 2.9, 99, 1e300, -1e300])
def test_wherever_a_tangent_is_said_to_be_the_bound_holds(point: float) -> None:
    """In the convex part, outside of the interval, or far beyond."""
    query = {"kind": "logistic", "weights": [1], "epsilon": 2}
    tree = on_box([[-3, 3]], (query, 1))
    tops = []
    for m, q in itertools.product((1, -1), (0, 0.01, 0.3)):
        _, (term,) = columns_and_terms(xp.Transcript.from_json(json.dumps(tree)))
        with localcontext(verify.EXACT):
            arguments = (Decimal("0.1"), Decimal(str(q)), Decimal(1), Decimal(-3), Decimal(3))
            bound = verify.top(term.curve, m, *arguments, [Decimal(point)])
        for t in range(-30, 31):
            z = Fraction(t, 10)
            value = exact_value(term.curve, m, z) - 0.1 * z - q / 2 * (z - 1) ** 2
            assert value <= real(bound) + mpmath.mpf(10) ** -12
        tops.append(bound)
    assert len(set(tops)) == 6


@pytest.mark.parametrize("kind", ["probit", "linear", "laplace", "piecewise"])
def test_only_logistic_and_convex_linear_terms_have_curvatures(kind: str) -> None:
    query = {**WINDOW, "kind": kind}
    for name in ("window", "grid", "range"):
        if kind == "probit" or (name == "window" != kind and kind != "piecewise"):
            query.pop(name, None)
    if kind == "linear":
        query.pop("grid", None)
        query["clip"] = True
    tree = on_box([[1, 7]], (query, {"probit": 1, "linear": 8}.get(kind, 4)))
    leaf = {**plain_leaf(1), "curvatures": [0.1], "centre": [1], "diagonal": [1]}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    reason = "a linear term, and not convex" if kind == "linear" else "neither logistic nor linear"
    with pytest.raises(verify.Failed, match=rf"largest\.0\.curvatures: {reason}"):
        claimed(tree, [group])


LINEAR = {"kind": "linear", "weights": [1, 2], "epsilon": 2}


@pytest.mark.parametrize("point", [-3.0, -2.9, 0.3, 1.0, 2.9, 3.0, 1e300, -1e300])
def test_wherever_the_tangent_of_a_convex_linear_term_is_the_bound_holds(point: float) -> None:
    """Also at an end of its range, where a slope of 0 follows that is none of its own."""
    _, (term,) = columns_and_terms(
        xp.Transcript.from_json(json.dumps(on_box([[-1, 1], [-1, 1]], (LINEAR, 3))))
    )
    generator = random.Random(f"{point}")
    for _ in range(40):
        low, high = generator.choice([(-3, 3), (-3, 0), (1, 3), (-1, 2)])
        lam, q = generator.uniform(-1.5, 0.5), generator.choice([0.01, 0.1, 0.3, 1.0, 3.0])
        middle = generator.uniform(low, high)
        with localcontext(verify.EXACT):
            numbers = Decimal(lam), Decimal(q), Decimal(middle), Decimal(low), Decimal(high)
            bound = verify.top(term.curve, -2, *numbers, [Decimal(point)])
        for k in range(31):
            z = Fraction(low) + Fraction(k * (high - low), 30)
            square = Fraction(q) / 2 * (z - Fraction(middle)) ** 2
            value = exact_value(term.curve, -2, z) - float(Fraction(lam) * z + square)
            assert value <= real(bound) + mpmath.mpf(10) ** -12


def test_a_convex_sum_is_largest_at_the_ends_of_a_column() -> None:
    tree = on_box([[-1, 1], [-1, 1]], (LINEAR, 3))
    leaf, ends = {"multipliers": [0], "tangents": [[]]}, {"column": 1, "at": "ends"}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    cut = {**group, "smallest": [ends, {"column": 0, "at": "ends"}, leaf, leaf, leaf]}
    spread = true_loss(tree, [1, 1], [-1, -1])
    assert spread <= claimed(tree, [cut]) <= claimed(tree, [group]) + Decimal("1e-9")
    # Each end is a part of its own: what is said of one holds there alone.
    found: list[Decimal] = []
    with localcontext(verify.EXACT):
        verify.loss_of(
            parsed(tree), parsed([cut]), lambda _l, bound, _p: found.append(bound), verify.Work()
        )
    assert len({round(float(bound), 9) for bound in found[1:]}) == 3


@pytest.mark.parametrize(
    ("side", "query", "box", "before"),
    [
        ("largest", LINEAR, [[-1, 1], [-1, 1]], []),
        ("smallest", {**LINEAR, "kind": "logistic"}, [[-1, 1], [-1, 1]], []),
        ("smallest", {**LINEAR, "range": [-1, 3], "clip": True}, [[-1, 1], [-1, 1]], []),
        ("smallest", {**LINEAR, "range": [-3, 1], "clip": True}, [[-1, 1], [-1, 1]], []),
        ("smallest", LINEAR, [[-1, 1], [-1, 1]], [{"score": 0, "at": 0}]),
        (
            "smallest",
            {**LINEAR, "weights": [1, {"north": 2}]},
            [[-1, 1], {"categories": ["north", "south"]}],
            [],
        ),
    ],
    ids=["concave", "logistic", "clipped below", "clipped above", "a cut score", "a category"],
)
def test_where_a_sum_is_not_convex_its_ends_are_not_enough(
    side: str, query: dict[str, Any], box: list[Any], before: list[Any]
) -> None:
    tree = {**on_box([], (query, 1)), "domain": {"box": box}}
    tree["exchanges"][0]["response"] = 1 if query["kind"] == "logistic" else 3
    if "range" in query:
        tree["exchanges"][0]["response"] = query["range"][1]
    leaf = {"multipliers": [0], "tangents": [[]]}
    nodes = [*before, {"column": 1, "at": "ends"}, leaf, leaf, *([leaf] if before else [])]
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf], side: nodes}
    with pytest.raises(verify.Failed, match=rf"{side}\.{len(before)}\.at: "):
        claimed(tree, [group])


@pytest.mark.parametrize(
    "box",
    [
        [[1, 0]], [], [{"integers": [0.5, 0.7]}], [{"integers": [3, 2]}], [[0, 1e400]], [[0]],
        [[0, "1"]], [{}], [None], [[False, True]], {}, [[0, 1], [0, 1]],
    ],
)  # fmt: skip
def test_boxes_that_are_none_fail(box: Any) -> None:
    query = {"kind": "logistic", "weights": [1], "epsilon": 1}
    tree = {**on_box([], (query, 1)), "domain": {"box": box}}
    leaf = {**plain_leaf(1), "bound": "0"}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    proof = {"version": 1, "responses": [1], "groups": [group], "loss": "0"}
    with pytest.raises(verify.Failed):
        verify.verify(json.dumps(tree), json.dumps(proof))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "1e-700", "9" * 2001])
def test_numbers_that_are_none_fail_at_once(text: str) -> None:
    query = {"kind": "logistic", "weights": [1], "epsilon": 1}
    transcript = json.dumps(on_box([[0, 1]], (query, 1)))
    leaf = {**plain_leaf(1), "bound": "0"}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    proof = json.dumps({"version": 1, "responses": [1], "groups": [group], "loss": "0"})
    for changed in ('"weights": [1]', '"box": [[0, 1]]'):
        with pytest.raises(verify.Failed):
            verify.verify(transcript.replace(changed, changed.replace("1", text)), proof)
    with pytest.raises(verify.Failed):
        verify.verify(transcript, proof.replace('"multipliers": [0]', f'"multipliers": [{text}]'))


# -- queries that are none -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "perturbation", "scores": [0, 1], "epsilon": "1"},
        {"kind": "channel", "responses": [1, 1], "probabilities": [["1/4", "3/4"], ["1/2", "1/2"]]},
        {"kind": "channel", "responses": [0, 1], "probabilities": [["-1", "2"], ["-1", "2"]]},
        {
            "kind": "exponential_mechanism",
            "responses": [1, 1],
            "utility": [[0, 1], [1, 0]],
            "sensitivity": 1,
            "epsilon": 1,
        },
    ],
)
def test_a_query_that_is_none_has_no_loss(query: dict[str, Any]) -> None:
    exchanges = [{"query": query, "response": 1}]
    transcript = {"version": 1, "domain": {"values": ["a", "b"]}, "exchanges": exchanges}
    proof = {"version": 1, "responses": [1], "loss": "0"}
    with pytest.raises(verify.Failed, match=r"^exchanges\.0: "):
        verify.verify(json.dumps(transcript), json.dumps(proof))


def test_what_a_perturbation_does_not_have_changes_nothing() -> None:
    query = {"kind": "perturbation", "scores": [0, 1], "range": [0, 1], "epsilon": "1"}
    exchanges = [{"query": {**query, "intercept": 100}, "response": 1}]
    transcript = {"version": 1, "domain": {"values": ["a", "b"]}, "exchanges": exchanges}
    with pytest.raises(verify.Failed, match=r"^loss: it is 1\.00"):
        verify.verify(json.dumps(transcript), '{"version": 1, "responses": [1], "loss": "0"}')


# -- files and work --------------------------------------------------------------------------------


def test_a_file_that_is_not_text_fails(tmp_path: Path) -> None:
    """Compressed text as well: a little of it may be very much."""
    path = tmp_path / "proof.json"
    for data in (gzip.compress(b"[" * 1000), b"\xff\xfe[]"):
        path.write_bytes(data)
        with pytest.raises(verify.Failed, match="not UTF-8 text"):
            verify.read_file(str(path))


def test_only_regular_files_of_a_stated_size_are_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(verify.LARGEST + 1)
    for name, reason in ((pipe, "not a regular file"), (tmp_path, "not a regular file")):
        with pytest.raises(OSError, match=reason):
            verify.read_file(str(name))
    with pytest.raises(OSError, match="not a regular file"):
        verify.read_file("/dev/zero")
    with pytest.raises(OSError, match="more than 67,108,864 bytes"):
        verify.read_file(str(large))
    program = [sys.executable, "-I", "-S", str(SOURCE), str(pipe), str(large)]
    found = subprocess.run(program, capture_output=True, text=True, check=False, timeout=30)
    assert (found.returncode, found.stdout) == (2, "")
    assert "not a regular file" in found.stderr


@pytest.mark.parametrize("text", ["[],", "{},", "0,"])
def test_a_text_of_too_many_values_is_not_even_parsed(text: str) -> None:
    with pytest.raises(verify.Failed, match="proof: too large"):
        verify.read("[" + text * (verify.VALUES + 1) + "0]", "proof")


def curved_tree(columns: int, leaves: int) -> tuple[Any, Any]:
    """A diagonal of many columns has to be looked at in every leaf."""
    query = {"kind": "logistic", "weights": [1] * columns, "epsilon": 1}
    tree = on_box([[-1, 1]] * columns, (query, 1))
    centre = {"centre": [0] * columns, "diagonal": [9] * columns}
    leaf = {**plain_leaf(1), "curvatures": [1e-9], **centre, "bound": "0"}
    nodes = [node for k in range(leaves) for node in ({"column": 0, "at": k / leaves}, leaf)]
    return tree, [{"terms": [[0]], "largest": [*nodes, leaf], "smallest": [leaf]}]


def short_leaves(kind: str, terms: int, leaves: int) -> tuple[Any, Any]:
    query = {"kind": kind, "weights": [1], "epsilon": 1}
    tree = on_box([[-18, 18]], *[({**query, "intercept": k}, 1) for k in range(terms)])
    leaf = {"multipliers": [0] * terms, "tangents": [[1, 2]] * terms, "bound": "0"}
    nodes = [node for k in range(leaves) for node in ({"column": 0, "at": k / leaves}, leaf)]
    names = [[k] for k in range(terms)]
    return tree, [{"terms": names, "largest": [*nodes, leaf], "smallest": [leaf]}]


def about_values(count: int, exchanges: int, query: dict[str, Any]) -> tuple[Any, Any]:
    """Queries that differ a little, for equal ones are worked out once."""
    each = [{**query, "epsilon": 1 + k / 10_000} for k in range(exchanges)]
    asked = [{"query": query, "response": 1} for query in each]
    return {"version": 1, "domain": {"values": list(range(count))}, "exchanges": asked}, []


OUTLIER = [-k / 100 for k in range(100)] + [-9999]
SCORE = {"kind": "logistic", "weights": {"value": 1}}


@pytest.mark.parametrize(
    ("tree", "groups"),
    [
        curved_tree(columns=300, leaves=40),
        short_leaves("logistic", terms=100, leaves=800),
        short_leaves("probit", terms=100, leaves=100),
        (
            on_box(
                [[0, 1]] * 20_000,
                *[({**SCORE, "weights": [1 + k], "epsilon": 1}, 1) for k in range(2000)],
            ),
            [],
        ),
        about_values(50_000, 2000, {"kind": "randomized_response"}),
        about_values(50_000, 2000, SCORE),
        about_values(
            2,
            2,
            {
                "kind": "exponential_mechanism",
                "responses": list(range(101)),
                "utility": [OUTLIER, OUTLIER],
                "sensitivity": 1,
            },
        ),
    ],
    ids=["columns", "leaves", "probit", "coordinates", "values", "scores", "exponents"],
)
def test_small_files_cannot_keep_the_checker_busy(tree: Any, groups: Any) -> None:
    """With the bounds that are right, each of these took more than five seconds, or minutes."""
    responses = [exchange["response"] for exchange in tree["exchanges"]]
    proof = {"version": 1, "responses": responses, "groups": groups, "loss": "0"}
    texts = json.dumps(tree), json.dumps(proof)
    assert max(map(len, texts)) < 10**6
    started = time.process_time()
    with pytest.raises(verify.Failed, match="too much work"):
        verify.verify(*texts)
    assert time.process_time() - started < 4


def test_what_is_only_just_not_too_much_work_takes_a_few_seconds_at_most() -> None:
    """A tenth of all that there is room for."""
    tree, groups = short_leaves("logistic", terms=70, leaves=100)
    statement, parts = parsed(tree), parsed(groups)
    work = verify.Work()
    started = time.process_time()
    with localcontext(verify.EXACT):
        verify.loss_of(statement, parts, lambda *_: None, work)
    assert work.room < 0.91 * verify.ROOM
    assert time.process_time() - started < 2


def test_fractions_without_a_common_denominator_fail_at_once() -> None:
    row = [f"1/{10**300 + k}" for k in range(1000)]
    query = {"kind": "channel", "responses": list(range(1000)), "probabilities": [row, row]}
    tree, _ = about_values(2, 1, query)
    with pytest.raises(verify.Failed, match="too many digits"):
        verify.verify(json.dumps(tree), json.dumps({"version": 1, "responses": [1], "loss": "0"}))
    asked = [({**SCORE, "weights": [1], "epsilon": entry}, 1) for entry in row]
    proof = {"version": 1, "responses": [1] * 1000, "loss": "0"}
    with pytest.raises(verify.Failed, match="too many digits"):
        verify.verify(json.dumps(on_box([[0, 1]], *asked)), json.dumps(proof))


def test_a_tree_that_only_goes_deeper_is_not_kept_in_memory() -> None:
    width, depth = 500, 17_000
    query = {"kind": "logistic", "weights": [1] * width, "epsilon": "1"}
    box = {"version": 1, "domain": {"box": [[0, 1]] * width}}
    text = json.dumps({**box, "exchanges": [{"query": query, "response": 1}]})
    leaf = {"multipliers": [0], "tangents": [[]], "bound": "1"}
    tree = [{"column": 0, "at": 0}] * depth
    group = {"terms": [[0]], "largest": tree, "smallest": [leaf]}
    proof = {"version": 1, "responses": [1], "groups": [group], "loss": "1"}
    with pytest.raises(verify.Failed, match="too many parts are left open"):
        verify.verify(text, json.dumps(proof))

"""The stand-alone checker: its bounds hold for any multipliers, and it needs nobody's help."""

from __future__ import annotations

import ast
import json
import math
import random
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

import expost as xp
import oracles
from boxes import Case, some_case
from expost import verify
from expost.transcript import readable

SOURCE = Path(verify.__file__)


def statement_of(case: Case) -> Any:
    return verify.read(json.dumps(readable(case.transcript.tree())), "transcript")


def exact_value(term: verify.Term, t: Fraction) -> mpmath.mpf:
    """What a term is at a score, from the formulas of the paper."""
    epsilon = mpmath.mpf(str(term.epsilon))
    if term.link == "logistic":
        return oracles.logistic_link(t, epsilon)
    if term.link == "tent":
        return -term.sign * abs(mpmath.mpf(t.numerator) / t.denominator)
    if term.link == "probit":
        return term.sign * oracles.probit_link(term.sign * t, epsilon)
    return term.sign * oracles.rising_link(term.sign * t, epsilon)


def exact_sum(terms: list[tuple[verify.Term, int]], point: list[Decimal]) -> mpmath.mpf:
    total = mpmath.mpf(0)
    for term, m in terms:
        a = [Fraction(x) for x in term.a]
        t = sum((w * Fraction(x) for w, x in zip(a, point, strict=True)), Fraction(term.c))
        total += m * exact_value(term, t)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_part_is_above_the_bound_whatever_the_multipliers(seed: int) -> None:
    generator = random.Random(seed)
    curved = 0
    with localcontext(Context(prec=verify.DIGITS)), mpmath.workdps(60):
        for _ in range(40):
            case = some_case(generator, coordinates=generator.choice([1, 2, 3]), queries=4)
            statement = statement_of(case)
            box = verify.read_box(statement["domain"]["box"])
            terms = [
                (verify.term_of(e["query"], e["response"], box), generator.choice([1, 1, 3]))
                for e in statement["exchanges"]
            ]
            if generator.random() < 0.5:
                terms = [(term.negated(), m) for term, m in terms]
            lower, upper, inside = [], [], []
            for a, b, whole in zip(box.lower, box.upper, box.whole, strict=True):
                cuts = sorted(a + (b - a) * Decimal(generator.random()) for _ in range(2))
                if whole:
                    cuts = [round(cut, 0) for cut in cuts]
                lower.append(cuts[0])
                upper.append(cuts[1])
                inside.append([cuts[0], cuts[1]] if whole else [*cuts, (cuts[0] + cuts[1]) / 2])
            part = verify.Part(
                lower, upper, [-verify.ENDLESS] * len(terms), [verify.ENDLESS] * len(terms)
            )
            slopes = [term.slopes(Decimal(0))[0] for term, _ in terms]
            leaf: dict[str, Any] = {
                "multipliers": [generator.gauss(0, 1) * float(s) for s in slopes],
                "bound": "",
            }
            if generator.random() < 0.6:
                curved += 1
                q = [
                    float(s) * generator.random() * 0.2 if term.link == "logistic" else 0.0
                    for s, (term, _) in zip(slopes, terms, strict=True)
                ]
                leaf["curvatures"] = q
                leaf["centre"] = [float(generator.choice(options)) for options in inside]
                # A diagonal that dominates its rows is enough.
                leaf["diagonal"] = [
                    1e-9
                    + 1.001
                    * float(
                        sum(
                            Decimal(c) * abs(term.a[j]) * sum(map(abs, term.a))
                            for c, (term, _) in zip(q, terms, strict=True)
                        )
                    )
                    for j in range(len(lower))
                ]
            bound = verify.bound_of_leaf(terms, part, leaf, "here")
            for _ in range(10):
                point = [generator.choice(options) for options in inside]
                assert exact_sum(terms, point) <= mpmath.mpf(str(bound))
    assert curved > 5


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "8", "60"])
def test_integer_weights_are_those_that_are_sampled(epsilon: str) -> None:
    domain = xp.FiniteSet([0, 1, 2])
    weights = xp.randomized_response(epsilon=epsilon).on(domain).weights(1).tolist()
    values = verify.Values([verify.Number(0), verify.Number(1), verify.Number(2)], ["value"])
    query = {"kind": "randomized_response", "epsilon": epsilon}
    assert verify.randomized_response(query, verify.Number(1), values) == weights


def test_terms_have_errors_as_large_as_those_of_the_solver() -> None:
    generator = random.Random(11)
    for _ in range(200):
        case = some_case(generator, queries=3)
        statement = statement_of(case)
        with localcontext(Context(prec=verify.DIGITS)):
            box = verify.read_box(statement["domain"]["box"])
            for exchange, term in zip(statement["exchanges"], case.terms, strict=True):
                ours = verify.term_of(exchange["query"], exchange["response"], box)
                if any(term.weights):
                    # The solver's terms have rounded coefficients, which these have not.
                    assert ours.error <= term.error <= ours.error * 3 + Decimal("1e-14")


def test_it_is_a_program_that_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    tree = ast.parse(SOURCE.read_text())
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
    program.write_text(SOURCE.read_text())
    transcript = xp.Transcript(xp.Box([(-1, 1)])).add(xp.logistic([3], epsilon=1), 1)
    transcript.save(tmp_path / "t.json")
    xp.certificate(transcript).save(tmp_path / "p.json")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # Neither the site's packages nor the environment, so there is no expost to import.
        command = [sys.executable, "-I", "-S", str(program), *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    good = run("t.json", "p.json")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("proved: the realized loss is at most 0.8")
    (tmp_path / "p.json").write_text(
        (tmp_path / "p.json").read_text().replace('"loss":"0', '"loss":"1')
    )
    bad = run("t.json", "p.json")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("verify: the proof fails at loss: it is 0.8")
    assert run("t.json", "nowhere.json").returncode == 2
    assert run().returncode == 2


# -- claims that are false -----------------------------------------------------------------------


def claimed(tree: dict[str, Any], groups: list[dict[str, Any]]) -> Decimal:
    """The loss that a proof with these groups would prove, if the checker believed it."""
    text = json.dumps(tree)
    xp.Transcript.from_json(text)
    statement, parsed = verify.read(text, "transcript"), verify.read(json.dumps(groups), "proof")
    with localcontext(Context(prec=verify.DIGITS)):
        return verify.loss_on_box(statement, parsed, lambda *_: None)


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


def test_a_far_away_centre_does_not_hide_what_cancels() -> None:
    query = {"kind": "logistic", "weights": [1, 1, 1], "epsilon": 4}
    tree = on_box([[0, 0.5]] * 3, ({**query, "intercept": -1}, 1), ({**query, "intercept": 1}, 1))
    leaf: dict[str, Any] = {"multipliers": [0, 0], "bound": ""}
    curved = {"curvatures": [-0.1, 0.1], "centre": [1e45, -1e45, -1e3], "diagonal": [0, 0, 0]}
    group = {"terms": [[0], [1]], "largest": [{**leaf, **curved}], "smallest": [leaf]}
    assert claimed(tree, [group]) >= true_loss(tree, [0.5] * 3, [0.0] * 3) > 1


def test_a_score_that_drowns_in_its_rounding_is_a_constant() -> None:
    options = {"kind": "linear", "weights": [1, 1, 1], "clip": True, "epsilon": 0.01}
    far = {**options, "intercept": 1e16, "range": [1e16, 1e16 + 2]}
    near = {**options, "range": [0, 2]}
    tree = on_box([[-0.9, 0.9], [-0.9, 0.9], [0, 2]], (far, 1e16 + 2), (near, 0))
    true = true_loss(tree, [-0.9, -0.9, 2.0], [0.9, 0.9, 0.0])
    assert true > 0.017
    proof = xp.certificate(xp.Transcript.from_json(json.dumps(tree)))
    assert proof.loss >= true
    leaf = {"multipliers": [0.0], "bound": ""}
    group = {"terms": [[0]], "largest": [leaf], "smallest": [leaf]}
    assert claimed(tree, [group]) >= true


def test_corners_beyond_where_a_sum_is_convex_are_refused() -> None:
    epsilon = 0.1
    foot = 2 / math.expm1(epsilon)
    falling = {"kind": "linear", "weights": [-1], "range": [-1, 0], "clip": True}
    rising = {"kind": "linear", "weights": [1], "range": [1, 1 + foot], "clip": True}
    asked = [({**falling, "epsilon": epsilon}, 0.0)] * 2
    asked += [({**rising, "epsilon": epsilon}, 1 + foot)] * 2
    tree = on_box([[0, 1 + foot]], *asked)
    leaf = {"multipliers": [0, 0], "bound": ""}
    cut = {"split": "score", "of": 0, "at": 1 + 0.99999 * foot}
    smallest = [cut, {"corners": True, "bound": ""}, leaf]
    group = {"terms": [[0, 1], [2, 3]], "largest": [leaf], "smallest": smallest}
    with pytest.raises(verify.Failed, match="beyond where the sum is convex"):
        claimed(tree, [group])


@pytest.mark.parametrize("response", [0, 3, 500, 1000])
def test_noise_in_no_group_is_charged_both_ways(response: int) -> None:
    query = {"kind": "laplace", "weights": [1], "range": [0, 1], "grid": "0.001", "epsilon": 1}
    tree = on_box([[0, 1]], (query, response))
    centre, far = response / 1000, 1.0 if response <= 500 else 0.0
    assert claimed(tree, []) >= true_loss(tree, [centre], [far])


def test_a_loss_may_not_be_stated_below_what_is_proved() -> None:
    transcript = xp.Transcript(xp.FiniteSet([0, 1])).add(xp.randomized_response(epsilon="1e-9"), 1)
    proof = xp.certificate(transcript)
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
    proof = {"version": 1, "statement": tree, "loss": "1"}
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
    proof = xp.certificate(transcript)
    assert verify.verify(transcript.to_json(), json.dumps(proof.document)).loss < Decimal("1e-9")


def test_names_that_look_like_fields_and_seeds_in_capitals_are_read_alike() -> None:
    box = xp.Box(epsilon=(0, 0.1), utility=(-1, 1))
    transcript = xp.Transcript(box).add(xp.logistic({"epsilon": 0.1, "utility": 1}, epsilon=1), 1)
    text = transcript.to_json().replace("0.1", "0.10000000000000000555")
    assert verify.verify(text, json.dumps(xp.certificate(transcript).document)).loss < 1
    hashed = xp.Transcript(xp.FiniteSet([0, 1]))
    hashed = hashed.add(xp.local_hashing(seed="00ff", buckets=2, epsilon=1), 1)
    proof = json.dumps(xp.certificate(hashed).document)
    assert verify.verify(hashed.to_json().replace("00ff", "00FF"), proof).loss <= 1

"""The stand-alone checker: its bounds hold for any multipliers, and it needs nobody's help."""

from __future__ import annotations

import ast
import json
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

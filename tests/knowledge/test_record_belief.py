"""Beliefs over records and histories, against all of them listed with fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import expost as xp
from expost.errors import InvalidInput
from expost.knowledge import (
    Belief,
    RecordBelief,
    Statement,
    confidence,
    gain_ratio,
    knowledge_gain,
)
from support.record_cases import likelihoods, list_records, random_record_case

TRUTH = xp.randomized_response(epsilon=1)


def some_tables(generator: random.Random, domain: xp.Attributes) -> dict[tuple[str, ...], Any]:
    """Tables over some attributes, alone or in pairs, as counts by combination."""
    constant = [name for name in domain.names if domain[name].change is None]
    free = [
        (name,)
        for name in domain.names
        if (change := domain[name].change) is not None and not change.limited
    ]
    generator.shuffle(constant)
    joint = [tuple(constant[:2])] if len(constant) > 1 else [(name,) for name in constant]
    tables = {}
    for names in [*joint, *free]:
        counts = [generator.randint(0, 4) for _ in domain.part(names).values]
        counts[0] += 1
        tables[names] = [Fraction(count, sum(counts)) for count in counts]
    return tables


def prior_weights(
    domain: xp.Attributes, records: list[Any], tables: dict[tuple[str, ...], Any]
) -> list[Fraction]:
    """The probability of every record, up to a factor."""
    weights = [Fraction(1)] * len(records)
    for names, table in tables.items():
        part = domain.part(names)
        for place, record in enumerate(records):
            seen = [record[name] for name in names]
            if isinstance(seen[0], dict):
                for value in seen[0].values():
                    weights[place] *= table[part.values.index(value)]
            else:
                key = seen[0] if len(seen) == 1 else tuple(seen)
                weights[place] *= table[list(part.values).index(key)]
    return weights


def some_statement(
    generator: random.Random, domain: xp.Attributes, steps: tuple[int, ...]
) -> tuple[str, Any]:
    """A statement about one or two attributes, and whether it holds for a record."""
    parts: list[tuple[str, Any]] = []
    for name in generator.choices(domain.names, k=generator.randint(1, 2)):
        value = generator.choice(list(domain[name].values.values))
        step = generator.choice(steps) if domain[name].change is not None else None
        told = f'"{value}"' if isinstance(value, str) else str(value)
        when = "" if step is None else f" at {step}"

        def holds(record: Any, name: str = name, step: Any = step, value: Any = value) -> bool:
            return bool((record[name] if step is None else record[name][step]) == value)

        parts.append((f"{name}{when} == {told}", holds))
    joint = generator.choice([" and ", " or "])
    join = all if joint == " and " else any
    return joint.join(text for text, _ in parts), lambda r: join(f(r) for _, f in parts)


@pytest.mark.parametrize("block", range(2))
def test_confidences_are_those_of_all_records_listed(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        generator = random.Random(seed)
        case = random_record_case(generator)
        records = list_records(case.domain, case.steps)
        tables = some_tables(generator, case.domain)
        text, holds = some_statement(generator, case.domain, case.steps)
        before = RecordBelief(case.domain, tables, steps=case.steps)
        claim = Statement(case.domain, text)
        prior = prior_weights(case.domain, records, tables)
        after = [p * w for p, w in zip(prior, likelihoods(case.transcript, records), strict=True)]
        posterior = before.updated(case.transcript)
        for belief, weights in ((before, prior), (posterior, after)):
            sure = sum(w for w, record in zip(weights, records, strict=True) if holds(record))
            assert confidence(belief, claim) == sure / sum(weights), seed
        name = generator.choice(case.domain.names)
        step = generator.choice(case.steps) if case.domain[name].change is not None else None
        seen = posterior.marginal(name, at=step)
        for value in case.domain[name].values.values:
            share = sum(
                w
                for w, record in zip(after, records, strict=True)
                if (record[name] if step is None else record[name][step]) == value
            )
            assert seen.probability(value) == share / sum(after), seed


def test_histories_are_over_the_steps_that_are_named_with_their_gaps() -> None:
    limited = xp.changing(xp.integers(0, 3), max_step=1)
    domain = xp.Attributes(dose=limited, smokes=xp.changing(["no", "yes"], times=1))
    steps = (1, 2, 5)
    belief = RecordBelief(domain, steps=steps)
    doses = [
        (a, b, c)
        for a in range(4)
        for b in range(4)
        for c in range(4)
        if abs(a - b) <= 1 and abs(b - c) <= 3
    ]
    share = Fraction(sum(d[1] == 0 for d in doses), len(doses))
    assert belief.marginal("dose", at=2).probability(0) == share
    smokes = [
        s
        for s in ((a, b, c) for a in "ny" for b in "ny" for c in "ny")
        if sum(a != b for a, b in pairwise(s)) <= 1
    ]
    claim = Statement(domain, 'smokes at 1 != smokes at 5 and smokes at 2 == "no"')
    found = sum(s[0] != s[2] and s[1] == "n" for s in smokes)
    assert confidence(belief, claim) == Fraction(found, len(smokes))


def test_a_gain_of_records_is_at_most_the_loss() -> None:
    for seed in range(40):
        generator = random.Random(seed)
        case = random_record_case(generator)
        text, _ = some_statement(generator, case.domain, case.steps)
        belief = RecordBelief(case.domain, steps=case.steps)
        claim = Statement(case.domain, text)
        if confidence(belief, claim):
            gain = knowledge_gain(belief, claim, case.transcript)
            loss = xp.Odometer(case.transcript).loss.upper
            assert -loss <= gain.upper
            assert gain.lower <= loss


def test_one_attribute_is_a_finite_set() -> None:
    values = ["a", "b", "c"]
    query = xp.subset_selection(size=1, epsilon=1)
    person, plain = xp.Attributes(value=values), xp.FiniteSet(values)
    table = {"a": "1/2", "b": "1/3", "c": "1/6"}
    alike = gain_ratio(
        RecordBelief(person, {"value": table}),
        Statement(person, 'value != "b"'),
        xp.Transcript(person).add_position(query.about("value"), 1),
    )
    assert alike == gain_ratio(
        Belief(plain, table), Statement(plain, 'value != "b"'),
        xp.Transcript(plain).add_position(query, 1),
    )  # fmt: skip


def test_thirty_attributes_are_not_listed() -> None:
    domain = xp.Attributes({f"a{i}": list(range(10)) for i in range(30)})
    transcript = xp.Transcript(domain)
    for i in range(29):
        transcript = transcript.add_position(TRUTH.about(f"a{i}", f"a{i + 1}"), 11 * (i % 10))
    after = RecordBelief(domain).updated(transcript)
    assert sum(after.marginal("a3").probabilities) == pytest.approx(1)
    assert 0 < confidence(after, Statement(domain, "a0 == a29")) < 1


PERSON = xp.Attributes(
    region=["n", "s"],
    smokes=xp.changing(["no", "yes"], times=1),
    mood=xp.changing([1, 2, 3]),
    age=xp.integers(18, 99),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('regoin == "n"', "statement column 1: unknown name 'regoin'; known: region, smokes"),
        ('smokes == "no"', "column 1: smokes changes from step to step; name the step: smokes"),
        ('region at 3 == "n"', "column 8: region does not change, so it has no steps"),
        ('smokes at 3.5 == "no"', "column 11: a step is an integer, as in smokes at 3"),
        ('smokes at == "no"', "column 11: a step is an integer, as in smokes at 3"),
        ('smokes at 3 == "maybe"', "column 16: unknown label; known: no, yes"),
        ("1 == 1", "names no attribute"),
        ("age + mood at 1 + mood at 2 + mood at 3 + mood at 4 + mood at 5 + mood at 6 + mood at 7"
         " == 9", "which have 179,334 combinations; at most 100,000 can be looked at"),
    ],
)  # fmt: skip
def test_statements_about_attributes_refuse_slips_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Statement(PERSON, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"regoin": [1, 0]}, "unknown attribute 'regoin'; did you mean 'region'?"),
        ({"region": {"x": 1}}, "is not a value of the domain"),
        ({"region": ["1/2", "1/3"]}, "sum to 1/6 below 1"),
        ({"smokes": ["1/2", "1/2"]}, "got a table for smokes, whose changes are limited"),
        ({("region", "mood"): [1, 0, 0, 0, 0, 0]}, "mood changes, and a joint table is for"),
        ({"region": [1, 0], ("region", "age"): [1] + [0] * 163}, "region is in two tables"),
    ],
)
def test_priors_of_attributes_refuse_slips_in_one_line(tables: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        RecordBelief(PERSON, tables)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_belief_refuses_steps_that_it_does_not_have() -> None:
    belief = RecordBelief(PERSON, steps=[1, 2])
    with pytest.raises(InvalidInput, match=r"has no step 3 of smokes; its steps are 1, 2"):
        belief.confidence(Statement(PERSON, 'smokes at 3 == "no"'))
    with pytest.raises(InvalidInput, match=r"has no step 3 of smokes; its steps are 1, 2"):
        belief.updated(xp.Transcript(PERSON).add(TRUTH.about("smokes", at=3), "no"))
    with pytest.raises(InvalidInput, match="region does not change"):
        belief.marginal("region", at=3)


def test_responses_that_the_prior_rules_out_are_refused() -> None:
    domain = xp.Attributes(a=["x", "y"], b=["x", "y"])
    sure = xp.channel([["1/2", "1/2"], ["0", "1"]])
    belief = RecordBelief(domain, {"b": {"y": 1}})
    with pytest.raises(InvalidInput, match="no value that is held possible"):
        belief.updated(xp.Transcript(domain).add_position(sure.about("b"), 0))


def test_what_is_too_wide_is_refused_in_one_line() -> None:
    domain = xp.Attributes({f"a{i}": list(range(10)) for i in range(8)})
    transcript = xp.Transcript(domain)
    for i in range(7):
        transcript = transcript.add_position(TRUTH.about(f"a{i}", f"a{i + 1}"), 0)
    belief = RecordBelief(domain).updated(transcript)
    with pytest.raises(InvalidInput, match="can be looked at"):
        belief.confidence(Statement(domain, "a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 == 9"))


def test_a_statement_as_a_step_in_backquotes_and_with_negative_steps() -> None:
    domain = xp.Attributes({"blood pressure": xp.changing([1, 2]), "at": [0, 1]})
    claim = Statement(domain, "`blood pressure` at -3 == 2 and at == 1")
    assert claim.variables == (("blood pressure", -3), ("at", None))
    assert confidence(RecordBelief(domain), claim) == Fraction(1, 4)
    assert confidence(RecordBelief(domain), ~claim) == Fraction(3, 4)

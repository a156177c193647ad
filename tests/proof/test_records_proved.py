"""Certificates over attributes: the checker runs a recursion of its own, and all records agree."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.proof import certificate, verify
from expost.queries import About
from support import oracles
from support.json_paths import paths
from support.record_cases import TINY, RecordPositions, Records, list_records, random_record_case

Run = Callable[..., tuple[int, str, str]]
ROUNDED = {"perturbation", "geometric"}
"""Whose ties the checker does not decide."""


def exact_ratio(case: Records) -> Fraction:
    """e^loss, from the likelihoods of all records."""
    records = list_records(case.domain, case.steps)
    weights = [1] * len(records)
    for exchange in case.transcript.exchanges:
        assert isinstance(exchange.query, About)
        weights = RecordPositions(exchange.query, case.domain, records).times(
            weights, exchange.position
        )
    return Fraction(max(weights), min(weights))


def kept_to(ratio: Fraction, case: Records) -> xp.Transcript:
    transcript = xp.Transcript(case.domain, xp.BayesianFilter(ratio=ratio))
    for exchange in case.transcript.exchanges:
        transcript = transcript.add_position(exchange.query, exchange.position)
    return transcript


def checked(transcript: xp.Transcript) -> verify.Verdict:
    return verify.verify(transcript.to_json(), certificate(transcript).encode().decode())


@pytest.mark.parametrize("seed", range(4))
def test_the_checker_finds_the_loss_of_all_records_and_decides_ties_with_the_budget(
    seed: int,
) -> None:
    generator = random.Random(9000 + seed)
    shown = 0
    with mpmath.workdps(60):
        for _ in range(30):
            case = random_record_case(generator)
            ratio, rounded = exact_ratio(case), False
            for exchange in case.transcript.exchanges:
                rounded |= exchange.query.kind in ROUNDED
            for limit in (ratio, ratio * (1 - TINY), ratio * (1 + TINY)):
                if limit <= 1:
                    continue
                verdict, loss = checked(kept_to(limit, case)), oracles.log(ratio)
                above = mpmath.mpf(str(verdict.loss)) - loss
                assert 0 <= above < (1e-8 if rounded else 1e-22)
                if limit < ratio or not rounded:
                    assert verdict.shows_end_within_budget == (limit >= ratio)
                    shown += limit == ratio
    assert shown > 10


def asked(domain: xp.Attributes, *questions: tuple[Any, ...]) -> xp.Transcript:
    """Randomized responses: attributes, what was answered, and at which step."""
    transcript = xp.Transcript(domain, xp.BayesianFilter(epsilon=6))
    for names, response, *step in questions:
        query = xp.randomized_response(epsilon=1).about(*names, at=step[0] if step else None)
        transcript = transcript.add(query, response)
    return transcript


def person(**changed: Any) -> xp.Attributes:
    kinds: dict[str, Any] = {
        "region": ["north", "south", "west"],
        "smokes": xp.changing(["no", "yes"], times=1),
        "drinks": xp.changing(["no", "yes"], times=1),
        "weight": xp.changing(xp.integers(0, 9), max_step=1),
    }
    return xp.Attributes(kinds | changed)


def history(domain: xp.Attributes) -> xp.Transcript:
    return asked(
        domain,
        (["region"], "south"),
        (["smokes"], "yes", 1),
        (["smokes"], "no", 2),
        (["smokes", "region"], ("yes", "south"), 4),
        (["smokes"], "no", 5),
        (["weight"], 0, 1),
        (["weight"], 6, 4),
    )


def test_numbers_that_can_be_worked_out_by_hand() -> None:
    heavy, light = verify.two_weights(Fraction(1))
    one = mpmath.log(mpmath.mpf(heavy) / light)
    two = (["x"], "a", 1), (["x"], "b", 2)
    for limits, expected in (
        ({}, 2 * one),  # any two values
        ({"times": 1}, 2 * one),
        ({"times": 0}, 0),  # one value: as often confirmed as contradicted
    ):
        domain = xp.Attributes(x=xp.changing(["a", "b"], **limits))
        found = mpmath.mpf(str(checked(asked(domain, *two)).loss))
        assert 0 <= found - expected < 1e-15
    # From 0 to 9 takes nine steps of 1: with eight of them one of two answers is contradicted.
    for step, expected in ((10, 2 * one), (9, one)):
        domain = xp.Attributes(x=xp.changing(xp.integers(0, 9), max_step=1))
        found = mpmath.mpf(str(checked(asked(domain, (["x"], 0, 1), (["x"], 9, step))).loss))
        assert 0 <= found - expected < 1e-15


def test_large_records_and_long_histories_have_the_loss_that_the_odometer_has() -> None:
    generator = random.Random(1)
    many = xp.Attributes({f"a{k}": list(range(10)) for k in range(30)})
    grid = xp.Transcript(many)
    for _ in range(100):
        row, column = generator.randrange(2), generator.randrange(9)
        right = generator.random() < 0.5
        near = 10 * row + column + 1 if right else 10 * (row + 1) + column
        query = xp.randomized_response(epsilon="0.3").about(f"a{10 * row + column}", f"a{near}")
        grid = grid.add_position(query, generator.randrange(100))
    weeks = xp.Transcript(xp.Attributes(x=xp.changing(list(range(6)), times=3), y=["no", "yes"]))
    for week in range(100):
        about = ["x", "y"] if week % 20 == 0 else ["x"]
        query = xp.randomized_response(epsilon="0.3").about(*about, at=3 * week + 1)
        weeks = weeks.add_position(query, generator.randrange(6))
    for transcript in (grid, weeks):
        loss, found = xp.realized_loss(transcript), checked(transcript).loss
        assert loss.lower <= found <= Decimal(loss.upper) + Decimal("1e-9")


def test_a_response_that_rules_a_combination_out_has_an_infinite_loss() -> None:
    query = xp.channel([["1", "0"], ["1/2", "1/2"]]).about("smokes", at=3)
    assert not checked(xp.Transcript(person()).add(query, 1)).loss.is_finite()


def test_without_exchanges_there_is_no_loss() -> None:
    assert checked(xp.Transcript(person())).loss == 0


# -- forgeries -------------------------------------------------------------------------------------


def drop(tree: Any) -> None:
    del tree["exchanges"][0]


def other_response(tree: Any) -> None:
    tree["exchanges"][1]["response"] = "no"


def other_order(tree: Any) -> None:
    tree["exchanges"][3]["query"]["about"] = ["region", "smokes"]


def other_attribute(tree: Any) -> None:
    tree["exchanges"][2]["query"]["about"] = ["drinks"]


def other_step(tree: Any) -> None:
    tree["exchanges"][2]["query"]["at"] = 1


def later_step(tree: Any) -> None:
    tree["exchanges"][6]["query"]["at"] = 40


def no_step(tree: Any) -> None:
    del tree["exchanges"][2]["query"]["at"]


def step_of_what_does_not_change(tree: Any) -> None:
    tree["exchanges"][0]["query"]["at"] = 1


def about_nothing(tree: Any) -> None:
    del tree["exchanges"][0]["query"]["about"]


def unknown(tree: Any) -> None:
    tree["exchanges"][0]["query"]["about"] = ["religion"]


def twice(tree: Any) -> None:
    tree["exchanges"][0]["query"]["about"] = ["region", "region"]


def times(number: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        tree["domain"]["attributes"]["smokes"]["times"] = number

    change.__name__ = f"times {number}"
    return change


def no_limit(tree: Any) -> None:
    del tree["domain"]["attributes"]["smokes"]["times"]


def larger_steps(tree: Any) -> None:
    tree["domain"]["attributes"]["weight"]["max_step"] = 5


def both_limits(tree: Any) -> None:
    tree["domain"]["attributes"]["weight"]["times"] = 1


def steps_of_labels(tree: Any) -> None:
    tree["domain"]["attributes"]["smokes"] = {"changing": ["no", "yes"], "max_step": 1}


def constant(tree: Any) -> None:
    tree["domain"]["attributes"]["smokes"] = ["no", "yes"]


def one_value_more(tree: Any) -> None:
    tree["domain"]["attributes"]["weight"]["changing"] = {"integers": [0, 10**15]}


@pytest.mark.parametrize(
    "change",
    [
        drop, other_response, other_order, other_attribute, other_step, later_step, no_step,
        step_of_what_does_not_change, about_nothing, unknown, twice, times(0), times(3), times(-1),
        times(0.5), times("1"), no_limit, larger_steps, both_limits, steps_of_labels, constant,
        one_value_more,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_a_proof_about_another_transcript_fails(change: Callable[[Any], None]) -> None:
    transcript = history(person())
    proof, tree = certificate(transcript).encode().decode(), json.loads(transcript.to_json())
    assert verify.verify(json.dumps(tree), proof).shows_end_within_budget
    change(tree)
    with pytest.raises(verify.Failed):
        verify.verify(json.dumps(tree), proof)


def test_a_proof_cannot_state_another_loss_and_nothing_else_in_it_matters() -> None:
    transcript = history(person())
    document = certificate(transcript).document
    for by in ("-1e-8", "1e-8", "1"):
        stated = str(Decimal(document["loss"]) + Decimal(by))
        with pytest.raises(verify.Failed, match=r"^loss: it is"):
            verify.verify(transcript.to_json(), json.dumps({**document, "loss": stated}))
    more = {**document, "order": ["region"], "groups": [{"terms": [[0]]}]}
    loss = verify.verify(transcript.to_json(), json.dumps(document)).loss
    assert verify.verify(transcript.to_json(), json.dumps(more)).loss == loss


def test_whatever_is_put_anywhere_into_a_transcript_it_holds_or_fails_and_never_breaks() -> None:
    transcript, generator = history(person()), random.Random(3)
    text, proof = transcript.to_json(), certificate(transcript).encode().decode()
    junk: list[Any] = [
        None,
        True,
        -1,
        10**30,
        0.5,
        "",
        "x",
        "1/0",
        [],
        {},
        [[]],
        {"changing": [1]},
        ["no"],
    ]
    everywhere = [path for path in paths(json.loads(text)) if path]
    failed = 0
    for _ in range(200):
        tree = json.loads(text)
        *path, last = generator.choice(everywhere)
        inner = tree
        for step in path:
            inner = inner[step]
        inner[last] = generator.choice(junk)
        try:
            verify.verify(json.dumps(tree), proof)
        except verify.Failed:
            failed += 1
    assert failed > 150


def test_only_attributes_are_asked_about() -> None:
    for domain, response in (({"values": [0, 1]}, 1), ({"box": {"x": [0, 1]}}, 1)):
        query = {"kind": "logistic", "weights": {"x": 1}, "epsilon": "1", "about": ["x"]}
        asked = [{"query": query, "response": response}]
        tree = {"version": 1, "domain": domain, "exchanges": asked}
        with pytest.raises(verify.Failed, match=r"^exchanges\.0: "):
            verify.verify(json.dumps(tree), '{"version": 1, "responses": [1], "loss": "1"}')


# -- files that are made to keep the checker busy --------------------------------------------------


def tree_of(attributes: Any, exchanges: list[tuple[Any, Any]]) -> dict[str, Any]:
    query = {"kind": "randomized_response", "epsilon": "1"}
    each = [{"query": {**query, **about}, "response": said} for about, said in exchanges]
    return {"version": 1, "domain": {"attributes": attributes}, "exchanges": each}


def clique(size: int, values: int) -> dict[str, Any]:
    names = [f"a{k}" for k in range(size)]
    pairs = [[a, b] for b in names for a in names if a < b]
    attributes = {name: {"integers": [0, values - 1]} for name in names}
    return tree_of(attributes, [({"about": pair}, [0, 0]) for pair in pairs])


def pointless(size: int) -> dict[str, Any]:
    """Attributes of one value, all in one question, and each in one of its own."""
    names = [f"a{k}" for k in range(size)]
    exchanges: list[tuple[Any, Any]] = [({"about": names}, [0] * size)]
    return tree_of({name: [0] for name in names}, exchanges)


def star(size: int) -> dict[str, Any]:
    names = [f"a{k}" for k in range(size)]
    exchanges: list[tuple[Any, Any]] = [({"about": ["hub", a]}, [0, 0]) for a in names]
    return tree_of({name: [0, 1] for name in ["hub", *names]}, exchanges)


def far_apart(values: int) -> dict[str, Any]:
    changing = {"changing": {"integers": [0, values - 1]}, "max_step": 1}
    return tree_of({"x": changing}, [({"about": ["x"], "at": k * k}, 0) for k in range(9)])


def many_changes(steps: int) -> dict[str, Any]:
    changing = {"changing": {"integers": [0, 9]}, "times": steps - 2}
    return tree_of({"x": changing}, [({"about": ["x"], "at": k}, 0) for k in range(steps)])


@pytest.mark.parametrize(
    "tree",
    [
        clique(40, 2), clique(7, 10), pointless(5_000), star(6_000), far_apart(3_000),
        many_changes(2_500), tree_of({"x": [0], "y": [0]}, [({"about": ["x"] * 10**5}, 0)]),
        tree_of({name: {"integers": [0, 99_999]} for name in "xyz"}, [({"about": ["x", "y"]}, 0)]),
    ],
    ids=["clique", "wide", "pointless", "star", "steps", "changes", "same", "combinations"],
)  # fmt: skip
def test_small_files_cannot_keep_the_checker_busy(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tenth of the work that is allowed, so that it is quick."""
    monkeypatch.setattr(verify, "ROOM", verify.ROOM / 10)
    text = json.dumps(tree)
    assert len(text) < 10**6
    responses = [exchange["response"] for exchange in tree["exchanges"]]
    proof = json.dumps({"version": 1, "responses": responses, "loss": "-1"})
    times = []
    for _ in range(3):  # the garbage of other tests may be collected in one of them
        started = time.process_time()
        with pytest.raises(verify.Failed):
            verify.verify(text, proof)
        times.append(time.process_time() - started)
    assert min(times) < 1


def test_what_ties_too_much_together_says_so() -> None:
    tree = clique(21, 2)
    proof = {"version": 1, "responses": [[0, 0]] * len(tree["exchanges"]), "loss": "1"}
    with pytest.raises(verify.Failed, match="tie too many of them together"):
        verify.verify(json.dumps(tree), json.dumps(proof))


# -- commands --------------------------------------------------------------------------------------


def test_commands_certify_and_verify_with_the_exit_codes_of_other_domains(
    run: Run, tmp_path: Path
) -> None:
    file, proof = tmp_path / "transcript.json", tmp_path / "proof.json"
    transcript = history(person())
    transcript.save(file)
    code, out, _ = run("certify", file, "-o", proof)
    assert (code, "respected" in out, "at its peak" in out) == (0, True, True)
    assert run("verify", file, proof)[:2] == (0, "\n".join(out.splitlines()[:-2]) + "\n")
    other = tmp_path / "other.json"
    history(person(smokes=xp.changing(["no", "yes"]))).save(other)
    code, _, err = run("verify", other, proof)
    assert (code, err.startswith("expost: the proof fails at loss")) == (1, True)
    small = xp.Transcript(transcript.domain, xp.BasicFilter(epsilon="0.5"))
    small = small.add(*((e := transcript.exchanges[0]).query, e.response))
    small.save(file, overwrite=True)
    assert run("certify", file, "-o", proof)[0] == 0
    assert run("verify", file, proof)[0] == 3

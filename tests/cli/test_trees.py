"""Every result has its own JSON; the command line prints it and adds nothing to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.knowledge import confidence_change
from expost.report._explanation import explain

Run = Callable[..., tuple[int, str, str]]

VALUES = xp.FiniteSet(["no", "yes"])
CERTAIN = xp.channel([["1", "0"], ["1/2", "1/2"]], responses=["no", "yes"])
HALF = xp.randomized_response(epsilon="1/2")


@pytest.fixture(params=["answered", "impossible for one", "nothing asked"])
def transcript(request: pytest.FixtureRequest) -> xp.Transcript:
    start = xp.Transcript(VALUES, xp.BayesianFilter(epsilon=1))
    answered = start.add(HALF, "yes").add(HALF, "no")
    lost = answered.add(CERTAIN, "yes")
    result = {"answered": answered, "impossible for one": lost, "nothing asked": start}
    return result[request.param]


@pytest.fixture
def file(transcript: xp.Transcript, tmp_path: Path) -> Path:
    path = tmp_path / "subject.json"
    transcript.save(path)
    return path


def _json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def test_a_loss_is_a_replay(run: Run, transcript: xp.Transcript, file: Path) -> None:
    assert run("loss", file, "--json")[:2] == (0, _json(xp.replay(transcript).tree()))


def test_an_explanation_has_a_tree(run: Run, transcript: xp.Transcript, file: Path) -> None:
    assert run("explain", file, "--json")[1] == _json(explain(xp.replay(transcript)).tree())


def test_what_was_learned_has_a_tree(run: Run, transcript: xp.Transcript, file: Path) -> None:
    prior = file.with_name("prior.csv")
    prior.write_text("value,probability\nno,1/4\nyes,3/4\n")
    result = confidence_change(
        xp.replay(transcript), xp.knowledge.load_prior(prior, VALUES), "value == 'no'"
    )
    options = ("--prior", prior, "--statement", "value == 'no'", "--json")
    assert run("explain", file, *options)[1] == _json(result.tree())


def test_a_decision_and_a_refusal_have_trees(
    run: Run, transcript: xp.Transcript, file: Path
) -> None:
    query, secret = file.with_name("query.json"), file.with_name("secret.json")
    query.write_text('{"kind": "randomized_response", "epsilon": "3/2"}')
    secret.write_text('"yes"')
    secret.chmod(0o600)
    arguments = xp.randomized_response(epsilon="3/2")
    decision = xp.BayesianFilter(epsilon=1).decide(xp.Odometer(transcript), arguments)
    assert run("decide", file, "--query", query, "--json")[1] == _json(decision.tree())
    with pytest.raises(xp.BudgetExceeded) as refusal:
        xp.Session.resume(transcript, "yes").ask(arguments)
    code, out, _ = run("ask", file, "--query", query, "--secret", secret, "--json")
    assert (code, out) == (1, _json(refusal.value.tree()))


def test_a_certificate_has_a_tree_beside_the_way(
    run: Run, transcript: xp.Transcript, file: Path
) -> None:
    proof = file.with_name("proof.json")
    tree = {**xp.proof.certificate(transcript).tree(), **xp.replay(transcript).course_tree()}
    printed = run("certify", file, "-o", proof, "--json")[1]
    assert printed == _json({**tree, "bytes": proof.stat().st_size})
    assert run("verify", file, proof, "--json")[1] == _json({"verified": True, **tree})


def test_losses_of_many_have_a_tree_with_or_without_each(run: Run, tmp_path: Path) -> None:
    table = {"subject": ["a", "b"], "query": ["q", "q"], "response": ["yes", "no"]}
    losses = xp.realized_losses(xp.Answers(VALUES, {"q": CERTAIN}, table))
    data, queries = tmp_path / "data.csv", tmp_path / "queries.json"
    data.write_text("subject,query,response\na,q,yes\nb,q,no\n")
    rows = [["1", "0"], ["1/2", "1/2"]]
    channel = {"kind": "channel", "responses": ["no", "yes"], "probabilities": rows}
    by_id = {"version": 1, "domain": {"values": ["no", "yes"]}, "queries": {"q": channel}}
    queries.write_text(json.dumps(by_id))
    command = ("loss", "--many", data, "--queries", queries, "--json")
    assert run(*command)[1] == _json(losses.tree())
    assert losses.tree()["losses"][0]["upper"] == "inf"
    assert run(*command, "-o", tmp_path / "out.csv")[1] == _json(losses.summary())


def test_a_check_of_a_client_has_a_tree(run: Run, tmp_path: Path) -> None:
    pairs = [("no", "no")] * 300 + [("yes", "yes")] * 300
    columns = {"input": [x for x, _ in pairs], "output": [y for _, y in pairs]}
    check = xp.client_checks.check_client(xp.randomized_response(1), VALUES, columns)
    table, claim, domain = (tmp_path / name for name in ("pairs.csv", "claim.json", "domain.json"))
    table.write_text("input,output\n" + "".join(f"{x},{y}\n" for x, y in pairs))
    claim.write_text('{"kind": "randomized_response", "epsilon": "1"}')
    domain.write_text('{"values": ["no", "yes"]}')
    code, out, _ = run("check-client", table, "--query", claim, "--domain", domain, "--json")
    assert (code, out) == (1, _json(check.tree()))


def test_a_comparison_has_a_tree(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "subject.json"
    transcript = xp.Transcript(VALUES, xp.BayesianFilter(epsilon=1))
    for query, response in ((HALF, "yes"), (CERTAIN, "yes")):
        transcript = transcript.add(query, response)
    transcript.save(file)
    assert run("compare", file, "--json")[1] == _json(
        xp.report.compare(xp.Odometer(transcript)).tree()
    )


def test_estimates_have_trees() -> None:
    pairs = [(HALF, "yes")] * 3 + [(HALF, "no")] * 5
    frequencies = xp.estimation.estimate_frequencies(pairs, domain=VALUES)
    tree = json.loads(_json(frequencies.tree()))
    assert tree["value"] == ["no", "yes"]
    assert tree["frequency"] == frequencies.frequency.tolist()
    assert (tree["lower"], tree["upper"]) == (
        frequencies.lower.tolist(),
        frequencies.upper.tolist(),
    )
    assert (tree["confidence"], tree["subjects"]) == (0.95, 8)
    result = xp.estimation.estimate_distribution(pairs, domain=VALUES)
    tree = json.loads(_json(result.tree()))
    assert tree["probability"] == result.probabilities.tolist()
    assert (tree["identified"], tree["alike"], tree["subjects"]) == ([True, True], [0, 1], 8)
    with pytest.warns(UserWarning, match="at an end"):
        intervals = result.intervals(repetitions=50)
    assert json.loads(_json(intervals.tree()))["lower"] == intervals.lower.tolist()


def test_what_is_infinite_in_an_estimate_is_a_word_in_its_tree() -> None:
    bit = xp.perturbation([0, 1], range=(0, 1), epsilon=1)
    mean = xp.estimation.estimate_mean([1], bit, domain=VALUES)
    assert mean.tree()["standard_error"] == "inf"
    assert (mean.tree()["mean"], mean.tree()["subjects"]) == (mean.mean, 1)
    blind = xp.channel([["1/2", "1/2"]] * 2)
    result = xp.estimation.estimate_distribution([(blind, 0), (blind, 1)], domain=VALUES)
    assert json.loads(_json(result.tree()))["identified"] == [False, False]
    assert result.intervals(repetitions=50).tree()["standard_error"] == ["inf", "inf"]


def test_a_witness_and_an_estimated_gain_have_trees() -> None:
    certain = xp.knowledge.witness(xp.Transcript(VALUES).add(CERTAIN, "yes"), 1)
    assert json.loads(_json(certain.tree())) == {
        "likeliest": "yes",
        "unlikeliest": "no",
        "before": 0.5,
        "after": 0.0,
        "gain": {"lower": "-inf", "upper": "-inf"},
        "loss": {"lower": "inf", "upper": "inf"},
        "response": None,
    }
    box = xp.Box(age=(0, 1), region=xp.categories("a", "b"))
    nothing = xp.knowledge.witness(xp.Transcript(box), 1)
    assert json.loads(_json(nothing.tree()))["likeliest"] == [0.0, "a"]
    samples = xp.knowledge.Samples(box, [[0, "a"], [1, "b"]])
    gain = xp.knowledge.estimated_gain(samples, "age > 0", xp.Transcript(box))
    assert json.loads(_json(gain.tree())) == {
        "before": 0.5,
        "after": 0.5,
        "gain": 0.0,
        "standard_error": 0.0,
    }

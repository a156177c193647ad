"""Records and histories in words."""

from __future__ import annotations

import random
from fractions import Fraction

import expost as xp
from expost.domains import Record
from expost.numbers import Nats
from expost.report._explanation import explain, explanation_sentences
from expost.report._formatting import domain_in_words, records_text
from support.record_cases import likelihoods, list_records, random_record_case

TRUTH = xp.randomized_response(epsilon="0.5")


def words(transcript: xp.Transcript) -> list[str]:
    return list(explanation_sentences(explain(xp.replay(transcript))))


def test_a_record_is_told_by_its_attributes_and_how_they_change() -> None:
    person = xp.Attributes(
        region=["n", "s"],
        smokes=xp.changing(["no", "yes"], times=1),
        age=xp.integers(18, 99),
        dose=xp.changing([1, 2, 3.5], max_step="1.5"),
        minutes=xp.changing(xp.integers(0, 9)),
    )
    assert domain_in_words(person) == (
        "a record: region one of n or s; smokes one of no or yes, changing at most once; "
        "age an integer from 18 to 99; dose one of 1, 2 or 3.5, changing by at most 1.5 a step; "
        "minutes an integer from 0 to 9, changing freely from step to step"
    )
    large = xp.Attributes({f"a{i}": [0, 1] for i in range(30)})
    assert domain_in_words(large).endswith("a3 one of 0 or 1; and 26 more attributes")


def test_an_explanation_names_attributes_and_steps() -> None:
    person = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    transcript = (
        xp.Transcript(person, xp.BayesianFilter(epsilon=2))
        .add(TRUTH.about("region", "smokes", at=3), ("n", "yes"))
        .add(TRUTH.about("smokes", at=4), "yes")
    )
    text = words(transcript)
    assert "the value itself, about region and smokes at step 3, at epsilon 0.5" in text[4]
    assert "region=n, smokes=yes" in text[4]
    assert text[-1] == (
        "The responses are 2.718 times as likely for smokes=yes at steps 3 to 4 "
        "as for smokes=no at steps 3 to 4, everything else alike; no two values are further apart."
    )


def test_answers_about_different_attributes_add_up_in_words() -> None:
    person = xp.Attributes(region=["n", "s"], smokes=["no", "yes"], drinks=["no", "yes"])
    single = xp.Transcript(person).add(TRUTH.about("region"), "n")
    assert not any("add up" in line for line in words(single))
    two = single.add(TRUTH.about("smokes", "drinks"), ("no", "no")).add(TRUTH.about("drinks"), "no")
    assert (
        "Answers about different attributes do not cancel, and their losses add up: "
        "smokes with drinks 1, region 0.5."
    ) in words(two)


def test_losses_by_part_add_up_to_the_loss() -> None:
    for seed in range(30):
        odometer = xp.Odometer(random_record_case(random.Random(seed)).transcript)
        parts = odometer.log_likelihood.by_part
        loss = odometer.exact_loss.nearest
        assert sum(part.loss.lower for part in parts) <= loss + 1e-9
        assert loss <= sum(part.loss.upper for part in parts) + 1e-9
        names = [name for part in parts for name in part.names]
        steps = {n for e in odometer.transcript.exchanges for n in getattr(e.query, "names", ())}
        assert set(names) == steps


def test_what_is_explained_of_records_is_true_of_all_listed() -> None:
    for seed in range(30):
        case = random_record_case(random.Random(seed))
        records = list_records(case.domain, case.steps)
        filter_ = xp.BayesianFilter(epsilon=3)
        transcript = xp.Transcript(case.domain, filter_)
        losses = [Fraction(1)]
        for exchange in case.transcript.exchanges:
            transcript = transcript.add_position(exchange.query, exchange.position)
            weights = likelihoods(transcript, records)
            losses.append(Fraction(max(weights), min(weights)))
        explanation = explain(xp.replay(transcript))
        peak = Nats(ratio=max(losses)).enclosure
        assert (
            explanation.replay.peak.lower
            <= peak.lower
            <= peak.upper
            <= explanation.replay.peak.upper
        )
        for step in explanation.steps:
            around = Nats(ratio=losses[step.index]).enclosure
            assert step.loss.lower <= around.lower <= around.upper <= step.loss.upper + 1e-12
            rise = losses[step.index] - losses[step.index - 1]
            assert step.change == ("same" if rise == 0 else "up" if rise > 0 else "down")
        assert all(isinstance(line, str) for line in explanation_sentences(explanation))


def test_long_differences_are_cut_and_runs_of_steps_are_joined() -> None:
    first: Record = {"m": {step: step % 2 for step in range(20)}, "n": {1: "a", 2: "a", 9: "a"}}
    second: Record = {"m": dict.fromkeys(range(20), 2), "n": {1: "b", 2: "b", 9: "a"}}
    above, below = records_text(first, second)
    assert above.startswith("m=0 at step 0, m=1 at step 1,")
    assert above.endswith("m=1 at step 5, and 15 more")
    assert below.endswith(", and 15 more, everything else alike")
    assert records_text({"n": first["n"]}, {"n": second["n"]}) == (
        "n=a at steps 1 to 2", "n=b at steps 1 to 2, everything else alike"
    )  # fmt: skip


def test_shares_largest_epsilons_comparisons_and_cards_are_those_of_the_same_finite_set() -> None:
    values, guard = ["a", "b", "c"], xp.BayesianFilter(epsilon=2)
    person = xp.Attributes(other=[0, 1], value=xp.changing(values, times=0))
    plain = xp.FiniteSet(values)
    records, singles = xp.Transcript(person, guard), xp.Transcript(plain, guard)
    for step, answer in enumerate(["a", "a", "b", "a"], start=1):
        records = records.add(TRUTH.about("value", at=step), answer)
        singles = singles.add(TRUTH, answer)
    pairs = [(records, TRUTH.about("value", at=9)), (singles, TRUTH)]
    found = []
    for transcript, query in pairs:
        odometer, replay = xp.Odometer(transcript), xp.replay(transcript)
        decision = guard.decide(odometer, query)
        found.append(
            (
                odometer.exact_loss,
                replay.share_of_basic,
                odometer.log_likelihood.least_share_of_basic(query),
                decision.accepted,
                decision.largest_epsilon,
                replay.respected,
                replay.first_refused,
                xp.report.compare(odometer).tree(),
            )
        )
        for shown in (transcript, odometer, replay, decision):
            assert "<table>" in shown._repr_html_()
    assert found[0] == found[1]

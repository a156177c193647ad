"""Estimates for attributes of records, from the answers that are about them."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimation import estimate_distribution, estimate_frequencies, estimate_mean
from expost.queries import Query
from support.answer_logs import with_outcomes

PERSON = xp.Attributes(
    region=["n", "s", "w"],
    smokes=["no", "yes"],
    age=xp.integers(0, 3),
    minutes=xp.changing([0, 1, 2]),
)
RESPONSE = xp.randomized_response(epsilon=1)


def drawn(queries: Mapping[str, Query], count: int, seed: int = 1) -> dict[str, list[Any]]:
    """A table in which everybody gives some response to every query."""
    generator = random.Random(seed)
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    for subject in range(count):
        for key, query in queries.items():
            responses = query.on(PERSON).responses
            table["subject"].append(subject)
            table["query"].append(key)
            table["response"].append(responses[generator.randrange(len(responses))])
    return table


def only(table: dict[str, list[Any]], *keys: str) -> dict[str, list[Any]]:
    """The rows of some queries."""
    kept = [row for row, key in enumerate(table["query"]) if key in keys]
    return {name: [column[row] for row in kept] for name, column in table.items()}


@pytest.mark.parametrize(
    "query",
    [
        RESPONSE,
        xp.unary_encoding(epsilon=1),
        xp.subset_selection(size=1, epsilon=1),
        xp.local_hashing(seed="00ff", buckets=2, epsilon=1),
        xp.hadamard_response(order=4, epsilon=1),
        xp.channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]]),
    ],
    ids=lambda query: query.kind,
)
def test_frequencies_of_one_attribute_are_those_of_a_set_of_its_values(query: Query) -> None:
    queries = {
        "region": query.about("region"),
        "smokes": RESPONSE.about("smokes"),
        "minutes": query.about("minutes", at=2),
    }
    table = drawn(queries, 200)
    answers = xp.Answers(PERSON, queries, table)
    for key, part, values in (
        ("region", answers.about("region"), ["n", "s", "w"]),
        ("minutes", answers.about("minutes", at=2), [0, 1, 2]),
    ):
        plain = xp.Answers(xp.FiniteSet(values), {key: query}, only(table, key))
        estimate, expected = estimate_frequencies(part), estimate_frequencies(plain)
        assert estimate.frequency.tolist() == expected.frequency.tolist()
        assert estimate.upper.tolist() == expected.upper.tolist()
        assert list(estimate.columns()["value"]) == values
        likeliest = estimate_distribution(part)
        assert likeliest.tree() == estimate_distribution(plain).tree()
        losses = xp.realized_losses(part)
        assert losses.upper.tolist() == xp.realized_losses(plain).upper.tolist()


@pytest.mark.parametrize(
    "query",
    [RESPONSE, xp.unary_encoding(epsilon=1), xp.channel(np.full((6, 6), 0.1) + 0.4 * np.eye(6))],
)
def test_the_order_in_which_attributes_are_named_changes_only_the_order(query: Query) -> None:
    queries = {"both": query.about("region", "smokes")}
    answers = xp.Answers(PERSON, queries, drawn(queries, 300))
    single, other = answers.about("region", "smokes"), answers.about("smokes", "region")
    assert other.domain.values[1] == ("no", "s")
    frequency = estimate_frequencies(single).frequency.reshape(3, 2)
    assert np.allclose(estimate_frequencies(other).frequency.reshape(2, 3), frequency.T)
    likeliest = estimate_distribution(single, gap=1e-9).probabilities.reshape(3, 2)
    estimate = estimate_distribution(other, gap=1e-9)
    assert np.allclose(estimate.probabilities.reshape(2, 3), likeliest.T, atol=1e-5)
    assert estimate.identified.all()


def log_likelihood(answers: xp.Answers, names: list[str], shares: np.ndarray[Any, Any]) -> float:
    """From the probabilities of every response of every subject for every combination."""
    values = [PERSON[name].values.values for name in names]
    total = 0.0
    for subject in answers.subjects:
        chance = 0.0
        for share, combination in zip(shares, itertools.product(*values), strict=True):
            record = {**dict.fromkeys(PERSON.names, 0), "region": "n", "smokes": "no"}
            index = PERSON.locate({**record, **dict(zip(names, combination, strict=True))})
            assert index is not None
            for exchange in answers.transcript(subject).exchanges:
                likelihood = exchange.query.on(PERSON)
                share = share * float(likelihood.pmf(index).probability(exchange.position))
            chance += share
        total += np.log(chance)
    return total


def test_the_distribution_of_two_attributes_is_likeliest_from_answers_about_either_and_both() -> (
    None
):
    queries = {
        "smokes": xp.unary_encoding(epsilon=2).about("smokes"),
        "region": xp.randomized_response(epsilon=2).about("region"),
        "both": xp.channel(np.full((6, 6), 0.08) + 0.52 * np.eye(6)).about("smokes", "region"),
        "age": RESPONSE.about("age"),
    }
    answers = xp.Answers(PERSON, queries, drawn(queries, 40))
    estimate = estimate_distribution(answers.about("region", "smokes"), gap=1e-9)
    answered = xp.Answers(PERSON, queries, only(drawn(queries, 40), "smokes", "region", "both"))
    best = log_likelihood(answered, ["region", "smokes"], estimate.probabilities)
    generator = np.random.default_rng(1)
    for size in (0.3, 0.1, 0.03, 0.01):
        for _ in range(3):
            other = estimate.probabilities + size * generator.random(6)
            assert (
                log_likelihood(answered, ["region", "smokes"], other / other.sum()) <= best + 1e-6
            )
    assert estimate.identified.all()
    columns = estimate.columns()
    assert (columns["region"][:3], columns["smokes"][:3]) == (["n", "n", "s"], ["no", "yes", "no"])


def test_answers_about_single_attributes_determine_their_marginals_and_not_their_joint() -> None:
    queries = {
        "smokes": xp.unary_encoding(epsilon=2).about("smokes"),
        "region": xp.randomized_response(epsilon=2).about("region"),
    }
    table = drawn(queries, 100)
    # Each from another subject, for answers of one subject say something about the joint.
    table["subject"] = list(range(len(table["subject"])))
    estimate = estimate_distribution(xp.Answers(PERSON, queries, table).about("region", "smokes"))
    assert not estimate.identified.any()
    smokes = estimate.intervals([0, 1, 0, 1, 0, 1], repetitions=50)
    assert np.isfinite(smokes.standard_error).all()
    alone = estimate_distribution(xp.Answers(PERSON, queries, table).about("smokes"))
    assert estimate.mean([0, 1, 0, 1, 0, 1]) == pytest.approx(alone.mean([0, 1]), abs=1e-3)


def test_the_mean_of_a_score_about_an_attribute_is_that_on_a_set() -> None:
    score = xp.perturbation([0, 1, 2, 3], range=(0, 3), epsilon=1)
    queries = {
        "age": score.about("age"),
        "years": xp.linear({"age": 1}, range=(0, 3), epsilon=1).about("age"),
    }
    years = xp.linear({"value": 1}, range=(0, 3), epsilon=1)
    answers = xp.Answers(PERSON, queries, drawn(queries, 50))
    for key, query in (("age", score), ("years", years)):
        table = only(drawn(queries, 50), key)
        plain = xp.Answers(xp.FiniteSet(range(4)), {key: query}, table)
        assert estimate_mean(answers, key) == estimate_mean(plain, key)
        assert estimate_mean(answers.about("age"), key) == estimate_mean(plain, key)
        pairs = estimate_mean(table["response"], queries[key], domain=PERSON)
        assert pairs == estimate_mean(plain, key)


def test_what_was_left_out_makes_answers_incomplete_unless_everybody_was_asked_the_same() -> None:
    queries = {"smokes": RESPONSE.about("smokes"), "region": RESPONSE.about("region")}
    table = drawn(queries, 4)
    answers = xp.Answers(PERSON, queries, table)
    assert answers.about("smokes").complete
    # The last one was not asked for the region.
    fewer = xp.Answers(PERSON, queries, {name: column[:-1] for name, column in table.items()})
    for name in ("smokes", "region"):
        assert not fewer.about(name).complete
        assert fewer.about(name, planned=True).complete
    assert fewer.about("smokes", "region").complete
    assert len(fewer.about("region")) == 3
    with pytest.warns(UserWarning, match="who was asked may depend on what is missing"):
        estimate_distribution(fewer.about("region"))
    # Everybody was asked for one of them only.
    split = {**table, "subject": list(range(8))}
    assert xp.Answers(PERSON, queries, split).about("smokes").complete
    part = xp.Answers(PERSON, queries, table, complete=False)
    assert not part.about("smokes", planned=True).complete


def test_the_joint_distribution_is_right_where_questions_depend_on_responses() -> None:
    # Who seems to smoke is also asked for the region, as a filter might let it happen.
    truth = np.array([[0.4, 0.1], [0.1, 0.1], [0.05, 0.25]])
    queries = {"smokes": RESPONSE.about("smokes"), "region": RESPONSE.about("region")}
    heavy, light = np.e, 1.0
    bit = np.array([[heavy, light], [light, heavy]]) / (heavy + light)
    three = (np.full((3, 3), light) + (heavy - light) * np.eye(3)) / (heavy + 2 * light)
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    subject = 0
    for says, region in [("no", None), *(("yes", index) for index in range(3))]:
        caught = truth * bit[:, ["no", "yes"].index(says)]
        share = caught.sum() if region is None else (caught * three[:, [region]]).sum()
        for _ in range(round(30_000 * share)):
            rows = [("smokes", says)] + ([] if region is None else [("region", "nsw"[region])])
            for key, response in rows:
                table["subject"].append(subject)
                table["query"].append(key)
                table["response"].append(response)
            subject += 1
    answers = xp.Answers(PERSON, queries, table)
    joint = estimate_distribution(answers.about("region", "smokes"))
    smokers = joint.probabilities.reshape(3, 2)
    assert smokers.sum(axis=0) == pytest.approx(truth.sum(axis=0), abs=0.002)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        alone = estimate_distribution(answers.about("region")).probabilities
    assert np.abs(alone - truth.sum(axis=1)).max() > 0.03


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "about: must name at least one attribute"),
        (("region", "region"), {}, "about: an attribute appears twice"),
        (("height",), {}, "about: unknown attribute 'height'; known: region, smokes, age"),
        (("minutes",), {}, "at: minutes changes from step to step; name the step"),
        (("minutes",), {"at": 2.5}, "at: must be an integer"),
        (("region",), {"at": 2}, "at: region does not change; leave it out"),
        (("minutes",), {"at": 7}, "about: no subject answered about minutes"),
        (("region",), {}, "queries.both: is also about age; name it as well, or pass planned=True"),
    ],
)
def test_what_no_answers_are_about_is_one_line(
    names: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    queries = {
        "minutes": RESPONSE.about("minutes", at=2),
        "region": RESPONSE.about("region"),
        "both": RESPONSE.about("region", "age"),
    }
    answers = xp.Answers(PERSON, queries, drawn(queries, 3))
    with pytest.raises(xp.InvalidInput) as caught:
        answers.about(*names, **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_an_estimate_has_to_be_of_some_attributes() -> None:
    queries = {"region": RESPONSE.about("region"), "smokes": RESPONSE.about("smokes")}
    answers = xp.Answers(PERSON, queries, drawn(queries, 3))
    for estimate in (estimate_frequencies, estimate_distribution):
        with pytest.raises(
            xp.InvalidInput, match=r"^domain: the domain has attributes; call answers"
        ):
            estimate(answers)
    with pytest.raises(
        xp.InvalidInput, match=r"^queries\.region: is about region alone; estimate_d"
    ):
        estimate_frequencies(answers.about("region", "smokes"))
    plain = xp.Answers.of_pairs(xp.FiniteSet([0, 1]), [(RESPONSE, 0)])
    with pytest.raises(xp.InvalidInput, match=r"^about: a finite set has no attributes"):
        plain.about("region")


def test_a_likelihood_on_a_larger_part_decides_as_on_the_record() -> None:
    queries = [
        RESPONSE.about("smokes"),
        xp.unary_encoding(epsilon=1).about("smokes", "region"),
        xp.perturbation([0, 0.5, 1], epsilon=1).about("region"),
        xp.local_hashing(seed="00ff", buckets=2, epsilon=1).about("region"),
    ]
    person = xp.Attributes(region=["n", "s", "w"], smokes=["no", "yes"])
    generator = random.Random(3)
    for _ in range(30):
        record = xp.Transcript(person)
        part = xp.Transcript(person.part(("region", "smokes")))
        for _ in range(generator.randrange(4)):
            query = generator.choice(queries)
            position = generator.randrange(len(query.on(person).responses))
            record, part = record.add_position(query, position), part.add_position(query, position)
        single, other = xp.Odometer(record), xp.Odometer(part)
        assert single.exact_loss == other.exact_loss
        following = generator.choice(queries)
        for guard in (xp.BayesianFilter(epsilon=2), xp.SimplifiedFilter(epsilon=2)):
            decisions = [guard.decide(odometer, following) for odometer in (single, other)]
            assert decisions[0].accepted == decisions[1].accepted
            worst = [decision.loss_at_worst.upper for decision in decisions]
            assert worst[0] == pytest.approx(worst[1], abs=1e-9)


WEEKS = xp.Attributes(version=xp.changing(["1.8", "1.10"]))


def weekly(subjects: int = 300) -> xp.Answers:
    """Everybody is asked in the first week; in later ones the filter refuses some, then all."""
    guard, source = xp.BayesianFilter(epsilon="0.9"), xp.sampling.InsecureSource(5)
    queries = {
        f"week {at}": xp.randomized_response(epsilon="0.3").about("version", at=at)
        for at in (1, 2, 3)
    }
    rows, refused = [], []
    for subject in range(subjects):
        value = WEEKS["version"].values.values[subject % 2]
        session = xp.Session(WEEKS, {"version": value}, filter=guard, source=source)
        for key, query in queries.items():
            if key != "week 1":
                session.next()
            for _ in range(1 if key == "week 1" else 4):
                try:
                    rows.append((subject, key, session.ask(query)))
                except xp.BudgetExceeded:
                    refused.append((subject, key))
    table = dict(zip(("subject", "query", "response"), zip(*rows, strict=True), strict=True))
    return xp.Answers(WEEKS, queries, with_outcomes(table, refused), filter=guard)


def test_a_step_that_all_answered_before_anything_was_refused_needs_no_warning() -> None:
    answers = weekly()
    first, second = answers.about("version", at=1), answers.about("version", at=2)
    assert (answers.count_unanswered("week 2") or {})["refused"]
    for estimate in (estimate_frequencies, estimate_distribution):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = estimate(first)
        assert result.provenance.doubts == ()
        assert "did not depend on responses" in result.provenance.assumes
        assert result.provenance.unanswered == {"refused": 0, "declined": 0, "missing": 0}
        with warnings.catch_warnings(record=True, action="always") as caught:
            doubts = estimate(second).provenance.doubts
        assert "who was asked may depend on what is missing" in doubts[0]
        assert tuple(str(warning.message) for warning in caught) == doubts
    with pytest.warns(UserWarning, match="the loss of a part need not bound"):
        xp.realized_losses(first)


def test_what_is_known_to_be_missing_or_refused_is_warned_of_even_if_all_were_asked_alike() -> None:
    queries = {"s": RESPONSE.about("smokes"), "r": RESPONSE.about("region")}
    table = drawn(queries, 4)
    table = {name: column[:-1] for name, column in table.items()}
    guard = xp.BayesianFilter(epsilon=2)
    quiet = xp.Answers(PERSON, queries, table, filter=guard)
    assert estimate_frequencies(quiet.about("smokes")).provenance.doubts == ()
    refused = with_outcomes(table, [("3", "s")])
    for answers in (
        xp.Answers(PERSON, queries, table, filter=guard, complete=False),
        xp.Answers(PERSON, queries, refused, filter=guard),
    ):
        with pytest.warns(UserWarning, match="biased"):
            assert estimate_frequencies(answers.about("smokes")).provenance.doubts
    with pytest.warns(UserWarning, match="biased"):  # the last one was not asked for the region
        assert estimate_frequencies(quiet.about("region")).provenance.doubts


def test_a_mean_of_what_all_answered_needs_no_warning_under_a_filter() -> None:
    values = xp.FiniteSet([0, 1])
    queries = {"one": xp.perturbation([0, 1], epsilon=1), "two": xp.perturbation([1, 0], epsilon=1)}
    table = {"subject": [1, 2, 2], "query": ["one", "one", "two"], "response": [0, 1, 1]}
    answers = xp.Answers(values, queries, table, filter=xp.BayesianFilter(epsilon=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate_mean(answers, "one").provenance.doubts == ()
    with pytest.warns(UserWarning, match="so this estimate is biased"):
        estimate_mean(answers, "two")


def test_answers_about_a_category_of_a_box_are_those_of_a_set_of_its_values() -> None:
    box = xp.Box(age=(0, 1), smokes=xp.categories("no", "yes"), region=xp.categories("n", "s"))
    queries: dict[str, Query] = {
        "smokes": RESPONSE.about("smokes"),
        "region": RESPONSE.about("region"),
        "age": xp.linear({"age": 1}, epsilon=1),
    }
    table: dict[str, list[Any]] = {
        "subject": [1, 1, 1, 2, 2, 2],
        "query": ["smokes", "region", "age"] * 2,
        "response": ["no", "n", 0, "yes", "n", 1],
    }
    estimate = estimate_frequencies(xp.Answers(box, queries, table).about("smokes"))
    plain = xp.Answers(xp.FiniteSet(["no", "yes"]), {"smokes": RESPONSE}, only(table, "smokes"))
    assert estimate.frequency.tolist() == estimate_frequencies(plain).frequency.tolist()
    assert estimate.provenance.doubts == ()
    # A score of it tells something about it too, which a set of categories cannot take in.
    queries["age"] = xp.linear({"age": 1, "smokes": {"no": 0, "yes": 1}}, epsilon=1)
    table["response"][2::3] = [0, 2]
    answers = xp.Answers(box, queries, table)
    with pytest.raises(xp.InvalidInput, match=r"^queries\.age: is also about smokes, as a part of"):
        answers.about("smokes")
    assert len(answers.about("smokes", planned=True)) == len(answers.about("region")) == 2
    for name, step, message in [
        ("age", None, "about: age has no categories"),
        ("smokes", 1, "at: the coordinates of a box do not change"),
    ]:
        with pytest.raises(xp.InvalidInput, match=f"^{message}"):
            answers.about(name, at=step)

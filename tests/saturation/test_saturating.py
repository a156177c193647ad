"""Saturating queries against the theorem, by enumeration in fractions."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise, product
from random import Random
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import expost as xp
from expost.numbers import scaled_exp
from expost.queries import About, Channel, Query
from expost.saturation import _channel, _saturating, _value_classes, equal_caps
from expost.saturation._channel import MutualInformation, SaturatingChannel, saturating_channel
from expost.saturation._saturating import ratio_at_cap
from expost.saturation._value_classes import likelihoods_after, likelihoods_of_set
from support.random_cases import columns
from support.random_documents import draw_domain, draw_query, draw_transcript, families_on

ROUNDING = Fraction(1, 2**20)


def likelihoods(history: xp.Transcript) -> list[Fraction]:
    """P of each value, from the public probabilities."""
    domain = history.domain
    assert isinstance(domain, xp.FiniteSet)
    result = [Fraction(1)] * len(domain)
    for exchange in history.exchanges:
        likelihood = exchange.query.on(domain)
        column = [
            likelihood.pmf(index).probability(exchange.position) for index in range(len(domain))
        ]
        result = [p * q for p, q in zip(result, column, strict=True)]
    return result


def losses_after(before: list[Fraction], query: Query, domain: xp.FiniteSet) -> list[Fraction]:
    """e^loss after each response: the largest likelihood over the smallest."""
    result = []
    for column in columns(query, domain):
        after = [p * q for p, q in zip(before, column, strict=True)]
        result.append(max(after) / min(after))
    return result


def is_at(ratio: Fraction, cap: Fraction) -> bool:
    """Whether log(ratio) is between cap - 2^-20 and cap; both are irrational, so digits decide."""
    with mpmath.workdps(80):
        loss = mpmath.log(ratio.numerator) - mpmath.log(ratio.denominator)
        low = mpmath.mpf(cap.numerator) / cap.denominator - mpmath.mpf(2) ** -20
        return bool(low <= loss <= mpmath.mpf(cap.numerator) / cap.denominator)


def a_question(random: Random, domain: xp.FiniteSet) -> tuple[Any, str | None]:
    if random.random() < 0.3:
        return _draw_hashed_question(random, domain)
    size = random.randint(1, len(domain) - 1)
    return random.sample(list(domain.values), size), None


def _draw_hashed_question(random: Random, domain: xp.FiniteSet) -> tuple[str, str]:
    """Draw a name and a seed by which two values have different answers."""
    start, names = xp.Odometer(xp.Transcript(domain)), ["value", *(domain.names or [])]
    while True:
        name, seed = random.choice(names), random.randbytes(1).hex()
        with suppress(xp.InvalidInput):
            xp.saturating(start, name, cap=1, seed=seed)
            return name, seed


def random_transcripts(count: int) -> Iterator[tuple[Random, xp.Transcript]]:
    """Draw finite losses on labels, numbers, integers and points: every family, repeats, ties."""
    shapes = ("labels", "mixed", "integers", "numbers", "points")
    for index in range(count):
        loss = math.inf
        attempt = 0
        while not math.isfinite(loss):
            attempt += 1
            random = Random(f"saturating {index} {attempt}")
            domain = draw_domain(random, shapes[index % len(shapes)], "subset_selection")
            families = [family for family in families_on(domain) if family != "gaussian"]
            first = families[index // len(shapes) % len(families)]
            queries = [draw_query(random, domain, names) for names in ([first], families)]
            tree = draw_transcript(random, domain, queries, None, random.randint(0, 4))
            transcript = xp.Transcript.from_json(json.dumps(tree))
            loss = xp.realized_loss(transcript).upper
        yield random, transcript


def a_case(random: Random, history: xp.Transcript) -> tuple[xp.Odometer, Any, str | None, Fraction]:
    """A question after a transcript, and a cap above its loss."""
    odometer, domain = xp.Odometer(history), history.domain
    assert isinstance(domain, xp.FiniteSet)
    cap = Fraction(math.ceil(odometer.loss.upper * 100) + random.choice([5, 50, 300]), 100)
    return odometer, *a_question(random, domain), cap


def test_after_random_transcripts_every_loss_ends_at_the_cap_and_the_filter_accepts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    responses = rounded = 0
    for query_index, (random, history) in enumerate(random_transcripts(1000)):
        if query_index == 600:  # from here on no table is short enough to be exact
            monkeypatch.setattr(_saturating, "_MOST_BITS", 0)
        odometer, question, seed, cap = a_case(random, history)
        domain = history.domain
        assert isinstance(domain, xp.FiniteSet)
        query = xp.saturating(odometer, question, cap=cap, seed=seed)
        table = columns(query, domain)
        assert all(sum(row) == 1 for row in zip(*table, strict=True))
        after = losses_after(likelihoods(history), query, domain)
        assert all(is_at(ratio, cap) for ratio in after)
        assert xp.BayesianFilter(epsilon=cap).accepts(odometer, query)
        responses += len(after)
        rounded += len(set(after)) > 1
    assert responses > 3000
    assert 200 < rounded < 500  # otherwise the loss is exactly the same after every response


def test_a_ratio_that_is_rounded_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = scaled_exp
    monkeypatch.setattr(_saturating, "scaled_exp", lambda x, bits: exactly(x, bits) + 1)
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(range(5))))
    query = xp.saturating(start, [1, 2], cap=1)
    assert not xp.BayesianFilter(epsilon=1).accepts(start, query)


def test_chances_that_are_rounded_without_a_margin_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_saturating, "_MARGIN", 0)
    monkeypatch.setattr(_saturating, "_MOST_BITS", 0)
    refused = 0
    for random, history in random_transcripts(40):
        odometer, question, seed, cap = a_case(random, history)
        query = xp.saturating(odometer, question, cap=cap, seed=seed)
        refused += not xp.BayesianFilter(epsilon=cap).accepts(odometer, query)
    assert refused > 10


# What a response tells.


def binary_utility(masses: NDArray[np.float64]) -> float:
    """Σ a log(a/(a+b)) + b log(b/(a+b)), a column for each response."""
    total = masses.sum(axis=0)
    return float(np.sum(masses * np.log(np.maximum(masses, 1e-300) / total)))


def masses_of(p: list[float], table: Any, yes: list[bool]) -> NDArray[np.float64]:
    joint = np.array(p)[:, None] * np.array(table, dtype=float)
    mask = np.array(yes)
    return np.array([joint[mask].sum(axis=0), joint[~mask].sum(axis=0)])


def best_by_linear_program(p: list[float], ratio: float, yes: list[bool]) -> float:
    """Over all mechanisms whose every response ends within the cap: a weight for each set."""
    sets = np.array(list(product([1.0, ratio], repeat=len(p)))).T
    mask = np.array(yes)
    masses = np.array([sets[mask].sum(axis=0), sets[~mask].sum(axis=0)])
    worth = (masses * np.log(masses / masses.sum(axis=0))).sum(axis=0)
    result = linprog(-worth, A_eq=sets, b_eq=p, method="highs")
    return float(-result.fun)


def test_no_mechanism_within_the_cap_tells_more_about_a_yes_or_no_question() -> None:
    random = Random(3)
    for _ in range(60):
        domain = xp.FiniteSet(range(random.randint(2, 6)))
        odometer = xp.Odometer(xp.Transcript(domain))
        for _ in range(random.randint(0, 2)):
            rows = [[random.randint(2, 6), random.randint(2, 6)] for _ in domain.values]
            earlier = xp.channel([[Fraction(w, sum(row)) for w in row] for row in rows])
            odometer = odometer.add(earlier, random.randint(0, 1))
        yes = random.sample(range(len(domain)), random.randint(1, len(domain) - 1))
        cap = Fraction(math.ceil(odometer.loss.upper * 100) + random.choice([5, 60, 200]), 100)
        query = xp.saturating(odometer, yes, cap=cap)
        p = [float(x) for x in likelihoods(odometer.transcript)]
        table = list(zip(*columns(query, domain), strict=True))
        answers = [x in yes for x in range(len(domain))]
        nats = binary_utility(masses_of(p, table, answers))
        best = best_by_linear_program(p, math.exp(cap), answers)
        scale = abs(nats) * 1e-5
        assert best - scale <= nats <= best + scale


def mutual_information(query: SaturatingChannel, level: Fraction) -> float:
    """Mutual information, by definition."""
    sets, chances = query._on_grid(query.shares(level), 1 << 60).sets
    yes = np.array(query.answers) == 1
    total = 0.0
    for inside, chance in zip(sets, chances, strict=True):
        weights = np.where(inside, float(query.ratio), 1.0)
        masses = np.array([weights[yes].sum(), weights[~yes].sum()])
        before = np.array([yes.sum(), (~yes).sum()]) / len(yes)
        said = masses * np.log(masses / masses.sum() / before)
        total += float(level) * chance / 2**60 * float(said.sum())
    return round(total, 9)


def test_no_other_level_tells_more_on_a_grid() -> None:
    random = Random(8)
    for _ in range(40):
        size = random.randint(3, 12)
        p = tuple(Fraction(random.randint(10, 30)) for _ in range(size))
        answers = (1, 0, *(random.randint(0, 1) for _ in range(size - 2)))
        query = saturating_channel(p, p, (1,) * size, answers, Fraction(random.choice([4, 7, 50])))
        (best,) = query._levels()
        low, high = max(p) / query.ratio, min(p)
        other_levels = [low + (high - low) * Fraction(step, 100) for step in range(101)]
        assert all(
            mutual_information(query, best) >= mutual_information(query, level)
            for level in other_levels
        )


def test_doubles_do_not_decide_which_query_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine may round logarithms otherwise; the query is the same."""
    cases = [a_case(random, history) for random, history in random_transcripts(250)]
    for size in (6, 9):  # after saturating answers, many numbers A tell equally much
        odometer = xp.Odometer(xp.Transcript(xp.FiniteSet(range(size))))
        for query_index in range(1, 5):
            question = list(range(query_index % 3, size, 1 + query_index % 2))
            cases.append((odometer, question, None, Fraction(query_index, 2)))
            query = xp.saturating(odometer, question, cap=Fraction(query_index, 2))
            odometer = odometer.add(query, query_index % 2)

    def queries_made() -> list[Query]:
        return [xp.saturating(o, question, cap=cap, seed=seed) for o, question, seed, cap in cases]

    queries, in_doubles, random = queries_made(), MutualInformation.in_doubles, Random(2)
    compared = []

    def noisy(self: MutualInformation, *arguments: Any) -> float:
        return in_doubles(self, *arguments) * (1 + random.uniform(-2e-10, 2e-10))

    def counted(self: MutualInformation, *arguments: Any) -> Any:
        compared.append(self)
        return in_decimals(self, *arguments)

    in_decimals = MutualInformation.in_decimals
    monkeypatch.setattr(MutualInformation, "in_doubles", noisy)
    monkeypatch.setattr(MutualInformation, "in_decimals", counted)
    assert queries_made() == queries
    assert len(compared) > 20
    monkeypatch.setattr(_channel, "_RELATIVE_TIE", 0.0)  # with doubles alone it is not
    assert any(queries_made() != queries for _ in range(10))


def ratio_of(odometer: xp.Odometer) -> Fraction:
    """e^loss, exactly."""
    ratio = odometer.exact_loss.ratio
    assert ratio is not None
    return ratio


def chain_of(domain: xp.FiniteSet, questions: list[Any], caps: list[str]) -> list[list[Any]]:
    """After each question all transcripts, by their likelihoods over the values."""
    start = xp.Odometer(xp.Transcript(domain))
    stages, running = [], [start]
    for query_index, (question, cap) in enumerate(zip(questions, caps, strict=True)):
        longer = []
        for odometer in running:
            seed = f"{query_index:02x}" if isinstance(question, str) else None
            query = xp.saturating(odometer, question, cap=cap, seed=seed)
            longer += [odometer.add(query, y) for y in query.on(domain).responses]
        stages.append(longer)
        running = longer
    return stages


def information(columns: list[list[Fraction]], yes: list[int]) -> tuple[float, float]:
    """Mutual information and χ² between the answer and what is known, values alike before."""
    size = len(columns[0])
    nats = chi = 0.0
    share = len(yes) / size
    for column in columns:
        mass = float(sum(column)) / size
        posterior = float(sum(column[x] for x in yes)) / size / mass
        nats += mass * (
            posterior * math.log(posterior / share)
            + (1 - posterior) * math.log((1 - posterior) / (1 - share))
        )
        chi += mass * (posterior - share) ** 2 / (share * (1 - share))
    return nats, chi


@pytest.mark.parametrize(
    "questions", [[[0, 1], [1, 2, 3], [4]], [[0], [1, 2], [0]], [[0, 1], "value", [2, 3]]]
)
def test_earlier_information_never_shrinks_and_the_last_set_holds_all_of_it(
    questions: list[Any],
) -> None:
    domain = xp.FiniteSet(range(5))
    stages = chain_of(domain, questions, ["0.5", "1.2", "2"])
    for about in ([0, 1], [4], [1, 2, 3]):
        known_likelihoods = []
        for stage in stages:
            full = [likelihoods(odometer.transcript) for odometer in stage]
            by_set: dict[tuple[bool, ...], list[Fraction]] = {}
            for p in full:
                assert len(set(p)) == 2  # heavy on a set, and light elsewhere
                heavy = tuple(x == max(p) for x in p)
                known_so_far = by_set.setdefault(heavy, [Fraction(0)] * len(p))
                by_set[heavy] = [a + b for a, b in zip(known_so_far, p, strict=True)]
            known_likelihoods.append(information(list(by_set.values()), about))
            assert known_likelihoods[-1] == pytest.approx(information(full, about), rel=1e-12)
        for (nats, chi), (later, later_chi) in pairwise(known_likelihoods):
            assert later >= nats * (1 - 1e-12)
            assert later_chi >= chi * (1 - 1e-12)


def test_a_chain_has_few_classes_and_few_responses() -> None:
    random = Random(5)
    domain = xp.FiniteSet(range(64))
    odometer = xp.Odometer(xp.Transcript(domain))
    caps = equal_caps(3, questions=8)
    for cap in caps:
        query = xp.saturating(odometer, random.sample(range(64), 20), cap=cap)
        assert isinstance(query, Channel)
        assert len(query.weights) <= 4
        assert len(query.responses) <= 5
        odometer = odometer.add(query, random.choice(query.responses))
        assert is_at(ratio_of(odometer), cap)
    assert xp.BayesianFilter(epsilon=3).holds(odometer)


def test_a_hundred_thousand_values_take_a_pass_and_then_work_for_each_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    multiplied, products = _value_classes._multiply_exactly, list[Any]()

    def counted(product: Any) -> Fraction:
        products.append(product)
        return multiplied(product)

    monkeypatch.setattr(_value_classes, "_multiply_exactly", counted)
    size = 100_000
    domain = xp.FiniteSet(range(size))
    odometer = xp.Odometer(xp.Transcript(domain))
    odometer = odometer.add(xp.saturating(odometer, "value >= 40000", cap=1), 1)
    start = time.process_time()
    query = xp.saturating(odometer, "value < 70000", cap=2)
    assert time.process_time() - start < 2
    assert len(products) == 1 + 2  # one for each class that the answers so far tell apart
    assert isinstance(query, Channel)
    assert query.weights.shape == (3, 3)
    assert xp.BayesianFilter(epsilon=2).accepts(odometer, query)


# Questions.


PERSON = xp.Attributes(region=["n", "e", "s", "w"], smokes=["no", "yes"], age=xp.integers(1, 90))


def about(query: Query) -> tuple[tuple[str, ...], int | None]:
    assert isinstance(query, About)
    return query.names, query.step


def test_a_record_is_taken_into_account_as_far_as_it_was_asked_about() -> None:
    odometer = xp.Odometer(xp.Transcript(PERSON))
    first = xp.saturating(odometer, 'smokes == "yes"', cap="0.5")
    assert about(first) == (("smokes",), None)
    second = xp.saturating(odometer.add(first, 1), "age >= 60", cap=1)
    assert about(second) == (("smokes", "age"), None)
    odometer = odometer.add(first, 1).add(second, 0)
    third = xp.saturating(odometer, "region", cap=2, seed="0c")
    assert about(third) == (("region", "smokes", "age"), None)
    for query, cap in ((third, 2), (xp.saturating(odometer, "smokes", cap="1.5"), "1.5")):
        assert xp.BayesianFilter(epsilon=cap).accepts(odometer, query)
        for response in query.on(PERSON).responses:
            assert is_at(ratio_of(odometer.add(query, response)), Fraction(cap))


def test_a_changing_attribute_is_asked_about_at_a_step() -> None:
    domain = xp.Attributes(smokes=xp.changing(["no", "yes"]), age=[1, 2, 3])
    odometer = xp.Odometer(xp.Transcript(domain))
    query = xp.saturating(odometer, "smokes at 3", cap=1)
    assert about(query) == (("smokes",), 3)
    odometer = odometer.add(query, 0)
    query = xp.saturating(odometer, 'smokes at 3 == "yes" or age > 1', cap=2)
    assert about(query) == (("smokes", "age"), 3)
    assert about(xp.saturating(odometer, "smokes at 4", cap=2)) == (("smokes",), 4)


def test_the_order_of_the_sets_is_that_of_the_seed() -> None:
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(range(10))))
    first, second = (xp.saturating(start, "value", cap=1, seed=s) for s in ("01", "02"))
    assert first != second
    assert first == xp.saturating(start, "value", cap=1, seed="01")
    # Together they tell all values apart, which one alone need not.
    tables = [columns(query, xp.FiniteSet(range(10))) for query in (first, second)]
    both = np.hstack([np.array(table, dtype=float).T for table in tables])
    assert np.linalg.matrix_rank(both) == 10


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        (
            [1],
            {"cap": "0.5"},
            r"cap: the loss so far is 1, so nothing can be asked that ends at 0.5; a cap of 2 fits",
        ),
        ([1], {"cap": 1}, r"cap: the loss so far is 1, so nothing can be asked that ends at 1;"),
        ([1], {"cap": 3}, r"cap: 3 is above the budget of 2; a cap of 2 fits"),
        ([1], {"cap": "0.00001"}, r"cap: must be at least 0.0001"),
        ([1], {"cap": 0}, r"cap: must be"),
        ("value > 5", {"cap": 2}, "question: every value has the same answer"),
        ("value >= 0", {"cap": 2}, "question: every value has the same answer"),
        (range(4), {"cap": 2}, "question: every value has the same answer"),
        ([], {"cap": 2}, "question: every value has the same answer"),
        ([7], {"cap": 2}, r"question\[0\]: is not a value of the domain"),
        (7, {"cap": 2}, "question: must be a statement, a name, or a collection of values"),
        (np.array(7), {"cap": 2}, "question: must be a statement, a name, or a collection"),
        ("value", {"cap": 2}, "question: got 4 possible answers without a seed"),
        ("value", {"cap": 2, "seed": "xy"}, "seed: must be 1 to 64 bytes in hexadecimal digits"),
        ("valeu > 1", {"cap": 2}, "question column 1: unknown name"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    question: Any, options: dict[str, Any], message: str
) -> None:
    domain = xp.FiniteSet(range(4))
    history = xp.Transcript(domain, filter=xp.BayesianFilter(epsilon=2))
    odometer = xp.Odometer(history).add(xp.randomized_response(epsilon=1), 2)
    with pytest.raises(xp.InvalidInput, match=message):
        xp.saturating(odometer, question, **options)


def test_a_domain_of_one_value_leaves_nothing_to_ask() -> None:
    start = xp.Transcript(xp.FiniteSet(["only"]))
    for question in ("value", 'value == "only"', ["only"], []):
        with pytest.raises(xp.InvalidInput, match="every value has the same answer"):
            xp.saturating(start, question, cap=1)


def test_a_question_that_every_record_answers_with_yes_is_refused() -> None:
    start = xp.Transcript(xp.Attributes(smokes=["no", "yes"], region=["n", "s"]))
    with pytest.raises(xp.InvalidInput, match="question: every value has the same answer"):
        xp.saturating(start, 'smokes == "no" or smokes == "yes"', cap=1)


def test_a_saturating_question_about_a_step_before_the_first_is_refused() -> None:
    start = xp.Transcript(xp.Attributes(smokes=xp.changing(["no", "yes"])))
    for question in ("smokes at 0", "smokes at -1", 'smokes at 0 == "yes"'):
        with pytest.raises(xp.InvalidInput, match="at: steps are numbered from 1; got "):
            xp.saturating(start, question, cap=1)


def test_a_refusal_says_which_cap_fits() -> None:
    domain, guard = xp.FiniteSet(range(6)), xp.BayesianFilter(epsilon=2)
    session = xp.Session(domain, value=3, filter=guard)
    early = xp.saturating(session, [2, 3], cap=2)
    with pytest.raises(xp.BudgetExceeded, match=r"with a cap of 2, .* accepted") as refusal:
        session.ask(xp.saturating(xp.Transcript(domain), [1], cap=3))
    assert refusal.value.fits == 2
    session.ask(xp.saturating(session, [0], cap=1))
    with pytest.raises(xp.BudgetExceeded, match=r"with a cap of 2, .* accepted") as refusal:
        session.ask(early)
    assert refusal.value.fits == 2
    session.ask(xp.saturating(session, [2, 3], cap=2))
    with pytest.raises(xp.BudgetExceeded, match=r"budget of 2\.$") as refusal:
        session.ask(early)
    assert refusal.value.fits is None
    for cap in (1, 2, 3):
        with pytest.raises(xp.InvalidInput, match="nothing is left of the budget of 2"):
            xp.saturating(session, [1], cap=cap)
    ratio = xp.Transcript(domain, xp.BayesianFilter(ratio=8))
    with pytest.raises(
        xp.InvalidInput, match=r"above the budget of ln\(8\); a cap of 2.0794415416"
    ):
        xp.saturating(ratio, [1], cap=5)
    assert guard.accepts(xp.Odometer(ratio), xp.saturating(ratio, [1], cap="2.0794415416")) is False
    fits = xp.saturating(ratio, [1], cap="2.0794415416")
    assert xp.BayesianFilter(ratio=8).accepts(xp.Odometer(ratio), fits)
    basic = xp.Transcript(domain, xp.BasicFilter(2)).add(xp.randomized_response(epsilon=1), 1)
    with pytest.raises(xp.InvalidInput, match="ends at 1; a cap is at most 2"):
        xp.saturating(basic, [1], cap=1)


def test_too_many_classes_and_what_has_none_are_refused() -> None:
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(range(300))))
    with pytest.raises(xp.InvalidInput, match=r"tell 300 classes of values apart; .* at most 256"):
        xp.saturating(start, "value", cap=1, seed="00")
    box = xp.Transcript(xp.Box(age=(10, 100)))
    with pytest.raises(xp.InvalidInput, match="on a box a saturating query gains nothing"):
        xp.saturating(box, "age > 50", cap=1)
    certain = xp.channel([["1", "0"], ["1/2", "1/2"]])
    ruled_out = xp.Transcript(xp.FiniteSet([0, 1])).add(certain, 1)
    with pytest.raises(xp.InvalidInput, match="rule some values out"):
        xp.saturating(ruled_out, [1], cap=1)


def test_a_long_history_is_rounded_and_still_ends_at_the_cap() -> None:
    domain = xp.FiniteSet(range(6))
    query = xp.perturbation([0, 1, 3, 4, 7, 10], range=(0, 10), epsilon="0.3")
    odometer = xp.Odometer(xp.Transcript(domain))
    for index in range(900):
        odometer = odometer.add(query, 10 * (index % 2))
    cap = Fraction(math.ceil(odometer.loss.upper) + 1)
    for question, seed in (([0, 3], None), ("value", "aa")):
        after = xp.saturating(odometer, question, cap=cap, seed=seed)
        ratios = losses_after(likelihoods(odometer.transcript), after, domain)
        assert len(set(ratios)) > 1
        assert all(is_at(ratio, cap) for ratio in ratios)


@pytest.mark.parametrize("seed", range(4))
def test_after_a_saturating_answer_a_set_and_the_cap_are_all_that_is_known(seed: int) -> None:
    random = Random(seed)
    domain = xp.FiniteSet(range(random.randint(3, 12)))
    odometer = xp.Odometer(xp.Transcript(domain))
    for cap in equal_caps(random.choice(["0.5", "2", "4"]), questions=4):
        yes = random.sample(range(len(domain)), random.randint(1, len(domain) - 1))
        query = xp.saturating(odometer, yes, cap=cap)
        odometer = odometer.add(query, random.choice(query.on(domain).responses))
        likely = likelihoods(odometer.transcript)
        inside = np.array([p > min(likely) for p in likely])
        by_set = likelihoods_of_set(inside, ratio_at_cap(cap))
        known_likelihoods = likelihoods_after(domain, list(odometer.log_likelihood.tally))
        assert known_likelihoods is not None
        assert by_set.key == known_likelihoods.key


def test_before_any_answer_all_values_are_one_set() -> None:
    domain = xp.FiniteSet(range(5))
    known_likelihoods = likelihoods_after(domain, [])
    assert known_likelihoods is not None
    assert likelihoods_of_set(np.ones(5, dtype=np.bool_), Fraction(1)).key == known_likelihoods.key

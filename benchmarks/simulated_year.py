"""A year of weekly questions, with a budget of 1 about any week and of 8 for life.

Two thousand subjects have two habits, which change now and then. The share of each habit is
estimated week by week from that week's responses. The same questions are asked by basic
composition, as the Bayesian filter accepts, and with saturating queries. Subjects answer in weeks
that are drawn in advance:

    python -m benchmarks.simulated_year

Shares are estimated from saturating queries by maximum likelihood, because each subject has other
queries, and otherwise from the share of responses. In randomized response, the probability that two
responses agree is the same for both values. Here a refusal depends only on which responses agree,
so the shares of those who answered are not biased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.filters import Filter
from expost.queries import Query

SUBJECTS, POPULATIONS, WEEKS = 2_000, 20, 52
WEEK_BUDGET, LIFE_BUDGET = 1, 8
SHARES = {"smokes": 0.3, "drinks": 0.5}
CHANGE = 0.05
"""The probability that a habit changes from one week to the next, at a share of one half."""
DOMAIN = xp.Attributes({name: xp.changing([0, 1]) for name in SHARES})
HABITS = list(product([0, 1], repeat=len(SHARES)))
FOUR = (("smokes", "1/4"), ("drinks", "1/4")) * 2
TWO = (("smokes", "1/2"), ("drinks", "1/2"))
ONE = (("smokes", "1"), ("drinks", "1"))
FOUR_CAPS = (("smokes", "1/4"), ("drinks", "1/2"), ("smokes", "3/4"), ("drinks", "1"))
TWO_CAPS = (("smokes", "1/2"), ("drinks", "1"))

Bits = NDArray[np.int8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
NONE = -1
"""No response."""


@dataclass(frozen=True)
class Design:
    """The questions of a week, the filter, and the number of weeks drawn for each subject."""

    name: str
    #: Each with its epsilon, or with the cap of the week's loss.
    questions: Sequence[tuple[str, str]]
    filter: Filter
    weeks: int
    in_turn: bool = False
    """Whether a subject answers one of the questions in a week, in turn with the others."""
    saturating: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a design achieved."""

    design: Design
    full_weeks: float
    """Weeks in which a subject answered all questions, on average."""
    answers: float
    """Responses of a subject, on average."""
    fewest: int
    """Responses about one habit in the poorest week of all populations."""
    error: float
    """The root of the mean squared error of a week's share, in percentage points."""
    week_loss: float
    """The largest loss about any one week, over all subjects."""
    life_losses: tuple[float, float]
    """The average and the largest loss about a person as a whole."""

    def __str__(self) -> str:
        figures = [*self.figures, f"{self.week_loss:.2f}", f"{self.life_losses[1]:.2f}"]
        return f"  {self.design.name:<36}" + "".join(f"{figure:>7}" for figure in figures)

    @property
    def figures(self) -> list[str]:
        """As they are shown."""
        figures = [f"{self.design.weeks}", f"{self.full_weeks:.1f}", f"{self.answers:.1f}"]
        return [*figures, f"{self.fewest:,}", f"{self.error:.1f}", f"{self.life_losses[0]:.1f}"]


def promise(kind: type[xp.BayesianFilter] | type[xp.BasicFilter]) -> Filter:
    """Return the filter of the study, with two budgets."""
    return xp.AllOf(kind(WEEK_BUDGET, protects=xp.steps(1)), kind(LIFE_BUDGET))


def list_designs() -> list[Design]:
    basic, bayesian = promise(xp.BasicFilter), promise(xp.BayesianFilter)
    return [
        Design("four at 1/4, basic composition", FOUR, basic, WEEKS),
        Design("four at 1/4, as the filter accepts", FOUR, bayesian, WEEKS),
        Design("four at 1/4, basic composition", FOUR, basic, 8),
        Design("four at 1/4, as the filter accepts", FOUR, bayesian, 15),
        Design("two at 1/2, basic composition", TWO, basic, 8),
        Design("one at 1, basic composition", ONE, basic, 8, in_turn=True),
        Design("one at 1, as the filter accepts", ONE, bayesian, 8, in_turn=True),
        Design("four saturating, to 1/4, 1/2, 3/4, 1", FOUR_CAPS, bayesian, 8, saturating=True),
        Design("two saturating, to 1/2 and 1", TWO_CAPS, bayesian, 8, saturating=True),
    ]


def draw_habits(generator: np.random.Generator) -> dict[str, Bits]:
    """Draw habits by week, populations side by side; their shares stay about the same."""
    everybody = SUBJECTS * POPULATIONS
    habits = {}
    for name, share in SHARES.items():
        rows = [generator.random(everybody) < share]
        for _ in range(WEEKS - 1):
            chance = np.where(rows[-1], 2 * CHANGE * (1 - share), 2 * CHANGE * share)
            rows.append(rows[-1] ^ (generator.random(everybody) < chance))
        habits[name] = np.array(rows, dtype=np.int8)
    return habits


def chance_of_truth(epsilon: str) -> float:
    pmf = xp.randomized_response(epsilon=epsilon).on(xp.FiniteSet([0, 1])).pmf(1)
    return float(pmf.probability(1))


class Subjects:
    """Subjects in groups whose decisions are the same, each with the transcript of one of them.

    Steps are independent, so the losses of weeks add up. What a filter decides depends on the loss
    and the sum of epsilons so far, and on this week's likelihoods.
    """

    def __init__(self, filter_: Filter, count: int) -> None:
        self._filter = filter_
        # Saturating queries are made for the week's budget alone; all filters decide about them.
        self.odometers = [xp.Odometer(xp.Transcript(DOMAIN, filter_.members[0]))]
        self.group = np.zeros(count, dtype=np.intp)

    def ask(self, name: str, epsilon: str, week: int, drawn: Bits) -> Bits:
        """Return the drawn responses of those whose filter accepts."""
        query = xp.randomized_response(epsilon=epsilon).about(name, at=week)
        return self._ask([query] * len(self.odometers), week, drawn)

    def ask_saturating(
        self, name: str, cap: str, week: int, values: Bits, chance: Floats, asked: Bools
    ) -> Bits:
        """Ask each group its own query, and return the responses that the chances lead to."""
        queries: list[Query] = []
        drawn = np.full(len(self.group), NONE, dtype=np.int8)
        for index, odometer in enumerate(self.odometers):
            query = xp.saturating(odometer, f"{name} at {week}", cap=cap)
            rows = np.flatnonzero((self.group == index) & asked)
            count = len(query.on(DOMAIN).responses)
            ends = np.cumsum([column(query, response) for response in range(count)], axis=0)[:-1]
            drawn[rows] = (chance[rows] > ends[:, values[rows]]).sum(axis=0)
            queries.append(query)
        return self._ask(queries, week, drawn)

    def _ask(self, queries: Sequence[Query], week: int, drawn: Bits) -> Bits:
        """Ask each group a query, and return the drawn responses of those who accept it."""
        accepts = np.array(
            [
                self._filter.accepts(odometer, query)
                for odometer, query in zip(self.odometers, queries, strict=True)
            ]
        )
        responses = np.where(accepts[self.group], drawn, NONE)
        stride = int(responses.max()) + 2
        keys, group = np.unique(stride * self.group + responses + 1, return_inverse=True)
        odometers: list[xp.Odometer] = []
        for key in keys.tolist():
            odometer, query, position = (
                self.odometers[key // stride],
                queries[key // stride],
                key % stride - 1,
            )
            if position != NONE:
                odometer = odometer.add_position(query, position)
            odometers.append(odometer)
        self._join(odometers, group, week)
        return responses

    def _join(self, odometers: list[xp.Odometer], group: NDArray[np.intp], week: int) -> None:
        situations: dict[object, int] = {}
        joined = [
            situations.setdefault(self._situation(each, week), len(situations))
            for each in odometers
        ]
        self.odometers = [odometers[joined.index(index)] for index in range(len(situations))]
        self.group = np.array(joined)[group]

    def _situation(self, odometer: xp.Odometer, week: int) -> object:
        """Return what decisions and the loss depend on: sums in eighths, this week's state."""
        spent = 0 if self._filter.by_loss else round(8 * odometer.spent.upper)
        likelihoods = tuple(likelihoods_in(week, odometer).round(9).tolist())
        return round(8 * odometer.loss.upper), spent, likelihoods


_COLUMNS: dict[tuple[str, int], Floats] = {}


def column(query: Query, position: int) -> Floats:
    """Return the probability of a response, for each combination of habits."""
    key = query.content_id, position
    if key not in _COLUMNS:
        _COLUMNS[key] = compute_column(query, position)
    return _COLUMNS[key]


def compute_column(query: Query, position: int) -> Floats:
    likelihood = query.on(DOMAIN)
    names = [name for name, _ in likelihood.variables]
    places = [list(SHARES).index(name) for name in names]
    combinations = [int("".join(str(habits[place]) for place in places), 2) for habits in HABITS]
    pmfs = [likelihood.on_part.pmf(index) for index in combinations]
    return np.array([float(pmf.probability(position)) for pmf in pmfs])


def likelihoods_in(week: int, odometer: xp.Odometer) -> Floats:
    """Return the likelihood of a week's responses for each combination of habits, scaled."""
    result = np.ones(len(HABITS))
    for exchange in odometer.transcript.exchanges[-len(FOUR) :]:
        if exchange.query.step == week:
            result *= column(exchange.query, exchange.position)
    return np.asarray(result / result.max())


def measure(design: Design, habits: dict[str, Bits], generator: np.random.Generator) -> Outcome:
    """Play a year, and estimate the share of each week and habit."""
    everybody = SUBJECTS * POPULATIONS
    asked = generator.permuted(np.tile(np.arange(WEEKS), (everybody, 1)), axis=1) < design.weeks
    subjects, squares, fewest = Subjects(design.filter, everybody), [], everybody
    full, answers, week_loss = 0, 0, 0.0
    for week in range(WEEKS):
        responses: dict[str, list[Bits]] = {}
        for index, (name, epsilon) in enumerate(design.questions):
            chance = generator.random(everybody)
            turn = (np.arange(everybody) + week) % len(design.questions) == index
            now = asked[:, week] & (turn | (not design.in_turn))
            if design.saturating:
                combinations = 2 * habits["smokes"][week] + habits["drinks"][week]
                given = subjects.ask_saturating(name, epsilon, week + 1, combinations, chance, now)
            else:
                values = habits[name][week]
                truthful = chance < chance_of_truth(epsilon)
                drawn = np.where(now, np.where(truthful, values, 1 - values), NONE)
                given = subjects.ask(name, epsilon, week + 1, drawn)
            responses.setdefault(name, []).append(given)
        counts = sum((row != NONE).astype(int) for several in responses.values() for row in several)
        most = 1 if design.in_turn else len(design.questions)
        full, answers = full + int((counts == most).sum()), answers + int(counts.sum())
        week_loss = max(week_loss, *(loss_about_a_week(each) for each in subjects.odometers))
        shares = most_likely_shares(week + 1, subjects) if design.saturating else {}
        for name, several in responses.items():
            own, epsilon = split(np.array(several)), dict(design.questions)[name]
            if not design.saturating:
                shares[name] = [estimate(one, epsilon) for one in own]
            fewest = min(fewest, *(int((one != NONE).sum()) for one in own))
            true = [float(one.mean()) for one in split(habits[name][week])]
            squares += [(a - b) ** 2 for a, b in zip(shares[name], true, strict=True)]
    losses = np.array([each.loss.upper for each in subjects.odometers])[subjects.group]
    return Outcome(
        design,
        full / everybody,
        answers / everybody,
        fewest,
        100 * math.sqrt(np.mean(squares)),
        week_loss,
        (float(losses.mean()), float(losses.max())),
    )


def split(rows: Bits) -> list[Bits]:
    return np.split(rows, POPULATIONS, axis=-1)


def estimate(responses: Bits, epsilon: str) -> float:
    """Return the share, clipped to [0, 1]; without responses it is one half."""
    answered, truth = responses[responses != NONE], chance_of_truth(epsilon)
    ones = float(answered.mean()) if len(answered) else 0.5
    return min(1.0, max(0.0, (ones - (1 - truth)) / (2 * truth - 1)))


def most_likely_shares(week: int, subjects: Subjects) -> dict[str, list[float]]:
    """Return the most likely shares of each population, from the responses of a week."""
    likelihoods = np.array([likelihoods_in(week, each) for each in subjects.odometers])
    rows, index = np.unique(likelihoods.round(9), axis=0, return_inverse=True)
    groups = index.reshape(-1)[subjects.group].reshape(POPULATIONS, SUBJECTS)
    counts = np.array([np.bincount(one, minlength=len(rows)) for one in groups])
    counts[:, rows.min(axis=1) == 1] = 0  # no responses
    found = np.full((POPULATIONS, len(HABITS)), 1 / len(HABITS))
    for _ in range(2_000):  # expectation-maximization
        found *= (counts / (found @ rows.T)) @ rows / counts.sum(axis=1, keepdims=True)
    return {
        name: (found @ [habits[place] for habits in HABITS]).tolist()
        for place, name in enumerate(SHARES)
    }


def loss_about_a_week(odometer: xp.Odometer) -> float:
    filter_ = xp.BayesianFilter(WEEK_BUDGET, protects=xp.steps(1))
    return WEEK_BUDGET - filter_.remaining(odometer)


def outcomes() -> list[Outcome]:
    """Measure all designs on the same populations."""
    generator = np.random.default_rng(52)
    habits = draw_habits(generator)
    return [measure(design, habits, generator) for design in list_designs()]


def run() -> bool:
    print(
        f"weekly shares of two habits, {SUBJECTS:,} subjects, {WEEKS} weeks, budget {WEEK_BUDGET} "
        f"about any week and {LIFE_BUDGET} for life:\n"
        "  weeks drawn and answered, answers per subject, answers in the poorest week,\n"
        "  error in points, loss about a person, largest losses about a week and a person"
    )
    found = outcomes()
    for outcome in found:
        print(outcome)
    print(
        "  one question a week: the loss of its single response is always its epsilon, and losses\n"
        "  of different weeks add up, so the filter accepts what basic composition accepts"
    )
    # What docs/how-to/long_studies.md says.
    basic, filtered, *_, one_basic, one_filtered, _, _ = found
    return (
        basic.full_weeks < filtered.full_weeks
        and one_basic.full_weeks == one_filtered.full_weeks
        and all(outcome.week_loss <= WEEK_BUDGET for outcome in found)
        and all(outcome.life_losses[1] <= LIFE_BUDGET for outcome in found)
    )


if __name__ == "__main__":
    run()

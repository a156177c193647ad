"""Random small records with responses, a filter at a level, and a query, for both sides.

The oracle is :mod:`support.protected_pairs`. Budgets are at the oracle's own worst case, or a
relative 10^-25 above or below it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import expost as xp
from expost.queries import About, Query
from support.protected_pairs import Charge, Question, Study, channel

LITTLE = Fraction(1, 10**25)
KINDS = ("bayesian", "simplified", "basic")


@dataclass(frozen=True)
class LevelCase:
    """Responses on a record, a query, and a filter at a level."""

    study: Study
    asked: list[tuple[Question, int]]
    query: Question
    guard: Mapping[str, Any]
    #: Queries of other families, by the questions that describe them.
    families: Mapping[Question, Query]

    @property
    def level(self) -> Any:
        """The level of the filter, as a file has it."""
        return self.guard["protects"]

    @property
    def domain(self) -> xp.Attributes:
        kinds: dict[str, Any] = {}
        for name, attribute in self.study.attributes.items():
            values = list(range(attribute.size))
            limits: dict[str, Any] = {}
            if attribute.times is not None:
                limits = {"times": attribute.times}
            if attribute.max_step is not None:
                limits = {"max_step": attribute.max_step}
            kinds[name] = xp.changing(values, **limits) if attribute.changing else values
        return xp.Attributes(**kinds)

    @property
    def filter(self) -> Any:
        return xp.filters.filter_from_json(dict(self.guard))

    @property
    def odometer(self) -> xp.Odometer:
        transcript = xp.Transcript(self.domain)
        for question, response in self.asked:
            # A response that no value can give has no position.
            position = sum(any(column) for column in question.columns[:response])
            transcript = transcript.add_position(self.as_query(question), position)
        return xp.Odometer(transcript)

    def as_query(self, question: Question) -> Query:
        """Return the query of a question of the oracle."""
        return self.families.get(question) or as_channel(question)

    def accepts(self) -> bool:
        return bool(self.filter.decide(self.odometer, self.as_query(self.query)).accepted)

    def is_accepted_by_oracle(self) -> bool:
        return self.study.accepts(self.guard, self.asked, self.query)


def as_channel(question: Question) -> Query:
    """Return the channel with the probabilities of a question."""
    rows = [[str(p) for p in row] for row in zip(*question.columns, strict=True)]
    return xp.channel(rows).about(*question.about, at=question.at)


def random_family(generator: random.Random, question: Question) -> Query | None:
    """Return a query of another family about the same attributes, if they have values for it."""
    epsilon = generator.choice(["0.5", "1", "1.1"])
    size = len(question.columns[0])
    if size < 2:
        return None
    made: list[Query] = [
        xp.randomized_response(epsilon=epsilon),
        xp.local_hashing(epsilon=epsilon, seed=f"0{generator.randrange(9)}", buckets=2),
    ]
    if size <= 4:
        made.append(xp.unary_encoding(epsilon=epsilon))
    return generator.choice(made).about(*question.about, at=question.at)


def described(query: Query, domain: xp.Attributes) -> Question:
    """Return a query as the oracle sees it, from the exact probabilities."""
    likelihood = query.on(domain).on_part
    pmfs = [likelihood.pmf(index) for index in range(len(likelihood.domain))]
    columns = tuple(
        tuple(pmf.probability(position) for pmf in pmfs)
        for position in range(len(likelihood.responses))
    )
    assert isinstance(query, About)
    return Question(query.names, query.step, columns, query.ceiling(domain).rational)


def random_study(generator: random.Random, *, limits: bool) -> Study:
    """Return up to three attributes, some of which change; never too many records to list."""
    from support.protected_pairs import Attribute

    while True:
        attributes = {}
        for name in "abc"[: generator.randint(1, 3)]:
            changing = generator.random() < 0.55
            times = max_step = None
            if changing and limits and generator.random() < 0.5:
                if generator.random() < 0.5:
                    times = generator.randint(0, 2)
                else:
                    max_step = Fraction(generator.randint(0, 1))
            size = generator.choice([1, 2, 2, 2, 3])
            attributes[name] = Attribute(size, changing, times, max_step)
        study = Study(attributes, generator.randint(1, 3))
        if 1 < len(study.cells) <= 6 and len(study.records) <= 130:
            return study


def random_question(generator: random.Random, study: Study, *, zeros: bool) -> Question:
    """Return a channel about some of the attributes, at some step if one of them changes."""
    most = min(len(study.attributes), generator.choice([1, 1, 2, 3]))
    names = generator.sample(list(study.attributes), generator.randint(1, most))
    rows = 1
    for name in names:
        rows *= study.attributes[name].size
    changing = any(study.attributes[name].changing for name in names)
    step = generator.randint(1, study.steps) if changing else None
    kind = generator.random()
    if kind < 0.35:  # randomized response, or one about a part of the values
        odds = generator.choice([2, 3, 4])
        hit = [generator.randrange(2) for _ in range(rows)]
        return channel(names, step, [[odds, 1] if h else [1, odds] for h in hit])
    low = 0 if zeros and generator.random() < 0.2 else 1
    weights = []
    for _ in range(rows):
        row = [generator.choice([low, 1, 2, 3]) for _ in range(2)]
        weights.append([*row, 8 - sum(row)])
    return channel(names, step, weights)


def random_level(generator: random.Random, study: Study) -> Any:
    """Return a level that suits the study."""
    names = list(study.attributes)
    limited = any(a.times is not None or a.max_step is not None for a in study.attributes.values())
    choices = ["attributes", "groups"]
    if any(a.changing for a in study.attributes.values()) and not limited:
        choices += ["steps"] * 3
    match generator.choice(choices):
        case "attributes":
            return {"attributes": 1}
        case "groups":
            groups = [generator.sample(names, generator.randint(1, len(names))) for _ in range(2)]
            missing = [name for name in names if not any(name in group for group in groups)]
            return {"groups": groups + ([missing] if missing else [])}
        case _:
            return {"steps": generator.randint(1, 4)}


def random_case(generator: random.Random, *, most: int = 6) -> LevelCase:
    """Return a case with a budget at the worst case of the oracle, or next to it."""
    study = random_study(generator, limits=generator.random() < 0.3)
    zeros = generator.random() < 0.15
    questions = [random_question(generator, study, zeros=zeros) for _ in range(4)]
    families: dict[Question, Query] = {}
    if generator.random() < 0.4:
        domain = LevelCase(study, [], questions[0], {}, {}).domain
        for index in range(2):
            family = random_family(generator, questions[index])
            if family is not None:
                questions[index] = described(family, domain)
                families[questions[index]] = family
    asked: list[tuple[Question, int]] = []
    for _ in range(generator.randint(0, most)):
        question = generator.choice(questions)
        response = generator.randrange(len(question.columns))
        if any(study.likelihoods([*asked, (question, response)])):
            asked.append((question, response))
    query = generator.choice(questions)
    guard = {"kind": generator.choice(KINDS), "protects": random_level(generator, study)}
    charges = study.worst(guard, asked, query)
    if any(charge.epsilon for charge in charges):
        epsilon = max(charge.epsilon for charge in charges)
        epsilon += generator.choice([Fraction(0), LITTLE, -LITTLE, Fraction(1, 2)])
        return LevelCase(study, asked, query, {**guard, "epsilon": str(epsilon)}, families)
    worst = largest(charges)
    ratio = Fraction(3) if worst is None or worst <= 1 else worst
    one = Fraction(1)
    ratio *= generator.choice([one, one, 1 + LITTLE, 1 - LITTLE, Fraction(3, 4), Fraction(4, 3)])
    if ratio <= 1:
        ratio = Fraction(3, 2)
    return LevelCase(study, asked, query, {**guard, "ratio": str(ratio)}, families)


def largest(charges: Sequence[Charge]) -> Fraction | None:
    """Return the largest charge as a quotient; None if one is infinite."""
    ratios = [charge.ratio for charge in charges]
    return None if None in ratios else max(ratio for ratio in ratios if ratio is not None)

"""A design as a page for a meeting: what to do, how accurate it is, and what else was looked at."""

from __future__ import annotations

import math

from expost.designs import Design
from expost.errors import printable
from expost.report.chart import Axis, Chart, Dots, Line, Mark, Rows, Upright
from expost.report.design_words import advice, error_text, reasons
from expost.report.page import Header, bullets, figure, page, paragraph, section, table
from expost.report.words import domain_in_words

__all__ = ["design_page"]

_LOOKS = (
    ("realized", ""),
    ("basic", "6 4"),
    ("purple", "2 4"),
    ("green", "8 3 2 3"),
    ("ochre", "12 4"),
    ("grey", "4 2"),
    ("ink", "1 3"),
)
_MOST_ROUNDS = 12


def design_page(found: Design, *, name: str, date: str, content_id: str) -> str:
    """A page that needs nothing from anywhere else."""
    study = found.study
    delta = f", delta {float(study.delta):g}" if study.delta else ""
    header = Header(
        about=f"Design of {printable(name)}",
        summary=advice(found),
        file=printable(name),
        date=printable(date),
        content_id=content_id,
        budget=f"{float(study.epsilon):g} nats for each person{delta}",
        facts=[
            ("people", f"{study.subjects:,}"),
            ("domain", domain_in_words(study.domain)),
            ("goals", f"{len(study.goals)}, known {_known(found)}"),
        ],
    )
    parts = [
        section("Why", bullets(reasons(found))),
        section("How accurate each goal will be", _goals(found)),
        section("All designs", _compared(found), _table(found)),
    ]
    if found.curve:
        parts.insert(1, section("Accuracy and budget", _curve(found)))
    return page(header, *parts, section("How this was worked out", _method(found)))


def _known(found: Design) -> str:
    return {
        "up front": "all before the first answer",
        "sequential": "one after the other; their number is known",
        "open-ended": "one after the other; nobody knows how many there will be",
    }[found.study.arrival.value]


def _goals(found: Design) -> str:
    best = found.recommended
    if best is None:
        return paragraph("No study design determines all of them.")
    rows = []
    for number, goal in enumerate(found.study.goals):
        error = best.accuracy.standard_errors[number]
        rows.append((goal.name, error_text(error), f"± {error_text(1.96 * error)}"))
    return table(
        ["goal", "standard error", "95 % of the time within"],
        rows,
        caption=f"With the recommended design: {best.name}.",
    )


def _compared(found: Design) -> str:
    shown = [each for each in reversed(found.predictions) if math.isfinite(each.error)]
    best = found.recommended
    marks: list[Mark] = []
    kinds = {
        ("realized", "recommended"): [each is best for each in shown],
        ("allowed", "possible"): [each.possible and each is not best for each in shown],
        ("grey", "not possible in this study"): [not each.possible for each in shown],
    }
    for (colour, label), wanted in kinds.items():
        if any(wanted):
            ends = [each.error if own else 0.0 for each, own in zip(shown, wanted, strict=True)]
            marks.append(Rows([(0.0, end) for end in ends], colour, label))
    most = max(each.error for each in shown)
    ticks = [(float(row), f"{len(shown) - row}") for row in range(len(shown))]
    chart = Chart(
        Axis("standard error of all goals together", 0, 1.05 * most),
        Axis("number in the table", -0.6, len(shown) - 0.4, ticks),
        marks,
        height=26 * len(shown) + 10,
    )
    rows = [(each.name, error_text(each.error)) for each in shown[::-1]]
    return figure(
        chart,
        alt="The standard error of every design, the most accurate one at the top: from "
        f"{error_text(shown[-1].error)} to {error_text(most)}.",
        caption="Standard errors of all designs; shorter is better.",
        numbers=table(["design", "standard error"], rows),
    )


def _table(found: Design) -> str:
    best = found.recommended
    rows = []
    for number, each in enumerate(found.predictions, start=1):
        noise = each.accuracy.simulation_error
        spread = f" ± {100 * noise / each.error:.1f} %" if noise else ""
        verdict = "recommended" if each is best else "yes" if each.possible else "no"
        rows.append(
            (
                f"{number}",
                each.name,
                f"{error_text(each.error)}{spread}",
                f"{each.answers:.3g}",
                _answering(each.answering),
                verdict,
            )
        )
    return table(
        ["", "design", "standard error", "answers", "who answers, by round", "possible"],
        rows,
        caption="Standard errors are of all goals together, with the error of the simulation. "
        "Answers are those of a person, on average.",
        words=True,
    )


def _answering(shares: tuple[float, ...]) -> str:
    if len(set(shares)) == 1:
        return f"{100 * shares[0]:.0f} %" if len(shares) == 1 else f"{100 * shares[0]:.0f} % each"
    shown = [f"{100 * share:.0f}" for share in shares[:_MOST_ROUNDS]]
    more = ", …" if len(shares) > _MOST_ROUNDS else ""
    return f"{', '.join(shown)}{more} %"


def _curve(found: Design) -> str:
    seen = [point.family for point in found.curve if math.isfinite(point.error)]
    families = list(dict.fromkeys(seen))
    marks: list[Mark] = []
    for family, (colour, dashes) in zip(families, _LOOKS, strict=False):
        points = [
            (point.epsilon, math.log10(point.error))
            for point in found.curve
            if point.family == family and math.isfinite(point.error)
        ]
        if points:
            marks += [Line(points, colour, family, dashes), Dots(points, colour, size=3)]
    budgets = sorted({point.epsilon for point in found.curve})
    errors = [point.error for point in found.curve if math.isfinite(point.error)]
    low, high = math.log10(min(errors)) - 0.05, math.log10(max(errors)) + 0.05
    budget = float(found.study.epsilon)
    chart = Chart(
        Axis("budget ε", budgets[0], budgets[-1], [(each, f"{each:g}") for each in budgets]),
        Axis("standard error", low, high, _round_errors(low, high)),
        [*marks, Upright(budget, "ink", "the budget of this study", "2 3")],
    )
    rows = [
        (family, *(error_text(_at(found, family, each)) for each in budgets)) for family in families
    ]
    return figure(
        chart,
        alt="The standard error of the best of each family of designs falls as the budget "
        f"grows from {budgets[0]:g} to {budgets[-1]:g}.",
        caption="What a smaller or a larger budget would give, with the best of each family.",
        numbers=table(["design", *(f"ε = {each:g}" for each in budgets)], rows),
    )


def _at(found: Design, family: str, epsilon: float) -> float:
    for point in found.curve:
        if (point.family, point.epsilon) == (family, epsilon):
            return point.error
    return math.inf


def _round_errors(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers on a scale of powers of ten."""
    numbers = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
    ]
    return [(math.log10(x), f"{x:.3g}") for x in numbers if low <= math.log10(x) <= high]


def _method(found: Design) -> str:
    return bullets(
        [
            "Estimates are by maximum likelihood, from all answers together. An error is the root "
            "of the mean squared error, which includes that these people are a sample of the "
            "population; that of a mean is relative to the range of its score. Together it is the "
            "root of the mean square over goals.",
            "The population is the one that the study assumes. If it is another one, errors are "
            "somewhat different; which study design is best changes less.",
            "Every study design gives each person the same guarantee within the budget, except "
            "those with a delta in their name: theirs is weaker.",
            "Where a person shows one of few kinds of outcomes, probabilities are exact; otherwise "
            "people were simulated from a seed. Repeating it gives the same numbers.",
        ]
    )

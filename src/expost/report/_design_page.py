"""A design in sentences and as a page: what to do, how accurate it is, and the alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator

from expost._format import format_fixed, format_number, format_range, shorten
from expost.designs import Arrival, Design, Prediction
from expost.report._chart import Axis, Chart, Dots, FullLine, HorizontalBars, Mark, Polyline
from expost.report._formatting import domain_in_words, with_unit
from expost.report._page import COMPARE_FILES, bullets, figure, page, paragraph, section, table

__all__ = [
    "design_advice",
    "design_page",
    "design_reasons",
    "error_text",
    "left_out_lines",
    "prediction_cells",
]

_ONE_SHOT = ("one sampled question", "full-value report", "joint report", "single question")

#: Families of strategies to compare with, by the beginning of a sentence.
_ALTERNATIVES = {
    "Basic composition at its best has": ("basic composition",),
    "The Bayesian filter with randomized responses at its best has": ("the Bayesian filter",),
    "The best single answer at the full budget has": _ONE_SHOT,
    "Saturating queries at their best have": ("saturating queries",),
}

_NEAR = 1.1


def error_text(error: float) -> str:
    """Format a standard error with three digits."""
    return format_number(error, 3) if math.isfinite(error) else "not determined"


def design_advice(design: Design) -> tuple[str, ...]:
    """Recommend a design, and say how accurate it is."""
    best = design.recommended
    if best is None:
        return ("No study design determines all goals within this budget.",)
    if len(design.study.goals) > 1:
        subject, means = "All goals together then have", "means"
    else:
        subject, means = "The goal then has", "it is"
    unit = ""
    if any(target.scale != 1 for target in design.study.model.targets):
        unit = f", {means} relative to the range of a score"
    return (
        f"{_capitalize(best.name)}: {best.strategy.description}",
        f"{subject} a standard error of {error_text(best.error)}{unit}.",
    )


def design_reasons(design: Design) -> Iterator[str]:
    """Yield the reasons for the recommended design, compared with others."""
    best = design.recommended
    if best is None:
        return
    alike = design.alike
    if not _is_asymptotic(design, best):
        yield (
            "The answers within this budget carry so little information that the range of the "
            "estimates bounds the errors. The ranking means little until there are more subjects "
            "or a larger budget."
        )
    if best.delta:
        yield from _compare_without_delta(design, best)
    if alike:
        # Names have commas in them.
        names = ", ".join(f"“{prediction.name}”" for prediction in alike)
        weaker = any(prediction.delta for prediction in alike) and not best.delta
        yield (
            f"{names} {'is' if len(alike) == 1 else 'are'} as good within the error of "
            "the simulation, or within 1 %"
            f"{'; with a delta the guarantee is weaker' if weaker else ''}."
        )
    for subject, families in _ALTERNATIVES.items():
        other = design.best_of(*families)
        if other is not None and other is not best and other not in alike:
            yield f"{subject} {_compare_errors(design, other, best)}"
    for prediction in design.predictions:
        better = prediction.error < best.error and not prediction.is_tied_with(best)
        if better and not prediction.possible:
            name, error = _capitalize(prediction.name), error_text(prediction.error)
            yield f"{name} would have {error}, but {_explain_exclusion(design)}."
            break
    if best.strategy.family in _ONE_SHOT and design.study.arrival is Arrival.UP_FRONT:
        yield (
            "Whatever a filter lets through is one channel within the same budget, so for goals "
            "that are known in advance no sequence of questions beats the best single one."
        )


def left_out_lines(design: Design) -> Iterator[str]:
    """Yield a line for each strategy or family that was not predicted, with the reason."""
    for name, reason in design.left_out.items():
        yield f"{_capitalize(name)}: {reason}."


def _compare_without_delta(design: Design, best: Prediction) -> Iterator[str]:
    """Compare a recommended design that has a delta with the best one without."""
    for prediction in design.predictions:
        if prediction.possible and not prediction.delta and math.isfinite(prediction.error):
            yield (
                "This is the weaker guarantee, with a delta. Of those that have the stronger one "
                f"“{prediction.name}” is the most accurate. It has "
                f"{_compare_errors(design, prediction, best)}"
            )
            return


def _compare_errors(design: Design, other: Prediction, best: Prediction) -> str:
    """Describe the error of another design, and the subjects that would make up for it."""
    ratio = other.error / best.error
    text = f"{error_text(other.error)}, {format_fixed(ratio, 2)} times as much"
    if not _is_asymptotic(design, other):
        return f"{text}."
    return f"{text}: it would take {_scale_subjects(design, ratio)} subjects for the same accuracy."


def _is_asymptotic(design: Design, prediction: Prediction) -> bool:
    """Return whether an error is asymptotic, so that it falls with the root of the subjects."""
    scales = [target.scale for target in design.study.model.targets]
    limits = zip(prediction.accuracy.asymptotic, scales, strict=True)
    limit = math.sqrt(sum((error / scale) ** 2 for error, scale in limits) / len(scales))
    return limit <= _NEAR * prediction.error


def _scale_subjects(design: Design, ratio: float) -> str:
    subjects = design.study.subjects * ratio**2
    digits = max(0, int(math.log10(subjects)) - 1)
    return f"about {format_fixed(round(subjects, -digits), 0)}"


def _explain_exclusion(design: Design) -> str:
    if design.study.arrival is Arrival.OPEN_ENDED:
        return "it needs to know the questions, or their number, in advance"
    return "it needs to know all questions in advance"


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


_ARRIVALS = {
    Arrival.UP_FRONT: "all before the first answer",
    Arrival.SEQUENTIAL: "one after the other; their number is known",
    Arrival.OPEN_ENDED: "one after the other; their number is unknown",
}

_METHOD = (
    "Estimates are by maximum likelihood, from all answers together. An error is the root of the "
    "mean squared error, and includes that the subjects are a sample of the population.",
    "The error of all goals together is the root of the mean square over goals, each relative to "
    "its range. The range of a share is 1, so 0.01 is one percentage point.",
    "The study assumes a population. In another one errors differ somewhat; the ranking of the "
    "designs changes less.",
    "Every study design gives each subject the same guarantee within the budget. Designs with a "
    "delta in their name are an exception: their guarantee is weaker.",
    "Method “exact”: a subject has few kinds of outcomes, with exact probabilities. Method "
    "“simulated”: subjects were simulated from a seed, and a second run gives the same numbers.",
    "Method “frequencies”: the estimate is the distribution nearest to unbiased frequencies, whose "
    "variances are in closed form. Method “asymptotic”: there are too many values to simulate "
    "groups, and the error is too large for few subjects.",
)

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
#: The height of a row with its name in pixels, and the share of it that is the bar.
_ROW, _THICKNESS = 40, 0.35


def design_page(design: Design, *, name: str, date: str, content_id: str) -> str:
    """Write a design as a page.

    Args:
        design: The design.
        name: The name of the study file.
        date: The date of the page, as text.
        content_id: The digest of the study file.
    """
    study = design.study
    delta = f", delta {format_number(study.delta)}" if study.delta else ""
    verdict, *lead = design_advice(design)
    parts = [
        section("Why", bullets(design_reasons(design))),
        section("How accurate each goal will be", _list_goals(design)),
        section("All designs", _draw_errors(design), _list_designs(design)),
    ]
    if design.left_out:
        parts.append(section("Designs that are left out", bullets(left_out_lines(design))))
    if design.curve:
        parts.insert(1, section("Accuracy and budget", _draw_curve(design)))
    return page(
        *parts,
        section("How the errors were computed", bullets(_METHOD)),
        title=f"Design of {shorten(name)}",
        verdict=verdict,
        breach=design.recommended is None,
        lead=lead,
        file=name,
        date=date,
        ids=[("content id", content_id, f"{COMPARE_FILES} {name}.")],
        budget=f"{with_unit(format_number(study.epsilon))} for each subject{delta}",
        facts=[
            ("subjects", f"{study.subjects:,}"),
            ("domain", domain_in_words(study.domain)),
            ("goals", f"{len(study.goals)}, known {_ARRIVALS[study.arrival]}"),
        ],
    )


def _list_goals(design: Design) -> str:
    best = design.recommended
    if best is None:
        return paragraph("No study design determines all of them.")
    goals = zip(design.study.goals, best.accuracy.standard_errors, strict=True)
    rows = []
    for index, (goal, error) in enumerate(goals):
        is_mean = goal.kind == "mean"
        factor, unit = (1, "units of the score") if is_mean else (100, "percentage points")
        within = f"± {error_text(1.96 * factor * error)}"
        by = [] if design.mechanisms is None else [design.mechanisms[index]]
        rows.append((f"{goal.name}, in {unit}", *by, error_text(factor * error), within))
    return table(
        [
            "goal",
            *(["by"] if design.mechanisms else []),
            "standard error",
            "95 % of the time within",
        ],
        rows,
        caption=f"With the recommended design: {best.name}.",
    )


def _draw_errors(design: Design) -> str:
    shown = [
        prediction for prediction in reversed(design.predictions) if math.isfinite(prediction.error)
    ]
    looks = [
        ("realized", "recommended")
        if prediction is design.recommended
        else ("grey", "possible")
        if prediction.possible
        else ("allowed", "not possible in this study")
        for prediction in shown
    ]
    marks = HorizontalBars.by_look([prediction.error for prediction in shown], looks, _THICKNESS)
    marks.sort(key=lambda bars: bars.label != "recommended")  # which the legend names first
    most = max(prediction.error for prediction in shown)
    names = [(float(row), shorten(prediction.name)) for row, prediction in enumerate(shown)]
    chart = Chart(
        Axis("standard error (share of the range)", 0, 1.05 * most),
        Axis("", -0.5, len(shown) - 0.3, names),
        marks,
        height=_ROW * len(shown) + 10,
        names_above=True,
    )
    rows = [(prediction.name, error_text(prediction.error)) for prediction in shown[::-1]]
    return figure(
        chart,
        alt="The standard error of every design, the most accurate one at the top: from "
        f"{error_text(shown[-1].error)} to {error_text(most)}.",
        caption="Standard errors of all goals together; shorter is better.",
        data_table=table(["design", "standard error"], rows),
    )


def _list_designs(design: Design) -> str:
    rows = []
    for prediction in design.predictions:
        name, error, method, answers, possible = prediction_cells(design, prediction)
        rows.append((name, error, possible, method, answers, _answering_text(prediction.answering)))
    head = ["design", "standard error", "possible", "method", "answers per subject"]
    return table(
        [*head, "who answers, by round"],
        rows,
        caption="Standard errors are of all goals together, ± the error of the simulation in the "
        "same unit: 0.01 is one percentage point of a share. Answers per subject are averages.",
    )


def prediction_cells(design: Design, prediction: Prediction) -> tuple[str, str, str, str, str]:
    """Return the name of a design, its error and method, its answers, and if it is possible."""
    error, noise = error_text(prediction.error), prediction.accuracy.simulation_error
    if noise and math.isfinite(prediction.error):
        # As many decimals as three digits of the error have.
        decimals = max(0, 2 - math.floor(math.log10(prediction.error)))
        error = f"{format_fixed(prediction.error, decimals)} ± {format_fixed(noise, decimals)}"
    recommended = prediction is design.recommended
    verdict = "recommended" if recommended else "yes" if prediction.possible else "no"
    return prediction.name, error, prediction.method, format_number(prediction.answers, 3), verdict


def _answering_text(shares: tuple[float, ...]) -> str:
    if len(set(shares)) == 1:
        return (
            f"{format_fixed(100 * shares[0], 0)} %"
            if len(shares) == 1
            else f"{format_fixed(100 * shares[0], 0)} % each"
        )
    shown = [format_fixed(100 * share, 0) for share in shares[:_MOST_ROUNDS]]
    ellipsis = ", …" if len(shares) > _MOST_ROUNDS else ""
    return f"{', '.join(shown)}{ellipsis} %"


def _draw_curve(design: Design) -> str:
    finite = [point for point in design.curve if math.isfinite(point.error)]
    families = list(dict.fromkeys(point.family for point in finite))
    marks: list[Mark] = []
    for family, (color, dashes) in zip(families, _LOOKS, strict=False):
        points = [
            (point.epsilon, math.log10(point.error)) for point in finite if point.family == family
        ]
        marks += [Polyline(points, color, family, dashes), Dots(points, color, size=3)]
    budgets = sorted({point.epsilon for point in design.curve})
    ticks = [(epsilon, format_number(epsilon)) for epsilon in budgets]
    errors = [point.error for point in finite]
    low, high = math.log10(min(errors)) - 0.05, math.log10(max(errors)) + 0.05
    chart = Chart(
        Axis("budget ε", budgets[0], budgets[-1], ticks),
        Axis("standard error (share of the range)", low, high, _round_errors(low, high)),
        [*marks, FullLine(float(design.study.epsilon), "ink", "the budget of this study", "2 3")],
    )
    error_at = {(point.family, point.epsilon): point.error for point in finite}
    rows = [
        (family, *(error_text(error_at.get((family, epsilon), math.inf)) for epsilon in budgets))
        for family in families
    ]
    return figure(
        chart,
        alt="The standard error of the best of each family of designs falls as the budget "
        f"grows {format_range(budgets[0], budgets[-1])}.",
        caption="What a smaller or a larger budget would give, with the best of each family.",
        data_table=table(
            ["design", *(f"ε = {format_number(epsilon)}" for epsilon in budgets)], rows
        ),
    )


def _round_errors(low: float, high: float) -> list[tuple[float, str]]:
    """Find round numbers on a scale of powers of ten."""
    errors = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
    ]
    return [(math.log10(x), format_number(x, 3)) for x in errors if low <= math.log10(x) <= high]

"""The report: figures and tables with a plain-language reading, as one page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from examples.paper.figures import Drawn, above, median
from expost._format import format_percent
from expost.report._page import (
    COMPARE_FILES,
    bullets,
    figure,
    note,
    page,
    paragraph,
    section,
    side_by_side,
    table,
)

__all__ = ["report"]

Tree = Mapping[str, Any]

_ENOUGH_RUNS = 50


def report(results: Tree, drawn: Mapping[str, Drawn], *, content_id: str, date: str) -> str:
    """The page for these results; ``content_id`` is the digest of their file."""
    parts = [bullets(_summary(results)), paragraph(*_short(results))]
    if "linear" in results:
        parts.append(_linear(results["linear"], drawn))
    if "logistic" in results:
        parts.append(_logistic(results["logistic"], drawn))
    if "health" in results:
        parts.append(_health(results["health"], drawn))
    if "examples" in results:
        parts.append(_examples(results["examples"]))
    return page(
        *parts,
        *_foot(results),
        title="“Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting”, reproduced",
        verdict="The examples, the figures and the table of the paper (section 6, appendix E), run "
        "again from scratch.",
        lead=[
            "The paper bounds the loss in groups of ten queries. This page has the loss of all "
            "responses together as well.",
            "Every loss below is a proved upper bound.",
        ],
        file="results.json",
        date=date,
        ids=[("content id", content_id, f"{COMPARE_FILES} results.json.")],
        budget=_budgets(results),
    )


def _budgets(results: Tree) -> str:
    """The budgets of all parts: up to the largest, of those with several."""
    budgets = []
    if "linear" in results:
        budgets.append((f"up to {results['linear']['budgets'][-1]:g}", "linear"))
    if "logistic" in results:
        budgets.append((f"up to {results['logistic']['steep']['budgets'][-1]:g}", "logistic"))
    if "health" in results:
        budgets.append((f"{results['health']['budget']:g}", "health"))
    return ", ".join(f"{budget} ({part})" for budget, part in budgets) or "those of the examples"


def _below(bound: float, digits: int) -> str:
    """A number rounded down, as a lower bound or an allowance has to be."""
    return f"{math.floor(bound * 10**digits) / 10**digits:.{digits}f}"


def _short(results: Tree) -> Iterator[str]:
    """A warning if there are few runs."""
    runs = results["runs"]
    if runs and min(runs.values()) < _ENOUGH_RUNS:
        counts = ", ".join(f"{count} of {name}" for name, count in runs.items())
        yield f"This is a short run ({counts}): percentiles of so few runs scatter."


def _summary(results: Tree) -> Iterator[str]:
    if "linear" in results:
        tree = results["linear"]
        yield (
            f"Linear regressions: at the median {median(tree, 'bayesian')} queries with the "
            f"Bayesian filter (printed: {tree['printed']}) and {median(tree, 'simplified')} with "
            f"the Simplified one; basic composition has {tree['basic']['accepted'][0]}."
        )
    if "logistic" in results:
        steep, smooth = (results["logistic"][kind] for kind in ("steep", "smooth"))
        yield (
            f"Logistic regressions, Bayesian: {median(smooth, 'bayesian')} with parameters "
            f"from [−1, 1], but {median(steep, 'bayesian')} with the printed [−10, 10]; the "
            f"printed {steep['printed']} is out of reach there."
        )
    if "health" in results:
        tree = results["health"]
        yield (
            f"Four health regressions: the median loss is {above(tree['median']['loss'], 3)} of a "
            f"budget of {tree['budget']} (printed: {tree['median']['printed']:.2f}), at worst "
            f"{above(tree['largest']['loss'], 3)} (printed: {tree['largest']['printed']:.2f})."
        )


def _linear(tree: Tree, drawn: Mapping[str, Drawn]) -> str:
    return section(
        "Linear regressions (section 6.1)",
        paragraph(
            "A value in [−1, 1]⁹, which is 0 as in the paper, is asked about random weighted sums",
            f"of its coordinates, each with ε = {tree['epsilon']:g}, until the filter refuses.",
        ),
        _composition("linear", tree, drawn),
        paragraph(
            "Reading: with all responses accounted together the median run gets",
            f"{tree['times_printed']:.1f} times as far as printed.",
            "What grouping costs can be seen in the same runs: the loss of",
            "several groups is the sum of their worst points, which are different points.",
            f"We could not reproduce the printed {tree['printed']} with groups of ten in the",
            "printed set-up.",
        ),
    )


def _logistic(trees: Tree, drawn: Mapping[str, Drawn]) -> str:
    steep, smooth = trees["steep"], trees["smooth"]
    counts = steep["ungrouped"]["bayesian"]["accepted"]
    undecided = steep["undecided"]
    proved = max(sum(count < steep["printed"] for count in counts) - undecided, 0)
    return section(
        "Logistic regressions (section 6.2)",
        paragraph("The same with logistic regressions, whose parameters are not normalized."),
        section(
            "Parameters from [−1, 1]",
            _composition("logistic-smooth", smooth, drawn),
            paragraph(
                "Reading: in groups of ten, which is what the paper does, the median of",
                f"{median(smooth, 'bayesian', 'groups')} is close to the printed",
                f"{smooth['printed']}.",
            ),
            level=3,
        ),
        section(
            "Parameters from [−10, 10], as printed",
            _composition("logistic-steep", steep, drawn),
            paragraph(
                "Reading: with such steep questions in nine dimensions, nearly every pattern of",
                "responses has a point in the box that explains all of it, and one that explains",
                f"its opposite. No run accepts more than {max(counts)} queries.",
                f"{undecided or 'No'} decision{'s were' if undecided != 1 else ' was'} undecided;",
                "all other refusals are proved. So at least",
                f"{proved} of {len(counts)} runs could not have reached the printed",
                f"{steep['printed']} queries with any solver.",
            ),
            _proof(steep) if steep["proof"] else "",
            level=3,
        ),
    )


def _proof(steep: Tree) -> str:
    proof = steep["proof"]
    points = [
        [j, f"{first:g}", f"{second:g}"]
        for j, (first, second) in enumerate(
            zip(proof["likelier"], proof["unlikelier"], strict=True), 1
        )
    ]
    return table(
        ["coordinate", "likeliest", "least likely"],
        points,
        caption=f"Two points that prove it for run {proof['run']}.",
    ) + paragraph(
        f"The {proof['queries']} responses of this run are more than",
        f"e^{_below(proof['loss'], 4)} times likelier at the first point than at the second, in",
        "exact arithmetic. So the loss is larger than that exponent, whatever solver is used,",
        "and the Simplified filter has to refuse a further query with",
        f"ε = {steep['epsilon']:g} on the budget of {steep['budgets'][-1]:g}.",
        f"Our proved upper bound is {above(proof['upper'], 4)}.",
    )


def _composition(name: str, tree: Tree, drawn: Mapping[str, Drawn]) -> str:
    rows = [["basic composition", *[tree["basic"]["accepted"][0]] * 3]]
    for account, description in (("groups", "groups of ten"), ("ungrouped", "all together")):
        for kind in ("simplified", "bayesian"):
            by_percentile = tree[account][kind]["percentiles"]
            counts = (f"{by_percentile[percentile][-1]:g}" for percentile in ("10", "50", "90"))
            rows.append([f"{description}, {kind.capitalize()}", *counts])
    rows.insert(1, ["printed (groups of ten)", "", tree["printed"], ""])
    budget, runs = tree["budgets"][-1], len(tree["ungrouped"]["bayesian"]["accepted"])
    return "".join(
        [
            table(
                ["accepted queries", "10th", "median", "90th"],
                rows,
                caption=f"Percentiles; {runs} run{'s' if runs > 1 else ''}, a budget of "
                f"{budget:g}.",
            ),
            _figure(
                drawn[f"{name}-loss"],
                "The loss after each accepted query. A dot is the last one that the "
                "Bayesian filter accepts.",
            ),
            side_by_side(
                _figure(
                    drawn[f"{name}-simplified"],
                    "Accepted queries against the budget: medians and bands from the 10th to the "
                    "90th percentile.",
                ),
                _figure(drawn[f"{name}-bayesian"], "The same for the filter that the paper names."),
            ),
            note(
                f"Widest enclosure of a loss: {above(tree['largest_gap'], 4)}. Undecided, which",
                f"counts as refused: {tree['undecided']:,} of {tree['decisions']:,} decisions",
                f"({format_percent(tree['undecided_share'])}).",
            ),
        ]
    )


def _figure(drawn: Drawn, caption: str) -> str:
    table_rows = table(drawn.head, drawn.rows)
    return figure(
        drawn.chart, alt=drawn.alt, caption=f"{drawn.title}. {caption}", data_table=table_rows
    )


def _health(tree: Tree, drawn: Mapping[str, Drawn]) -> str:
    budget = tree["budget"]
    predictions = [
        [
            f"{name}, person {index}",
            prediction["printed"],
            f"{prediction['computed']:.4f}"
            if prediction["computed"] < 1
            else f"{prediction['computed']:.2f}",
        ]
        for index, person in enumerate(tree["people"])
        for name, prediction in person["predictions"].items()
    ]
    persons = [
        "{}: {}".format(index, ", ".join(f"{k} {v}" for k, v in person["value"].items()))
        for index, person in enumerate(tree["people"])
    ]
    rows = [
        [
            " ".join(map(str, outcome["responses"])),
            f"{outcome['printed']:.4f}",
            above(outcome["loss"]["upper"], 4),
            f"{above(100 * outcome['share'], 0)} %",
            *(f"{100 * chance:.1f} %" for chance in outcome["chances"]),
            _below(outcome["largest_epsilon"]["any"], 2),
            _below(outcome["largest_epsilon"]["heart_again"], 2),
        ]
        for outcome in tree["outcomes"]
    ]
    equal = tree["median"]["loss"]
    weighted = [person["median_loss"] for person in tree["people"]]
    return section(
        "Four regressions on health data (section 6.3, appendix E)",
        paragraph(
            "Heart disease, stroke and diabetes by logistic regressions and hours of sleep by a",
            "linear one that is cut at 0 and 12, each with ε = 1 on a budget of",
            f"{budget}. The mock people of the paper are {'; '.join(persons)}.",
        ),
        table(
            ["prediction without noise", "printed", "computed"],
            predictions,
            caption=(
                "Rounded coefficients explain the differences for heart and sleep, and for stroke "
                "of person 1. The printed diabetes, and stroke of person 0, do not follow."
            ),
        ),
        _figure(drawn["health"], "Losses of the sixteen outcomes."),
        table(
            ["heart stroke diabetes sleep", "printed", "certified", "of the budget"]
            + [f"chance {index}" for index in range(len(tree["people"]))]
            + ["any fifth", "heart again"],
            rows,
            caption=(
                "Chances are those of the mock people. The last two columns are the largest ε of a "
                "fifth regression that is still accepted: whatever it asks, and for heart disease "
                "asked once more."
            ),
        ),
        paragraph(
            "Reading: over the outcomes, counted equally as in the paper, the median loss is",
            f"{above(equal, 3)}, {above(100 * equal / budget, 0)} % of the budget (printed:",
            f"{tree['median']['printed']:.2f}). Outcomes are not equally likely. Weighted by their",
            "chances for the two mock people it is",
            " and ".join(above(loss, 3) for loss in weighted) + ", and the mean is",
            " and ".join(above(person["mean_loss"], 3) for person in tree["people"]) + ".",
            "The printed losses are valid upper bounds, but loose. After the four regressions, a",
            f"fifth one with ε up to {_below(tree['fifth']['half'], 2)} is accepted after half of",
            f"the outcomes, and up to {_below(tree['fifth']['all'], 2)} after all of them. Basic",
            "composition has nothing left.",
        ),
        note(f"Widest enclosure of a loss: {above(tree['largest_gap'], 6)}."),
    )


def _examples(figures: list[Tree]) -> str:
    rows = [
        [
            row["claim"],
            row["printed"],
            row["exact"],
            f"{row['value']:.4g}" if "/" in row["exact"] else "",
        ]
        for row in figures
    ]
    return section(
        "The examples (sections 1, 3 and 4)",
        table(["", "printed", "exactly", ""], rows),
        paragraph(
            "Reading: the losses of the three examples are right as printed. One cell in the table",
            "of Example 2 is not: for x = 2 it is 0.105. Two remarks of section 4.2 do not hold",
            "in general. A query that does not tell the likeliest value from the least likely one",
            "can be accepted when the loss equals the budget; and a response that is likelier at",
            "the least likely value can raise the loss, if a third value rises further.",
        ),
    )


def _foot(results: Tree) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    slips = (
        "The mean estimator of section 2.5 is a + (b − a)·(…), not a + b·(…).",
        "Algorithm 4 has to compare log L(y), not L(y), with ε; and (ε, δ)-LDP is not the same as "
        "“L(y) below e^ε with probability 1 − δ” (section 4.3), though the filter is right.",
        "Algorithm 6 has to go on while the lowest bound is below UB − δ; UB starts at infinity "
        "and takes the minimum.",
        "The split for truncated linear regressions takes logarithms of numbers that can be "
        "negative; the clamp itself is well defined.",
        "The product of appendix C runs over P_{i+j} with i = mk + 1, which leaves the first query "
        "out: harmless for the maximum, wrong for the minimum. Right is P_{mk+j}.",
        "“At least half of the group” (section 6.3) reads a median over outcomes as a share of "
        "people. The median of 2.46 is 61.5 % of the budget, not “less than 61 %” (section 1.2).",
        "The advantage over basic composition is “a factor of one to four” in the abstract, “five "
        "times and two times” in section 1.2, and “2-5 times” in sections 7 and 8. The printed "
        "medians, 47 and 21 against 10, are factors of 4.7 and 2.1.",
    )
    yield section("Where we differ from the paper", bullets(slips))
    yield section(
        "How it was made",
        paragraph(
            f"expost reproduce, seed {results['seed']}; losses on boxes are searched for until",
            f"they are known to {results['gap']:g} nats or better, limited by nodes, so that a",
            "second run gives the same numbers. Every number is in results.json, every loss of",
            "every run in runs.csv.",
        ),
        note(f"Made with {versions}."),
    )

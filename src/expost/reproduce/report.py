"""The report: figures and tables with a plain-language reading, as one page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from expost.report.page import page, picture, table, text
from expost.report.scale import percent

__all__ = ["report"]

Tree = Mapping[str, Any]

_FEW = 50


def report(results: Tree, drawings: Mapping[str, str]) -> str:
    """The page for these results and SVG drawings. Every number on it is in the results."""
    parts = [_head(results)]
    if "linear" in results:
        parts.append(_linear(results["linear"], drawings))
    if "logistic" in results:
        parts.append(_logistic(results["logistic"], drawings))
    if "health" in results:
        parts.append(_health(results["health"], drawings))
    if "examples" in results:
        parts.append(_examples(results["examples"]))
    parts.append(_foot(results))
    return page("The paper, reproduced", "\n".join(parts))


def _above(number: float, digits: int) -> str:
    """A number rounded up, as an upper bound has to be."""
    return f"{math.ceil(number * 10**digits) / 10**digits:.{digits}f}"


def _below(number: float, digits: int) -> str:
    """A number rounded down, as a lower bound or an allowance has to be."""
    return f"{math.floor(number * 10**digits) / 10**digits:.{digits}f}"


def _p(*sentences: str) -> str:
    return f"<p>{text(' '.join(sentences))}</p>"


def _head(results: Tree) -> str:
    lines = "".join(f"<li>{text(line)}</li>" for line in _summary(results))
    return (
        "<h1>“Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting”, reproduced</h1>"
        + _p(
            "The examples, figures and the table of the paper (section 6, appendix E), run anew.",
            "The paper bounds the loss in groups of ten queries; here the loss of all responses",
            "together is computed as well. Every loss below is an upper bound that was proved.",
        )
        + f"<ul>{lines}</ul>"
        + _p(*_short(results))
    )


def _short(results: Tree) -> Iterator[str]:
    """A warning if there are few runs."""
    runs = results["runs"]
    if runs and min(runs.values()) < _FEW:
        counts = ", ".join(f"{count} of {name}" for name, count in runs.items())
        yield f"This is a short run ({counts}): percentiles of so few runs scatter."


def _summary(results: Tree) -> Iterator[str]:
    if "linear" in results:
        tree = results["linear"]
        yield (
            f"Linear regressions: at the median {_median(tree, 'simplified')} queries with the "
            f"Simplified filter (printed: {tree['printed']}) and {_median(tree, 'bayesian')} with "
            f"the Bayesian one; basic composition has {tree['basic']['accepted'][0]}."
        )
    if "logistic" in results:
        steep, smooth = (results["logistic"][kind] for kind in ("steep", "smooth"))
        yield (
            f"Logistic regressions, Simplified: {_median(smooth, 'simplified')} with parameters "
            f"from [−1, 1], but {_median(steep, 'simplified')} with the printed [−10, 10]; the "
            f"printed {steep['printed']} is out of reach there."
        )
    if "health" in results:
        tree = results["health"]
        yield (
            f"Four health regressions: the median loss is {_above(tree['median']['loss'], 3)} of a "
            f"budget of {tree['budget']} (printed: {tree['median']['printed']:.2f}), at worst "
            f"{_above(tree['largest']['loss'], 3)} (printed: {tree['largest']['printed']:.2f})."
        )


def _median(tree: Tree, kind: str, account: str = "ungrouped") -> str:
    return f"{tree[account][kind]['percentiles']['50'][-1]:g}"


def _linear(tree: Tree, drawings: Mapping[str, str]) -> str:
    return (
        "<h2>Linear regressions (section 6.1)</h2>"
        + _p(
            "A value in [−1, 1]⁹, which is 0 as in the paper, is asked about random weighted sums",
            f"of its coordinates, each with ε = {tree['epsilon']:g}, until the filter refuses.",
        )
        + _composition("linear", tree, drawings)
        + _p(
            "Reading: with all responses accounted together the median run gets",
            f"{tree['times_printed']:.1f} times as far as printed.",
            "What grouping costs can be seen in the same runs: the loss of",
            "several groups is the sum of their worst points, which are different points.",
            f"We could not reproduce the printed {tree['printed']} with groups of ten in the",
            "printed set-up.",
        )
    )


def _logistic(trees: Tree, drawings: Mapping[str, str]) -> str:
    steep, smooth = trees["steep"], trees["smooth"]
    stopped = max(steep["ungrouped"]["bayesian"]["accepted"])
    return (
        "<h2>Logistic regressions (section 6.2)</h2>"
        + _p("The same with logistic regressions, whose parameters are not normalized.")
        + "<h3>Parameters from [−1, 1]</h3>"
        + _composition("logistic-smooth", smooth, drawings)
        + _p(
            "Reading: in groups of ten, which is what the paper does, the median of",
            f"{_median(smooth, 'simplified', 'groups')} is close to the printed",
            f"{smooth['printed']}.",
        )
        + "<h3>Parameters from [−10, 10], as printed</h3>"
        + _composition("logistic-steep", steep, drawings)
        + _p(
            "Reading: with such steep questions in nine dimensions, nearly every pattern of",
            "responses has a point in the box that explains all of it, and one that explains its",
            f"opposite. No run accepts more than {stopped} queries"
            + ("; every refusal is proved" if not steep["undecided"] else "")
            + f". The printed median of {steep['printed']} is impossible for the printed set-up.",
        )
        + (_proof(steep) if steep["proof"] else "")
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
    ) + _p(
        f"The {proof['queries']} responses of this run are more than",
        f"e^{_below(proof['loss'], 4)} times likelier at the first point than at the second, in",
        "exact arithmetic. So the loss is larger than that exponent, whatever solver is used,",
        "and the Simplified filter, which is the paper's, has to refuse a further query with",
        f"ε = {steep['epsilon']:g} on the budget of {steep['budgets'][-1]:g}.",
        f"Our proved upper bound is {_above(proof['upper'], 4)}.",
    )


def _composition(name: str, tree: Tree, drawings: Mapping[str, str]) -> str:
    rows = [["basic composition", *[tree["basic"]["accepted"][0]] * 3]]
    for account, words in (("groups", "groups of ten"), ("ungrouped", "all together")):
        for kind in ("simplified", "bayesian"):
            found = tree[account][kind]["percentiles"]
            counts = (f"{found[percentile][-1]:g}" for percentile in ("10", "50", "90"))
            rows.append([f"{words}, {kind.capitalize()}", *counts])
    rows.insert(1, ["printed (groups of ten)", "", tree["printed"], ""])
    budget, runs = tree["budgets"][-1], len(tree["ungrouped"]["bayesian"]["accepted"])
    medians = ", ".join(
        f"{_median(tree, kind, account)} {words}"
        for account, kind, words in (
            ("groups", "simplified", "in groups of ten"),
            ("ungrouped", "simplified", "together"),
        )
    )
    return (
        table(
            ["accepted queries", "10th", "median", "90th"],
            rows,
            caption=f"Percentiles; {runs} run{'s' if runs > 1 else ''}, a budget of {budget:g}.",
        )
        + picture(
            drawings[f"{name}-loss"],
            alt=(
                "The realized loss of each run rises and falls towards the budget, far below the "
                "straight line of basic composition."
                if name != "logistic-steep"
                else "The realized loss of each run stays just below the line of basic composition."
            ),
            caption=(
                "The loss after each accepted query. A dot is the last one that the Bayesian "
                "filter accepts."
            ),
        )
        + '<div class="beside">'
        + picture(
            drawings[f"{name}-simplified"],
            alt=f"Accepted queries against the budget, Simplified filter; medians {medians}.",
            caption="Simplified filter: accepted queries against the budget, medians and bands "
            "from the 10th to the 90th percentile.",
        )
        + picture(
            drawings[f"{name}-bayesian"],
            alt=f"The same for the Bayesian filter; the median is {_median(tree, 'bayesian')}.",
            caption="Bayesian filter: the same.",
        )
        + "</div>"
        + _certified(tree)
    )


def _certified(tree: Tree) -> str:
    words = (
        f"Widest enclosure of a loss: {_above(tree['largest_gap'], 4)}. Undecided, which counts as "
        f"refused: {tree['undecided']:,} of {tree['decisions']:,} decisions "
        f"({percent(tree['undecided_share'])})."
    )
    return f'<p class="note">{text(words)}</p>'


def _health(tree: Tree, drawings: Mapping[str, str]) -> str:
    budget = tree["budget"]
    predictions = [
        [
            f"{name}, person {number}",
            found["printed"],
            f"{found['computed']:.4f}" if found["computed"] < 1 else f"{found['computed']:.2f}",
        ]
        for number, person in enumerate(tree["people"])
        for name, found in person["predictions"].items()
    ]
    people = [
        "{}: {}".format(number, ", ".join(f"{k} {v}" for k, v in person["value"].items()))
        for number, person in enumerate(tree["people"])
    ]
    rows = [
        [
            " ".join(map(str, outcome["responses"])),
            f"{outcome['printed']:.4f}",
            _above(outcome["loss"]["upper"], 4),
            f"{_above(100 * outcome['share'], 0)} %",
            *(f"{100 * chance:.1f} %" for chance in outcome["chances"]),
            _below(outcome["largest_epsilon"]["any"], 2),
            _below(outcome["largest_epsilon"]["heart_again"], 2),
        ]
        for outcome in tree["outcomes"]
    ]
    equal = tree["median"]["loss"]
    weighted = [person["median_loss"] for person in tree["people"]]
    return (
        "<h2>Four regressions on health data (section 6.3, appendix E)</h2>"
        + _p(
            "Heart disease, stroke and diabetes by logistic regressions and hours of sleep by a",
            "linear one that is cut at 0 and 12, each with ε = 1 on a budget of",
            f"{budget}. The mock people of the paper are {'; '.join(people)}.",
        )
        + table(
            ["prediction without noise", "printed", "computed"],
            predictions,
            caption=(
                "Rounded coefficients explain the differences for heart and sleep, and for stroke "
                "of person 1. The printed diabetes, and stroke of person 0, do not follow."
            ),
        )
        + picture(
            drawings["health"],
            alt=(
                "Bars for the certified losses of the sixteen outcomes, from "
                f"{_above(min(o['loss']['upper'] for o in tree['outcomes']), 2)} to "
                f"{_above(tree['largest']['loss'], 2)}; the printed loss is a little to the right "
                "of each."
            ),
            caption="Losses of the sixteen outcomes.",
        )
        + table(
            ["heart stroke diabetes sleep", "printed", "certified", "of the budget"]
            + [f"chance {number}" for number in range(len(tree["people"]))]
            + ["any fifth", "heart again"],
            rows,
            caption=(
                "Chances are those of the mock people. The last two columns are the largest ε of a "
                "fifth regression that is still accepted: whatever it asks, and for heart disease "
                "asked once more."
            ),
        )
        + _p(
            "Reading: over the outcomes, counted equally as in the paper, the median loss is",
            f"{_above(equal, 3)}, {_above(100 * equal / budget, 0)} % of the budget (printed:",
            f"{tree['median']['printed']:.2f}). Outcomes are not equally likely. Weighted by their",
            "chances for the two mock people it is",
            " and ".join(_above(loss, 3) for loss in weighted) + ", and the mean is",
            " and ".join(_above(person["mean_loss"], 3) for person in tree["people"]) + ".",
            "The printed losses are valid upper bounds, but loose. After the four regressions, a",
            f"fifth one with ε up to {_below(tree['fifth']['half'], 2)} is accepted after half of",
            f"the outcomes, and up to {_below(tree['fifth']['all'], 2)} after all of them. Basic",
            "composition has nothing left.",
        )
        + f'<p class="note">Widest enclosure of a loss: {_above(tree["largest_gap"], 6)}.</p>'
    )


def _examples(figures: list[Tree]) -> str:
    rows = [
        [
            figure["what"],
            figure["printed"],
            figure["exact"],
            f"{figure['value']:.4g}" if "/" in figure["exact"] else "",
        ]
        for figure in figures
    ]
    return (
        "<h2>The examples (sections 1, 3 and 4)</h2>"
        + table(["", "printed", "exactly", ""], rows)
        + _p(
            "Reading: the three examples are right as printed. Two remarks of section 4.2 are not",
            "in general. A query that does not tell the likeliest value from the least likely one",
            "can be accepted when the loss equals the budget; and a response that is likelier at",
            "the least likely value can raise the loss, if a third value rises further.",
        )
    )


def _foot(results: Tree) -> str:
    made = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
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
        "people.",
    )
    items = "".join(f"<li>{text(slip)}</li>" for slip in slips)
    return (
        "<h2>Where we differ from the paper</h2>"
        + f"<ul>{items}</ul>"
        + "<h2>How it was made</h2>"
        + _p(
            f"expost reproduce, seed {results['seed']}; losses on boxes are searched for until",
            f"they are known to {results['gap']:g} nats or better, limited by nodes, so that a",
            "second run gives the same bytes. Every number is in results.json, every loss of every",
            "run in runs.csv.",
        )
        + f'<p class="note">Made with {text(made)}.</p>'
    )

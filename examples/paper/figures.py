"""The figures of section 6. Every loss in them is a proven upper bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from examples.paper.runs import Run
from expost.report._chart import (
    Axis,
    Band,
    Chart,
    Dots,
    FullLine,
    HorizontalBars,
    Mark,
    Polyline,
)

__all__ = ["Drawn", "above", "accepted_figure", "health_figure", "loss_figure", "median"]

Tree = Mapping[str, Any]

_SAMPLED = 10


@dataclass(frozen=True, slots=True)
class Drawn:
    """A titled chart, what is to be seen on it in words, and its numbers: a head and rows."""

    title: str
    """Starts with the label of the same figure in the paper, (a) to (d)."""
    chart: Chart
    alt: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


def above(bound: float, digits: int) -> str:
    """A number rounded up, as an upper bound has to be."""
    return f"{math.ceil(bound * 10**digits) / 10**digits:.{digits}f}"


def median(tree: Tree, kind: str, account: str = "ungrouped") -> str:
    """The median of accepted queries at the largest budget."""
    return f"{tree[account][kind]['percentiles']['50'][-1]:g}"


def loss_figure(title: str, tree: Tree, runs: Sequence[Run], *, steep: bool) -> Drawn:
    """Fig. (a), (c): the loss against the number of accepted queries, for some of the runs."""
    budget, epsilon = tree["budgets"][-1], tree["epsilon"]
    traces = [run.traces["ungrouped"] for run in runs[:_SAMPLED]]
    losses = [
        [loss.upper for loss in trace.losses[: trace.accepted["bayesian"][-1] + 1]]
        for trace in traces
    ]
    lines = [[(float(count), loss) for count, loss in enumerate(run)] for run in losses]
    count = round(budget / epsilon)
    marks: list[Mark] = [
        Polyline([(0, 0), (count, budget)], "basic", f"basic composition: {count}", width=4.5),
        Dots([(count, budget)], "basic", size=5),
        *(Polyline(line, "realized", width=1.3) for line in lines),
        Polyline([], "realized", f"realized loss, {len(lines)} run{'s' if len(lines) > 1 else ''}"),
        Dots([line[-1] for line in lines], "realized"),
        FullLine(budget, "ink", f"budget {budget:g}", "6 4", horizontal=True),
    ]
    longest = max(count, *(len(line) - 1 for line in lines))
    rows = [
        [row, *("" if loss is None else above(loss, 4) for loss in row_losses)]
        for row, row_losses in enumerate(zip_longest(*losses))
    ]
    chart = Chart(
        Axis("accepted queries", 0, longest),
        Axis("realized loss (nats)", 0, 1.05 * budget),
        marks,
    )
    alt = (
        "The realized loss of each run stays just below the line of basic composition."
        if steep
        else "The realized loss of each run rises and falls towards the budget, far below the "
        "straight line of basic composition."
    )
    head = ["accepted queries", *(f"run {row}" for row in range(len(lines)))]
    return Drawn(title, chart, alt, head, rows)


def accepted_figure(title: str, tree: Tree, kind: str) -> Drawn:
    """Fig. (b), (d): accepted queries against the budget; median, 10th and 90th percentile."""
    budgets, epsilon = tree["budgets"], tree["epsilon"]
    head, columns = ["budget"], [[f"{budget:g}" for budget in budgets]]
    basic = [(budget, budget / epsilon) for budget in budgets]
    marks: list[Mark] = []
    for account, color, label_text, dashes in (
        ("ungrouped", "realized", "all together", ""),
        ("groups", "purple", "groups of ten", "6 4"),
    ):
        low, middle, high = (
            list(zip(budgets, tree[account][kind]["percentiles"][p], strict=True))
            for p in ("10", "50", "90")
        )
        label = f"{label_text}: median {middle[-1][1]:g}"
        marks += [
            Band(low, high, color),
            Polyline(middle, color, label, dashes),
            Dots(middle, color),
        ]
        for name, points in (("10th", low), ("median", middle), ("90th", high)):
            head.append(f"{label_text}, {name}")
            columns.append([f"{count:g}" for _, count in points])
    marks.append(Polyline(basic, "basic", f"basic composition: {round(basic[-1][1])}", width=4.5))
    if kind == "bayesian":  # the filter that section 6 and Algorithm 5 of the paper name
        printed_label = f"printed median: {tree['printed']}"
        marks.append(Dots([(budgets[-1], tree["printed"])], "ink", printed_label, "diamond", 6))
    head.append("basic composition")
    columns.append([f"{round(count, 9):g}" for _, count in basic])
    top = max(
        tree["printed"], *(max(tree[a][kind]["percentiles"]["90"]) for a in ("ungrouped", "groups"))
    )
    chart = Chart(
        Axis("budget (nats)", 0, budgets[-1]), Axis("accepted queries", 0, 1.05 * top), marks
    )
    medians = " and ".join(
        f"{median(tree, kind, account)} {label_text}"
        for account, label_text in (("groups", "in groups of ten"), ("ungrouped", "all together"))
    )
    alt = (
        f"Accepted queries against the budget, {kind.capitalize()} filter: at a budget of "
        f"{budgets[-1]:g} the median is {medians}, and {round(basic[-1][1])} by basic composition."
    )
    return Drawn(
        f"{title}, {kind.capitalize()} filter", chart, alt, head, list(zip(*columns, strict=True))
    )


def health_figure(tree: Tree) -> Drawn:
    """The sixteen outcomes: the printed losses beside the certified ones."""
    outcomes = sorted(tree["outcomes"], key=lambda outcome: outcome["loss"]["upper"])
    names = [" ".join(map(str, outcome["responses"])) for outcome in outcomes]
    losses = [outcome["loss"]["upper"] for outcome in outcomes]
    printed = [outcome["printed"] for outcome in outcomes]
    budget = float(tree["budget"])
    marks: list[Mark] = [
        HorizontalBars([(0, loss) for loss in losses], "realized", "certified"),
        Dots([(loss, row) for row, loss in enumerate(printed)], "ink", "printed", "diamond", 5),
        FullLine(budget, "basic", "budget, and basic composition", width=4.5),
    ]
    chart = Chart(
        Axis("loss (nats)", 0, budget),
        Axis(
            "heart, stroke, diabetes, sleep", -0.6, len(outcomes) - 0.4,
            [(float(row), name) for row, name in enumerate(names)],
        ),
        marks,
        height=22 * len(outcomes),
    )  # fmt: skip
    alt = (
        f"Bars for the certified losses of the sixteen outcomes, from {above(losses[0], 2)} to "
        f"{above(losses[-1], 2)}; the printed loss is a little to the right of each."
    )
    rows = [
        [name, f"{loss:.4f}", above(loss, 4)]
        for name, loss, loss in zip(names, printed, losses, strict=True)
    ]
    head = ["heart stroke diabetes sleep", "printed", "certified"]
    return Drawn("Appendix E: health data", chart, alt, head, rows)

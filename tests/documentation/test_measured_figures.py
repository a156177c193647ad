"""Tables and figures in the docs that repeat measured numbers have the numbers of their source."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks.filtered_means import CASES, SCORES, expected
from examples.paper.figures import accepted_figure
from examples.paper.runs import run
from examples.paper.streams import LINEAR, STEEP, Stream

import expost as xp
from expost.report._chart import svg_file
from support.oracles import optimal_epsilon

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = "benchmarks/RESULTS.md"
ALONE = re.compile(r"[\d.]+")
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def figure_program(name: str) -> ModuleType:
    """Import a program of docs/figures."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "figures" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def page(name: str) -> str:
    """Read a page, with links replaced by their texts."""
    return LINK.sub(r"\1", (ROOT / name).read_text(encoding="utf-8"))


def one_line(name: str) -> str:
    return " ".join(page(name).split())


def cells(name: str, first: str) -> list[list[str]]:
    """Split the table rows whose first cell starts like this."""
    rows = [line.strip("| ").split(" | ") for line in page(name).splitlines() if line[:1] == "|"]
    return [row for row in rows if row[0].startswith(first)]


worth = figure_program("worth")
paper = figure_program("paper")
REPRODUCED: dict[str, Any] = json.loads(paper.NUMBERS.read_text(encoding="utf-8"))


def test_tables_of_predicted_errors_repeat_the_predictions() -> None:
    errors = json.loads(worth.NUMBERS.read_text(encoding="utf-8"))
    for name, labels in {
        "README.md": list(worth.DESIGNS),
        "docs/explanation/when.md": [*worth.DESIGNS, worth.REPEATED, worth.JOINT],
    }.items():
        for label in labels:
            assert [label, *errors[label]] in cells(name, label)


def test_predictions_of_the_readme_are_for_questions_one_after_the_other() -> None:
    errors = json.loads(worth.NUMBERS.read_text(encoding="utf-8"))
    for label, prediction in worth.one_after_the_other(worth.BUDGETS[-1]).items():
        assert errors[label][-1] == worth.points(prediction)


def test_tables_of_the_reproduction_repeat_its_results() -> None:
    lines = page("docs/tutorials/paper.md").splitlines()
    missing = [line for line in paper.page_lines(REPRODUCED) if line not in lines]
    assert not missing


def test_the_number_of_proven_runs_follows_from_the_results() -> None:
    steep = REPRODUCED["logistic"]["steep"]
    counts = steep["ungrouped"]["bayesian"]["accepted"]
    proven = sum(count < steep["printed"] for count in counts) - steep["undecided"]
    assert f"at least {proven} of the {len(counts)} runs" in one_line("docs/tutorials/paper.md")


@pytest.mark.parametrize(
    ("stream", "tree"),
    [(LINEAR, REPRODUCED["linear"]), (STEEP, REPRODUCED["logistic"]["steep"])],
    ids=["linear", "steep"],
)
def test_the_first_run_still_gives_the_stored_results(stream: Stream, tree: Any) -> None:
    found = run(stream, REPRODUCED["seed"], 0)
    for account, trace in found.traces.items():
        for kind, counts in trace.accepted.items():
            assert tree[account][kind]["accepted"][0] == counts[-1]


@pytest.mark.parametrize(
    ("name", "title", "tree"),
    [
        ("paper_b", "(b) Linear regressions", REPRODUCED["linear"]),
        (
            "paper_d",
            "(d) Logistic regressions, parameters from [−10, 10]",
            REPRODUCED["logistic"]["steep"],
        ),
        (
            "paper_d_smaller_parameters",
            "(d) Logistic regressions, parameters from [−1, 1]",
            REPRODUCED["logistic"]["smooth"],
        ),
    ],
)
def test_figures_of_accepted_queries_are_drawn_from_the_results(
    name: str, title: str, tree: Any
) -> None:
    figure = accepted_figure(title, tree, "bayesian")
    drawn = svg_file((figure.title, figure.chart), alt=figure.alt)
    assert (DOCS / "_static" / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_the_linear_experiment_has_one_median_in_all_pages() -> None:
    linear, smooth = REPRODUCED["linear"], REPRODUCED["logistic"]["smooth"]
    medians = [
        f"{tree['ungrouped']['bayesian']['percentiles']['50'][-1]:g}" for tree in (linear, smooth)
    ]
    assert f"the filter answers {medians[0]} queries (median)" in one_line("README.md")
    benchmarks = one_line("docs/explanation/benchmarks.md")
    assert f"the median is {medians[0]} for linear queries" in benchmarks
    assert f"with weights up to 1 it is {medians[1]}" in benchmarks
    assert f"the median is {medians[0]} with all responses" in one_line("docs/tutorials/paper.md")


def test_the_study_report_repeats_the_output_of_its_page() -> None:
    name = "docs/tutorials/study.md"
    before, report = page(name).split("## The report")
    found = {
        what: numbers
        for what, *numbers in re.findall(
            r"^(hours a day|crashed|long and crashed) +([\d.]+)  ([\d.]+) to ([\d.]+)$",
            before,
            re.MULTILINE,
        )
    }
    mean, low, high = found["hours a day"]
    assert f"| hours of use a day | {mean}, between {low} and {high} |" in report
    for what, label in (
        ("crashed", "devices that crashed"),
        ("long and crashed", "devices that are used for two hours or more and crashed"),
    ):
        mean, low, high = (f"{round(100 * float(number))}" for number in found[what])
        assert f"| {label} | {mean} %, between {low} and {high} % |" in report
    answers, refusals = re.findall(r"\((\d+), (\d+)\)", before.split("range(3)")[1])[0]
    assert f"| 5,000, {int(answers):,}, {int(refusals):,} |" in report
    (median,) = re.findall(r"^median loss +([\d.]+)$", before, re.MULTILINE)
    (largest,) = re.findall(r"^largest loss +([\d.]+)$", before, re.MULTILINE)
    peaks = re.findall(r"^\(([\d.]+), ([\d.]+)\)$", before, re.MULTILINE)[-1]
    at_the_end = f"at the end: median {float(median):.2f}, largest {largest}"
    at_their_peaks = f"at their peaks: median {peaks[0]}, largest {float(peaks[1]):g}"
    assert f"| {at_the_end}; {at_their_peaks} |" in report


def test_the_study_of_the_tutorial_can_be_run_and_drawn_at_any_size() -> None:
    health = figure_program("health")
    names = health.study(20)
    audit: xp.audits.Audit = names["audit"]
    assert (len(audit), audit.respected) == (20, 20)
    assert len(names["refused"]) == 12
    assert int(audit.to_polars()["exchanges"].sum()) == 20 * 12 - sum(names["refused"])
    assert len(health.draw(names["refused"], audit).axes) == 2


def test_the_health_study_reports_the_numbers_of_its_program() -> None:
    health = figure_program("health")
    found = json.loads(health.NUMBERS.read_text(encoding="utf-8"))
    name, patients = "docs/tutorials/health.md", health.PATIENTS
    assert found["refused"][:8] == [0] * 8
    (row,) = cells(name, "patients who refused")
    assert row[1:] == ["0", *(f"{count:,}" for count in found["refused"][8:])]
    assert patients * 12 - sum(found["refused"]) == found["answers"]
    text = one_line(name)
    assert (found["respected"], found["undecided"]) == (patients, 0)
    assert f"{found['respected']:,} budgets respected, none undecided" in text
    assert f"{found['twelve']:,} answered all twelve questions" in text
    assert f"there are {found['answers']:,} answers" in text
    assert f"The median loss at the end is {found['median']:.2f}" in text
    assert found["largest"] <= 2 + 1e-12


def test_beliefs_move_as_far_as_the_table_says() -> None:
    name = "docs/explanation/knowledge.md"
    (head,) = cells(name, "before")
    rows = [row for row in cells(name, "") if re.fullmatch(r"\d+ %", row[0])]
    assert len(rows) == 5
    for before, *shown in rows:
        p = float(before.removesuffix(" %")) / 100
        for title, ends in zip(head[1:], shown, strict=True):
            factor = math.exp(float(title.removeprefix("ε = ")))
            limits = p / (p + (1 - p) * factor), p * factor / (p * factor + 1 - p)
            for number, limit in zip(ends.removesuffix(" %").split(" to "), limits, strict=True):
                digits = len(number.partition(".")[2])
                assert number == f"{100 * limit:.{digits}f}", (before, title)


@pytest.mark.parametrize(("count", "budget"), [(10, "1"), (100, "5.08"), (1_000, "20.46")])
def test_compared_rules_have_their_costs_and_the_exact_optimum(count: int, budget: str) -> None:
    query = xp.randomized_response(epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    for index in range(count):
        odometer = odometer.add(query, ["no", "yes"][index % 2])
    standings = xp.report.compare(odometer, epsilon=budget, delta="1e-6").standings
    names = ("basic", "rogers", "whitehouse", "renyi", "mixture")
    costs = [f"{standings[name].spent:.3f}" for name in names]
    assert costs[0] == f"{count / 10:.3f}"
    optimum = optimal_epsilon(Fraction("0.1"), count, Fraction("1e-6"))
    expected_row = [f"{count:,}", f"{float(optimum):.3f}", *costs]
    assert expected_row in cells("docs/explanation/benchmarks.md", f"{count:,}")


@pytest.mark.parametrize("name", ["odometer", "saturating"])
def test_a_figure_of_one_subject_is_what_its_program_draws(name: str) -> None:
    drawn = (DOCS / "_static" / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == figure_program(name).drawn()


def test_the_first_screen_has_the_counts_of_its_figure() -> None:
    figure = (DOCS / "_static" / "odometer.svg").read_text(encoding="utf-8")
    shown = re.findall(r"stops after (\d+)<|loss: (\d+) answered<", figure)
    counts = [first or second for first, second in shown]
    for page in (DOCS.parent / "README.md", DOCS / "index.md"):
        text = re.search(r"!\[([^\]]*)\]\([^)]*odometer.svg\)", page.read_text(encoding="utf-8"))
        assert text
        assert [number for number in re.findall(r"\d+", text[1]) if number != "2"] == counts


def test_the_map_of_designs_is_drawn_from_its_predictions() -> None:
    utility = figure_program("utility")
    panels = json.loads(utility.NUMBERS.read_text(encoding="utf-8"))
    drawn = (DOCS / "_static" / "utility_map.svg").read_text(encoding="utf-8")
    assert drawn == utility.drawn(panels)


def test_the_map_of_designs_agrees_with_the_measured_errors() -> None:
    utility = figure_program("utility")
    panels = json.loads(utility.NUMBERS.read_text(encoding="utf-8"))
    (columns,) = cells(RESULTS, "values: budget")
    begins = {
        "Q": "one sampled question",
        "V": "full-value report",
        "J": "joint report",
        "S": "saturating, ",
    }
    for title in list(panels)[:2]:
        for size, row in panels[title].items():
            for budget, (letters, error) in zip(
                utility.BUDGETS.values(), map(str.split, row), strict=True
            ):
                at = columns.index(f"{int(size):,}: {budget}")
                for letter in letters.split("/"):
                    rows = [[*line, *columns] for line in cells(RESULTS, begins[letter])]
                    measured = [float(line[at]) for line in rows if ALONE.fullmatch(line[at])]
                    assert float(error) == pytest.approx(min(measured), rel=0.15)


def test_the_map_of_designs_predicts_full_value_reports_on_many_values(tmp_path: Path) -> None:
    utility = figure_program("utility")
    title = "Number unknown, after twelve"
    predicted = utility.errors(tmp_path, 1_000, "4", *utility.PANELS[title])
    row = json.loads(utility.NUMBERS.read_text(encoding="utf-8"))[title]["1000"]
    assert row[-1] == f"V {100 * predicted['full-value report']:.1f}"


@pytest.mark.parametrize("delta", ["1e-4", "1e-6"])
def test_rules_get_ahead_of_sums_where_the_table_says(delta: str) -> None:
    compare = figure_program("compare")
    (row,) = cells("docs/explanation/benchmarks.md", f"$10^{{-{delta[-1]}}}$")
    for column, budget in ((1, "0.1"), (2, "1")):
        ahead = [compare.first_ahead(rule, budget, delta) for rule in ("renyi", "whitehouse")]
        assert row[column] == "{} ({})".format(*ahead)


def test_means_under_a_filter_are_their_exact_limits() -> None:
    for budget, rounds, shares in CASES:
        (row,) = cells("docs/how-to/estimates.md", f"{budget}, {rounds}")
        limits = expected(budget, rounds, shares)[-1]
        truth = float(SCORES @ shares)
        means = (truth, limits.last_round, limits.pooled, limits.per_subject)
        assert row[1:5] == [f"{mean:.3f}" for mean in means]

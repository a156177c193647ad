"""Every result can be drawn, on given axes or on new ones, and no label is over another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

import expost as xp
from expost.report._palette import BASIC, REALIZED
from support.missing_packages import run_without

# So few subjects are fine for a picture.
pytestmark = pytest.mark.filterwarnings("ignore:.* at an end of what is possible")

mpl.use("Agg")

DOMAIN = xp.FiniteSet(["never", "sometimes", "often"])
QUERY = xp.randomized_response(epsilon="0.5")
BIT = xp.perturbation([0, 0.5, 1], epsilon=1)


def _asked() -> xp.Session:
    noise = xp.sampling.InsecureSource(4)
    session = xp.Session(DOMAIN, "often", filter=xp.BayesianFilter(3), source=noise)
    for _ in range(20):
        session.ask(QUERY)
    return session


def _losses() -> xp.audits.Losses:
    responses = np.random.default_rng(1).choice(DOMAIN.values, 400)
    table = {"subject": np.repeat(np.arange(100), 4), "query": ["q"] * 400, "response": responses}
    return xp.realized_losses(xp.Answers(DOMAIN, {"q": QUERY}, table))


def _frequencies(size: int) -> xp.estimation.Frequencies:
    domain = xp.FiniteSet([f"a value with quite a long name, number {i}" for i in range(size)])
    pairs = [(xp.randomized_response(epsilon=3), value) for value in domain.values]
    return xp.estimation.estimate_frequencies(pairs, domain=domain)


def _together() -> xp.estimation.Distribution:
    person = xp.Attributes(smokes=["no", "yes"], region=["north", "south"])
    query = QUERY.about("smokes", "region")
    table = {"subject": [1, 2], "query": ["q"] * 2, "response": [["no", "north"], ["yes", "north"]]}
    answers = xp.Answers(person, {"q": query}, table).about("smokes", "region")
    return xp.estimation.estimate_distribution(answers)


SESSION = _asked()
BITS = [(BIT, 0)] * 10 + [(BIT, 1)] * 20
THINGS: dict[str, Callable[[], Any]] = {
    "session": lambda: SESSION,
    "transcript": lambda: SESSION.transcript,
    "replay": lambda: xp.replay(SESSION),
    "losses": _losses,
    "mean": lambda: xp.estimation.estimate_mean([0, 1, 1, 1], BIT, domain=DOMAIN),
    "three": lambda: _frequencies(3),
    "two hundred": lambda: _frequencies(200),
    "together": lambda: _together().intervals(repetitions=50),
    "distribution": lambda: xp.estimation.estimate_distribution(BITS, domain=DOMAIN),
    "comparison": lambda: xp.report.compare(SESSION),
    "rules": lambda: xp.Transcript(DOMAIN, xp.ApproximateFilter(3, "1e-6")).add(QUERY, "often"),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def within(ticks: list[Any], axis: int, limits: tuple[float, float]) -> list[Any]:
    """Those that are drawn: an axis also has ticks beyond its ends."""
    return [tick for tick in ticks if min(limits) <= tick.get_position()[axis] <= max(limits)]


def labels(axes: Axes) -> list[Any]:
    legend = axes.get_legend()
    return [
        text
        for text in (
            axes.title,
            axes.xaxis.label,
            axes.yaxis.label,
            *within(axes.get_xticklabels(), 0, axes.get_xlim()),
            *within(axes.get_yticklabels(), 1, axes.get_ylim()),
            *axes.texts,
            *(legend.get_texts() if legend else ()),
        )
        if text.get_visible() and text.get_text()
    ]


@pytest.mark.parametrize("size", [None, (4.4, 4.0), (8.0, 5.0)])
@pytest.mark.parametrize("name", THINGS)
def test_no_label_is_over_another_or_outside_the_picture(
    name: str, size: tuple[float, float] | None
) -> None:
    result = THINGS[name]()
    if size is None:
        axes = xp.plot(result)
    else:
        _, given_axes = pyplot.subplots(figsize=size, layout="constrained")
        axes = xp.plot(result, given_axes)
        assert axes is given_axes
    figure: Any = axes.figure
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in labels(axes)]
    assert boxes
    for text, box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert figure.bbox.y0 - 1 <= box.y0, text
        assert box.y1 <= figure.bbox.y1 + 1, text
    for (text_of_first, first), (text_of_second, second) in itertools.combinations(boxes, 2):
        assert not first.overlaps(second), (text_of_first, text_of_second)


def test_an_estimate_is_drawn_with_its_interval_and_says_what_it_used() -> None:
    estimate = _frequencies(3)
    axes = xp.plot(estimate)
    bars: list[Any] = list(axes.patches)
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert ends == [
        pytest.approx(pair) for pair in zip(estimate.lower, estimate.upper, strict=True)
    ]
    points, hollow = axes.lines[:2]
    assert list(np.asarray(points.get_xdata())) == estimate.frequency.tolist()
    assert len(np.asarray(hollow.get_xdata())) == 0
    assert axes.get_xlabel().splitlines() == ["share, 95 % intervals", "3 responses of 3 subjects"]


def test_what_the_responses_do_not_determine_is_hollow() -> None:
    axes = xp.plot(xp.estimation.estimate_distribution(BITS, domain=DOMAIN))
    assert len(np.asarray(axes.lines[1].get_xdata())) == 3
    assert axes.get_xlabel().endswith("hollow: not determined by the responses")


def test_an_estimate_that_can_be_biased_says_so() -> None:
    table = {"subject": [1, 2, 2], "query": ["b"] * 3, "response": [0, 1, 1]}
    answers = xp.Answers(DOMAIN, {"b": BIT}, table, filter=xp.BayesianFilter(3))
    with pytest.warns(UserWarning, match="biased"):
        axes = xp.plot(xp.estimation.estimate_mean(answers, "b"))
    assert axes.get_xlabel().endswith("3 responses of 2 subjects\ncan be biased")


def test_a_comparison_has_a_bar_for_each_accounting_and_its_numbers_beside_it() -> None:
    comparison = xp.report.compare(SESSION)
    axes = xp.plot(comparison)
    assert len(axes.patches) == len(axes.texts) == len(comparison.standings)
    count = comparison.standings["bayesian"].repeats.count
    assert axes.texts[-1].get_text().endswith(f"; accepts {count} more")


def test_a_comparison_names_its_delta_and_the_parameters_of_rules() -> None:
    axes = xp.plot(xp.report.compare(SESSION, delta="1e-5"))
    assert "epsilon at delta 1e-05" in [text.get_text() for text in labels(axes)]
    order = xp.filters.Renyi.for_plan(3, "1e-5", "0.5").order
    assert f"renyi (order {float(order):.6g})" in [t.get_text() for t in axes.get_yticklabels()]


def test_an_odometer_is_drawn_beside_composition_rules_if_there_is_a_delta() -> None:
    def names(result: object, delta: str | None = None) -> list[str]:
        return [text.get_text().split(":")[0] for text in labels(xp.plot(result, delta=delta))]

    plain, rules = names(SESSION), names(SESSION, "1e-6")
    assert set(rules) - set(plain) >= {"Whitehouse", "Rényi", "mixture"}
    guarded = xp.Transcript(DOMAIN, xp.ApproximateFilter(3, "1e-6")).add(QUERY, "often")
    assert {"Whitehouse", "Rényi", "mixture"} <= set(names(guarded))
    with pytest.raises(xp.InvalidInput, match="delta: is for a transcript, a session or"):
        xp.plot(xp.report.compare(SESSION), delta="1e-6")


def test_an_infinite_loss_is_no_bar_and_said_beside_it() -> None:
    certain = xp.channel([["1", "0"], ["1/2", "1/2"]])
    transcript = xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(1)).add(certain, 1)
    axes = xp.plot(xp.report.compare(transcript))
    assert axes.texts[-1].get_text() == "inf; accepts 0 more"


def _grey(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_two_colors_differ_in_grey_print_and_from_paper() -> None:
    def contrast(first: float, second: float) -> float:
        return (max(first, second) + 0.05) / (min(first, second) + 0.05)

    assert contrast(_grey(REALIZED), _grey(BASIC)) > 2
    assert min(contrast(1.0, _grey(color)) for color in (REALIZED, BASIC)) > 3


def test_anything_else_is_one_clear_line() -> None:
    with pytest.raises(
        xp.InvalidInput, match=r"must be a transcript, .* or a comparison, not str$"
    ):
        xp.plot("t.json")


def test_without_matplotlib_it_is_one_clear_line() -> None:
    program = """
import expost as xp
try:
    xp.plot(xp.Transcript(xp.FiniteSet(["no", "yes"])))
except xp.InvalidInput as error:
    print(error)
"""
    done = run_without(["matplotlib"], program)
    assert done.stdout.strip() == "a picture needs the extra: pip install 'expost[plot]'"


def test_values_of_several_attributes_are_labeled_without_their_names() -> None:
    distribution = _together()
    for estimate in (distribution, distribution.intervals(repetitions=50)):
        texts = [tick.get_text() for tick in xp.plot(estimate).get_yticklabels()]
        assert texts == ["no, north", "no, south", "yes, north", "yes, south"]


def test_a_command_draws_what_plot_draws() -> None:
    from expost.report._estimates import report_likelihood
    from expost.report._figures import estimates_chart

    table = {"subject": [1, 2], "query": ["q"] * 2, "response": ["no", "yes"]}
    answers = xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": QUERY}, table)
    estimated = report_likelihood(answers, None)
    chart = estimates_chart(
        estimated.estimates, estimated.confidence, ["2 responses of 2 subjects"]
    )
    axes = xp.plot(xp.estimation.estimate_distribution(answers))
    assert chart.x.label == axes.get_xlabel()
    assert [label for _, label in chart.y.labeled] == ["no", "yes"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["no", "yes"]

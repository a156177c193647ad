"""``expost explain``: what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]

YES = xp.randomized_response(epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "transcript.json"


def test_an_account_for_people(run: Run, file: Path) -> None:
    filter_ = xp.BayesianFilter(epsilon=1)
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), filter_)
    transcript.add(YES, "yes").add(YES, "no").add(YES, "yes").save(file)
    code, out, err = run("explain", file)
    assert (code, err) == (0, "")
    assert out == """\
The subject's value is one of 2: no or yes.
3 queries were answered, with noise:

    asked                             response  loss
1.  the value itself, at epsilon 0.5  yes       0.5   up
2.  the value itself, at epsilon 0.5  no        0     down
3.  the value itself, at epsilon 0.5  yes       0.5   up

All of these responses together reveal at most 0.5 nats; basic composition charges 1.5.
At this loss, odds change by a factor of at most 1.65. \
Someone undecided (50 %) is at most 62 % sure; the budget allows 73 %.
The budget of 1 (Bayesian filter) was respected at every exchange; 0.5 of it, 50 %, is used now.
The responses are 1.649 times as likely for yes as for no; no two values are further apart.
"""  # fmt: skip


def test_a_breach_comes_first_and_nothing_soothes(run: Run, file: Path) -> None:
    """Of a transcript that ended at a loss of 0, by luck."""
    once = xp.randomized_response(epsilon=1)
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    for response in ("yes", "yes", "no", "no"):
        transcript = transcript.add(once, response)
    transcript.save(file)
    page = file.with_name("page.html")
    code, out, _ = run("explain", file, "--html", page)
    assert code == 0
    first = [
        "The budget of 1 (Bayesian filter) was not respected: the filter refuses exchange 2.",
        "At its peak the loss was 2 nats; its current value of 0 does not undo that.",
        "At the peak, odds changed by a factor of at most 7.39. "
        "Someone undecided (50 %) was at most 88 % sure; the budget allows 73 %.",
        "For a viewer of only some responses, assume at least the sum of the epsilons, 4.",
    ]
    assert out.splitlines()[:5] == [*first, ""]
    assert "held against" not in out
    result = checked(page.read_text(encoding="utf-8"))
    lines = [line.text.replace("\xa0", " ") for line in result.all("header")[0].all("p")]
    assert lines == first
    assert result.all("p", "verdict breach")[0].text == first[0]
    assert "remaining" not in result.facts
    assert xp.report.explain(transcript)._repr_html_().startswith(f"<p>{first[0]}</p>")


def test_a_breach_at_a_finite_sum_of_a_basic_filter_is_a_breach(run: Run, file: Path) -> None:
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BasicFilter(epsilon="0.5"))
    transcript.add(YES, "yes").add(YES, "no").save(file)
    lines = run("explain", file)[1].splitlines()
    assert (
        lines[0]
        == "The budget of 0.5 (basic filter) was not respected: the filter refuses exchange 2."
    )
    assert (
        lines[1] == "At its peak the loss was 0.5 nats; its current value of 0 does not undo that."
    )


def test_an_account_for_programs(run: Run, file: Path) -> None:
    filter_ = xp.BayesianFilter(epsilon=2)
    transcript = xp.Transcript(xp.FiniteSet(list("abc")), filter_)
    transcript.add(YES, "b").add(YES, "b").save(file)
    code, out, err = run("explain", file, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert list(result) == [
        "exchanges", "left_out", "steps", "loss", "basic", "budget", "used", "budget_respected",
        "first_refused", "peak", "most_apart",
    ]  # fmt: skip
    assert [step["change"] for step in result["steps"]] == ["up", "up"]
    assert list(result["steps"][0]) == ["number", "asked", "response", "loss", "change"]
    assert (result["basic"], result["budget"], result["budget_respected"]) == (1, 2, True)
    assert result["used"]["lower"] <= 0.5 <= result["used"]["upper"] + 1e-9
    pair = result["most_apart"]
    assert (pair["likeliest"], pair["unlikeliest"], pair["others"]) == ("b", "a", [0, 1])
    assert pair["difference"] == pytest.approx(1)
    assert pair["example"] is False


def test_a_long_transcript_is_told_by_its_ends(run: Run, file: Path) -> None:
    transcript = xp.Transcript(xp.FiniteSet(range(3)))
    for i in range(1234):
        transcript = transcript.add(YES, i % 3)
    transcript.save(file)
    out = run("explain", file)[1]
    rows = out.splitlines()[3:15]
    assert [row.split()[0] for row in rows[1:]] == [
        "1.", "2.", "3.", "4.", "5.", "…", "1230.", "1231.", "1232.", "1233.", "1234.",
    ]  # fmt: skip
    assert rows[6] == "…      1,224 more"
    assert json.loads(run("explain", file, "--json")[1])["left_out"] == 1224


def test_nothing_asked_so_far(run: Run, file: Path) -> None:
    xp.Transcript(xp.FiniteSet(range(3))).save(file)
    assert run("explain", file)[1] == (
        "The subject's value is one of 3: 0, 1 or 2.\n"
        "Nothing has been asked yet.\n"
        "The transcript names no filter, so there is no budget.\n"
    )


@pytest.mark.parametrize(
    ("rows", "responses", "sentence"),
    [
        ([[1, 0], ["1/2", "1/2"], ["1/2", "1/2"]], [1], "impossible for a."),
        ([[1, 0], [0, 1], [0, 1]], [0, 1], "No value can have given all of these responses."),
        ([["1/2", "1/2"]] * 3, [0], "No two values were found that these responses tell apart."),
        ([["1/2", "1/2"], ["1/4", "3/4"], ["1/4", "3/4"]], [0],
         "The responses are 2 times as likely for a as for b (and 1 other value alike); "
         "no two values are further apart."),
    ],
)  # fmt: skip
def test_degenerate_accounts(
    run: Run, file: Path, rows: list[list[object]], responses: list[int], sentence: str
) -> None:
    transcript = xp.Transcript(xp.FiniteSet(list("abc")), xp.BayesianFilter(epsilon=1))
    for response in responses:
        transcript = transcript.add(xp.channel(rows), response)
    transcript.save(file)
    code, out, _ = run("explain", file)
    assert code == 0
    assert out.splitlines()[-1].endswith(sentence)
    assert out.startswith("The budget of 1 (Bayesian filter) was not respected") == (
        sentence[0] in "iN" and "found" not in sentence
    )
    json.loads(run("explain", file, "--json")[1])


def test_factors_beyond_doubles_are_powers(run: Run, file: Path) -> None:
    query = xp.randomized_response(epsilon=500)
    xp.Transcript(xp.FiniteSet(["a", "b"])).add(query, "a").add(query, "a").save(file)
    assert "are e^1000 times as likely for a as for b;" in run("explain", file)[1]


def test_on_a_box_the_pair_is_an_example(run: Run, file: Path) -> None:
    box = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    query = xp.logistic({"age": 0.1}, intercept=-5, epsilon=1)
    xp.Transcript(box, xp.BayesianFilter(epsilon=2)).add(query, 1).save(file)
    code, out, err = run("explain", file, "--gap", "0.001")
    assert (code, err) == (0, "")
    *_, first, second = out.splitlines()
    assert first.startswith("For example, the responses are 2.")
    assert first[:-1].endswith("times as likely at age=100, sex=")
    assert second.startswith("as at age=10, sex=")
    pair = json.loads(run("explain", file, "--json")[1])["most_apart"]
    assert pair["example"] is True
    assert pair["others"] is None
    assert box.locate(pair["likeliest"]) is not None


def test_labels_cannot_write_to_the_terminal(run: Run, file: Path) -> None:
    hostile = "a\n\x1b[31m" + "x" * 500
    transcript = xp.Transcript(xp.FiniteSet([hostile, "b"]))
    query = xp.channel([[1, 0], ["1/2", "1/2"]], responses=[hostile, "c"])
    transcript.add(YES, hostile).add(query, hostile).save(file)
    code, out, _ = run("explain", file)
    assert code == 0
    assert "\x1b" not in out
    assert all(len(line) < 200 for line in out.splitlines())
    assert out.count("\n") == 11


def test_points_and_subsets_as_responses(run: Run, file: Path) -> None:
    points = xp.FiniteSet([{"age": 34, "sex": 0}, {"age": 52, "sex": 1}, {"age": 60, "sex": 1}])
    subset = xp.subset_selection(size=2, epsilon=1)
    xp.Transcript(points).add(YES, [52, 1]).add(subset, [0, 2]).save(file)
    out = run("explain", file)[1]
    assert "age=52, sex=1  0.5" in out
    assert "0, 2 " in out


def test_a_long_transcript_shows_the_refused_exchange_and_the_peak(run: Run, file: Path) -> None:
    # The loss climbs from exchange 41 to the peak at 44. The filter refuses exchange 43.
    responses = [*[0, 1] * 20, 1, 1, 1, 1, 0, 0, 0, 0, *[0, 1] * 20]
    transcript = xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(epsilon=1))
    for response in responses:
        transcript = transcript.add(YES, response)
    transcript.save(file)
    page = file.with_name("page.html")
    code, out, _ = run("explain", file, "--html", page)
    assert code == 0
    table = out.split("answered, with noise:\n\n")[1].split("\n\n")[0].splitlines()[1:]
    first, last = ([f"{n}." for n in numbers] for numbers in (range(1, 6), range(84, 89)))
    assert [row.split()[0] for row in table] == [*first, "…", "43.", "44.", "…", *last]
    assert [row.split()[1] for row in table if row[0] == "…"] == ["37", "39"]
    printed = json.loads(run("explain", file, "--json")[1])
    assert (printed["first_refused"], printed["left_out"]) == (43, 76)
    numbers = [row[0] for row in checked(page.read_text(encoding="utf-8")).rows]
    at = numbers.index("…")
    assert numbers[at : at + 4] == ["…", "43", "44", "…"]
    card = xp.report.explain(transcript)._repr_html_()
    assert ">43.<" in card
    assert ">44.<" in card


def test_a_long_transcript_on_a_box_shows_the_peak(run: Run, file: Path) -> None:
    query = xp.logistic({"x": 8}, intercept=-4, epsilon=1)
    transcript = xp.Transcript(xp.Box(x=(0, 1)), xp.BayesianFilter(epsilon=9))
    for response in (1,) * 8 + (0,) * 12:
        transcript = transcript.add(query, response)
    transcript.save(file)
    printed = json.loads(run("explain", file, "--json", "--gap", "1e-4")[1])
    losses = {step["number"]: step["loss"] for step in printed["steps"]}
    assert 8 in losses
    assert losses[8]["upper"] >= printed["peak"]["lower"]
    assert printed["peak"]["lower"] > max(losses[n]["upper"] for n in losses if n != 8)


def test_the_numbers_behind_the_figure_of_a_very_long_transcript_include_the_peak(
    run: Run, file: Path
) -> None:
    transcript = xp.Transcript(xp.FiniteSet(range(2)), xp.BayesianFilter(epsilon=1))
    for i in range(2_500):
        transcript = transcript.add(YES, 1 if i in (1_000, 1_001, 1_002) else i % 2)
    transcript.save(file)
    page = file.with_name("page.html")
    assert run("explain", file, "--html", page)[0] == 0
    printed = json.loads(run("explain", file, "--json")[1])
    losses = xp.Odometer(transcript).history
    peak = max(range(2_501), key=lambda count: round(losses[count].upper, 9))
    numbers = {row[0] for row in checked(page.read_text(encoding="utf-8")).rows}
    assert {f"{peak:,}", f"{printed['first_refused']:,}"} <= numbers

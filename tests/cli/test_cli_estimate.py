"""``expost estimate``: figures of a group, with what they are made from and what they assume."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.estimation import estimate_distribution, estimate_frequencies, estimate_mean
from expost.sampling import InsecureSource

Run = Callable[..., tuple[int, str, str]]

VALUES = xp.FiniteSet(["never", "sometimes", "often"])
GUARD = xp.BayesianFilter(epsilon="1.2")
HABIT = xp.randomized_response("0.5")
AMOUNT = xp.perturbation([0, 3, 10], range=(0, 10), epsilon="1")
QUERIES: dict[str, Any] = {
    "version": 1,
    "domain": {"values": list(VALUES.values)},
    "queries": {
        "habit": {"kind": "randomized_response", "epsilon": "0.5"},
        "amount": {"kind": "perturbation", "scores": [0, 3, 10], "range": [0, 10], "epsilon": "1"},
    },
}


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(QUERIES))
    return path


@pytest.fixture
def habits(tmp_path: Path) -> Path:
    """Everybody was asked once."""
    path = tmp_path / "habits.csv"
    rows = [f"{i},habit,{VALUES.values[i % 7 % 3]}\n" for i in range(60)]
    path.write_text("subject,query,response\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty people whose filter refuses the last query to some."""
    folder = tmp_path_factory.mktemp("subjects")
    for index in range(40):
        value, source = VALUES.values[index % 3], InsecureSource(index)
        session = xp.Session(VALUES, value, filter=GUARD, source=source)
        for query in (HABIT, HABIT, AMOUNT):
            if session.decide(query).accepted:
                session.ask(query)
        session.transcript.save(folder / f"{index}.json")
    return folder


def test_a_distribution_for_people(run: Run, habits: Path, queries: Path) -> None:
    arguments = ["estimate", habits, "--queries", queries, "--repetitions", 50]
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["estimate", "95", "%", "interval", "standard", "error"]
    result = estimate_distribution(xp.load_answers(habits, queries))
    assert [line.split()[0] for line in lines[1:4]] == list(VALUES.values)
    assert [float(line.split()[1]) for line in lines[1:4]] == pytest.approx(
        result.probabilities, rel=1e-3
    )
    assert lines[5:] == [
        "what      the distribution, by maximum likelihood",
        "subjects  60",
        "answers   60",
        "assumes   every response has the probabilities that its query states",
        "          subjects are drawn independently from the population that this is about",
        "          all responses that decided who was asked are included: all that a filter "
        "looked at",
        "          no subject's value changed between responses, unless it is declared as changing",
        "instead   --frequencies is unbiased if all were asked alike and each query "
        "distinguishes all values",
    ]
    assert run(*arguments) == (0, out, "")  # the same seed draws the same subjects


def test_a_distribution_for_programs(run: Run, habits: Path, queries: Path) -> None:
    arguments = [
        "estimate",
        habits,
        "--queries",
        queries,
        "--repetitions",
        50,
        "--confidence",
        "0.9",
    ]
    tree = json.loads(run(*arguments, "--seed", 7, "--json")[1])
    result = estimate_distribution(xp.load_answers(habits, queries))
    around = result.intervals(repetitions=50, seed=7, confidence="0.9")
    rows = tree["estimates"]
    assert [row["of"] for row in rows] == list(VALUES.values)
    assert [row["estimate"] for row in rows] == result.probabilities.tolist()
    assert [(row["lower"], row["upper"]) for row in rows] == list(
        zip(around.lower, around.upper, strict=True)
    )
    assert (tree["confidence"], tree["subjects"], tree["answers"]) == (0.9, 60, 60)
    assert (tree["left_out"], tree["refused"], tree["unused"]) == (0, None, 0)
    assert tree["warning"] is None


def test_frequencies_of_those_who_were_asked_alike_need_no_warning(
    run: Run, habits: Path, queries: Path
) -> None:
    tree = json.loads(run("estimate", habits, "--queries", queries, "--frequencies", "--json")[1])
    result = estimate_frequencies(xp.load_answers(habits, queries))
    assert [row["estimate"] for row in tree["estimates"]] == result.frequency.tolist()
    assert [row["upper"] for row in tree["estimates"]] == result.upper.tolist()
    assert tree["assumes"][-1].startswith("the choice of subjects, and how often each")
    assert tree["warning"] is None
    with habits.open("a", encoding="utf-8") as file:
        file.write("1,habit,never\n")
    tree = json.loads(run("estimate", habits, "--queries", queries, "--frequencies", "--json")[1])
    assert "as it does under a filter, this estimate is biased" in tree["warning"]
    assert "(leave out --frequencies)" in tree["warning"]


def test_a_mean_under_a_filter_warns_and_says_who_was_refused(
    run: Run, folder: Path, queries: Path
) -> None:
    arguments = ["estimate", folder, "--queries", queries, "--mean", "amount"]
    tree = json.loads(run(*arguments, "--json")[1])
    transcripts = [xp.load_transcript(file) for file in folder.glob("*.json")]
    answered = sum(len(transcript) == 3 for transcript in transcripts)
    refused = [
        not GUARD.decide(xp.Odometer(transcript), AMOUNT).accepted
        for transcript in transcripts
        if len(transcript) == 2
    ]
    assert 0 < answered < 40
    assert (tree["subjects"], tree["left_out"]) == (answered, len(refused))
    assert tree["refused"] == sum(refused) == len(refused)
    assert (tree["answers"], tree["unused"]) == (answered, 80)
    with pytest.warns(UserWarning, match="under a filter that looks at responses"):
        result = estimate_mean(xp.load_answers(folder, queries), "amount")
    (row,) = tree["estimates"]
    assert (row["estimate"], row["lower"], row["upper"]) == (
        result.mean,
        result.lower,
        result.upper,
    )
    assert "Under their filter that depends on their earlier responses" in tree["warning"]
    assert "--likelihood" in tree["warning"]
    out = run(*arguments)[1]
    assert f"who did not answer it (to {len(refused)} the filter refuses it now)" in out
    assert out.startswith("warning  Not all subjects answered equally often.")
    assert "(--likelihood) is not, if all responses are here." in out
    assert "\namount: a score from 0 to 10" in out


def test_the_mean_by_likelihood_is_that_of_the_distribution(
    run: Run, folder: Path, queries: Path
) -> None:
    arguments = ["--mean", "amount", "--likelihood", "--repetitions", 50, "--json"]
    tree = json.loads(run("estimate", folder, "--queries", queries, *arguments)[1])
    result = estimate_distribution(xp.load_answers(folder, queries))
    (row,) = tree["estimates"]
    assert row["estimate"] == pytest.approx(result.mean([0, 3, 10]), abs=1e-9)
    around = result.intervals([0, 3, 10], repetitions=50)
    assert row["lower"] == pytest.approx(around.lower[0], abs=1e-9)
    assert (tree["subjects"], tree["warning"], tree["unused"]) == (40, None, 0)


def test_what_answers_do_not_determine_is_said(run: Run, tmp_path: Path, queries: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("subject,query,response\na,amount,0\nb,amount,10\n")
    code, out, _ = run("estimate", data, "--queries", queries, "--repetitions", 50)
    assert code == 0
    assert out.startswith("warning  Only 2 subjects: too few for intervals by resampling them. ")
    assert "The responses do not determine 3 of 3 numbers." in out.splitlines()[0]
    shown = [line.split(maxsplit=1) for line in out.splitlines()[3:6]]
    assert shown == [[value, "not determined"] for value in VALUES.values]
    assert "inf" not in out


def test_what_fits_the_answers_is_shown_where_they_do_not_determine_a_share(
    run: Run, tmp_path: Path
) -> None:
    query = xp.randomized_response(epsilon=4)
    person = xp.Attributes(smokes=["no", "yes"], drinks=["no", "yes"])
    queries, data = tmp_path / "two.json", tmp_path / "data.csv"
    xp.audits.save_queries(
        person, {"s": query.about("smokes"), "d": query.about("drinks")}, queries
    )
    rows = "".join(f"{n},{'sd'[n % 2]},{'yes' if n % 7 == 0 else 'no'}\n" for n in range(400))
    data.write_text("subject,query,response\n" + rows)
    _, out, _ = run("estimate", data, "--queries", queries, "--about", "smokes,drinks")
    both = next(line for line in out.splitlines() if line.startswith("smokes=yes, drinks=yes"))
    lower, upper = both.removeprefix("smokes=yes, drinks=yes  not determined").split(" to ")
    assert float(lower) == 0
    assert 0.1 < float(upper) < 0.25  # at most about the share of either


@pytest.mark.parametrize("what", [[], ["--mean", "amount"], ["--mean", "amount", "--likelihood"]])
def test_an_estimate_from_a_part_of_the_responses_warns_and_points_to_nothing_better(
    run: Run, folder: Path, queries: Path, what: list[str]
) -> None:
    arguments = ["estimate", folder, "--queries", queries, *what, "--repetitions", 50, "--json"]
    complete, part = (json.loads(run(*arguments, *extra)[1]) for extra in ([], ["--incomplete"]))
    assert part["warning"].startswith("Responses are missing. If who was asked depended on them")
    assert "is not, if all" not in part["warning"]
    assert part["assumes"][-1].startswith("the choice of subjects, and how often each")
    assert {**part, "warning": 0, "assumes": 0} == {**complete, "warning": 0, "assumes": 0}


@pytest.mark.parametrize("what", [[], ["--frequencies"]])
def test_missing_responses_warn_without_advice_about_other_attributes(
    run: Run, tmp_path: Path, queries: Path, what: list[str]
) -> None:
    data = tmp_path / "data.csv"
    rows = "".join(f"{n},habit,never,answered\n" for n in range(50))
    data.write_text(f"subject,query,response,outcome\n{rows}50,habit,,missing\n")
    arguments = ["estimate", data, "--queries", queries, *what, "--json"]
    tree = json.loads(run(*arguments)[1])
    assert tree["warning"].startswith("Responses of 1 subject are missing. If what is missing")
    assert "attributes" not in tree["warning"]


def test_intervals_at_an_end_of_what_is_possible_are_said_to_be_too_narrow(
    run: Run, tmp_path: Path, queries: Path
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("subject,query,response\na,habit,never\nb,habit,never\n")
    tree = json.loads(run("estimate", data, "--queries", queries, "--repetitions", 50, "--json")[1])
    assert "3 of 3 estimates are at an end of what is possible, where" in tree["warning"]
    for row in tree["estimates"]:
        assert row["lower"] <= row["estimate"] <= row["upper"]


@pytest.mark.parametrize(("suffix", "beginning"), [("png", b"\x89PNG\r"), ("svg", b"<svg ")])
def test_a_picture_is_drawn(
    run: Run, habits: Path, queries: Path, tmp_path: Path, suffix: str, beginning: bytes
) -> None:
    picture = tmp_path / f"estimate.{suffix}"
    arguments = ["estimate", habits, "--queries", queries, "--frequencies", "-o", picture]
    assert run(*arguments)[0] == 0
    assert picture.read_bytes().startswith(beginning)


def test_on_a_box_there_are_means_only(run: Run, tmp_path: Path) -> None:
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    question = {"kind": "logistic", "weights": {"age": 1}, "epsilon": "1"}
    box = {"version": 1, "domain": {"box": {"age": [0, 1]}}, "queries": {"ill": question}}
    queries.write_text(json.dumps(box))
    data.write_text("subject,query,response\n1,ill,0\n2,ill,1\n3,ill,1\n")
    tree = json.loads(run("estimate", data, "--queries", queries, "--mean", "ill", "--json")[1])
    assert tree["subjects"] == 3
    for options in ([], ["--mean", "ill", "--likelihood"]):
        code, out, err = run("estimate", data, "--queries", queries, *options)
        assert (code, out) == (2, "")
        assert "the domain is a box, which has means only: --mean ID, one of ill" in err


def test_attributes_are_estimated_together_if_who_was_asked_may_depend_on_others(
    run: Run, tmp_path: Path
) -> None:
    person = {"attributes": {"smokes": ["no", "yes"], "drinks": ["no", "yes"]}}
    arguments = {
        name: {"kind": "randomized_response", "epsilon": "1", "about": [name]}
        for name in ("smokes", "drinks")
    }
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    queries.write_text(json.dumps({"version": 1, "domain": person, "queries": arguments}))
    rows = [(n, "smokes", "yes" if n % 5 < 2 else "no") for n in range(200)]
    rows += [(n, "drinks", "yes" if n % 7 < 4 else "no") for n in range(200) if n % 5 < 3]
    lines = [f"{subject},{query},{response}\n" for subject, query, response in rows]
    data.write_text("subject,query,response\n" + "".join(lines))
    command = ["estimate", data, "--queries", queries, "--about", "drinks", "--json"]
    tree = json.loads(run(*command)[1])
    result = estimate_distribution(xp.load_answers(data, queries), about="drinks")
    assert [row["estimate"] for row in tree["estimates"]] == result.probabilities.tolist()
    assert [row["upper"] for row in tree["estimates"]] == result.intervals().upper.tolist()
    assert (tree["answers"], tree["unused"], tree["warning"]) == (320, 0, None)
    assert "smokes and drinks together: 4 combinations" in tree["what"]
    planned = json.loads(run(*command, "--planned")[1])
    assert (planned["answers"], planned["unused"]) == (120, 200)
    naive = json.loads(run(*command, "--frequencies")[1])
    assert naive["warning"].startswith("Answers about other attributes are left out.")
    assert "by likelihood (leave out --frequencies), of all attributes" in naive["warning"]


def test_a_mean_on_a_box_by_likelihood_takes_a_support(run: Run, tmp_path: Path) -> None:
    queries, data, points = (tmp_path / name for name in ("q.json", "data.csv", "points.csv"))
    question = {"kind": "logistic", "weights": {"age": 1}, "epsilon": "1"}
    box = {"version": 1, "domain": {"box": {"age": [0, 1]}}, "queries": {"ill": question}}
    queries.write_text(json.dumps(box))
    data.write_text(
        "subject,query,response\n" + "".join(f"{n},ill,{n % 3 > 0:d}\n" for n in range(90))
    )
    points.write_text("age\n" + "".join(f"{n / 20}\n" for n in range(21)))
    arguments = ["estimate", data, "--queries", queries, "--mean", "ill", "--json"]
    tree = json.loads(run(*arguments, "--likelihood", "--support", points)[1])
    (first,) = tree["estimates"]
    assert first["lower"] <= first["estimate"] <= first["upper"]
    assert first["estimate"] == pytest.approx(0.731, abs=1e-3)  # the most that is possible
    assert "by maximum likelihood of 21 points" in tree["what"]
    assert "the log-likelihood higher by at most" in tree["assumes"][-1]
    code, out, err = run(*arguments, "--support", points)
    assert (code, out) == (2, "")
    assert err.startswith("expost: --support: requires --mean ID --likelihood")


@pytest.mark.parametrize(("budgets", "named"), [((2, 2), "filter"), ((2, 3), "filters")])
def test_frequencies_under_a_filter_warn_if_not_everybody_was_asked_the_same(
    run: Run, tmp_path: Path, budgets: tuple[int, int], named: str
) -> None:
    """Two of the same in one case, one of each in the other; budgets may be their own."""
    folder = tmp_path / "subjects"
    folder.mkdir()
    other = xp.randomized_response("0.4")
    for index in range(4):
        second = HABIT if index % 2 else other
        start = xp.Transcript(VALUES, filter=xp.BayesianFilter(epsilon=budgets[index % 2]))
        start.add(HABIT, "never").add(second, "often").save(folder / f"{index}.json")
    tree = json.loads(run("estimate", folder, "--frequencies", "--json")[1])
    said = f"Not all subjects were asked the same. Under their {named} that depends"
    assert tree["warning"].startswith(said)

"""``expost estimate`` by groups, with weights, of shares and means, into tables and pictures."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import expost as xp
from expost.estimation import estimate_distribution, estimate_frequencies, estimate_mean
from expost.queries import Query
from expost.report._estimates import EstimateRow
from expost.report._groups import subtract

Run = Callable[..., tuple[int, str, str]]

PERSON = xp.Attributes(hours=[0, 2, 4, 8], smokes=["no", "yes"])
QUERIES = {
    "hours": xp.randomized_response(epsilon=2).about("hours"),
    "smokes": xp.randomized_response(epsilon=1).about("smokes"),
    "bit": xp.perturbation([0, 0.25, 0.5, 1], epsilon=1).about("hours"),
}
SEXES = ["f", "m", "f"]


def write_table(path: Path, head: str, rows: list[Any]) -> Path:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]), "utf-8")
    return path


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Ninety subjects; every seventh declined the last query. Two have no covariates."""
    monkeypatch.chdir(tmp_path)
    xp.audits.save_queries(PERSON, QUERIES, "queries.json")
    rows: list[tuple[Any, ...]] = []
    for subject in range(90):
        rows.append((subject, "hours", [0, 2, 4, 8][subject * subject % 11 % 4], "answered"))
        rows.append((subject, "smokes", ["no", "yes"][subject * 3 % 7 % 2], "answered"))
        bit = ("", "declined") if subject % 7 == 0 else (subject % 5 % 2, "answered")
        rows.append((subject, "bit", *bit))
    write_table(Path("answers.csv"), "subject,query,response,outcome", rows)
    people = [(f"{n}.0", SEXES[n % 3] if n else "", 1 + n % 4) for n in range(88)]
    write_table(Path("people.csv"), "subject,sex,weight", people)
    return rows


ESTIMATE = ["estimate", "answers.csv", "--queries", "queries.json"]
BY_SEX = ["--covariates", "people.csv", "--by", "sex"]


def tree_of(run: Run, *options: Any) -> dict[str, Any]:
    code, out, err = run(*ESTIMATE, *options, "--json")
    assert (code, err) == (0, "")
    tree: dict[str, Any] = json.loads(out)
    return tree


def split_answers(rows: list[tuple[Any, ...]], sex: str) -> xp.Answers:
    """The answers of a group from a file of its own."""
    chosen = [row for row in rows if 0 < row[0] < 88 and SEXES[row[0] % 3] == sex]
    path = write_table(Path(f"{sex}.csv"), "subject,query,response,outcome", chosen)
    return xp.load_answers(path, "queries.json")


@pytest.mark.parametrize(
    "options",
    [
        ["--about", "smokes", "--frequencies", "--planned"],
        ["--about", "smokes"],
        ["--mean", "bit"],
        ["--mean", "bit", "--likelihood"],
        ["--mean", "hours"],
        ["--share", 'hours >= 4 and smokes == "no"'],
    ],
    ids=" ".join,
)
def test_groups_are_estimated_as_from_files_of_their_own(
    run: Run, study: list[Any], options: list[str]
) -> None:
    tree = tree_of(run, *options, *BY_SEX)
    expected: list[dict[str, Any]] = []
    for sex in ("f", "m"):
        split_answers(study, sex)
        code, out, err = run("estimate", f"{sex}.csv", "--queries", "queries.json", *options,
                             "--json")  # fmt: skip
        assert (code, err) == (0, "")
        alone = json.loads(out)
        expected += [row | {"group": sex} for row in alone["estimates"]]
        (group,) = [group for group in tree["groups"] if group["name"] == sex]
        assert (group["subjects"], group["answers"]) == (alone["subjects"], alone["answers"])
    rows = [row for row in tree["estimates"] if not row["minus"]]
    assert rows == expected
    half = len(rows) // 2
    differences = [row for row in tree["estimates"] if row["minus"]]
    assert [(row["group"], row["minus"]) for row in differences] == [("m", "f")] * half
    for index, row in enumerate(differences):
        first, second = (
            EstimateRow(
                row["of"],
                row["estimate"],
                math.nan if row["standard_error"] is None else row["standard_error"],
                row["lower"],
                row["upper"],
                row["identified"],
            )
            for row in (rows[half + index], rows[index])
        )  # fmt: skip
        ends = (0.0, 8.0) if options[:2] == ["--mean", "hours"] else (0.0, 1.0)
        difference = subtract(first, second, "m", "f", ends)
        assert (row["estimate"], row["lower"], row["upper"]) == (
            difference.estimate, difference.lower, difference.upper,
        )  # fmt: skip


def test_subjects_in_no_group_are_counted(run: Run, study: list[Any]) -> None:
    tree = tree_of(run, "--mean", "hours", *BY_SEX)
    assert (tree["unmatched"], tree["ungrouped"]) == (2, 1)
    assert tree["subjects"] == sum(group["subjects"] for group in tree["groups"]) == 87
    out = run(*ESTIMATE, "--mean", "hours", *BY_SEX)[1]
    assert "left out  2 without covariates, 1 with an empty cell\n" in out
    assert "groups    f: 58\n          m: 29\n" in out
    # Subjects 88 and 89 answered the bit, and subject 0 declined it.
    tree = tree_of(run, "--mean", "bit", *BY_SEX)
    assert (tree["unmatched"], tree["ungrouped"]) == (2, 0)


def test_groups_that_differ_only_in_case_are_pointed_out(run: Run, study: list[Any]) -> None:
    spellings = ["f", "m", "F"]
    rows = [(number, spellings[number % 3]) for number in range(90)]
    write_table(Path("spelled.csv"), "subject,sex", rows)
    options = ["--mean", "hours", "--covariates", "spelled.csv", "--by", "sex"]
    assert "groups F and f differ only in case" in tree_of(run, *options)["warning"]
    assert "differ only in case" not in str(tree_of(run, "--mean", "hours", *BY_SEX)["warning"])


def test_a_share_is_the_sum_of_the_probabilities_where_the_statement_holds(
    run: Run, study: list[Any]
) -> None:
    tree = tree_of(run, "--share", 'smokes == "yes" or hours > 2')
    (row,) = tree["estimates"]
    answers = xp.load_answers("answers.csv", "queries.json")
    joint = estimate_distribution(answers, about=["hours", "smokes"])
    values: Any = joint.domain.values
    holds = [float(smokes == "yes" or hours > 2) for hours, smokes in values]
    assert row["estimate"] == pytest.approx(joint.probabilities @ holds, abs=1e-6)
    ends = joint.intervals(holds)
    assert (row["lower"], row["upper"]) == pytest.approx((ends.lower[0], ends.upper[0]), abs=1e-4)
    assert row["of"] == 'smokes == "yes" or hours > 2'


def test_shares_and_means_on_a_set_of_numbers(run: Run, study: list[Any]) -> None:
    numbers = xp.FiniteSet([1, 2, 5])
    xp.audits.save_queries(numbers, {"q": xp.randomized_response(epsilon=2)}, "queries.json")
    write_table(Path("answers.csv"), "subject,query,response",
                [(n, "q", [1, 2, 5][n * n % 7 % 3]) for n in range(80)])  # fmt: skip
    result = estimate_distribution(xp.load_answers("answers.csv", "queries.json"))
    for options, scores in (
        (["--mean", "value"], [1, 2, 5]),
        (["--share", "value >= 2"], [0, 1, 1]),
        (["--share", "value < 0"], [0, 0, 0]),
    ):
        (row,) = tree_of(run, *options)["estimates"]
        ends = result.intervals(scores)
        assert row["estimate"] == pytest.approx(result.mean(scores), abs=1e-9)
        assert (row["lower"], row["upper"]) == (ends.lower[0], ends.upper[0])


def test_a_query_with_a_score_wins_over_an_attribute(run: Run, study: list[Any]) -> None:
    score = xp.perturbation([0, 1], epsilon=1).about("smokes")
    xp.audits.save_queries(PERSON, {**QUERIES, "hours": score}, "queries.json")
    rows = [(n, "hours", n % 2) for n in range(40)]
    write_table(Path("answers.csv"), "subject,query,response", rows)
    tree = tree_of(run, "--mean", "hours")
    answers = xp.load_answers("answers.csv", "queries.json")
    assert tree["estimates"][0]["estimate"] == estimate_mean(answers, "hours").mean
    assert tree["what"].startswith("the mean of hours: unbiased")


def test_weights_make_the_estimate_that_of_the_population(run: Run, study: list[Any]) -> None:
    tree = tree_of(run, "--about", "smokes", "--covariates", "people.csv", "--weight", "weight")
    answers = xp.load_answers("answers.csv", "queries.json")
    weights = {str(n): 1 + n % 4 for n in range(88)}
    # The sample with each subject as often as its weight.
    repeated: list[tuple[Any, ...]] = []
    for subject, *row in study:
        if subject < 88:
            repeated += [(f"{subject}-{copy}", *row) for copy in range(weights[str(subject)])]
    path = write_table(Path("more.csv"), "subject,query,response,outcome", repeated)
    joint = estimate_distribution(xp.load_answers(path, "queries.json"), about="smokes")
    assert [row["estimate"] for row in tree["estimates"]] == pytest.approx(
        joint.probabilities, abs=1e-4
    )
    numbers = np.array(list(weights.values()))
    assert tree["effective"] == pytest.approx(numbers.sum() ** 2 / (numbers**2).sum())
    assert (tree["subjects"], tree["unmatched"], tree["groups"]) == (88, 2, [])
    assert len(answers) == 90
    by_sex = tree_of(run, "--about", "smokes", *BY_SEX, "--weight", "weight")
    males = np.array([1 + n % 4 for n in range(88) if SEXES[n % 3] == "m"])
    assert by_sex["groups"][1]["effective"] == pytest.approx(males.sum() ** 2 / (males**2).sum())


def test_unanswered_queries_are_shown_by_outcome(run: Run, study: list[Any]) -> None:
    for options in (["--mean", "bit"], ["--about", "hours"]):
        tree = tree_of(run, *options)
        assert tree["unanswered"] == {"refused": 0, "declined": 13, "missing": 0}
        assert "whether subjects declined did not depend on their values" in tree["assumes"]
    out = run(*ESTIMATE, "--mean", "bit")[1]
    assert "refused   0 subjects\ndeclined  13 subjects\nmissing   0 subjects\n" in out
    tree = tree_of(run, "--about", "smokes", "--planned")
    assert tree["unanswered"]["declined"] == 0
    assert "whether subjects declined did not depend on their values" not in tree["assumes"]


def test_a_group_of_one_and_an_empty_group_are_listed(run: Run, study: list[Any]) -> None:
    people = [(n, "one" if n == 5 else "most") for n in range(90)] + [("zed", "none")]
    write_table(Path("people.csv"), "subject,sex", people)
    tree = tree_of(run, "--mean", "bit", *BY_SEX)
    sizes = {group["name"]: group["subjects"] for group in tree["groups"]}
    assert sizes == {"most": 76, "none": 0, "one": 1}
    assert {row["group"] for row in tree["estimates"]} == {"most", "one"}
    (alone,) = [row for row in tree["estimates"] if row["group"] == "one" and not row["minus"]]
    assert (alone["lower"], alone["upper"]) == (0, 1)
    out = run(*ESTIMATE, "--mean", "hours", *BY_SEX)[1]
    assert "none: 0\n" in out
    assert out.startswith("warning  one: Only 1 subject: too few for intervals.")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_table_has_all_rows(run: Run, study: list[Any], suffix: str) -> None:
    out = Path(f"estimates.{suffix}")
    code, text, err = run(*ESTIMATE, "--about", "hours", *BY_SEX, "-o", out)
    assert (code, err) == (0, "")
    assert text.endswith(f"The table is in {out}.\n")
    rows = tree_of(run, "--about", "hours", *BY_SEX)["estimates"]
    if suffix == "csv":
        with out.open(encoding="utf-8") as file:
            table: list[dict[str, Any]] = list(csv.DictReader(file))
    elif suffix == "jsonl":
        table = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    else:
        table = polars.read_parquet(out).to_dicts()
    assert len(table) == len(rows) == 12
    for found, expected in zip(table, rows, strict=True):
        assert list(found) == [
            "group", "minus", "of", "estimate", "lower", "upper", "standard_error", "identified",
            "consistent", "uncertified",
            "subjects",
        ]  # fmt: skip
        assert (found["group"], found["minus"], found["of"]) == (
            expected["group"], expected["minus"], expected["of"],
        )  # fmt: skip
        assert float(found["upper"]) == expected["upper"]
        assert str(found["identified"]).lower() == str(expected["identified"]).lower()
    # The command replaces its own table, and no other one.
    assert run(*ESTIMATE, "--about", "hours", "-o", out)[0] == 0
    code, _, err = run(*ESTIMATE, "--about", "hours", "-o", "people.csv")
    assert code == 2
    assert err.startswith("expost: people.csv: ")


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_a_plain_picture_has_no_colors_and_no_title(
    run: Run, study: list[Any], suffix: str
) -> None:
    out = Path(f"figure.{suffix}")
    assert run(*ESTIMATE, "--about", "hours", *BY_SEX, "--plain", "-o", out)[0] == 0
    if suffix == "svg":
        text = out.read_text("utf-8")
        assert "likelihood" not in text.split("<style>")[1]
        assert "responses of" not in text
        used = {text[i : i + 7] for i in range(len(text)) if text[i] == "#"}
        assert used == {"#000000", "#ffffff", "#dddddd"}
        assert ">f</text>" in text
        assert ">m</text>" in text  # the legend: groups are side by side


def test_attributes_that_were_not_asked_about_together_get_a_query_about_both(
    run: Run, study: list[Any]
) -> None:
    apart = [row for row in study if (row[1] == "smokes") == (row[0] % 2 == 0)]
    write_table(Path("answers.csv"), "subject,query,response,outcome", apart)
    tree = tree_of(run, "--about", "hours,smokes", "--planned")
    assert tree["advice"] == [
        "No subject answered about both hours and smokes. Ask one query about both:",
        "expost query randomized_response --epsilon 2 --about hours,smokes",
    ]
    single = tree_of(run, "--share", 'hours > 2 or smokes == "yes"', "--planned")
    assert single["warning"] == "The responses do not determine this number."
    assert single["advice"] == tree["advice"]
    code, out, _ = run(*tree["advice"][1].split()[1:], "--for", "queries.json")
    assert code == 0
    asked = Query.from_json(out)
    answers = [(asked, response) for response in asked.on(PERSON).responses] * 5
    assert estimate_distribution(
        xp.Answers.of_pairs(PERSON, answers), about=["hours", "smokes"]
    ).identified.all()


def test_values_that_queries_treat_alike_get_a_query_that_distinguishes_them(
    run: Run, study: list[Any]
) -> None:
    is_zero = xp.channel([["3/4", "1/4"]] + [["1/4", "3/4"]] * 3).about("hours")
    xp.audits.save_queries(PERSON, {"zero": is_zero}, "queries.json")
    rows = [(n, "zero", n % 3 % 2) for n in range(60)]
    write_table(Path("answers.csv"), "subject,query,response", rows)
    tree = tree_of(run, "--about", "hours")
    assert tree["advice"][0] == (
        "All queries treat 2, 4 and 8 alike. Ask one that distinguishes them:"
    )
    assert tree["advice"][1].endswith("randomized_response --epsilon 1 --about hours")
    out = run(*ESTIMATE, "--about", "hours")[1]
    assert f"\n\n{tree['advice'][0]}\n{tree['advice'][1]}\n\nwhat " in out
    # What they do determine needs no advice.
    assert tree_of(run, "--share", "hours == 0")["advice"] == []


def test_every_estimate_names_the_other_method(run: Run, study: list[Any]) -> None:
    assert (
        estimate_frequencies(
            xp.load_answers("answers.csv", "queries.json").about("smokes", planned=True)
        ).subjects
        == 90
    )
    for options, start in (
        (["--about", "smokes"], "--frequencies is unbiased"),
        (["--about", "smokes", "--frequencies", "--planned"], "without --frequencies: the likeli"),
        (["--mean", "bit"], "--likelihood is right even under a filter"),
        (["--mean", "bit", "--likelihood"], "without --likelihood, the mean is unbiased"),
    ):
        assert tree_of(run, *options)["other_method"].startswith(start)
        assert f"\ninstead   {start}" in run(*ESTIMATE, *options)[1]


def test_a_group_without_missing_responses_is_not_said_to_lack_any(
    run: Run, tmp_path: Path
) -> None:
    person = xp.Attributes(smokes=["no", "yes"], drinks=["no", "yes"])
    query = xp.randomized_response(epsilon=1)
    queries = tmp_path / "two.json"
    xp.audits.save_queries(
        person, {"s": query.about("smokes"), "d": query.about("drinks")}, queries
    )
    rows = [
        f"{n},{key},{'missing,' if n == 0 else 'answered,no'}" for n in range(80) for key in "sd"
    ]
    (tmp_path / "a.csv").write_text("subject,query,outcome,response\n" + "\n".join(rows))
    people = "".join(f"{n},{'ab'[n % 2]}\n" for n in range(80))
    (tmp_path / "p.csv").write_text("subject,g\n" + people)
    arguments = ["estimate", tmp_path / "a.csv", "--queries", queries, "--about", "smokes",
                 "--covariates", tmp_path / "p.csv", "--by", "g", "--json"]  # fmt: skip
    for more in ([], ["--planned"]):
        warning = json.loads(run(*arguments, *more)[1])["warning"]
        assert warning.startswith("Responses of 1 subject are missing.")
        assert "other attributes" not in warning

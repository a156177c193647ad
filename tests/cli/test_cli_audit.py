"""``expost audit``: exit codes, what is printed, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars
import pytest

import expost as xp
from expost.report._formatting import filter_name
from support.answer_logs import Logged, Rows
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]

GUARD = xp.BayesianFilter(epsilon="1")


def some_honest(subjects: int, cheats: int = 0) -> Logged:
    """Losses go up to 1 and not beyond, but for some whose clients had no filter."""
    rows: Rows = []
    for index in range(subjects):
        answers = ["no", "yes", "no", "no"] if index >= cheats else ["no"] * 4 + ["yes"] * 4
        rows += [(f"s{index:03}", order, "q", row) for order, row in enumerate(answers, 1)]
    queries = {"q": xp.randomized_response(epsilon="0.5")}
    return Logged(xp.FiniteSet(["no", "yes"]), queries, rows)


def files(logged: Logged, folder: Path) -> list[Any]:
    logged.frame().write_csv(folder / "log.csv")
    queries, filter_file = folder / "queries.json", folder / "filter.json"
    logged.save_queries(queries)
    xp.audits.save_filter(GUARD, filter_file)
    return ["audit", folder / "log.csv", "--queries", queries, "--filter", filter_file]


def test_an_audit_of_those_who_respected_their_budgets_writes_what_it_found(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, printed, err = run(*files(some_honest(20), tmp_path), "-o", out)
    assert (code, err) == (0, "")
    assert "respected          20 subjects, at every exchange" in printed
    assert "not respected      none" in printed
    names = ["audit.html", "losses.parquet", "summary.json"]
    assert sorted(file.name for file in out.iterdir()) == names
    table = polars.read_parquet(out / "losses.parquet")
    assert table.columns == [
        "subject", "exchanges", "lower", "upper", "peak", "basic", "budget_respected",
        "first_refused",
        "remaining",
    ]  # fmt: skip
    assert table["subject"].to_list() == [f"s{index:03}" for index in range(20)]


def test_the_table_for_spreadsheets_agrees_with_the_audit(run: Run, tmp_path: Path) -> None:
    logged = some_honest(3, cheats=1)
    logged.rows.append(("=1+1", 1, "q", "no"))
    arguments, table = files(logged, tmp_path), tmp_path / "audit.csv"
    assert run(*arguments, "--csv", table)[0] == 1
    assert table.read_text(encoding="utf-8").splitlines() == [
        "subject,respected,first refused,loss now,peak,basic composition,remaining,answers",
        "'=1+1,yes,,0.5,0.5,0.5,0.5,1",
        "s000,no,3,0,2,4,,8",
        "s001,yes,,1,1,2,0,4",
        "s002,yes,,1,1,2,0,4",
    ]


def test_a_budget_that_was_broken_is_exit_code_1_and_the_first_hundred_are_named(
    run: Run, tmp_path: Path
) -> None:
    code, printed, err = run(*files(some_honest(200, cheats=150), tmp_path), "--json")
    result = json.loads(printed)
    assert (code, err) == (1, "")
    assert (result["subjects"], result["respected"], result["undecided"]) == (200, 50, 0)
    assert result["broken_subjects"] == [f"s{index:03}" for index in range(100)]
    assert result["broken"] == 150
    assert sum(result["histogram"]["counts"]) == 200
    assert len(result["worst"]) == 10
    assert result["worst"][0]["first_refused"] == 3


def test_a_bad_row_is_listed_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    arguments, out = files(some_honest(5), tmp_path), tmp_path / "out"
    with (tmp_path / "log.csv").open("a") as log:
        log.write("s001,9,q,no\ns002,5,other,no\n")
    code, printed, err = run(*arguments, "-o", out)
    assert (code, printed) == (2, "")
    first, last = err.splitlines()
    assert first.startswith(f"expost: {tmp_path / 'log.csv'}: row 22: query: unknown query")
    assert last.startswith("expost: 1 row cannot be used, so no subject was audited: ")
    assert not list(out.glob("*"))


def test_a_filter_as_in_a_transcript_is_a_filter_file(run: Run, tmp_path: Path) -> None:
    arguments = files(some_honest(2), tmp_path)
    versioned = run(*arguments, "--json")
    (tmp_path / "filter.json").write_text('{"kind": "bayesian", "epsilon": "1"}')
    assert run(*arguments, "--json") == versioned


def test_the_policy_of_a_ledger_is_a_filter_file(run: Run, tmp_path: Path) -> None:
    arguments = files(some_honest(2), tmp_path)
    versioned = run(*arguments, "--json")
    domain = xp.FiniteSet(["no", "yes"])
    with xp.Ledger.create(
        tmp_path / "study.db", domain, filter=xp.BayesianFilter(epsilon=1)
    ) as ledger:
        (tmp_path / "filter.json").write_text(ledger.policy.to_json())
    assert run(*arguments, "--json") == versioned


@pytest.mark.parametrize(
    ("filter_file", "reason"),
    [
        ("{}", "filter.json: 'version' is missing"),
        ('{"version": 1, "filter": {"kind": "bayesian"}}', "filter.json: filter: "),
        ('{"version": 1, "filter": {"kind": "other"}}', "filter.json: filter.kind: "),
        ('{"kind": "bayesian"}', "filter.json: give either epsilon or ratio"),
        ('{"kind": "laplace"}', "filter.json: is a query; expected a filter file"),
    ],
)
def test_a_filter_file_that_is_none_is_bad_input(
    filter_file: str, reason: str, run: Run, tmp_path: Path
) -> None:
    arguments = files(some_honest(2), tmp_path)
    (tmp_path / "filter.json").write_text(filter_file)
    code, _, err = run(*arguments)
    assert code == 2
    assert reason in err


def test_what_is_written_is_not_put_into_the_log(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    arguments = files(some_honest(2), tmp_path)
    (tmp_path / "log.csv").rename(folder / "log.csv")
    arguments[1] = folder
    for out in (folder, folder / "out"):
        code, _, err = run(*arguments, "-o", out)
        assert code == 2
        assert "is in the folder that is audited; choose another one" in err
    code, _, err = run(*arguments, "--csv", folder / "audit.csv")
    assert code == 2
    assert "audit.csv: is in the folder that is audited; choose another one" in err
    assert [file.name for file in folder.iterdir()] == ["log.csv"]


def test_what_is_missing_or_no_size_is_said(run: Run, tmp_path: Path) -> None:
    command, log, *_, filter_file = files(some_honest(2), tmp_path)
    code, _, err = run(command, log, "--filter", filter_file)
    assert code == 2
    assert "a log requires --queries QUERIES" in err
    code, _, err = run(command, tmp_path / "nothing.csv", "--filter", filter_file)
    assert (code, err.count("\n")) == (2, 1)
    assert "nothing.csv: cannot be read: No such file or directory" in err
    arguments = files(some_honest(2), tmp_path)
    for size in ("much", "-1G", ""):
        code, _, err = run(*arguments, "--memory", size)
        assert code == 2
        assert "is not a size; write 500M or 2G" in err
    assert run(*arguments, "--memory", "0.5M")[0] == 0


def test_a_folder_of_transcripts_is_audited_by_the_filter_file(run: Run, tmp_path: Path) -> None:
    logged, folder = some_honest(3, cheats=1), tmp_path / "devices"
    *_, filter_file = files(logged, tmp_path)
    folder.mkdir()
    for subject in logged.subjects:
        # They name a filter that allowed more than was promised.
        extra = xp.BayesianFilter(epsilon="9")
        logged.transcript(subject, extra).save(folder / f"{subject}.json")
    code, printed, _ = run(
        "audit", folder, "--filter", filter_file, "-o", tmp_path / "out", "--json"
    )
    assert code == 1
    assert json.loads(printed)["broken_subjects"] == ["s000"]


class Page(HTMLParser):
    """What a page has, by its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_says_what_was_found_in_words_figures_and_tables(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = files(some_honest(30, cheats=2), tmp_path)
    assert run(*arguments, "-o", out, "--date", "2026-11-17")[0] == 1
    text = (out / "audit.html").read_text("utf-8")
    page = Page(text)
    assert "2 subjects' budgets were not respected" in page.words
    assert "The budget was respected at every question for 28 of 30 subjects." in page.words
    assert "a factor of at most 2.72" in page.words
    charts = [attributes for tag, attributes in page.tags if attributes.get("role") == "img"]
    assert len(charts) == 3
    assert all(attributes["aria-label"] for attributes in charts)
    assert ["s001", "no", "3", "0", "2", "4", "–", "8"] in checked(text).rows
    assert "http" not in text.replace("http-equiv", "")
    # The same log gives the same page.
    assert run(*arguments, "-o", out, "--date", "2026-11-17")[0] == 1
    assert (out / "audit.html").read_text("utf-8") == text


def test_the_page_names_what_was_audited_and_the_limits_of_the_audit(
    run: Run, tmp_path: Path
) -> None:
    honest = some_honest(3)
    more = {"a rather long name of a question about smoking": xp.randomized_response("0.25")}
    logged = Logged(honest.domain, {**honest.queries, **more}, honest.rows)
    out, arguments = tmp_path / "out", files(logged, tmp_path)
    assert run(*arguments, "-o", out)[0] == 0
    page = checked((out / "audit.html").read_text("utf-8"))
    facts = page.facts
    assert (facts["domain"], facts["budget"]) == ("one of 2: no or yes", "1 (Bayesian filter)")
    assert (facts["questions"], facts["expost version"]) == ("2", xp.__version__)
    assert ["q", "the value itself, at epsilon 0.5"] in page.rows
    assert ["a rather lon…bout smoking", "the value itself, at epsilon 0.25"] in page.rows
    (limits,) = [block for block in page.all("ul") if "asked its filter" in block.text]
    assert len(limits.all("li")) == 5
    # Of many questions the first are named.
    more = {f"q{index}": xp.randomized_response(epsilon=1) for index in range(30)}
    many = Logged(honest.domain, {**logged.queries, **more}, honest.rows)
    many.save_queries(tmp_path / "many.json")
    arguments[3] = tmp_path / "many.json"
    assert run(*arguments, "-o", out)[0] == 0
    page = checked((out / "audit.html").read_text("utf-8"))
    assert "The first 20 questions with their epsilons; 12 more exist." in page.text
    assert len([row for row in page.rows if row[1].startswith("the value itself")]) == 20


def a_folder(folder: Path, subjects: int) -> list[Any]:
    """The arguments of an audit of that many transcripts, with different responses."""
    devices, filter_file = folder / "devices", folder / "filter.json"
    devices.mkdir()
    xp.audits.save_filter(GUARD, filter_file)
    query = xp.randomized_response(epsilon="0.1")
    for index in range(subjects):
        transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), GUARD)
        for bit in f"{index:04b}":
            transcript = transcript.add(query, "yes" if bit == "1" else "no")
        transcript.save(devices / f"s{index:03}.json")
    return ["audit", devices, "--filter", filter_file]


def test_every_entry_that_was_not_read_is_printed_and_is_exit_code_2(
    run: Run, tmp_path: Path
) -> None:
    arguments, out = a_folder(tmp_path, 3), tmp_path / "out"
    (tmp_path / "devices" / "PATIENT-041.JSON").write_text("{}")
    code, printed, err = run(*arguments, "-o", out)
    assert (code, printed, err.count("\n")) == (2, "", 1)
    assert "PATIENT-041.JSON: is not a file to audit, so it was not read" in err
    (tmp_path / "devices" / "s003.json").write_text("{")
    (tmp_path / "devices" / "ward").mkdir()
    code, printed, err = run(*arguments, "-o", out)
    assert (code, printed, err.count("\n")) == (2, "", 4)
    for name in ("PATIENT-041.JSON: ", "s003.json: line 1 column 2: not JSON", "ward: is a folder"):
        assert name in err
    assert err.splitlines()[-1].startswith("expost: 3 entries cannot be used, the first is ")
    assert not list(out.glob("*"))


def test_the_number_of_files_is_printed_and_can_be_checked(run: Run, tmp_path: Path) -> None:
    arguments, out = a_folder(tmp_path, 5), tmp_path / "out"
    code, printed, _ = run(*arguments, "-o", out, "--expect", "5")
    assert code == 0
    assert "files read         5\n" in printed
    text = Page((out / "audit.html").read_text("utf-8")).words
    assert "5 files were read. Compare this with the number that you expect." in text
    assert "The log has the expected number of subjects: 5 (--expect)." in text
    assert json.loads((out / "summary.json").read_text("utf-8"))["files"] == 5
    code, printed, err = run(*arguments, "--expect", "300")
    assert (code, printed) == (2, "")
    assert err == f"expost: {tmp_path / 'devices'}: has 5 subjects; expected 300 (--expect)\n"
    xp.Transcript(xp.FiniteSet(["no", "yes"]), GUARD).save(tmp_path / "devices" / "empty.json")
    code, printed, _ = run(*arguments, "--expect", "6")
    assert code == 0
    assert "files read         6, 1 of them without any exchange\n" in printed
    for index in ("0", "many"):
        code, _, err = run(*arguments, "--expect", index)
        assert (code, err.count("\n")) == (2, 1)


def test_the_number_of_subjects_of_a_log_can_be_checked(run: Run, tmp_path: Path) -> None:
    arguments = files(some_honest(20), tmp_path)
    code, printed, _ = run(*arguments, "--expect", "20")
    assert code == 0
    assert "files read         1\n" in printed
    assert run(*arguments, "--expect", "21")[0] == 2


def test_the_digest_of_the_files_covers_all_that_was_audited(run: Run, tmp_path: Path) -> None:
    arguments, out = files(some_honest(3), tmp_path), tmp_path / "out"
    log, queries, guard = (tmp_path / name for name in ("log.csv", "queries.json", "filter.json"))

    def digest() -> str:
        return str(json.loads(run(*arguments, "--json")[1])["files_digest"])

    first = digest()
    printed = run(*arguments, "-o", out)[1]
    assert printed.endswith(f"\nfiles digest       {first}\n")
    page = checked((out / "audit.html").read_text("utf-8"))
    assert page.facts["files digest"] == first
    assert json.loads((out / "summary.json").read_text("utf-8"))["files_digest"] == first
    digests = [first]
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    digests.append(digest())
    queries.write_text(queries.read_text("utf-8") + "\n", encoding="utf-8")
    digests.append(digest())
    guard.write_text('{"kind": "bayesian", "epsilon": "1.5"}', encoding="utf-8")
    digests.append(digest())
    arguments[1] = log.rename(tmp_path / "renamed.csv")
    digests.append(digest())
    assert len({*digests}) == 5


def test_output_and_page_state_the_same_limit_of_missing_answers(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run(*files(some_honest(3), tmp_path), "-o", out)[1]
    words = "nswers that are missing from the log, such as the last ones of a subject"
    assert f"not covered        a{words}\n" in printed
    text = Page((out / "audit.html").read_text("utf-8")).words
    assert f"A{words}." in text
    assert "(--expect)" not in text


def test_a_copied_file_of_a_log_is_named_once(run: Run, tmp_path: Path) -> None:
    arguments, folder = files(some_honest(20), tmp_path), tmp_path / "log"
    folder.mkdir()
    part = (tmp_path / "log.csv").rename(folder / "part2.csv")
    header = part.read_text("utf-8").splitlines()[0]
    for name in ("part0.csv", "part1.csv"):  # equal files without rows repeat nothing
        (folder / name).write_text(header + "\n", encoding="utf-8")
    arguments[1] = folder
    assert run(*arguments)[0] == 0
    copy = folder / "part2 (copy).csv"
    copy.write_bytes(part.read_bytes())
    reason = f"expost: {part}: has the same content as {copy}. Remove one of them\n"
    assert run(*arguments) == (2, "", reason)
    copy.write_text(copy.read_text("utf-8") + "s000,99,q,no\n", encoding="utf-8")
    assert "row 1: order: exchange 1 of this subject appears twice" in run(*arguments)[2]


def test_equal_transcripts_and_other_filters_are_named(run: Run, tmp_path: Path) -> None:
    arguments, out = a_folder(tmp_path, 3), tmp_path / "out"
    devices = tmp_path / "devices"
    (devices / "s100.json").write_text((devices / "s002.json").read_text("utf-8"))
    other = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BasicFilter(epsilon="2"))
    other.add(xp.randomized_response(epsilon="0.1"), "no").save(devices / "t.json")
    code, printed, _ = run(*arguments, "-o", out)
    assert code == 0
    assert "equal transcripts  2 subjects: s002, s100; copies, or people" in printed
    assert "other filter       1 subject: t names 2 (basic filter); all were audited by" in printed
    text = Page((out / "audit.html").read_text("utf-8")).words
    assert "2 subjects have the same transcript as another one: s002, s100." in text
    assert "1 transcript names another filter than this audit: t names 2" in text


def test_whoever_broke_the_budget_is_not_counted_as_used_up(run: Run, tmp_path: Path) -> None:
    query = xp.randomized_response(epsilon="0.5")
    rows: Rows = [("over", order, "q", "no") for order in (1, 2, 3)]
    rows += [("used up", order, "q", "no") for order in (1, 2)] + [("half", 1, "q", "no")]
    logged = Logged(xp.FiniteSet(["no", "yes"]), {"q": query}, rows)
    out = tmp_path / "out"
    code, printed, _ = run(*files(logged, tmp_path), "-o", out)
    assert code == 1
    assert "used up            1 subject, with less than a thousandth of it remaining" in printed
    text = Page((out / "audit.html").read_text("utf-8")).words
    assert "1 subject, with less than a thousandth remaining" in text


COMPARED = {
    xp.BasicFilter(epsilon="1"): "the sum of all epsilons, including the next one",
    xp.SimplifiedFilter(epsilon="1"): "the loss so far plus the next epsilon",
    xp.BayesianFilter(epsilon="1"): "the largest loss that the next response can lead to",
    xp.ApproximateFilter(epsilon="1", delta="1e-6"): "the epsilon of all queries under its "
    "composition rule and, if that is too large, the largest loss that the next response can "
    "lead to",
}


@pytest.mark.parametrize("filter_", COMPARED, ids=lambda filter_: filter_.kind)
def test_output_and_page_name_what_was_compared(filter_: Any, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = files(some_honest(3, cheats=3), tmp_path)
    xp.audits.save_filter(filter_, tmp_path / "filter.json", overwrite=True)
    code, printed, _ = run(*arguments, "-o", out)
    assert code == 1
    assert f"compared           {COMPARED[filter_]}, at every exchange\n" in printed
    text = Page((out / "audit.html").read_text("utf-8")).words
    for start in ("Before every question, the", "The"):
        sentence = f"{start} {filter_name(filter_)} compares this with the budget: "
        assert f"{sentence}{COMPARED[filter_]}." in text
    assert "before each question it has to be certain" not in text


def test_a_page_about_a_budget_with_a_delta_bounds_sets_of_outcomes_only(
    run: Run, tmp_path: Path
) -> None:
    out, filter_ = tmp_path / "out", xp.ApproximateFilter(epsilon="1", delta="1e-6")
    arguments = files(some_honest(3), tmp_path)
    xp.audits.save_filter(filter_, tmp_path / "filter.json", overwrite=True)
    run(*arguments, "-o", out)
    text = Page((out / "audit.html").read_text("utf-8")).words
    assert (
        "the probability of any set of outcomes under one value is at most 2.72 times its "
        "probability under another, plus delta. This bounds no single transcript."
    ) in text
    assert "odds" not in text
    assert "chance of the size" not in text

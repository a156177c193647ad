"""Audits of whole logs, against a replay of each subject."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars
import pytest

import expost as xp
from expost.filters import Filter
from support.answer_logs import FILTERS, Logged, some_log


def audit(logged: Logged, guard: Filter, folder: Path, **options: Any) -> xp.audits.Audit:
    queries = logged.save_queries(folder / "queries.json")
    return xp.audit(logged.frame(), queries, filter=guard, **options)


@pytest.mark.parametrize("kind", ["set", "records", "changing"])
@pytest.mark.parametrize("guard", FILTERS, ids=repr)
def test_an_audit_says_of_every_subject_what_a_replay_says(
    kind: str, guard: Filter, tmp_path: Path
) -> None:
    logged = some_log(random.Random(f"{kind} {guard}"), kind, subjects=30)
    found = audit(logged, guard, tmp_path)
    assert found.to_polars()["subject"].to_list() == logged.subjects
    for row in found.to_polars().iter_rows(named=True):
        replayed = xp.replay(logged.transcript(row["subject"], guard))
        assert row["exchanges"] == len(replayed.odometer)
        assert row["budget_respected"] == replayed.respected
        assert row["first_refused"] == replayed.first_refused
        exact = replayed.odometer.exact_loss.enclosure
        assert row["lower"] <= exact.upper
        assert row["upper"] >= exact.lower
        assert row["upper"] - row["lower"] < 1e-9
        assert replayed.peak.lower <= row["peak"] < replayed.peak.upper + 1e-9
        assert 0 <= row["basic"] - replayed.basic.enclosure.upper < 1e-12
        left = guard.remaining(replayed.odometer)
        assert abs(row["remaining"] - left) < 1e-9


@pytest.mark.parametrize(
    "guard",
    [
        xp.BayesianFilter(epsilon="0.4"),
        xp.BasicFilter(epsilon="0.4"),
        xp.ApproximateFilter(epsilon="0.4", delta="1e-3"),
    ],
    ids=repr,
)
def test_an_audit_on_a_box_says_what_a_replay_says(guard: Filter, tmp_path: Path) -> None:
    logged = some_log(random.Random(5), "box", subjects=6, most=5)
    found = audit(logged, guard, tmp_path)
    assert found.respected
    assert found.broken
    for row in found.to_polars().iter_rows(named=True):
        replayed = xp.replay(logged.transcript(row["subject"], guard))
        assert row["budget_respected"] == replayed.respected
        assert row["first_refused"] == replayed.first_refused
        assert row["lower"] <= replayed.loss.upper
        assert row["upper"] >= replayed.loss.lower
        assert row["peak"] >= replayed.peak.lower
        assert row["basic"] == replayed.basic.enclosure.upper
        if guard.pure and row["budget_respected"]:
            assert row["peak"] <= guard.budget.enclosure.upper


def test_what_a_search_cannot_tell_is_null_and_nobody_is_said_to_have_respected_it(
    tmp_path: Path,
) -> None:
    generator = random.Random(1)
    steep = {
        f"q{number}": xp.logistic(
            [generator.uniform(-9, 9) for _ in range(3)],
            intercept=generator.uniform(-2, 2),
            epsilon="0.5",
        )
        for number in range(5)
    }
    rows = [
        (f"s{number}", order, f"q{(number + order) % 5}", generator.randrange(2))
        for number in range(4)
        for order in range(1, 7)
    ]
    logged, guard = Logged(xp.Box([(-1, 1)] * 3), steep, rows), xp.BayesianFilter(epsilon="2")
    found = audit(logged, guard, tmp_path, nodes=1)
    told = audit(logged, guard, tmp_path)
    assert found.undecided
    assert "undecided" in repr(found)
    for poor, rich in zip(found.to_polars().rows(), told.to_polars().rows(), strict=True):
        assert poor[6] is None or poor[6] == rich[6]
        assert poor[3] >= rich[2]


@pytest.mark.parametrize("kind", ["set", "records", "changing"])
def test_a_row_does_not_depend_on_the_order_of_rows_nor_on_who_else_is_there(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(3)
    logged = some_log(generator, kind, subjects=60)
    guard = xp.BayesianFilter(epsilon="0.6")
    whole = audit(logged, guard, tmp_path).to_polars()
    shuffled = generator.sample(logged.rows, len(logged.rows))
    again = audit(Logged(logged.domain, logged.queries, shuffled), guard, tmp_path).to_polars()
    assert whole.equals(again)
    monkeypatch.setattr("expost.audits._decisions._BLOCK_SIZE", 7)
    assert audit(logged, guard, tmp_path).to_polars().equals(whole)
    some = set(logged.subjects[::7])
    part = [row for row in shuffled if row[0] in some]
    alone = audit(Logged(logged.domain, logged.queries, part), guard, tmp_path).to_polars()
    assert alone.equals(whole.filter(polars.col("subject").is_in(some)))


def planted(subjects: int) -> Logged:
    """Everybody respected a budget of 1 but one, whose answers took the loss to 2 and back to 0."""
    query = xp.randomized_response(epsilon="0.5")
    rows: list[tuple[Any, int, str, Any]] = []
    for number in range(subjects):
        answers = ["no", "yes", "no", "no"]
        if number == 17:
            answers = ["no", "no", "no", "no", "yes", "yes", "yes", "yes"]
        rows += [(f"s{number:03}", order, "q", each) for order, each in enumerate(answers, 1)]
    return Logged(xp.FiniteSet(["no", "yes"]), {"q": query}, rows)


def test_a_client_that_ignored_its_filter_and_ended_well_is_found_by_the_audit_alone(
    tmp_path: Path,
) -> None:
    logged, guard = planted(200), xp.BayesianFilter(epsilon="1")
    found = audit(logged, guard, tmp_path)
    assert found.broken_subjects() == ["s017"]
    assert (found.broken, found.respected) == (1, 199)
    row = found.to_polars().row(17, named=True)
    assert row["first_refused"] == 3
    assert row["peak"] == pytest.approx(2)
    assert row["upper"] < 1e-9
    # Whoever looks at the end of the log only finds that nobody ended better than this one.
    table = logged.frame().select("subject", "query", "response")
    answers = xp.Answers(logged.domain, logged.queries, table)
    losses = xp.realized_losses(answers)
    assert not any(xp.audits.against_budget(answers, losses, guard).over)
    assert losses.upper[17] == losses.upper.min()


def test_answers_in_memory_and_transcripts_of_a_folder_are_audited_like_a_log(
    tmp_path: Path,
) -> None:
    logged = some_log(random.Random(8), "records", subjects=12)
    guard = xp.BayesianFilter(epsilon="0.6")
    whole = audit(logged, guard, tmp_path).to_polars()
    rows = sorted(logged.rows, key=lambda row: row[1])
    table = {
        "subject": [row[0] for row in rows],
        "query": [row[2] for row in rows],
        "response": [row[3] for row in rows],
    }
    answers = xp.Answers(logged.domain, logged.queries, table)
    assert xp.audit(answers, filter=guard).to_polars().equals(whole)
    folder = tmp_path / "devices"
    folder.mkdir()
    for subject in logged.subjects:
        logged.transcript(subject, guard).save(folder / f"{subject}.json")
    seen: list[tuple[int, int]] = []
    audited = xp.audit(folder, filter=guard, progress=lambda *counts: seen.append(counts))
    assert audited.to_polars().equals(whole)
    # Files first, then subjects; the share that is done never falls.
    shares = [done / total for done, total in seen]
    assert shares == sorted(shares)
    assert (seen[0], shares[-1]) == ((1, 24), 1.0)
    sources: list[Any] = [answers, folder]
    for source in sources:
        with pytest.raises(xp.InvalidInput, match="memory: requires a log in files"):
            xp.audit(source, filter=guard, memory=1_000)
        with pytest.raises(xp.InvalidInput, match="resume: requires a log in files"):
            xp.audit(source, filter=guard, resume=tmp_path / "parts")


def test_a_budget_is_an_edge_although_a_loss_is_a_little_above_it() -> None:
    guard = xp.BayesianFilter(epsilon="2")
    queries = {e: xp.randomized_response(epsilon=e) for e in ("2", "2.1", "30", "300")}
    names = ["2", "2.1", "30", "300"]
    for count, edge in ((1, 20), (2, 20), (3, 2), (4, None)):
        rows = {"subject": names[:count], "query": names[:count], "response": ["no"] * count}
        audit = xp.audit(xp.Answers(xp.FiniteSet(["no", "yes"]), queries, rows), filter=guard)
        for column in ("upper", "peak"):
            for bins in (10, 20):
                spread = audit.histogram(column, bins=bins)
                assert sum(spread.counts) == count
                assert spread.edges[-1] >= float(names[count - 1])
                assert len(spread.counts) <= 5 * bins
                if edge is not None:
                    index = edge * bins // 20
                    assert spread.edges[index] == pytest.approx(2, abs=1e-12)
                    assert sum(spread.counts[:index]) == 1


def test_histograms_beside_each_other_have_the_budget_as_an_edge() -> None:
    guard, query = xp.BayesianFilter(epsilon="0.9"), xp.randomized_response(epsilon="0.3")
    panel = xp.Panel(xp.FiniteSet(["no", "yes"]), filter=guard, subjects=range(4))
    panel.record(
        query, ["no"] * 3 + ["no", "yes", "no", "yes", "no"] + ["no"], [0] * 3 + [1] * 5 + [2]
    )
    found = xp.audit(panel.answers(), filter=guard)
    losses, basic = found.histogram("upper", "basic"), found.histogram("basic", "upper")
    assert losses.edges == basic.edges
    (place,) = (n for n, edge in enumerate(losses.edges) if abs(edge - 0.9) < 1e-12)
    # Whoever has used the budget up is not above it.
    assert (sum(losses.counts[:place]), sum(losses.counts)) == (3, 3)
    assert (sum(basic.counts[:place]), sum(basic.counts)) == (2, 3)
    assert losses.edges[-1] >= 1.5

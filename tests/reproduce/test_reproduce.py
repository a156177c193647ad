"""Everything that ``expost reproduce`` writes."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from examples.paper import reproduce
from examples.paper.runner import Plan, carry_out
from examples.paper.streams import LINEAR

import expost as xp
from support.page_checks import checked

pytestmark = pytest.mark.slow  # runs experiments

SEED = 11
DATE = "2026-11-17"
PLAN = Plan.of("linear", runs=2, seed=SEED, quick=True)


class Watcher:
    """Whoever is told of progress."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.done: list[int] = []
        self.stages: list[str] = []
        self._last = stop_after

    def runs(self, done: int, total: int, share: float) -> None:
        self.done.append(done)
        assert 0 < share <= 1
        if done == self._last:
            raise InterruptedError

    def stage(self, text: str) -> None:
        self.stages.append(text)


def written(out: Path, plan: Plan = PLAN, jobs: int = 1) -> dict[str, bytes]:
    reproduce(plan, out, jobs, Watcher(), date=DATE)
    return contents(out)


def contents(out: Path) -> dict[str, bytes]:
    files = (path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reproduced")
    plan = Plan.of("all", runs=1, seed=SEED, quick=True)
    reproduce(plan, directory, 1, Watcher(), date=DATE)
    return directory


def test_a_run_of_the_results_can_be_recomputed_from_its_seed(tmp_path: Path) -> None:
    files = written(tmp_path)
    tree = json.loads(files["results.json"])
    index = 1
    generator = np.random.default_rng([tree["seed"], LINEAR.number, index])
    source = xp.sampling.InsecureSource(int(generator.integers(2**62)))
    for kind, filter_ in (("simplified", xp.SimplifiedFilter), ("bayesian", xp.BayesianFilter)):
        session = xp.Session(LINEAR.box, [0] * 9, filter=filter_("1"), source=source)
        for query in LINEAR.queries(generator):
            if not session.decide(query).accepted:
                break
            session.ask(query)
        assert tree["linear"]["ungrouped"][kind]["accepted"][index] == len(session.transcript)
        generator = np.random.default_rng([tree["seed"], LINEAR.number, index])
        source = xp.sampling.InsecureSource(int(generator.integers(2**62)))


def test_an_interrupted_run_goes_on_and_writes_the_same_bytes(tmp_path: Path) -> None:
    complete = written(tmp_path / "whole")

    with pytest.raises(InterruptedError):
        reproduce(PLAN, tmp_path / "broken", 1, Watcher(stop_after=1), date=DATE)
    assert len(list((tmp_path / "broken" / "runs").iterdir())) == 1
    assert not (tmp_path / "broken" / "results.json").exists()
    watcher = Watcher()
    reproduce(PLAN, tmp_path / "broken", 1, watcher, date=DATE)
    assert watcher.done == [2]
    assert watcher.stages == ["figures"]
    assert written(tmp_path / "broken") == complete


ONE_RUN = Plan.of("linear", runs=1, seed=SEED, quick=True)


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("linear")
    reproduce(ONE_RUN, directory, 1, Watcher(), date=DATE)
    return directory


def test_parts_join(one_run: Path, tmp_path: Path) -> None:
    linear = ONE_RUN
    examples = Plan.of("examples", runs=None, seed=0, quick=False)
    both = Plan(("linear", "examples"), linear.runs, linear.seed, linear.gap)
    shutil.copytree(one_run, tmp_path, dirs_exist_ok=True)
    runs = (tmp_path / "runs.csv").read_bytes()
    watcher = Watcher()
    tree = reproduce(examples, tmp_path, 1, watcher, date=DATE)
    assert watcher.done == []  # what is there is not run again
    assert {"linear", "examples"} <= set(tree)
    assert tree == json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert (tmp_path / "runs.csv").read_bytes() == runs
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "section 6.1" in text
    assert "Example 2" in text
    assert "The product of appendix C" in text
    # Whichever came first.
    assert linear.joined({"examples": [], "versions": tree["versions"], "runs": {}}) == both
    assert examples.joined(tree) == both
    assert both.joined(tree) is both


def test_parts_that_were_made_otherwise_are_not_written_over(one_run: Path, tmp_path: Path) -> None:
    shutil.copytree(one_run, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)

    def refused(plan: Plan, reason: str) -> None:
        with pytest.raises(xp.InvalidInput) as error:
            reproduce(plan, tmp_path, 1, Watcher(), date=DATE)
        assert str(error.value) == f"out: {reason}; take another folder"

    holds = "holds the numbers of linear, made with another"
    steep = Plan(("logistic",), {"logistic.steep": 1, "logistic.smooth": 1}, 12, 0.01)
    refused(steep, f"{holds} seed and gap (--quick has a wider one)")
    assert contents(tmp_path) == before
    examples = Plan.of("examples", runs=None, seed=SEED, quick=True)
    for key, changed, reason in [
        ("versions", {"code": "another"}, f"{holds} versions"),
        ("runs", None, "its results.json is damaged"),
    ]:
        tree = json.loads(before["results.json"])
        (tmp_path / "results.json").write_text(json.dumps(tree | {key: changed}))
        refused(examples, reason)


def test_two_jobs_find_the_same(tmp_path: Path) -> None:
    plan = Plan((), {"logistic.steep": 3}, SEED, 0.02)
    first, two = (carry_out(plan, tmp_path / str(jobs), jobs, Watcher()) for jobs in (1, 2))
    assert first == two


@pytest.mark.parametrize("damage", ["", "{", '{"settings": {}, "run": {}}', "[]", "no traces"])
def test_a_kept_run_that_is_damaged_or_of_another_kind_is_run_again(
    tmp_path: Path, damage: str
) -> None:
    plan = Plan((), {"logistic.steep": 1}, SEED, 0.02)
    complete = carry_out(plan, tmp_path, 1, Watcher())
    (copy,) = tmp_path.iterdir()
    before = copy.read_bytes()
    copy.write_text(damage if damage != "no traces" else before.decode().replace("traces", "x"))
    assert carry_out(plan, tmp_path, 1, Watcher()) == complete
    assert copy.read_bytes() == before


def test_the_results_have_every_list_over_the_runs(out: Path) -> None:
    tree = json.loads((out / "results.json").read_text("utf-8"))
    for numbers in (tree["linear"], tree["logistic"]["steep"], tree["logistic"]["smooth"]):
        assert numbers["basic"]["accepted"] == [10]
        for account in ("groups", "ungrouped"):
            for kind in ("simplified", "bayesian"):
                (count,) = numbers[account][kind]["accepted"]
                assert count >= 10
                assert numbers[account][kind]["percentiles"]["50"][-1] == count
        assert 0 <= numbers["undecided_share"] <= 1
        assert numbers["largest_gap"] < 0.1
    assert {"seed", "versions", "gap", "runs"} <= set(tree)
    assert len(tree["health"]["outcomes"]) == 16
    proof = tree["logistic"]["steep"]["proof"]
    assert 0.9 < proof["loss"] <= proof["upper"]


def test_the_raw_results_are_the_losses_of_the_runs(out: Path) -> None:
    rows = list(csv.DictReader((out / "runs.csv").read_text("utf-8").splitlines()))
    tree = json.loads((out / "results.json").read_text("utf-8"))
    for row in rows:
        # What was answered was accepted with a budget of 1.
        assert float(row["lower"]) <= float(row["upper"]) <= 1
    arguments = [
        row for row in rows if row["experiment"] == "linear" and row["account"] == "ungrouped"
    ]
    (accepted,) = tree["linear"]["ungrouped"]["bayesian"]["accepted"]
    assert [int(row["answered"]) for row in arguments] == list(range(accepted + 1))


def test_the_report_needs_no_other_file_and_has_words_for_every_picture(out: Path) -> None:
    text = (out / "report.html").read_text(encoding="utf-8")
    page = checked(text)
    assert len(set(page.alts)) == 10 - 1  # two losses rise and fall alike
    assert page.facts == {
        "file": "results.json",
        "date": DATE,
        "content id": hashlib.sha256((out / "results.json").read_bytes()).hexdigest(),
        "budget": "up to 1 (linear), up to 1 (logistic), 4 (health)",
        "expost version": xp.__version__,
    }


def test_every_figure_is_a_file_too(out: Path) -> None:
    names = {path.name for path in (out / "figures").iterdir()}
    assert {"linear-loss.svg", "health.svg", "logistic-steep-bayesian.svg"} <= names
    assert len(names) == 10
    for path in (out / "figures").iterdir():
        root = ElementTree.parse(path).getroot()
        assert len(root.attrib["aria-label"]) > 20
        assert "var(" not in path.read_text(encoding="utf-8")  # not every program knows them


def test_figures_have_the_labels_of_the_paper(out: Path) -> None:
    labels = {
        "linear-loss": "(a)",
        "linear-simplified": "(b)",
        "linear-bayesian": "(b)",
        "logistic-steep-loss": "(c)",
        "logistic-smooth-loss": "(c)",
        "logistic-steep-simplified": "(d)",
        "logistic-steep-bayesian": "(d)",
        "logistic-smooth-simplified": "(d)",
        "logistic-smooth-bayesian": "(d)",
    }
    report = (out / "report.html").read_text(encoding="utf-8")
    for name, label in labels.items():
        drawn = (out / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert f'name">{label} ' in drawn
    captions = re.findall(r"<figcaption>(\([a-d]\))", report)
    assert sorted(captions) == sorted(labels.values())


def test_the_printed_median_is_drawn_for_the_filter_that_the_paper_names(out: Path) -> None:
    for stem in ("linear", "logistic-steep", "logistic-smooth"):
        for kind in ("bayesian", "simplified"):
            drawn = (out / "figures" / f"{stem}-{kind}.svg").read_text(encoding="utf-8")
            assert ("printed median" in drawn) == (kind == "bayesian")


@pytest.mark.parametrize("part", ["health", "examples"])
def test_a_part_can_be_had_alone(tmp_path: Path, part: str) -> None:
    tree: dict[str, Any] = reproduce(
        Plan.of(part, runs=None, seed=0, quick=False), tmp_path, 1, Watcher(), date=DATE
    )
    assert part in tree
    assert "linear" not in tree
    assert checked((tmp_path / "report.html").read_text(encoding="utf-8")).all("h2")


def test_numbers_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    from examples.paper import _earlier

    numbers = tmp_path / "results.json"
    assert _earlier(numbers) == {}
    for text in ("", "[1]", "[" * 200_000, "\ud800"):
        numbers.write_text(text, encoding="utf-8", errors="surrogatepass")
        assert _earlier(numbers) == {}
    numbers.unlink()
    os.mkfifo(numbers)
    assert _earlier(numbers) == {}

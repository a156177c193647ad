"""``expost new``: the first file of a subject."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from expost.files.durable import create

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "subject.json"


def test_a_transcript_is_made_from_options(run: Run, file: Path) -> None:
    code, out, err = run("new", file, "--values", "never,sometimes,often", "--budget", "0.3")
    assert (code, err) == (0, "")
    assert out == (
        "The subject's value is one of 3: never, sometimes or often.\n"
        "The budget is 0.3 (Bayesian filter). Nothing has been asked yet.\n"
        f"The transcript is in {file}.\n"
    )
    values = xp.FiniteSet(["never", "sometimes", "often"])
    assert xp.load_transcript(file) == xp.Transcript(values, xp.BayesianFilter(epsilon="0.3"))


@pytest.mark.parametrize(
    ("options", "domain"),
    [
        (["--values", "0..3"], xp.FiniteSet(range(4))),
        (["--values", "-1, 0.5, yes"], xp.FiniteSet([-1, 0.5, "yes"])),
        (["--values", '"a,b",c'], xp.FiniteSet(["a,b", "c"])),
        (["--values", "1.8,1.9,1.10,2.0"], xp.FiniteSet(["1.8", "1.9", "1.10", "2.0"])),
        (["--values", '"1.8", 1.9,"a ""b"""'], xp.FiniteSet(["1.8", 1.9, 'a "b"'])),
        (["--values", "1e400,2"], xp.FiniteSet(["1e400", "2"])),
        (["--values", "1e3,007"], xp.FiniteSet(["1e3", "007"])),
        (
            ["--coordinate", "age=10..100", "--coordinate", "sex=integers:0..1",
             "--coordinate", "region=north,south"],
            xp.Box(age=(10, 100), sex=xp.integers(0, 1), region=xp.categories("north", "south")),
        ),
        (["--coordinate", "self=-.5..1e3"], xp.Box(self=(-0.5, 1000))),
    ],
)  # fmt: skip
def test_domains_are_what_was_typed(
    run: Run, file: Path, options: list[str], domain: xp.FiniteSet | xp.Box
) -> None:
    code, out, _ = run("new", file, *options, "--budget", "1", "--json")
    transcript = xp.load_transcript(file)
    assert code == 0
    assert json.loads(out) == {"file": str(file), "content_id": transcript.content_id}
    assert transcript.domain == domain


@pytest.mark.parametrize(
    ("options", "filter_"),
    [
        (["--filter", "basic"], xp.BasicFilter(epsilon=2)),
        (["--filter", "simplified"], xp.filters.SimplifiedFilter(epsilon=2)),
        (["--delta", "1e-6"], xp.filters.ApproximateFilter("2", "1e-6")),
    ],
)
def test_filters_are_what_was_named(
    run: Run, file: Path, options: list[str], filter_: xp.filters.Filter
) -> None:
    assert run("new", file, "--values", "0..1", "--budget", "2", *options)[0] == 0
    assert xp.load_transcript(file).filter == filter_


def test_the_domain_of_another_file_is_taken(run: Run, file: Path, tmp_path: Path) -> None:
    points = xp.FiniteSet([{"age": 34}, {"age": 52}])
    other = tmp_path / "other.json"
    xp.Transcript(points).save(other)
    assert run("new", file, "--domain", other, "--budget", "1")[0] == 0
    assert xp.load_transcript(file).domain == points


def test_what_no_option_says_is_asked_for_until_it_can_be_read(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "no,,yes\nage=10..100 region='north east',south\nmuch\n1/2\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    code, out, err = run("new", file, "--json")
    assert code == 0
    assert json.loads(out)["file"] == str(file)
    assert err.count("Value: ") == 2
    assert err.count("Budget, in nats") == 2
    box = xp.Box(age=(10, 100), region=xp.categories("north east", "south"))
    assert xp.load_transcript(file) == xp.Transcript(box, xp.BayesianFilter(epsilon="1/2"))


def test_nobody_to_ask_is_bad_input(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = run("new", file, "--values", "no,yes")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("expost: no answer on standard input; pass --values")
    assert not file.exists()


def test_no_file_is_written_over(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text("what is known of a budget", encoding="utf-8")
    code, out, err = run("new", file, "--values", "no,yes", "--budget", "1")
    assert (code, out) == (2, "")
    assert err == f"expost: {file}: already exists; not overwritten\n"
    assert file.read_text("utf-8") == "what is known of a budget"
    dangling = tmp_path / "link.json"
    dangling.symlink_to(tmp_path / "elsewhere.json")
    assert run("new", dangling, "--values", "no,yes", "--budget", "1")[0] == 2
    assert not (tmp_path / "elsewhere.json").exists()
    with pytest.raises(xp.InvalidInput, match="already exists"):
        create(file, "somebody was quicker")  # between the look and the writing
    assert file.read_text("utf-8") == "what is known of a budget"


def test_what_was_read_as_numbers_is_said(run: Run, file: Path) -> None:
    out = run("new", file, "--values", '0.5,never,"7"', "--budget", "1")[1]
    assert out.splitlines()[1] == "Read as numbers: 0.5. What stands in quotes is a label."
    file.unlink()
    for plain in ("0..3", "0,1,2", "1.9,1.10", "no,yes"):
        assert "Read as numbers" not in run("new", file, "--values", plain, "--budget", "1")[1]
        file.unlink()

"""Priors from files."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

import expost as xp

LABELS = xp.FiniteSet(["never", "often"])
PEOPLE = xp.FiniteSet([(20, 0), (60, 0), (60.5, 1)], names=["age", "sex"])
BOX = xp.Box(age=(0, 100), region=xp.categories("north", "south"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prior.csv"


def test_labels_with_probabilities(file: Path) -> None:
    file.write_text("value,probability\nnever,0.9\noften,1/10\n", encoding="utf-8")
    assert xp.knowledge.load_prior(file, LABELS) == xp.knowledge.Belief(
        LABELS, {"never": "0.9", "often": "0.1"}
    )


def test_points_with_counts_in_any_order_and_with_other_columns(file: Path) -> None:
    file.write_text("\ufeffsex,who,count,age\r\n1,x,3,60.50\r\n\r\n0,y,1,20\r\n", "utf-8")
    assert xp.knowledge.load_prior(file, PEOPLE) == xp.knowledge.Belief.from_counts(
        PEOPLE, [1, 0, 3]
    )


def test_numbers_without_a_name_and_labels_beside_numbers(file: Path) -> None:
    domain = xp.FiniteSet(["1", 1, 2])
    file.write_text('value,count\n"1",5\n 2.0 ,7\n', encoding="utf-8")
    assert xp.knowledge.load_prior(file, domain) == xp.knowledge.Belief.from_counts(
        domain, [5, 0, 7]
    )


def test_what_a_program_wrote_is_scaled(file: Path) -> None:
    domain = xp.FiniteSet([1, 2, 3])
    file.write_text(
        "value,probability\n" + "".join(f"{x},{1 / 3!r}\n" for x in (1, 2, 3)), encoding="utf-8"
    )
    belief = xp.knowledge.load_prior(file, domain)
    assert isinstance(belief, xp.knowledge.Belief)
    assert belief.probability(2) == Fraction(1, 3)


def test_a_coordinate_may_be_called_count(file: Path) -> None:
    domain = xp.FiniteSet([{"count": 1}, {"count": 2}])
    file.write_text("count,probability\n1,0.25\n2,0.75\n", encoding="utf-8")
    assert xp.knowledge.load_prior(file, domain) == xp.knowledge.Belief(domain, ["0.25", "0.75"])


def test_samples_of_a_box(file: Path) -> None:
    file.write_text("region,age\nnorth,20\nsouth,71.5\n", encoding="utf-8")
    samples = xp.knowledge.load_prior(file, BOX)
    assert isinstance(samples, xp.knowledge.Samples)
    assert samples.points == ((20, "north"), (71.5, "south"))


def test_samples_of_a_plain_box(file: Path) -> None:
    file.write_text("x1,x0\n0.5,-1\n0.25,1\n", encoding="utf-8")
    samples = xp.knowledge.load_prior(file, xp.Box([(-1, 1), (0, 1)]))
    assert isinstance(samples, xp.knowledge.Samples)
    assert samples.points == ((-1, 0.5), (1, 0.25))


@pytest.mark.parametrize(
    ("text", "domain", "line"),
    [
        ("", LABELS, "is empty"),
        ("value\nnever\n", LABELS, "must have one of the columns probability, count"),
        ("value,count,probability\nnever,1,1\n", LABELS,
         "must have one of the columns probability, count"),
        ("count\n1\n", LABELS, "column 'value' is missing"),
        ("value,value,count\na,a,1\n", LABELS, "column 'value' appears twice"),
        ("value,count\nnever\n", LABELS, "row 1: has 1 cells, the header 2"),
        ("value,count\nnever,1\nsecret,1\n", LABELS, "row 2: is not a value of the domain"),
        ("value,count\nnever,1\nnever,1\n", LABELS, "row 2: repeats the value of row 1"),
        ("value,count\nnever,x\n", LABELS, "row 1: count: 'x' is not a number; write 0.5 or 1/3"),
        ("value,count\nnever,-1\n", LABELS, "row 1: count: must not be negative"),
        ("value,count\nnever,0\n", LABELS, "counts: sum to zero"),
        ("value,count\n", LABELS, "counts: sum to zero"),
        ("value,probability\nnever,0.999\n", LABELS, "probabilities: sum to 1/1000 below 1"),
        ("age,sex,count\n20,man,1\n", PEOPLE, "row 1: sex: must be a number"),
        ("age,sex,count\n21,0,1\n", PEOPLE, "row 1: is not a value of the domain"),
        ("age,region\n20,north\n101,north\n", BOX, "row 2: is not a point of the box"),
        ("age,region\n20,north\nx,north\n", BOX, "row 2: age: must be a number"),
        ("age,region\n20,north\n", BOX, "rows: at least two points are needed"),
        ('value,count\n"never,1\n', LABELS, "line 2: not CSV: unexpected end of data"),
    ],
)  # fmt: skip
def test_a_bad_file_gets_one_line(
    file: Path, text: str, domain: xp.FiniteSet | xp.Box, line: str
) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(xp.InvalidInput) as error:
        xp.knowledge.load_prior(file, domain)
    line = re.sub(r"^row \d", r"\g<0> below the header", line)
    assert str(error.value) == f"{file}: {line}"


def test_a_file_that_is_not_there(file: Path) -> None:
    with pytest.raises(xp.InvalidInput, match=r"cannot be read: No such file"):
        xp.knowledge.load_prior(file, LABELS)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(xp.InvalidInput, match=r"is not UTF-8 text$"):
        xp.knowledge.load_prior(file, LABELS)

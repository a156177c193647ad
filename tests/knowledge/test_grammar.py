"""The language of statements: what it says, against Python; and what it refuses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.errors import InvalidInput
from expost.knowledge import coordinate_names, named_rows, parse_predicate

BOX = xp.Box(a=(-9, 9), b=(-9, 9), region=xp.categories("north", "south", 'the "east"'))


class _Exact(ast.NodeTransformer):
    """Numbers become the fractions that are written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return node
        written = ast.get_source_segment(self._text, node)
        call = ast.Call(ast.Name("Fraction", ast.Load()), [ast.Constant(written)], [])
        return ast.copy_location(ast.fix_missing_locations(call), node)


def python(text: str, row: Mapping[str, Any]) -> bool:
    """What Python says of the same expression, with the decimals that a person wrote."""
    exact = {
        name: Fraction(str(x)) if isinstance(x, (int, float)) else x for name, x in row.items()
    }
    tree = _Exact(text).visit(ast.parse(text, mode="eval"))
    program = compile(ast.fix_missing_locations(tree), "statement", "eval")
    return bool(eval(program, {"__builtins__": {}, "Fraction": Fraction}, exact))


NUMBERS = st.one_of(
    st.integers(0, 20).map(str),
    st.sampled_from(["0.1", "0.2", "0.3", ".5", "3.", "1e2", "2.5E-1", "0.30000000000000004"]),
)
AMOUNTS = st.recursive(
    st.one_of(NUMBERS, st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("+ {}".format, inner),
    ),
    max_leaves=6,
)
ORDERS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
LABELS = st.sampled_from(['"north"', "'south'", r'"the \"east\""', "'the \"east\"'"])
COMPARISONS = st.one_of(
    st.builds("{}{}{}".format, AMOUNTS, ORDERS, AMOUNTS),
    st.builds("{} {} {} {} {}".format, AMOUNTS, ORDERS, AMOUNTS, ORDERS, AMOUNTS),
    st.builds("region {} {}".format, st.sampled_from(["==", "!="]), LABELS),
    st.builds("{} {} region".format, LABELS, st.sampled_from(["==", "!="])),
)
STATEMENTS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("not {}".format, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=5,
)
VALUES = st.one_of(st.integers(-9, 9), st.sampled_from([0.1, 0.2, 0.3, 0.5, -2.5, 1e-7]))
ROWS = st.fixed_dictionaries(
    {"a": VALUES, "b": VALUES, "region": st.sampled_from(["north", "south", 'the "east"'])}
)


@settings(max_examples=500)
@given(STATEMENTS, ROWS)
def test_a_statement_means_what_it_means_in_python(text: str, row: dict[str, Any]) -> None:
    holds = parse_predicate(text, BOX)
    try:
        expected = python(text, row)
    except ZeroDivisionError:
        with pytest.raises(InvalidInput, match="divides by zero"):
            holds(row)
        return
    assert holds(row) is expected


PIECES = st.sampled_from(
    ["a", "b", "region", "and", "or", "not", "(", ")", "<", "<=", "==", "!=", "=", "+", "-", "*",
     "/", "1", "0.5", "1e999", '"north"', "'x", "`a`", "`", "__import__", ".", ",", "[", "lambda",
     "\\", "\n", "é", "²", "٣", "\x00", "9" * 50]
)  # fmt: skip


def read_and_try(text: str) -> None:
    """Only one kind of error, of one line, whatever the text."""
    try:
        holds = parse_predicate(text, BOX)
        assert holds({"a": 0, "b": 0.5, "region": "north"}) in (True, False)
        said = ""
    except InvalidInput as error:
        said = str(error)
    assert said.isprintable()


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=25), st.sampled_from(["", " "]))
def test_pieces_in_any_order_are_read_or_refused(pieces: list[str], joint: str) -> None:
    read_and_try(joint.join(pieces))


@settings(max_examples=500)
@given(st.one_of(st.text(), st.binary().map(lambda data: data.decode("latin-1"))))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_and_try(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 5000, "not " * 400 + "a > 1", "-" * 1500 + "a > 1", "(" * 300 + "a" + ")" * 300,
     "a > " + "1+" * 990 + "1", " and ".join(["a > 1"] * 200), "a > " + "9" * 1900,
     "a > 1e-600", "a*" * 900 + "a > 1"],
)  # fmt: skip
def test_long_and_deep_texts_are_read_or_refused(text: str) -> None:
    read_and_try(text)


def test_long_chains_are_fine_as_long_as_they_are_not_deep() -> None:
    row: dict[str, Any] = {"a": 2, "b": 0, "region": "north"}
    assert parse_predicate("a + " * 400 + "a == 802", BOX)(row)
    assert parse_predicate(" < ".join(map(str, range(250))), BOX)(row)
    assert parse_predicate("not " * 38 + "a == 2", BOX)(row)


def test_decimals_are_exact_on_both_sides() -> None:
    tenths = xp.FiniteSet([0.1, 0.2, 0.3])
    assert list(xp.knowledge.Statement(tenths, "value + 0.1 == 0.3").probabilities) == [0, 1, 0]
    assert list(xp.knowledge.Statement(tenths, "value * 10 == 3").probabilities) == [0, 0, 1]
    assert list(xp.knowledge.Statement(tenths, "1 / 3 * 3 == 1").probabilities) == [1, 1, 1]


def test_a_division_by_zero_that_is_ruled_out_is_none() -> None:
    numbers = xp.FiniteSet([0, 1, 2])
    statement = xp.knowledge.Statement(numbers, "value != 0 and 1 / value >= 1")
    assert list(statement.probabilities) == [0, 1, 0]


def test_names_that_are_no_plain_words_go_in_backquotes() -> None:
    domain = xp.FiniteSet([(120, 1), (150, 0)], names=["blood pressure", "not"])
    statement = xp.knowledge.Statement(domain, "`blood pressure` > 140 and `not` == 0")
    assert list(statement.probabilities) == [0, 1]


def test_what_has_no_name_has_one_in_statements() -> None:
    assert coordinate_names(xp.FiniteSet(["a", 1])) == ("value",)
    assert coordinate_names(xp.Box([(0, 1), (0, 1)])) == ("x0", "x1")
    assert list(named_rows(xp.FiniteSet([3]), [3])) == [{"value": 3}]
    mixed = xp.FiniteSet(["none", 1, 2])
    assert list(xp.knowledge.Statement(mixed, 'value == "none" or value == 2').probabilities) == [
        1,
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "column 1: a number, a string or a name is missing before the end"),
        ("a", "column 1: expected a comparison, not a number"),
        ("a >", "column 4: a number, a string or a name is missing before the end"),
        ("a = 1", "column 3: write == for 'is equal to'"),
        ("age >= 60", "column 1: unknown name 'age'; known: a, b, region"),
        ("a > 1 b", "column 7: 'b' is not expected here"),
        ("(a > 1", "column 7: a closing parenthesis is missing before the end"),
        ("a > 1)", "column 6: ')' is not expected here"),
        ("a.real > 1", "column 2: is a character that statements do not have"),
        ("abs(a) > 1", "column 1: unknown name 'abs'; known: a, b, region"),
        ("a(1) > 1", "column 2: '(' is not expected here"),
        ("a[0] > 1", "column 2: is a character that statements do not have"),
        ("a ** 2 > 1", "column 4: a number, a string or a name is missing before '*'"),
        ("not a", "column 5: expected a comparison, not a number"),
        ("a and b > 1", "column 1: expected a comparison, not a number"),
        ("a + (b > 1) > 2", "column 5: expected a number, not a comparison"),
        ("(a > 1) == (b > 1)",
         "column 1: a comparison cannot be compared; join comparisons with and, or"),
        ("a + region > 1", "column 5: expected a number, not a text"),
        ("region > 'a'", "column 1: only numbers can be compared with >"),
        ("a == 'x'", "column 6: a number never equals a label"),
        ("region == 1", "column 11: a number never equals a label (labels go in quotes)"),
        ("region == 'nroth'",
         'column 11: unknown label; known: north, south, the "east"'),
        ("region == 'north",
         "column 11: a quote is not closed, or has a backslash that is not before a quote"),
        ("a > 1e999", "column 5: is too large or too small"),
        ("a > " + "1" * 2001, "is longer than 2,000 characters"),
        ("(" * 41 + "a", "column 42: is nested too deep"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_line_with_the_place(text: str, line: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_predicate(text, BOX)
    assert str(error.value) == line


def test_a_division_by_zero_is_one_line_without_the_value() -> None:
    with pytest.raises(InvalidInput) as error:
        xp.knowledge.Statement(xp.FiniteSet([5, 17]), "1 / (value - 17) > 0")
    assert str(error.value) == (
        "statement column 3: divides by zero for some value; rule it out: x != 0 and …"
    )


def test_a_statement_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be a string, such as"):
        parse_predicate(3, BOX)  # type: ignore[arg-type]

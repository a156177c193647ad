"""A small language for statements about a value: ``age >= 60 and region == "north"``.

    statement   or of and of not of comparisons, with parentheses
    comparison  a < b, also chained: 30 <= age < 60; texts only with == and !=
    amount      numbers and names with + - * / and parentheses
    name        of the domain; in backquotes if it is not a plain word: `blood pressure`;
                of an attribute that changes, with a step: smokes at 3
    text        in quotes: "north"

There is nothing else: no calls, no attributes, no other names. Numbers are the decimals that a
person wrote, in the statement and in the domain, and arithmetic is exact: 0.1 + 0.2 == 0.3.
``and`` and ``or`` stop as soon as they are decided, so ``x != 0 and 1 / x > 2`` never divides by
zero. A division by zero that is reached is an error.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, NoReturn

from expost.domains import Categories, Domain, Scalar, Value, Variable
from expost.errors import InvalidInput, at, expect
from expost.numbers import exact

__all__ = ["Predicate", "coordinate_names", "named_rows", "parse_predicate"]

_LONGEST = 2000
_DEEPEST = 40

Kind = Literal["truth", "number", "text", "number or text"]
Exact = int | Fraction | str
#: A name; of an attribute that changes, the name and the step.
Key = str | Variable
Row = Mapping[Key, Exact]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A parsed statement, which is true or false for each value."""

    text: str
    _run: Callable[[Row], Any]
    #: The names that occur in it, each once.
    names: tuple[Key, ...]

    def __call__(self, row: Mapping[Any, Scalar]) -> bool:
        """Return whether the statement holds for these values of its names."""
        return bool(self._run({name: _as_written(x) for name, x in row.items()}))


class _Column(NamedTuple):
    """The kind of values that a name stands for, and its labels."""

    kind: Kind
    labels: frozenset[str] = frozenset()
    #: True for attributes with a value at each step; None for anything but an attribute.
    changes: bool | None = None


def coordinate_names(domain: Domain) -> tuple[str, ...]:
    """Return the names by which a statement calls the coordinates of a domain.

    They are the names of the coordinates if they have some; otherwise ``value`` on a finite set,
    and ``x0``, ``x1``, … on a box.
    """
    return domain.called("value")


def named_rows(domain: Domain, values: Any) -> Iterator[dict[str, Scalar]]:
    """Yield values of a domain as dictionaries from names to coordinates."""
    names = coordinate_names(domain)
    for value in values:
        yield dict(zip(names, value if isinstance(value, tuple) else (value,), strict=True))


def parse_predicate(text: str, domain: Domain) -> Predicate:
    """Read a statement about the values of a domain. An error names the column.

    >>> import expost as xp
    >>> person = xp.Box(age=(10, 100), region=xp.categories("north", "south"))
    >>> holds = parse_predicate('age >= 60 and region == "north"', person)
    >>> holds({"age": 71, "region": "north"}), holds({"age": 71, "region": "south"})
    (True, False)
    """
    expect(text, str, "a string, such as 'age >= 60'")
    if len(text) > _LONGEST:
        raise InvalidInput(f"is longer than {_LONGEST:,} characters")
    parser = _Parser(text, _columns(domain))
    return Predicate(text, parser.statement(), tuple(parser.used))


def _columns(domain: Domain) -> dict[str, _Column]:
    names = coordinate_names(domain)
    if domain.kinds:
        return {
            name: _of_values(kind.values.values)._replace(changes=kind.change is not None)
            for name, kind in zip(names, domain.kinds, strict=True)
        }
    if domain.sides:
        return {
            name: _Column("text", frozenset(side.labels))
            if isinstance(side, Categories)
            else _Column("number")
            for name, side in zip(names, domain.sides, strict=True)
        }
    if domain.names is not None:
        return dict.fromkeys(names, _Column("number"))
    return {"value": _of_values(domain.values)}


def _of_values(values: Sequence[Value]) -> _Column:
    labels = frozenset(value for value in values if isinstance(value, str))
    if not labels:
        return _Column("number")
    return _Column("text" if len(labels) == len(values) else "number or text", labels)


def _as_written(x: Scalar) -> Exact:
    # The shortest decimal that reads as this double is what a person wrote.
    return Fraction(repr(x)) if isinstance(x, float) else x


class _Node(NamedTuple):
    kind: Kind
    run: Callable[[Row], Any]
    column: int
    #: The labels of a name that can be a text.
    labels: frozenset[str] | None = None
    literal: str | None = None


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[^\W\d]\w*)
    |(?P<quoted>`[^`]*`)
    |(?P<text>"(?:[^"\\]|\\["'\\])*"|'(?:[^'\\]|\\["'\\])*')
    |(?P<sign><=|>=|==|!=|[-<>+*/()])""",
    re.VERBOSE,
)
_KEYWORDS = ("and", "or", "not")
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITIES: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "!=": operator.ne}
_COMPARISONS = _ORDERS | _EQUALITIES


def _fail(reason: str, column: int) -> NoReturn:
    raise InvalidInput(reason, f"column {column + 1}")


def _tokens(text: str) -> list[_Token]:
    result, column = [], 0
    while column < len(text):
        match = _TOKEN.match(text, column)
        if match is None:
            _fail(_unknown(text[column]), column)
        kind = str(match.lastgroup)
        if kind == "name" and match[0] in _KEYWORDS:
            kind = "sign"
        if kind != "space":
            result.append(_Token(kind, match[0], column))
        column = match.end()
    return [*result, _Token("end", "", len(text))]


def _unknown(character: str) -> str:
    if character == "=":
        return "write == for 'is equal to'"
    if character in "\"'`":
        return "a quote is not closed, or has a backslash that is not before a quote"
    return "is a character that statements do not have"


class _Parser:
    """Recursive descent; a method per line of the grammar, from the loosest to the tightest."""

    def __init__(self, text: str, columns: Mapping[str, _Column]) -> None:
        self._columns = columns
        self.used: dict[Key, None] = {}
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def statement(self) -> Callable[[Row], Any]:
        node = self._any()
        if self._token.kind != "end":
            _fail(f"{self._shown()} is not expected here", self._token.column)
        return self._need(node, "truth").run

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take_sign(self, *signs: str) -> str | None:
        token = self._token
        if token.kind == "sign" and token.text in signs:
            self._next += 1
            return token.text
        return None

    def _shown(self) -> str:
        return repr(self._token.text[:20]) if self._token.kind != "end" else "the end"

    def _need(self, node: _Node, kind: Kind) -> _Node:
        if node.kind != kind:
            need = {"truth": "a comparison", "number": "a number"}[kind]
            have = {"truth": "a comparison"}.get(node.kind, f"a {node.kind}")
            _fail(f"expected {need}, not {have}", node.column)
        return node

    def _read_nested(self, read: Callable[[], _Node]) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            _fail("is nested too deep", self._token.column)
        node = read()
        self._depth -= 1
        return node

    def _any(self) -> _Node:
        return self._read_logic("or", any, self._all)

    def _all(self) -> _Node:
        return self._read_logic("and", all, self._not)

    def _read_logic(
        self, word: str, join: Callable[[Iterator[Any]], bool], read: Callable[[], _Node]
    ) -> _Node:
        first = read()
        nodes = [first]
        while self._take_sign(word):
            nodes.append(read())
        if len(nodes) == 1:
            return first
        runs = [self._need(node, "truth").run for node in nodes]
        return _Node("truth", lambda row: join(run(row) for run in runs), first.column)

    def _not(self) -> _Node:
        column = self._token.column
        if not self._take_sign("not"):
            return self._comparison()
        run = self._need(self._read_nested(self._not), "truth").run
        return _Node("truth", lambda row: not run(row), column)

    def _comparison(self) -> _Node:
        nodes, signs = [self._sum()], []
        while sign := self._take_sign(*_COMPARISONS):
            nodes.append(self._sum())
            _check_comparison(sign, nodes[-2], nodes[-1])
            signs.append(sign)
        if not signs:
            return nodes[0]
        first, *right_operands = [node.run for node in nodes]
        steps = [(_COMPARISONS[sign], run) for sign, run in zip(signs, right_operands, strict=True)]

        def holds(row: Row) -> bool:
            left_value = first(row)
            for compare, run in steps:
                right_value = run(row)
                if not compare(left_value, right_value):
                    return False
                left_value = right_value
            return True

        return _Node("truth", holds, nodes[0].column)

    def _sum(self) -> _Node:
        return self._read_operations({"+": operator.add, "-": operator.sub}, self._product)

    def _product(self) -> _Node:
        return self._read_operations({"*": operator.mul, "/": Fraction}, self._signed)

    def _read_operations(
        self, operations: Mapping[str, Callable[[Any, Any], Any]], read: Callable[[], _Node]
    ) -> _Node:
        first = read()
        steps: list[tuple[Callable[[Any, Any], Any], Callable[[Row], Any], int]] = []
        column = self._token.column
        while sign := self._take_sign(*operations):
            steps.append((operations[sign], self._need(read(), "number").run, column))
            column = self._token.column
        if not steps:
            return first
        start = self._need(first, "number").run

        def amount(row: Row) -> Any:
            result = start(row)
            for operation, run, column in steps:
                try:
                    result = operation(result, run(row))
                except ZeroDivisionError:
                    _fail("divides by zero for some value; rule it out: x != 0 and …", column)
            return result

        return _Node("number", amount, first.column)

    def _signed(self) -> _Node:
        column = self._token.column
        sign = self._take_sign("-", "+")
        if sign is None:
            return self._atom()
        run = self._need(self._read_nested(self._signed), "number").run
        return _Node("number", run if sign == "+" else lambda row: -run(row), column)

    def _atom(self) -> _Node:
        token = self._token
        if self._take_sign("("):
            node = self._read_nested(self._any)
            if not self._take_sign(")"):
                reason = f"a closing parenthesis is missing before {self._shown()}"
                _fail(reason, self._token.column)
            # Parentheses keep a text or a name what it is, but its column is that of the bracket.
            return node._replace(column=token.column)
        if token.kind == "number":
            with at(f"column {token.column + 1}", " "):
                value = exact(token.text)
            constant = value.numerator if value.denominator == 1 else value
            self._next += 1
            return _Node("number", lambda row: constant, token.column)
        if token.kind == "text":
            literal = re.sub(r"\\(.)", r"\1", token.text[1:-1])
            self._next += 1
            return _Node("text", lambda row: literal, token.column, literal=literal)
        if token.kind in ("name", "quoted"):
            return self._name(token)
        _fail(f"a number, a string or a name is missing before {self._shown()}", token.column)

    def _name(self, token: _Token) -> _Node:
        name = token.text.strip("`")
        if name not in self._columns:
            valid_names = ", ".join(list(self._columns)[:8])
            is_label = any(name in column.labels for column in self._columns.values())
            hint = f'; write "{name}" for the value' if is_label else ""
            _fail(f"unknown name {name[:40]!r}; known: {valid_names}{hint}", token.column)
        self._next += 1
        kind, labels, changes = self._columns[name]
        step = None if changes is None else self._step(name, token.column, changes=changes)
        key: Key = name if step is None else (name, step)
        self.used[key] = None
        return _Node(kind, operator.itemgetter(key), token.column, labels or None)

    def _step(self, name: str, column: int, *, changes: bool) -> int | None:
        """Read the step after the name of an attribute; it is there if and only if it changes."""
        token = self._token
        if (token.kind, token.text) != ("name", "at"):
            if changes:
                _fail(f"{name} changes from step to step; name the step: {name} at 3", column)
            return None
        if not changes:
            _fail(f"{name} does not change, so it has no steps", token.column)
        self._next += 1
        sign = -1 if self._take_sign("-") else 1
        if self._token.kind != "number" or not self._token.text.isdigit():
            _fail(f"a step is an integer, as in {name} at 3", self._token.column)
        self._next += 1
        return sign * int(self._tokens[self._next - 1].text)


def _check_comparison(sign: str, first: _Node, second: _Node) -> None:
    """Refuse a comparison that can never be true or has no meaning, because it is a mistake."""
    for node in (first, second):
        if node.kind == "truth":
            _fail("a comparison cannot be compared; join comparisons with and, or", node.column)
    if sign in _ORDERS:
        for node in (first, second):
            if node.kind != "number":
                _fail(f"only numbers can be compared with {sign}", node.column)
    if {first.kind, second.kind} == {"number", "text"}:
        quoted = " (labels go in quotes)" if first.labels or second.labels else ""
        _fail(f"a number never equals a label{quoted}", second.column)
    for name, other in ((first, second), (second, first)):
        labels, literal = name.labels, other.literal
        if labels is not None and literal is not None and literal not in labels:
            valid_labels = ", ".join(sorted(labels)[:8])
            _fail(f"unknown label; known: {valid_labels[:200]}", other.column)

"""Import a survey as another program exported it: messy cells become a clean table of answers.

Nothing is changed or left out without a remark. Two spellings become one where only their case or
their spaces differ; subjects that differ in case stay apart, because their names may be codes.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from expost._format import format_count, format_list
from expost.answers._outcomes import ANSWERED, DECLINED, MISSING, OUTCOME, REFUSED, UNANSWERED
from expost.answers._queries_file import UNKNOWN
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text, readable_tree
from expost.files.exported import ExportedTable, column_index, read_exported
from expost.files.reading import read_list, text

__all__ = ["ImportedAnswers", "import_answers"]

_MOST_LABELS = 50
_DECIMAL = re.compile(r"[-+]?\d+(?:\.\d+)?")
_NUMBERED = re.compile(r"(\D*?)(\d+)(\D*)")
# What people write where there is no response; taken as one only if the caller says so.
_NO_RESPONSES = {
    "na", "n/a", "n.a.", "nan", "null", "none", "missing", "refused", "declined", "dk",
    "don't know", "no answer", "-", "--", ".", "-9", "-99", "-999", "#n/a",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportedAnswers:
    """Answers from an exported table, and what was changed or left out."""

    #: The columns subject, order, query, response and, if some have no response, outcome.
    table: dict[str, list[Any]]
    #: The columns subject and covariates, with a row per subject.
    covariates: dict[str, list[str]]
    #: The ids of the queries, and what the table calls them.
    queries: dict[str, str]
    #: The different responses to each query; empty for numbers that look like noisy ones.
    labels: dict[str, list[str | int | Decimal]]
    #: The number of bits of each response to a query, if its responses are strings of bits.
    bits: dict[str, int]
    #: Sentences about what was changed, assumed or left out.
    remarks: tuple[str, ...]

    def count(self, outcome: str) -> int:
        """Count the rows with an outcome."""
        column = self.table.get(OUTCOME)
        if column is None:
            return len(self.table["subject"]) if outcome == ANSWERED else 0
        return column.count(outcome)

    def queries_document(self, epsilon: str = UNKNOWN) -> str:
        """Return a first file of queries, in which every "?" is to be completed.

        Each query becomes randomized response over the responses that it got, or unary encoding if
        they are strings of bits; the domain has an attribute for each query. Where the same was
        asked in other words, or by another mechanism, the file has to be changed.
        """
        trees: dict[str, Any] = {}
        for key, labels in self.labels.items():
            kind = {"kind": "randomized_response" if labels else UNKNOWN}
            if key in self.bits:
                kind = {"kind": "unary_encoding", "variant": UNKNOWN}
            trees[key] = {**kind, "epsilon": epsilon, "about": [key]}
        values: dict[str, list[Any]] = {
            key: labels or [UNKNOWN] * self.bits.get(key, 1) for key, labels in self.labels.items()
        }
        domain: dict[str, Any] = {"attributes": values}
        if len(trees) == 1:
            key = next(iter(trees))
            domain = {"values": values[key]}
            del trees[key]["about"]
        document = {"version": 1, "domain": domain, "queries": trees}
        return json_text(readable_tree(document), indent=1) + "\n"


def import_answers(
    path: str | os.PathLike[str],
    *,
    subject: str,
    response: str | Sequence[str],
    query: str | None = None,
    order_by: str | None = None,
    refused: Iterable[str] = (),
    declined: Iterable[str] = (),
    missing: Iterable[str] = (),
    covariates: Sequence[str] = (),
    ignore_case: bool = False,
    sheet: str | None = None,
) -> ImportedAnswers:
    """Read the answers of many subjects from a table that another program exported.

    Args:
        path: A CSV file with any separator, or a spreadsheet.
        subject: The column with the subject's name.
        response: The column with the responses. Without ``query``, one column or several, each
            with the responses to the query in its header.
        query: The column that says which query was asked, if there is a row for each response.
        order_by: The column by which the answers of each subject are ordered: numbers, dates, or
            texts such as "Week 3". By default they are in the order of the rows.
        refused: Responses that mean that the filter refused the query.
        declined: Responses that mean that the subject declined.
        missing: Responses that mean that there is none. An empty cell always does.
        covariates: Columns with public facts about the subjects, such as groups or survey weights.
        ignore_case: Take subjects whose names differ only in case for one subject.
        sheet: The sheet of a spreadsheet; the first one by default.

    Raises:
        InvalidInput: A column or a sheet is missing, or a row cannot be read.

    >>> import tempfile
    >>> survey = "ID;Question;Answer\\n1.0;Smokes;Yes\\n1.0;Drinks;no\\n2.0;smokes ;NA\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "survey.csv"
    ...     _ = file.write_text(survey)
    ...     answers = import_answers(
    ...         file, subject="id", query="question", response="answer", missing=["NA"]
    ...     )
    >>> answers.table["response"], answers.table["outcome"]
    (['Yes', 'no', ''], ['answered', 'answered', 'missing'])
    """
    columns = [response] if isinstance(response, str) else read_list(response, text)
    words = _outcome_words(refused, declined, missing)
    if not columns or (query is not None and len(columns) != 1):
        reason = "expected one column, because there is a column of queries"
        raise InvalidInput(reason if columns else "expected at least one column", "response")
    expect(path, (str, os.PathLike), "the name of a file", "path")
    with at(os.fspath(path), ": "):
        public = read_list(list(covariates), text)
        others = [name for name in (query, order_by) if name is not None]
        names = [subject, *columns, *others, *public]
        table = read_exported(Path(path), names, sheet)
        rows = list(_long_rows(table, subject, query, columns, order_by))
        return _Import(table, words, ignore_case=ignore_case).run(
            rows, public, ordered=order_by is not None
        )


@dataclass(slots=True)
class _Row:
    """A cell with a response, and the row below the header that it is in."""

    row_number: int
    subject: str
    query: str
    response: str
    order: str
    outcome: str = ANSWERED

    @property
    def is_exchange(self) -> bool:
        return self.outcome in (ANSWERED, MISSING)


def _outcome_words(
    refused: Iterable[str], declined: Iterable[str], missing: Iterable[str]
) -> dict[str, str]:
    """Return the outcome that each word means."""
    outcomes: dict[str, str] = {}
    for outcome, words in ((REFUSED, refused), (DECLINED, declined), (MISSING, missing)):
        with at(outcome):
            for word in read_list(list(words), text):
                if outcomes.setdefault(_fold_case(word), outcome) != outcome:
                    raise InvalidInput(f"{word!r} stands for two outcomes")
    return outcomes


def _long_rows(
    table: ExportedTable,
    subject: str,
    query: str | None,
    columns: Sequence[str],
    order_by: str | None,
) -> Iterable[_Row]:
    """Yield a row for each response, whether queries are in a column or in the header."""
    of_subject = column_index(table.header, subject)
    of_order = None if order_by is None else column_index(table.header, order_by)
    of_query = None if query is None else column_index(table.header, query)
    of_responses = [column_index(table.header, name) for name in columns]
    for number, row in enumerate(table.rows, start=1):
        for of_response in of_responses if row else ():
            yield _Row(
                number,
                row[of_subject],
                table.header[of_response] if of_query is None else row[of_query],
                row[of_response],
                "" if of_order is None else row[of_order],
            )


class _Import:
    """One import, which collects remarks."""

    def __init__(self, table: ExportedTable, words: dict[str, str], *, ignore_case: bool) -> None:
        self._table = table
        self._words = words
        self._ignore_case = ignore_case
        self._remarks = list(table.remarks)

    def run(self, rows: list[_Row], covariates: Sequence[str], *, ordered: bool) -> ImportedAnswers:
        blank = sum(not row for row in self._table.rows)
        if blank:
            self._remarks.append(f"{format_count(blank, 'empty row')} left out")
        rows = self._without_names(rows)
        if not rows:
            raise InvalidInput("there are no rows with a subject and a query")
        self._unify_subjects(rows)
        keys = self._unify_queries(rows)
        answered: dict[str, list[_Row]] = {key: [] for key in keys}
        for row in rows:
            row.outcome = self._outcome(row.response)
            if row.outcome == ANSWERED:
                answered[row.query].append(row)
        bits = {key: n for key, of_key in answered.items() if (n := _count_bits(of_key))}
        labels = {
            key: self._remark_on_bits(key, bits[key])
            if key in bits
            else self._unify_responses(key, of_key)
            for key, of_key in answered.items()
        }
        empty = sum(not row.response for row in rows)
        if empty:
            self._remarks.append(f"{format_count(empty, 'empty cell')} counted as missing")
        self._remark_on_repeats(rows)
        table = _columns(_sort_rows(rows, ordered=ordered))
        people = self._covariates(rows, covariates)
        return ImportedAnswers(table, people, keys, labels, bits, tuple(self._remarks))

    def _outcome(self, response: str) -> str:
        if not response:
            return MISSING
        return self._words.get(_fold_case(response), ANSWERED)

    def _without_names(self, rows: list[_Row]) -> list[_Row]:
        """Leave out rows without a subject or a query."""
        for name in ("subject", "query"):
            without = [row.row_number for row in rows if not getattr(row, name)]
            if without:
                self._remarks.append(f"{_list_rows(without)}: left out, because there is no {name}")
        return [row for row in rows if row.subject and row.query]

    def _unify_subjects(self, rows: list[_Row]) -> None:
        """Write every subject in one way: 3.0 is 3."""
        as_written = list(dict.fromkeys(row.subject for row in rows))
        point = "[.,]" if self._table.decimal_commas else r"\."
        spelled = {
            name: re.sub(rf"^(\d+){point}0+$", r"\1", _normalize(name)) for name in as_written
        }
        whole = sum(spelled[name] != _normalize(name) for name in as_written)
        if whole:
            example = next(name for name in as_written if spelled[name] != _normalize(name))
            self._remarks.append(
                f"{format_count(whole, 'subject')} written as decimals became whole numbers, such "
                f"as {example!r}"
            )
        groups: dict[str, set[str]] = {}
        for name in spelled.values():
            groups.setdefault(name.casefold(), set()).add(name)
        alike = [sorted(names) for names in groups.values() if len(names) > 1]
        if alike:
            example = " and ".join(map(repr, alike[0]))
            names = format_count(sum(map(len, alike)), "name")
            if self._ignore_case:
                spelled = {name: min(groups[text.casefold()]) for name, text in spelled.items()}
                remark = f"taken for {format_count(len(alike), 'subject')}"
            else:
                remark = "taken for different subjects; pass --ignore-case if they are the same"
            self._remarks.append(f"{names} that differ only in case, such as {example}: {remark}")
        for row in rows:
            row.subject = spelled[row.subject]

    def _unify_queries(self, rows: list[_Row]) -> dict[str, str]:
        """Give every query an id, and return what the table calls it."""
        spellings = Counter(_normalize(row.query) for row in rows)
        names: dict[str, Counter[str]] = {}
        for name, count in spellings.items():
            names.setdefault(_fold_case(name), Counter())[name] += count
        keys: dict[str, str] = {}
        key_of: dict[str, str] = {}
        for folded, counts in names.items():
            name = counts.most_common(1)[0][0]
            key = _query_id(folded)
            if key in keys:
                other = keys[key]
                raise InvalidInput(f"the queries {other!r} and {name!r} differ only in marks")
            keys[key], key_of[folded] = name, key
            if len(counts) > 1:
                self._remarks.append(f"query {key!r} is written as {_list_counts(counts)}")
            elif name != key:
                self._remarks.append(f"query {key!r} is named {name!r} in the table")
        for row in rows:
            row.query = key_of[_fold_case(row.query)]
        return keys

    def _remark_on_bits(self, key: str, count: int) -> list[str | int | Decimal]:
        self._remarks.append(
            f"responses to {key!r} are strings of {count} bits, taken for unary encoding: complete "
            "its variant, and its values in the order of the bits"
        )
        return []

    def _unify_responses(self, key: str, rows: list[_Row]) -> list[str | int | Decimal]:
        """Write every response to a query in one way, and return the different ones."""
        spellings = Counter(_normalize(row.response) for row in rows)
        written, numbers = self._unify_spellings(f"responses to {key!r}", spellings)
        labels = {written[name] for name in spellings.keys() - numbers.keys()}
        values: list[Any] = [*sorted(set(numbers.values())), *sorted(labels, key=str.casefold)]
        for row in rows:
            row.response = written[_normalize(row.response)]
        suspects = [value for value in written.values() if _fold_case(value) in _NO_RESPONSES]
        for suspect in dict.fromkeys(suspects):
            count = sum(row.response == suspect for row in rows)
            self._remarks.append(
                f"{suspect!r} is taken as a response to {key!r} in {format_count(count, 'row')}; "
                f"pass --missing {suspect!r} if it means that there is none"
            )
        noisy = any(isinstance(value, Decimal) for value in values)
        if numbers and len(values) > (5 if noisy else _MOST_LABELS):
            self._remarks.append(
                f"{key!r} has {len(values):,} different responses, from {values[0]} to "
                f"{values[-1]}: complete its domain and its mechanism in the file of queries"
            )
            return []
        return values

    def _unify_spellings(
        self, column: str, spellings: Counter[str]
    ) -> tuple[dict[str, str], dict[str, int | Decimal]]:
        """Return how each spelling is written, and which are numbers."""
        parsed = {name: self._parse_number(name) for name in spellings}
        numbers = {name: number for name, number in parsed.items() if number is not None}
        if not all(_fold_case(name) in _NO_RESPONSES for name in spellings.keys() - numbers.keys()):
            numbers = {}
        groups: dict[str, Counter[str]] = {}
        for name, count in spellings.items():
            if name not in numbers:
                groups.setdefault(name.casefold(), Counter())[name] += count
        spelled = {name: counts.most_common(1)[0][0] for name, counts in groups.items()}
        for counts in groups.values():
            if len(counts) > 1:
                self._remarks.append(f"{column} are written as {_list_counts(counts)}")
        written = {
            name: str(numbers[name]) if name in numbers else spelled[name.casefold()]
            for name in spellings
        }
        changed = [name for name in numbers if written[name] != name]
        if changed:
            self._remarks.append(
                f"numbers in {column} are written in one way: {changed[0]!r} as "
                f"{written[changed[0]]}"
            )
        return written, numbers

    def _covariates(self, rows: list[_Row], names: Sequence[str]) -> dict[str, list[str]]:
        """Return the columns of a table with a row per subject; no entry is an empty string."""
        subject_of = {row.row_number: row.subject for row in rows}
        subjects = list(dict.fromkeys(subject_of.values()))
        table = {"subject": subjects}
        for name in names:
            index = column_index(self._table.header, name)
            cells = {number: self._table.rows[number - 1][index] for number in subject_of}
            cells = {
                n: _normalize(cell) for n, cell in cells.items() if self._outcome(cell) == ANSWERED
            }
            key = _query_id(_fold_case(name))
            if key in table:
                raise InvalidInput(f"two columns are called {key!r}", "covariates")
            written, _ = self._unify_spellings(f"entries of {key!r}", Counter(cells.values()))
            entries: dict[str, str] = {}
            for number, cell in cells.items():
                entry = entries.setdefault(subject_of[number], written[cell])
                if entry != written[cell]:
                    reason = f"{key} is {cell!r}, and {entry!r} in an earlier row of this subject"
                    raise InvalidInput(reason, f"row {number} below the header")
            table[key] = [entries.get(subject, "") for subject in subjects]
        return table

    def _parse_number(self, name: str) -> int | Decimal | None:
        """Return the number that a response is, or None."""
        if self._table.decimal_commas:
            name = re.sub(r"^([-+]?\d+),(\d+)$", r"\1.\2", name)
        if not _DECIMAL.fullmatch(name):
            return None
        number = Decimal(name)
        return int(number) if number == number.to_integral_value() else number.normalize()

    def _remark_on_repeats(self, rows: list[_Row]) -> None:
        seen: set[tuple[str, ...]] = set()
        repeats = []
        for row in rows:
            fields = (row.subject, row.query, row.response, row.order)
            if row.response and fields in seen:
                repeats.append(row.row_number)
            seen.add(fields)
        if repeats:
            self._remarks.append(
                f"{_list_rows(repeats)}: equal to an earlier row, and counted as further answers; "
                "delete them if they are copies"
            )


def _sort_rows(rows: list[_Row], *, ordered: bool) -> list[_Row]:
    """Bring the rows of each subject together, in the order of its exchanges."""
    first_rows: dict[str, int] = {}
    for row in rows:
        first_rows.setdefault(row.subject, len(first_rows))
    if not ordered:
        return sorted(rows, key=lambda row: first_rows[row.subject])
    exchanges = [row for row in rows if row.is_exchange or row.order]
    for row in exchanges:
        if not row.order:
            raise InvalidInput("has no order", f"row {row.row_number} below the header")
    keys = _order_keys(exchanges)
    # A query that was not asked has no number; it comes last if nothing says when.
    last = (1, 0)
    return sorted(
        rows,
        key=lambda row: (first_rows[row.subject], (0, keys[row.order]) if row.order else last),
    )


def _count_bits(rows: list[_Row]) -> int:
    """Return the length of responses if they are strings of bits, which numbers are not; else 0."""
    responses = {_normalize(row.response) for row in rows}
    lengths = set(map(len, responses))
    is_bits = len(lengths) == 1 and all(set(response) <= {"0", "1"} for response in responses)
    zero_first = any(len(response) > 1 and response[0] == "0" for response in responses)
    return lengths.pop() if is_bits and zero_first else 0


def _columns(rows: list[_Row]) -> dict[str, list[Any]]:
    """Return the columns of a table of answers; queries that were not asked have no number."""
    numbers: Counter[str] = Counter()
    order: list[Any] = []
    for row in rows:
        numbers[row.subject] += row.is_exchange
        order.append(numbers[row.subject] if row.is_exchange else "")
    table = {
        "subject": [row.subject for row in rows],
        "order": order,
        "query": [row.query for row in rows],
        "response": [row.response if row.outcome == ANSWERED else "" for row in rows],
    }
    if any(row.outcome in UNANSWERED for row in rows):
        table[OUTCOME] = [row.outcome for row in rows]
    return table


def _order_keys(rows: list[_Row]) -> dict[str, Any]:
    """Return what the entries of the order are compared by, in the first way that reads all."""
    entries = list(dict.fromkeys(row.order for row in rows))
    for read in (_numeric_keys, _date_keys, _numbered_keys):
        keys = read(entries)
        if keys is not None:
            return keys
    odd = next((entry for entry in entries if not _is_order(entry)), None)
    expected = "expected numbers, dates such as 2026-03-04, or texts such as Week 3"
    if odd is None:
        example = format_list([repr(entry) for entry in entries])
        raise InvalidInput(f"{example} cannot be ordered; {expected}, all alike")
    number = next(row.row_number for row in rows if row.order == odd)
    raise InvalidInput(f"{odd!r} cannot be ordered; {expected}", f"row {number} below the header")


def _is_order(entry: str) -> bool:
    """Return whether an entry can be ordered in some way."""
    return bool(_date_readings([entry]) or _numeric_keys([entry]) or _numbered_keys([entry]))


def _numeric_keys(entries: list[str]) -> dict[str, Any] | None:
    if not all(map(_DECIMAL.fullmatch, entries)):
        return None
    return {entry: Decimal(entry) for entry in entries}


def _numbered_keys(entries: list[str]) -> dict[str, Any] | None:
    matches = {entry: _NUMBERED.fullmatch(entry) for entry in entries}
    parts = {(_fold_case(match[1]), _fold_case(match[3])) for match in matches.values() if match}
    if not all(matches.values()) or len(parts) != 1:
        return None
    return {entry: int(match[2]) for entry, match in matches.items() if match}


def _date_keys(entries: list[str]) -> dict[str, Any] | None:
    """Read dates of one format; refuse days and months that could be swapped."""
    readings = _date_readings(entries)
    for keys in readings[1:]:
        swapped = [entry for entry in entries if keys[entry] != readings[0][entry]]
        if swapped:
            first, second = (
                f"{by[swapped[0]].day} {by[swapped[0]]:%B}" for by in (readings[0], keys)
            )
            raise InvalidInput(
                f"{swapped[0]!r} could be {first} or {second}; write dates as 2026-03-04"
            )
    return readings[0] if readings else None


def _date_readings(entries: list[str]) -> list[dict[str, datetime]]:
    return [
        keys
        for read in (datetime.fromisoformat, *map(_date_reader, _DATES))
        if (keys := _read_all(entries, read)) is not None
    ]


_DATES = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y")


def _date_reader(form: str) -> Callable[[str], datetime]:
    def read(entry: str) -> datetime:
        day, _, hour = entry.partition(" ")
        midnight = datetime.strptime(day, form)
        if not hour:
            return midnight
        return datetime.combine(midnight, datetime.fromisoformat(f"2000-01-01 {hour}").time())

    return read


def _read_all(entries: list[str], read: Callable[[str], datetime]) -> dict[str, datetime] | None:
    try:
        keys = {entry: read(entry) for entry in entries}
    except ValueError:
        return None
    zoned = {key.tzinfo is not None for key in keys.values()}
    return keys if len(zoned) == 1 else None


def _normalize(name: str) -> str:
    """Return a text in one of the ways in which Unicode writes it, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def _fold_case(name: str) -> str:
    return _normalize(name).casefold()


def _query_id(folded: str) -> str:
    return re.sub(r"\W+", "_", folded).strip("_") or "query"


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name!r} ({count:,})" for name, count in counts.most_common())


def _list_rows(rows: Sequence[int]) -> str:
    numbers = list(dict.fromkeys(rows))
    shown = ", ".join(map(str, numbers[:5]))
    more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
    return f"row{'s'[: len(numbers) > 1]} {shown}{more} below the header"

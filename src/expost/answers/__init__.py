"""The answers of many subjects, as a table."""

from expost.answers._answers import Answers, Subject, no_such_query
from expost.answers._attempts import HIDDEN, REFUSED, Attempt, View, views_of
from expost.answers._columns import (
    COLUMNS,
    distinct,
    listed,
    read_each,
    response_position,
    written,
)
from expost.answers._queries_file import queries_from_json, queries_to_json

__all__ = [
    "COLUMNS",
    "HIDDEN",
    "REFUSED",
    "Answers",
    "Attempt",
    "Subject",
    "View",
    "distinct",
    "listed",
    "no_such_query",
    "queries_from_json",
    "queries_to_json",
    "read_each",
    "response_position",
    "views_of",
    "written",
]

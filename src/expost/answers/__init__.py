"""The answers of many subjects, as a table."""

from expost.answers.answers import Answers, Subject, no_such_query
from expost.answers.attempts import Attempt, View, views_of
from expost.answers.columns import COLUMNS
from expost.answers.queries_file import queries_from_json, queries_to_json
from expost.answers.responses import response_position, written

__all__ = [
    "COLUMNS",
    "Answers",
    "Attempt",
    "Subject",
    "View",
    "no_such_query",
    "queries_from_json",
    "queries_to_json",
    "response_position",
    "views_of",
    "written",
]

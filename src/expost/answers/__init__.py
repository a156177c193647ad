"""The answers of many subjects, as a table."""

from expost.answers._answers import Answers, Subject, no_such_query
from expost.answers._attempts import Attempt, PartialView, views_of
from expost.answers._columns import (
    COLUMNS,
    column_values,
    encode_column,
    encode_parsed_column,
    parse_spelling,
    response_position,
)
from expost.answers._covariates import Covariates, read_covariates
from expost.answers._import import ImportedAnswers, import_answers
from expost.answers._outcomes import (
    ANSWERED,
    DECLINED,
    HIDDEN,
    MISSING,
    OUTCOME,
    REFUSED,
    UNANSWERED,
)
from expost.answers._queries_file import UNKNOWN, queries_from_json, queries_to_json

__all__ = [
    "ANSWERED",
    "COLUMNS",
    "DECLINED",
    "HIDDEN",
    "MISSING",
    "OUTCOME",
    "REFUSED",
    "UNANSWERED",
    "UNKNOWN",
    "Answers",
    "Attempt",
    "Covariates",
    "ImportedAnswers",
    "PartialView",
    "Subject",
    "column_values",
    "encode_column",
    "encode_parsed_column",
    "import_answers",
    "no_such_query",
    "parse_spelling",
    "queries_from_json",
    "queries_to_json",
    "read_covariates",
    "response_position",
    "views_of",
]

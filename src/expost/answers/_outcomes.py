"""The outcomes of asking a subject, as a table of answers has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers._columns import encode_parsed_column
from expost.errors import InvalidInput, did_you_mean

__all__ = [
    "ANSWERED",
    "DECLINED",
    "HIDDEN",
    "MISSING",
    "OUTCOME",
    "REFUSED",
    "UNANSWERED",
    "read_outcome",
    "read_outcomes",
]

#: The name of the column.
OUTCOME = "outcome"

ANSWERED = "answered"
#: The filter refused the query: nothing was drawn, and earlier responses alone decided it.
REFUSED = "refused"
#: The subject declined before anything was drawn. That may depend on the value.
DECLINED = "declined"
#: No response is there, and one may have been given.
MISSING = "missing"
#: A response was given to another analyst.
HIDDEN = "hidden"
UNANSWERED = (REFUSED, DECLINED, MISSING)


def read_outcome(text: Any, expected: tuple[str, ...] = (ANSWERED, *UNANSWERED)) -> str:
    """Return an outcome of a table."""
    if text not in expected:
        names = ", ".join(expected)
        raise InvalidInput(f"got {text!r}; expected one of {names}{did_you_mean(text, expected)}")
    return str(text)


def read_outcomes(column: Any, responses: Any) -> NDArray[np.str_]:
    """Return the outcome of each row; only answered rows may have a response."""
    codes, names = encode_parsed_column(column, read_outcome, OUTCOME)
    outcomes = np.array(names)[codes]
    for row in np.flatnonzero(outcomes != ANSWERED).tolist():
        response = responses[row]
        if response not in (None, "") and response == response:  # NaN differs from itself
            reason = f"got {response!r}; expected none, because the outcome is {outcomes[row]}"
            raise InvalidInput(reason, f"row {row + 1}: response")
    return outcomes

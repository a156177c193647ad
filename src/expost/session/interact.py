"""An adaptive analyst asks a session until it halts (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from expost.errors import BudgetExceeded, expect
from expost.filters.decision import Decision
from expost.queries import Query
from expost.session.session import Session
from expost.transcript import Transcript

__all__ = ["HALT", "Analyst", "Halt", "interact"]


class Halt(Enum):
    """What an analyst returns to end an interaction."""

    HALT = "halt"


HALT: Final = Halt.HALT

Analyst = Callable[[Transcript, Callable[[Query], Decision]], Query | Halt]
"""Takes the transcript and a dry run of the filter, and returns the next query or HALT."""


def interact(analyst: Analyst, session: Session) -> Transcript:
    """Let an adaptive analyst ask until it halts (paper, Algorithm 1).

    A refused query changes nothing, and the analyst may try another one. Asking it again before
    anything else was answered ends the interaction, for it would be refused for ever.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> session = xp.Session(xp.FiniteSet(["no", "yes"]), "no", filter=xp.BasicFilter(epsilon=3))
    >>> len(interact(lambda transcript, decide: query if decide(query) else HALT, session))
    3
    """
    refused: list[Query] = []
    while True:
        query = analyst(session.transcript, session.decide)
        if query is HALT:
            return session.transcript
        expect(query, Query, "a query or HALT, from the analyst")
        assert isinstance(query, Query)
        if query in refused:
            return session.transcript
        try:
            session.ask(query)
            refused = []
        except BudgetExceeded:
            refused.append(query)

"""An adaptive analyst and a session, until one of them has enough (paper, Algorithm 1)."""

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
    """What an analyst says to end an interaction."""

    HALT = "halt"


HALT: Final = Halt.HALT

Analyst = Callable[[Transcript, Callable[[Query], Decision]], Query | Halt]
"""Sees the transcript and a dry run of the filter, and gives the next query or HALT."""


def interact(analyst: Analyst, session: Session) -> Transcript:
    """Let an adaptive analyst ask until it halts (paper, Algorithm 1).

    A refused query changes nothing and the analyst has another turn. Giving it once more before
    anything was answered ends the interaction: it would be refused for ever.
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

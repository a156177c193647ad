"""Word the outcome of a decision, and whether a budget was respected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost._format import format_number
from expost.solver import Effort

if TYPE_CHECKING:
    from expost.filters._decision import Decision

__all__ = [
    "breach_reason",
    "outcome_text",
    "refusal_message",
    "respected_cell",
    "respected_text",
    "undecided_text",
    "verdict_text",
]


def outcome_text(*, accepted: bool, undecided: bool) -> str:
    """Name the outcome of a decision, in one word."""
    return "accepted" if accepted else "undecided" if undecided else "refused"


def undecided_text(effort: Effort) -> str:
    """Say why a search on a box left a query undecided, and which option gives it more nodes."""
    if effort.nodes is None:
        return "not decided within the default limit; try --nodes 100000"
    return f"not decided within {effort.nodes:,} nodes (--nodes)"


def refusal_message(decision: Decision) -> str:
    """Say why a query was refused, with the numbers, and what would be accepted."""
    budget, limit = decision.budget, decision.limit
    if budget.ratio != 1:
        limit = f"{format_number(budget.nearest, 10)}, which is {limit}"
    # A search for a message that no one may read is not worth it.
    before = "" if decision.searched else f"is {decision.loss.shown(10)} and "
    by = ""
    if decision.by_filter:
        filters = [one.filter for one in decision.by_filter]
        number = 1 + next(n for n, one in enumerate(filters) if one is decision.filter)
        by = f" by filter {number} of {len(filters)} ({decision.filter.kind})"
    message = f"query refused{by}: {decision.label} {before}{_worst_text(decision)}"
    if decision.undecided:
        message += (
            f", and the budget is {limit}. The search stopped at its limit of nodes; "
            "Effort(nodes=…) raises it."
        )
    elif decision.loss_at_worst.upper <= budget.enclosure.lower:
        message += f". That is within the budget of {limit}, but the filter allows less now."
    else:
        message += f", over the budget of {limit}."
    if not decision.searched and decision.fits is not None:
        fits = f"The same query with epsilon at most {decision.fits}"
        if decision.cap is not None:
            fits = f"A saturating query with a cap of {decision.fits}, made now,"
        message += f" {fits} would be accepted."
    return message


def _worst_text(decision: Decision) -> str:
    """Say what a query could lead to at worst; some responses have no bound."""
    if decision.unbounded:
        return "a response that is impossible for some value would reveal without bound"
    return f"could reach {decision.loss_at_worst.shown(10)}"


def breach_reason(first_refused: int | None) -> str:
    """Say why a budget was not respected."""
    if first_refused is None:
        return "the loss was above it at some point"
    return f"the filter refuses exchange {first_refused:,}"


def respected_text(respected: bool | None, first_refused: int | None) -> str:
    """Say whether a budget was respected at every exchange, or why not."""
    if respected is None:
        return "not decided; raise --nodes to decide it"
    return "yes, at every exchange" if respected else f"no: {breach_reason(first_refused)}"


def respected_cell(respected: bool | None, first_refused: int | None) -> str:
    """Say for a cell of a table whether a budget was respected, or from which exchange on not."""
    if respected is None:
        return "undecided"
    since = "" if first_refused is None else f", from exchange {first_refused:,}"
    return "yes" if respected else f"no{since}"


def verdict_text(respected: bool | None, first_refused: int | None) -> str:
    """Say in a sentence about a subject whether its budget was respected."""
    if respected is None:
        return "undecided"
    since = "" if first_refused is None else f" from exchange {first_refused:,}"
    return "respected" if respected else f"not respected{since}"

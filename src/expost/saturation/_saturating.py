"""Saturating queries: after every response the realized loss is at a cap.

Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from expost._format import shorten
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter
from expost.filters._account import account_of
from expost.filters._levels import SATURATING_UNDER_SEVERAL
from expost.loss import Odometer
from expost.numbers import ExactLike, Nats, decimal_text, positive, scaled_exp
from expost.queries import LARGEST_EPSILON, Channel, Query
from expost.saturation._channel import SaturatingChannel, WeightTable, saturating_channel
from expost.saturation._question import AnswerPartition, read_question
from expost.saturation._unit_state import UnitState, level_of, unit_asked, unit_state
from expost.saturation._value_classes import ClassKinds, value_classes

__all__ = ["TableCache", "ratio_at_cap", "read_cap", "saturating", "saturating_query"]


_PRECISION = 40
# An exact table whose common denominator has more bits is rounded.
_MOST_BITS = 1024
_MARGIN = Fraction(1, 1 << 21)
_LEAST = Fraction(1, 10**4)


def saturating(odometer: Any, question: Any, *, cap: ExactLike, seed: str | None = None) -> Query:
    """Return the query with the most information about a question that ends every loss at the cap.

    The realized loss after it is between ``cap - 2**-20`` and ``cap``, whatever the response. So
    the budget up to the cap is fully utilized (paper, section 3.3). The query depends on what was
    answered so far. It is an ordinary channel, which a filter decides as any other. Responses are
    numbers; for a yes-or-no question higher ones are more likely for yes. Estimate from the answers
    by maximum likelihood.

    If the filter protects a level, the loss about the question's group or step ends at the cap. For
    windows of several steps, the loss about the largest window does.

    Args:
        odometer: An odometer, a transcript or a session, on a finite set or attributes.
        question: A statement such as ``'age >= 60'``, a collection of values, or a name: of one
            attribute or coordinate, or ``"value"`` for the value itself.
        cap: The loss after the answer. At a cap that equals the budget this is the last query, so
            raise the cap in steps (:mod:`expost.saturation`).
        seed: Hexadecimal digits that order the answers, if there are more than two. Give each
            subject another seed.

    Returns:
        A channel on the domain.

    Raises:
        InvalidInput: If the loss so far leaves no room below the cap, the cap is above the budget,
            the answers rule some values out, or there are more than 256 classes of values. At a
            level of protection: if the question touches several groups or steps, or earlier
            queries tie its own to others.

    >>> import expost as xp
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(range(10))))
    >>> query = xp.saturating(start, "value >= 7", cap="0.5")
    >>> query
    Channel(10 values in 2 classes, 2 responses)
    >>> [round(start.add(query, y).loss.upper, 6) for y in query.responses]
    [0.5, 0.5]
    """
    account = account_of(odometer)
    expect(account, Odometer, "an odometer, a transcript or a session")
    assert isinstance(account, Odometer)
    domain, filter_ = account.domain, account.transcript.filter
    limit = read_cap(cap, filter_, account)
    partition = read_question(domain, question, seed)
    level = level_of(filter_)
    unit = unit_asked(level, domain, partition)
    state = unit_state(domain, level, unit, list(account.log_likelihood.tally))
    if state is None:
        raise InvalidInput("the answers so far rule some values out, so the loss has no bound")
    query = saturating_query(domain, state, partition, limit)
    if query is None:
        if unit is None:
            reason = f"the loss so far is {account.loss.shown(10)}, so nothing can be asked"
        else:
            reason = f"the responses so far leave nothing to ask about {unit.label}"
        fits = "a larger cap leaves room" if filter_ is None else _fits(filter_, account)
        raise InvalidInput(f"{reason} that ends at {decimal_text(limit)}; {fits}", "cap")
    return query


def _fits(filter_: Filter, account: Odometer | None) -> str:
    """Suggest a cap that would work."""
    largest_cap = None if account is None else filter_.largest_cap(account)
    if largest_cap is not None:
        return f"a cap of {largest_cap} fits"
    if (
        account is not None
        and filter_.by_loss
        and not filter_.is_at_level
        and filter_.remaining(account) < 2 * _MARGIN
    ):
        return f"nothing is left of the budget of {filter_.limit}"
    return f"a cap is at most {filter_.limit}"


def read_cap(cap: ExactLike, filter_: Filter | None, account: Odometer | None = None) -> Fraction:
    """Read a cap that is not above the budget, for one subject or for many."""
    with at("cap"):
        limit = positive(cap, at_most=LARGEST_EPSILON)
        if limit < _LEAST:
            raise InvalidInput(f"must be at least {decimal_text(_LEAST)}, not {shorten(str(cap))}")
        if filter_ is not None and len(filter_.members) > 1:
            raise InvalidInput(SATURATING_UNDER_SEVERAL)
        if filter_ is not None and Nats(limit) > filter_.budget:
            above = f"{decimal_text(limit)} is above the budget of {filter_.limit}"
            raise InvalidInput(f"{above}; {_fits(filter_, account)}")
    return limit


#: Tables by kinds of classes and cap, which few subjects differ in.
TableCache = dict[tuple[object, ...], WeightTable | None]


def saturating_query(
    domain: Domain,
    state: UnitState,
    partition: AnswerPartition,
    cap: Fraction,
    tables: TableCache | None = None,
) -> Query | None:
    """Make the saturating query after some answers; None if the loss so far leaves no room.

    ``tables`` caches tables for callers that make many queries.
    """
    cap -= state.elsewhere
    if cap < _LEAST:
        return None
    classes = value_classes(domain, state.likelihoods, partition)
    kinds, order = classes.sorted_kinds
    tables, key = {} if tables is None else tables, (kinds, classes.exact, cap)
    if key not in tables:
        tables[key] = _exact_table(kinds, classes.exact, cap) or _rounded_table(kinds, cap)
    table = tables[key]
    if table is None:
        return None
    rows = [table.rows[index][::-1] for index in order]  # from no to yes
    class_of = None if classes.all_distinct else classes.class_of
    query = Channel.of_weights(rows, table.total, class_of, cap=cap, question=partition.text)
    return classes.lift(query)


def _exact_table(kinds: ClassKinds, exact: bool, limit: Fraction) -> WeightTable | None:
    """Compute the table with every loss exactly log E, E = n/2^40 below e^cap; None if long."""
    if not exact:
        return None
    query = _channel(kinds, limit)
    arcs = query.best_exactly(_MOST_BITS) if query.is_below_cap else None
    return None if arcs is None else arcs.table(query.ratios, _MOST_BITS)


def _rounded_table(kinds: ClassKinds, limit: Fraction) -> WeightTable | None:
    """Compute a table after any transcript: every loss is within 2^-28 of cap - 2^-21."""
    query = _channel(kinds, limit - _MARGIN)
    if not query.is_below_cap:
        return None
    bits = 30 + math.ceil(limit * Fraction("1.4427"))
    table = query.best(1 << bits).table(query.ratios)
    assert table is not None, "there is no limit of bits"
    return table.rounded(2 * bits + 4)


def _channel(kinds: ClassKinds, limit: Fraction) -> SaturatingChannel:
    answers, lows, highs, sizes = zip(*kinds, strict=True)
    return saturating_channel(lows, highs, sizes, answers, ratio_at_cap(limit))


def ratio_at_cap(limit: Fraction) -> Fraction:
    """Compute E = n/2^40 just below e^limit: the ratio of likelihoods at a cap."""
    return Fraction(scaled_exp(limit, _PRECISION), 1 << _PRECISION)

"""Saturating queries: after every response the realized loss is at a cap.

Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter
from expost.filters._account import account_of
from expost.loss import Odometer
from expost.numbers import ExactLike, Nats, decimal_text, positive, scaled_exp
from expost.queries import Channel, Query
from expost.queries.query import LARGEST_EPSILON
from expost.saturation.arcs import Table
from expost.saturation.classes import Kinds, classes_of
from expost.saturation.known import Known, known_of
from expost.saturation.questions import Question, read_question
from expost.saturation.tilted import Tilted, tilted

__all__ = ["Tables", "ratio_at", "read_cap", "saturated", "saturating"]

_PRECISION = 40
# An exact table whose common denominator has more bits is rounded.
_MOST_BITS = 1024
_MARGIN = Fraction(1, 1 << 21)
_LEAST = Fraction(1, 10**4)


def saturating(odometer: Any, question: Any, *, cap: ExactLike, seed: str | None = None) -> Query:
    """The query that tells most about a question and ends every loss at the cap.

    The realized loss after it is between ``cap - 2**-20`` and ``cap``, whatever the response. So
    the budget up to the cap is fully utilized (paper, section 3.3). The query depends on what was
    answered so far: ``odometer`` is an odometer, a transcript or a session. It is an ordinary
    channel, which a filter decides as any other.

    ``question`` is a statement such as ``'age >= 60'``, a collection of values, or a name: of one
    attribute or coordinate, or ``"value"`` for the value itself. A question with more than two
    answers needs a ``seed`` in hexadecimal digits, which orders them; give each subject another
    one. Responses are numbers. Of a yes-or-no question, the higher they are, the more they speak
    for yes. At a cap that equals the budget it is the last query, so raise the cap in steps
    (:mod:`expost.saturation`). Estimate from the answers by maximum likelihood. On finite sets and
    attributes.

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
    domain, guard = account.domain, account.transcript.filter
    limit = read_cap(cap, guard, account)
    asked = read_question(domain, question, seed)
    known = known_of(domain, list(account.log_likelihood.tally))
    if known is None:
        raise InvalidInput("the answers so far rule some values out, so the loss has no bound")
    query = saturated(domain, known, asked, limit)
    if query is None:
        loss = account.loss.shown(10)
        what = f"the loss so far is {loss}, so nothing can be asked that ends at"
        fits = "a larger cap leaves room" if guard is None else _fits(guard, account)
        raise InvalidInput(f"{what} {decimal_text(limit)}; {fits}", "cap")
    return query


def _fits(guard: Filter, account: Odometer | None) -> str:
    """Which cap would work, for people."""
    fits = None if account is None else guard.largest_cap(account)
    if fits is not None:
        return f"a cap of {fits} fits"
    if account is not None and guard.by_loss and guard.remaining(account) < 2 * _MARGIN:
        return f"nothing is left of the budget of {guard.limit}"
    return f"a cap is at most {guard.limit}"


def read_cap(cap: ExactLike, guard: Filter | None, account: Odometer | None = None) -> Fraction:
    """A cap as a person writes it, which is not above the budget, for one subject or for many."""
    with at("cap"):
        limit = positive(cap, at_most=LARGEST_EPSILON)
        if limit < _LEAST:
            raise InvalidInput(f"must be at least {decimal_text(_LEAST)}")
        if guard is not None and Nats(limit) > guard.budget:
            above = f"{decimal_text(limit)} is above the budget of {guard.limit}"
            raise InvalidInput(f"{above}; {_fits(guard, account)}")
    return limit


Tables = dict[tuple[object, ...], Table | None]
"""Tables by what they depend on: kinds of classes, and the cap. Few subjects differ in that."""


def saturated(
    domain: Domain, known: Known, question: Question, cap: Fraction, tables: Tables | None = None
) -> Query | None:
    """The saturating query after what is known; None if the loss so far leaves no room.

    ``tables`` are those that were made so far, for whoever makes many queries.
    """
    classes = classes_of(domain, known, question)
    kinds, order = classes.sorted
    tables, key = {} if tables is None else tables, (kinds, classes.exact, cap)
    if key not in tables:
        tables[key] = _exact_table(kinds, classes.exact, cap) or _rounded_table(kinds, cap)
    table = tables[key]
    if table is None:
        return None
    in_order = [table.rows[place][::-1] for place in order]  # from no to yes
    of = None if classes.all_apart else classes.of
    return classes.asked(Channel.of_weights(in_order, table.total, of, cap=cap))


def _exact_table(kinds: Kinds, exact: bool, limit: Fraction) -> Table | None:
    """The table with which every loss is exactly log E, E = n/2^40 just below e^cap; if short."""
    if not exact:
        return None
    query = _tilted(kinds, limit)
    arcs = query.best_exactly(_MOST_BITS) if query.has_room else None
    return None if arcs is None else arcs.table(query.ratios, _MOST_BITS)


def _rounded_table(kinds: Kinds, limit: Fraction) -> Table | None:
    """The table after any transcript: every loss is within 2^-28 of cap - 2^-21."""
    query = _tilted(kinds, limit - _MARGIN)
    if not query.has_room:
        return None
    bits = 30 + math.ceil(limit * Fraction("1.4427"))
    table = query.best(1 << bits).table(query.ratios)
    assert table is not None, "there is no limit of bits"
    return table.rounded(2 * bits + 4)


def _tilted(kinds: Kinds, limit: Fraction) -> Tilted:
    answers, lows, highs, sizes = zip(*kinds, strict=True)
    return tilted(lows, highs, sizes, answers, ratio_at(limit))


def ratio_at(limit: Fraction) -> Fraction:
    """E = n/2^40 just below e^limit: how far apart likelihoods are at a cap."""
    return Fraction(scaled_exp(limit, _PRECISION), 1 << _PRECISION)

"""Check the theorems on views in docs/theory/realized_loss.md by brute force, in rational numbers.

A query is a tuple of columns, one per response, with Pr(response | value) for each value. A history
is a tuple of (query, response). Nothing of the package is used: this checks the mathematics.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction

import pytest

Channel = tuple[tuple[Fraction, ...], ...]
History = tuple[tuple[int, int], ...]
Filter = Callable[[History, int], bool]
Menu = tuple[Channel, ...]
Place = tuple[History, int]
"""Where a filter decides: a history and a query."""


def two(*ones: Fraction) -> Channel:
    """Pr(1 | value) for each value, and two responses."""
    return tuple(1 - p for p in ones), ones


def likelihood(menu: Menu, history: History) -> list[Fraction]:
    result = [Fraction(1)] * len(menu[0][0])
    for query, response in history:
        result = [p * q for p, q in zip(result, menu[query][response], strict=True)]
    return result


def ratio(menu: Menu, history: History) -> Fraction:
    """e^loss; all probabilities here are positive."""
    each = likelihood(menu, history)
    return max(each) / min(each)


def bayesian(menu: Menu, budget: Fraction) -> Filter:
    """Accepts what no response takes above e^budget."""

    def accepts(history: History, query: int) -> bool:
        responses = range(len(menu[query]))
        return all(ratio(menu, (*history, (query, y))) <= budget for y in responses)

    return accepts


def outcomes(
    menu: Menu, accepts: Filter, next_query: Callable[[History], int | None], history: History = ()
) -> Iterator[History]:
    """All transcripts in which an interaction can end."""
    query = next_query(history)
    if query is None or not accepts(history, query):
        yield history
        return
    for response in range(len(menu[query])):
        yield from outcomes(menu, accepts, next_query, (*history, (query, response)))


# Three values; the two queries tell different pairs apart best.
MENU: Menu = (
    two(Fraction(2, 3), Fraction(1, 3), Fraction(1, 2)),
    two(Fraction(1, 2), Fraction(2, 3), Fraction(1, 3)),
)
NODES: list[History] = [(), *(((q, y),) for q in (0, 1) for y in (0, 1))]
"""What can have happened before a first and before a second question."""


def analysts() -> list[dict[History, int]]:
    """All that ask at most twice: which query after which history; where none is named, halt."""
    found: list[dict[History, int]] = [{}]
    for first in (0, 1):
        for after in itertools.product((None, 0, 1), repeat=2):
            seconds: dict[History, int] = {
                ((first, y),): q for y, q in enumerate(after) if q is not None
            }
            found.append({(): first, **seconds})
    return found


def reachable(menu: Menu, accepts: Filter) -> set[History]:
    found: set[History] = {()}
    for history in NODES:
        if history in found:
            found |= {(*history, (q, y)) for q in (0, 1) if accepts(history, q) for y in (0, 1)}
    return found


def test_a_filter_is_private_iff_every_reachable_transcript_is_within_its_budget() -> None:
    budget, places, everybody = Fraction(2), list(itertools.product(NODES, (0, 1))), analysts()
    ratios = {h: ratio(MENU, h) for h in reachable(MENU, lambda history, query: True)}
    best = bayesian(MENU, budget)
    allowed = {place for place in places if best(*place)}
    private = 0
    for bits in itertools.product((False, True), repeat=len(places)):
        accepted = {place for place, yes in zip(places, bits, strict=True) if yes}

        def accepts(history: History, query: int, accepted: set[Place] = accepted) -> bool:
            return (history, query) in accepted

        # The probability of an outcome is that of its responses: these analysts toss no coins.
        worst = max(ratios[end] for ask in everybody for end in outcomes(MENU, accepts, ask.get))
        seen = reachable(MENU, accepts)
        assert (worst <= budget) == all(ratios[history] <= budget for history in seen)
        if worst <= budget:
            private += 1
            assert {place for place in accepted if place[0] in seen} <= allowed
    # Not all of them are, and some that are accept less than the Bayesian one.
    assert 1 < private < 2 ** len(places)


@pytest.mark.parametrize("seed", range(30))
def test_no_view_tells_more_than_the_largest_loss_of_what_can_be_behind_it(seed: int) -> None:
    draw = random.Random(seed)
    values, budget = draw.choice((2, 3, 4)), Fraction(draw.choice((3, 4, 6)), draw.choice((1, 2)))
    menu = tuple(two(*(Fraction(draw.randint(2, 6), 8) for _ in range(values))) for _ in range(3))
    order = [draw.randrange(3) for _ in range(5)]
    ends = list(
        outcomes(
            menu,
            bayesian(menu, budget),
            lambda history: order[len(history)] if len(history) < len(order) else None,
        )
    )
    views: tuple[Callable[[History], Hashable], ...] = (
        lambda history: history,
        lambda history: history[:2],
        lambda history: history[1::2],
        len,
        lambda history: draw.randrange(3),
    )
    for view in views:
        groups: dict[Hashable, list[History]] = defaultdict(list)
        for end in ends:
            groups[view(end)].append(end)
        for behind in groups.values():
            columns = zip(*(likelihood(menu, end) for end in behind), strict=True)
            chances = [sum(column) for column in columns]
            told, most = max(chances) / min(chances), max(ratio(menu, end) for end in behind)
            assert told <= most <= budget
            if len(behind) == 1:
                assert told == most


def spread(answers: str) -> int:
    return answers.count("y") - answers.count("n")


def two_analysts(truth: Fraction) -> dict[str, tuple[Fraction, Fraction]]:
    """What B can see, and its probability if the value is yes and if it is no.

    A asks once and then B, up to three times; r marks a refusal. ``truth`` is the probability of a
    true answer, and the budget is that of two answers.
    """
    seen: dict[str, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))

    def go(hidden: str, answers: str, yes: Fraction, no: Fraction) -> None:
        refused = abs(spread(hidden + answers)) > 1
        if refused or len(answers) == 3:
            view = answers + ("r" if refused else "")
            seen[view] = seen[view][0] + yes, seen[view][1] + no
            return
        go(hidden, answers + "y", yes * truth, no * (1 - truth))
        go(hidden, answers + "n", yes * (1 - truth), no * truth)

    go("y", "", truth, 1 - truth)
    go("n", "", 1 - truth, truth)
    return dict(seen)


def test_the_product_over_what_one_analyst_sees_bounds_nothing() -> None:
    views = two_analysts(Fraction(3, 4))
    assert {view: chances for view, chances in views.items() if view[0] == "y"} == {
        "yr": (Fraction(9, 16), Fraction(1, 16)),
        "yyyr": (Fraction(27, 256), Fraction(3, 256)),
        "yyn": (Fraction(9, 256), Fraction(9, 256)),
        "yny": (Fraction(9, 256), Fraction(9, 256)),
        "ynnr": (Fraction(3, 256), Fraction(27, 256)),
    }
    assert [sum(column) for column in zip(*views.values(), strict=True)] == [1, 1]
    told = {view: yes / no for view, (yes, no) in views.items()}
    assert all(Fraction(1, 9) <= each <= 9 for each in told.values())
    # A factor of 3 for each answer that B sees: too little in one view, too much in the other.
    assert [(spread(view), told[view]) for view in ("yr", "yyyr")] == [
        (1, Fraction(9)),
        (3, Fraction(9)),
    ]


def test_a_refusal_alone_tells_less_than_the_budget_and_not_nothing() -> None:
    menu: Menu = (two(Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)),)
    budget = Fraction(8)
    accepts = bayesian(menu, budget)
    ends = outcomes(menu, accepts, lambda history: 0 if len(history) < 9 else None)
    refused = [likelihood(menu, end) for end in ends if not accepts(end, 0)]
    chances = [sum(column) for column in zip(*refused, strict=True)]
    assert chances == [Fraction(65, 81), Fraction(175, 256), Fraction(65, 81)]


def test_the_same_question_until_nothing_fits_tells_what_one_answer_at_the_budget_does() -> None:
    """Exhausted walks end at plus or minus the budget, so the guess is right with e^ε/(1 + e^ε)."""
    odds, steps = Fraction(3, 2), 4
    menu: Menu = (two(1 / (1 + odds), odds / (1 + odds)),)
    accepts = bayesian(menu, odds**steps)
    ends = outcomes(menu, accepts, lambda history: 0 if len(history) < 10 else None)
    exhausted = [end for end in ends if not accepts(end, 0)]
    assert {ratio(menu, end) for end in exhausted} == {odds**steps}
    for end in exhausted:
        low, high = likelihood(menu, end)
        assert max(low, high) / (low + high) == odds**steps / (1 + odds**steps)

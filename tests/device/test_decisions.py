"""Decisions of ``device.py``, against exact oracles."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from expost.device.device import (
    Account,
    Domain,
    Filter,
    Query,
    Scope,
    decide,
    is_within,
    parse,
)
from support.device_mutants import mutated
from support.level_decisions import draw_level_decision, refused_by_device
from support.oracles import at_most
from support.random_documents import as_text


def test_a_logarithm_is_compared_exactly_on_both_sides_of_zero() -> None:
    random = Random(1)
    for _ in range(2000):
        top, bottom = (random.getrandbits(random.randint(1, 60)) + 1 for _ in range(2))
        quotient = Fraction(top, bottom)
        logarithm = Fraction(top.bit_length() - bottom.bit_length()) * Fraction(69, 100)
        limit = logarithm + Fraction(random.randint(-200, 200), 100)
        assert is_within(top, bottom, limit) == at_most(quotient, epsilon=limit, limit=None)


def test_a_sum_of_epsilons_stays_within_a_ratio() -> None:
    # ln(32768/1023) is 3.4667; 3.49 is above it, by less than log 2 differs from 7/10.
    domain = Domain(parse('{"values": ["no", "yes"]}'))
    guard = Filter.read(parse('{"kind": "basic", "ratio": "32768/1023"}'), domain)
    account = Account(domain)
    for epsilon, accepted in [("3.46", True), ("3.467", False), ("3.49", False)]:
        tree = f'{{"kind": "randomized_response", "epsilon": "{epsilon}"}}'
        compiled = account.compiled(Query.read(parse(tree)))
        assert decide(guard, account, compiled) is accepted


class PairedAccount(Account):
    """Looks at two records at once even where each could be looked at alone."""

    def _can_list(self, scope: Scope) -> bool:
        return False


@pytest.mark.parametrize("block", range(10))
def test_decisions_by_levels_are_those_over_all_protected_pairs(block: int) -> None:
    accepted = 0
    for seed in range(100 * block, 100 * block + 100):
        case = draw_level_decision(Random(seed))
        refused = case.refusing
        assert refused_by_device(case) == refused, (seed, case)
        assert refused_by_device(case, PairedAccount) == refused, (seed, case)
        accepted += not refused
    assert 20 < accepted < 90


def test_an_attribute_that_is_tied_to_many_others_is_compared_exactly() -> None:
    """Each other attribute makes a response about both twice as likely, whatever its own value."""
    names = [f"b{k}" for k in range(20)]
    attributes = {name: ["no", "yes"] for name in ["a", *names]}
    domain = Domain(parse(as_text({"attributes": attributes})))
    account = Account(domain)
    rows = [["1/3", "2/3"], ["1/2", "1/2"], ["2/3", "1/3"], ["1/4", "3/4"]]
    channel = {"kind": "channel", "responses": [0, 1], "probabilities": rows}
    for name in names:
        query = Query.read(parse(as_text({**channel, "about": ["a", name]})))
        account.add(account.compiled(query), 0)
    # About a, with the other held at its better value: (2/3) / (1/3), or (1/2) / (1/4).
    odds = {
        "kind": "channel",
        "responses": [0, 1],
        "probabilities": [["1/4", "3/4"], ["3/4", "1/4"]],
    }
    following = account.compiled(Query.read(parse(as_text({**odds, "about": ["a"]}))))
    for ratio, accepted in [(3 * 2**20, True), (3 * 2**20 - 1, False)]:
        guard = {"kind": "bayesian", "ratio": str(ratio), "protects": {"attributes": 1}}
        assert decide(Filter.read(parse(as_text(guard)), domain), account, following) is accepted


MUTANTS = [
    # Constants are left out of a level of steps, or are in every window.
    ("return cls((constants,) if constants else (), width", "return cls((), width"),
    ("return cls((constants,) if constants else (), width, changing",
     "return cls((), width, changing | constants"),
    # Windows are too short or too long, or some are left out.
    ("range(k, k + self.width)", "range(k, k + self.width - 1)"),
    ("range(k, k + self.width)", "range(k, k + self.width + 1)"),
    ("for k in sorted(starts)]", "for k in sorted(starts)[:1]]"),
    ("for k in sorted(starts)]", "for k in sorted(starts)[-1:]]"),
    # Groups need not cover, and one of them is enough.
    ("return [Part(names) for names in self.groups] + windows",
     "return [Part(names) for names in self.groups][-1:] + windows"),
    # A query about two groups is charged to one.
    ("if part.touches(scope)]", "if part.has(scope[0])]"),
    ("*[compiled.charge] * touched", "*[compiled.charge] * part.has(compiled.scope[0])"),
    # What was known before a response is known after it.
    ("            self._losses.pop(part, None)\n", ""),
    ("            self._sums.pop(part, None)\n", ""),
    # One of all filters is enough.
    ("return not refusing(filter, account, compiled)",
     "return len(refusing(filter, account, compiled)) < len(filter.rules)"),
    # Records that differ in more than a part are compared.
    ("            yield highs, positions, lows, positions\n",
     "            yield highs, positions, [min(sides[1].values())] * len(lows), positions\n"),
    ("return tuple((\"twin\", *v) if part.has(v) else v for v in scope)",
     "return tuple((\"twin\", *v) for v in scope)"),
    # The query's own spread is that over all pairs.
    ("high, low = largest_quotient(pair for row in alone for pair in worst(*row))",
     "high, low = compiled.alone"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_decisions_by_levels_notice_every_mutant(old: str, new: str) -> None:
    module = mutated((old, new))

    class Paired(module.Account):  # type: ignore[misc, name-defined]
        def _can_list(self, scope: Scope) -> bool:
            return False

    kind = Paired if "twin" in old else module.Account
    for seed in range(1000):
        case = draw_level_decision(Random(seed))
        try:
            if refused_by_device(case, kind, module) != case.refusing:
                return
        except (AssertionError, LookupError, ValueError):
            return
    raise AssertionError("no case notices it")

"""Many subjects at once, in memory: simulations, what-if questions, and the engine of audits.

**The pieces.** A :class:`Panel` has the verbs of a session for many subjects: ``decide``, ``ask``
and ``record``. Below it is the engine that the ledger, audits and losses share. A *kernel* is a
domain, a filter, and a *registry* of the queries that were asked (_kernel.py, _compiled_query.py).
A *state* has what subjects answered, in arrays: on a set a row of log-likelihoods for each value,
on attributes a table for each scope, on a box only the responses, because every loss is searched
for (_finite_state.py, _attributes_state.py, _box_state.py). For a level of protection, the state
also has an array for each unit (_unit_spreads.py; _twin_spreads.py where queries tie units). A
*selection* names some subjects by their indices.

**A request, end to end.** ``ask`` resolves names to indices (_requests.py) and reads the values
(_values.py), which nothing but the draw uses. The kernel hands the accounts of the selected
subjects to the filter. The filter compares bounds in doubles with the budget. Where the budget is
between the bounds, sums of 64-bit words decide (_ties.py), and what these leave open is decided
once per tally by the exact log-likelihood of one transcript. Responses of the accepted subjects
are drawn exactly (_compiled_query.py) and folded into the state: ℓ, the sums of epsilons
(_query_costs.py) and the log (_log.py). All of it is recorded before anything is returned.

**Why it agrees with a session.** Doubles carry a bound on their error, so a decision is either
certain or settled exactly. On a box every search sees one transcript per tally, in one order.
Proofs: docs/theory/audits.md.

Losses and audits start from recorded answers: ``State.load`` takes whole tallies at once, and a
replay folds one exchange of every subject after the other.

>>> import expost as xp
>>> panel = xp.Panel(
...     xp.FiniteSet(["no", "yes"]), filter=xp.BayesianFilter(epsilon=1), subjects=["ann", "bob"]
... )
>>> query = xp.randomized_response(epsilon="0.6")
>>> panel.record(query, ["yes", "no"]).tolist(), panel.record(query, ["no"], ["bob"]).tolist()
([True, True], [False])
>>> panel.loss.upper.round(6).tolist(), panel.suspended.tolist()
([0.6, 1.2], [False, True])
"""

from __future__ import annotations

from expost.panel._box_state import Search
from expost.panel._panel import Panel
from expost.panel._results import Bounds, Decisions, Replies

__all__ = ["Bounds", "Decisions", "Panel", "Replies", "Search"]

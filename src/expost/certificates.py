"""What proves that a realized loss is at most a number, for anybody to check.

``verify.py`` is the checker; it stands alone and believes nothing that is said here.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost import verify
from expost.domains import Box
from expost.errors import InvalidInput, expect
from expost.extrema import GAP, NODES, Effort
from expost.likelihood import BoxLogLikelihood
from expost.queries.gaussian import Gaussian
from expost.queries.score_term import ScoreTerm
from expost.tangents import tangents
from expost.transcript import Transcript, canonical, readable

if TYPE_CHECKING:
    from expost.extrema.proof import Leaf, Proof

__all__ = ["Certificate", "certificate"]

_LARGE = 1 << 20
_DIGITS = 7
_LITTLE = 1e-9


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof of an upper bound on a realized loss."""

    loss: Decimal
    """The bound that is proved, in nats."""
    document: dict[str, Any]
    """The proof, in its JSON shape."""

    def __repr__(self) -> str:
        return f"Certificate(loss at most {verify.rounded_up(self.loss)})"

    def encode(self) -> bytes:
        """The proof as a file: JSON, compressed if it is large."""
        text = json.dumps(self.document, ensure_ascii=False, separators=(",", ":")).encode()
        return gzip.compress(text, mtime=0) if len(text) > _LARGE else text

    @property
    def leaves(self) -> int:
        """In how many parts the domain is looked at."""
        return len(_leaves(self.document.get("groups", [])))

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file, and say how many bytes it has."""
        return Path(path).write_bytes(self.encode())


def _leaves(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sides = [group[side] for group in groups for side in ("largest", "smallest")]
    return [node for nodes in sides for node in nodes if "at" not in node]


def certificate(
    transcript: Transcript,
    *,
    gap: float = GAP,
    nodes: int = NODES,
    progress: Callable[[int], None] | None = None,
) -> Certificate:
    """A proof that the realized loss of a transcript is at most a number.

    Over a box the number is within ``gap`` of the loss, or further if that takes more than
    ``nodes`` nodes. ``progress`` is called with the number of leaves so far. Why such a
    proof proves it: docs/theory/certificates.md.
    """
    expect(transcript, Transcript, "a transcript")
    for index, exchange in enumerate(transcript.exchanges):
        if isinstance(exchange.query, Gaussian):
            reason = "there are no certificates for gaussian noise; expost loss has the loss"
            raise InvalidInput(reason, f"exchanges[{index}].query")
    tree = readable(transcript.tree())
    document: dict[str, Any] = {"version": 1}
    if "filter" in tree:
        document["filter"] = tree["filter"]
    document["responses"] = [exchange["response"] for exchange in tree["exchanges"]]
    bounds: list[str] = []

    def note(_leaf: Any, bound: Decimal, _place: str) -> None:
        bounds.append(_text(bound))
        if progress is not None:
            progress(len(bounds))

    with localcontext(verify.EXACT):
        # As the checker will read it: number texts, and nothing of ours.
        statement = verify.read(json.dumps(tree), "transcript")
        groups: list[dict[str, Any]] = []
        if isinstance(transcript.domain, Box):
            groups = _groups(transcript, transcript.domain, statement, Effort(gap, nodes))
        loss = verify.loss_of(statement, verify.read(json.dumps(groups), "proof"), note)
    for leaf, bound in zip(_leaves(groups), bounds, strict=True):
        leaf["bound"] = bound
    if groups:
        document["groups"] = groups
    document["loss"] = _text(loss)
    return Certificate(Decimal(document["loss"]), document)


def _text(bound: Decimal) -> str:
    if not bound.is_finite():
        return str(bound)
    upward = Context(prec=1000, rounding=ROUND_CEILING)
    return str(bound.quantize(Decimal("1e-12"), context=upward))


def _groups(
    transcript: Transcript, box: Box, statement: Any, effort: Effort
) -> list[dict[str, Any]]:
    """A group per block of queries that share no coordinate, and one for what is constant."""
    from expost.extrema.proof import prove

    total = BoxLogLikelihood.of(box, transcript.exchanges)
    alike: dict[bytes, list[int]] = {}
    for index, exchange in enumerate(transcript.exchanges):
        query = exchange.query
        key = canonical([query.kind, query.tree(), exchange.response])
        alike.setdefault(key, []).append(index)
    indices = list(alike.values())
    terms = [(total.terms[several[0]], len(several)) for several in indices]
    columns: Any = verify.read_domain(statement["domain"])
    known: list[_Known] = []
    for term, several in zip(terms, indices, strict=True):
        exchange = statement["exchanges"][several[0]]
        response = verify.plain(exchange["response"])
        own = verify.read_term(exchange["query"], response, columns)
        known.append(_Known.of(own, term[1], term[0], box))
    groups, left = [], set(range(len(terms)))
    unclipped = [_unclipped(own.term, columns) for own in known]
    for block in prove(terms, box, effort, unclipped):
        left -= set(block.terms)
        own_terms = [known[term] for term in block.terms]
        groups.append(
            {
                "terms": [indices[term] for term in block.terms],
                "largest": _nodes(block.largest, own_terms, box, 1),
                "smallest": _nodes(block.smallest, own_terms, box, -1),
            }
        )
    # What varies by as much as its epsilon is charged that in no group as well.
    constant = [term for term in sorted(left) if known[term].is_certain]
    if constant:
        leaf = {"multipliers": [0] * len(constant), "tangents": [[]] * len(constant)}
        names = [indices[term] for term in constant]
        groups.append({"terms": names, "largest": [{**leaf}], "smallest": [{**leaf}]})
    return groups


@dataclass(frozen=True, slots=True)
class _Known:
    """A term of the checker, how often it counts, and what the solver makes of its score.

    The solver's affine form is scale · score + shift. The scale is 0 if the score is a constant.
    """

    term: verify.Term
    times: int
    scale: float
    shift: float

    @classmethod
    def of(cls, own: verify.Term, times: int, term: ScoreTerm, box: Box) -> _Known:
        weights = [float(a) for a in own.a]
        largest = max(range(len(weights)), key=lambda j: abs(weights[j]))
        theirs = term.weights[box.order[largest]]
        scale = theirs / weights[largest] if weights[largest] else 0.0
        return cls(own, times, scale, term.offset - scale * float(own.c))

    @property
    def is_certain(self) -> bool:
        return self.term.curve.error < self.term.curve.epsilon / 3

    def score(self, form: float) -> float:
        return (form - self.shift) / self.scale if self.scale else float(self.term.c)


def _unclipped(term: verify.Term, columns: Any) -> bool:
    """Whether a term is linear in what the checker makes of the whole box."""
    ends = [column.lower for column in columns], [column.upper for column in columns]
    low, high = verify.score_range(term.a, term.c, verify.choices(columns, *ends))
    return term.curve.kind == "linear" and term.curve.low <= low <= high <= term.curve.high


def _nodes(proof: Proof, known: list[_Known], box: Box, sign: int) -> list[dict[str, Any]]:
    from expost.extrema.proof import CoordinateSplit, EndsSplit, ScoreSplit

    places = {column: place for place, column in enumerate(box.order)}
    nodes: list[dict[str, Any]] = []
    for step in proof:
        if isinstance(step, CoordinateSplit):
            nodes.append({"column": places[step.column], "at": step.at})
        elif isinstance(step, EndsSplit):
            nodes.append({"column": places[step.column], "at": "ends"})
        elif isinstance(step, ScoreSplit):
            nodes.append({"score": step.term, "at": known[step.term].score(step.at)})
        else:
            nodes.append(_leaf(step, known, box, sign))
    return nodes


def _leaf(step: Leaf, known: list[_Known], box: Box, sign: int) -> dict[str, Any]:
    """A leaf in the units of the checker, with the points where tangents will do best."""
    lam = _short(own.scale * y for own, y in zip(known, step.multipliers.tolist(), strict=True))
    q = _short(own.scale**2 * y for own, y in zip(known, step.curvatures.tolist(), strict=True))
    # Other coordinates than those of the block do not matter.
    centre = [step.centre.get(column, 0.0) for column in box.order]
    diagonal = _diagonal(step, known, q, box)
    points = []
    for place, own in enumerate(known):
        curve, a = own.term.curve, [float(x) for x in own.term.a]
        low, high = (own.score(float(ends[place])) for ends in (step.low, step.high))
        if 0 > q[place] > -_LITTLE * min(1.0, float(curve.size)):
            # To be negative a term must be concave, and here rounding might have a say in that.
            for j, x in enumerate(a):
                diagonal[j] -= q[place] * abs(x) * math.fsum(map(abs, a))
            q[place] = 0.0
        middle = float(own.term.c) + math.fsum(x * y for x, y in zip(a, centre, strict=True))
        times = sign * own.times
        points.append(_short(tangents(curve, times, lam[place], q[place], middle, low, high)))
    leaf: dict[str, Any] = {"multipliers": lam, "tangents": points}
    if any(q):
        leaf |= {"curvatures": q, "centre": centre, "diagonal": diagonal}
    return leaf


def _diagonal(step: Leaf, known: list[_Known], q: list[float], box: Box) -> list[float]:
    """A little more than the solver's; at columns that are fixed a lot, which costs nothing."""
    result = []
    for place, column in enumerate(box.order):
        own = step.diagonal.get(column, 0.0)
        if math.isinf(own):
            pairs = zip(known, q, strict=True)
            size = math.fsum(abs(y) * float(own.term.a[place]) ** 2 for own, y in pairs)
            result.append(1e9 * len(box.order) * size)
        else:
            result.append(own * (1 + 1e-6))
    return result


def _short(numbers: Iterable[float]) -> list[float]:
    """A few digits: any multipliers will do, and the bound hardly changes."""
    return [float(f"{x:.{_DIGITS}g}") for x in numbers]

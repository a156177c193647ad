"""Proofs of upper bounds on realized losses, for anyone to check.

``verify.py`` is the checker; it stands alone and trusts nothing that is done here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost._grouping import group_pairs
from expost._types import PathLike
from expost.domains import Box
from expost.errors import InvalidInput
from expost.files.canonical import readable_tree
from expost.loss import log_likelihood
from expost.loss._log_likelihood import check_length
from expost.proof import verify
from expost.proof._tangents import tangents
from expost.queries.noise.gaussian import Gaussian
from expost.solver import GAP, SMALLEST_GAP, Effort
from expost.tally import Tally
from expost.terms import ScoreTerm
from expost.transcript import Transcript, transcript_of

if TYPE_CHECKING:
    from expost.proof._search_tree import Block, Leaf, Proof

__all__ = ["Certificate", "certificate", "certify"]

# The checker goes through all of them, to many digits, however short the proof is.
# Of the work of a command: the rest is for the replay.
_SHARE = 0.5
_MOST_DIFFERENT = 3_000
_DIGITS = 7
_LITTLE = 1e-9


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof of an upper bound on a realized loss; :func:`certificate` returns it."""

    #: The bound that is proved, in nats.
    loss: Decimal
    #: The proof, in its JSON shape.
    document: dict[str, Any]
    #: The loss that the checker will print.
    verdict: verify.Verdict

    def __repr__(self) -> str:
        return f"Certificate(loss at most {verify.rounded_up(self.loss)})"

    def encode(self) -> bytes:
        """Return the proof as a file of JSON."""
        return _json(self.document).encode()

    @property
    def leaves(self) -> int:
        """The number of parts into which the proof cuts the domain."""
        return len(_leaves(self.document.get("groups", [])))

    def tree(self) -> dict[str, Any]:
        """Return the result of the proof as JSON; the proof itself is ``document``."""
        return self.verdict.tree()

    def save(self, path: PathLike) -> int:
        """Write the proof as a file, and return its size in bytes."""
        return Path(path).write_bytes(self.encode())


def _json(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _leaves(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sides = [group[side] for group in groups for side in ("largest", "smallest")]
    return [node for nodes in sides for node in nodes if "at" not in node]


def certificate(
    source: object,
    *,
    gap: float = GAP,
    nodes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Certificate:
    """Prove an upper bound on the realized loss of a transcript, for others to check.

    ``verify.py`` checks the proof without this package. The search continues beyond ``gap`` if that
    may show that the transcript's budget is enough. Proof: docs/theory/certificates.md.

    Args:
        source: A transcript, a session or an odometer.
        gap: The distance between bound and loss on a box, in nats.
        nodes: The limit of nodes of all searches, by default a few seconds of work. The gap is
            larger if the limit is reached.
        progress: Called with the number of leaves so far.

    Returns:
        The proof with the loss that it proves.

    >>> import expost as xp
    >>> from expost.proof import certificate, verify
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes")
    >>> proof = certificate(transcript)
    >>> proof, verify.verify(transcript.to_json(), proof.encode().decode()).loss <= 1
    (Certificate(loss at most 1.000000000), True)
    """
    return certify(transcript_of(source), Effort(gap, nodes), progress)


def certify(
    transcript: Transcript, effort: Effort, progress: Callable[[int], None] | None = None
) -> Certificate:
    """Prove the loss within the limits of an effort."""
    effort = effort.with_work_limit(_SHARE)
    check_length(transcript.domain, transcript.exchanges)
    for index, exchange in enumerate(transcript.exchanges):
        if isinstance(exchange.query, Gaussian):
            reason = "there are no certificates for gaussian noise; expost loss has the loss"
            raise InvalidInput(reason, f"exchanges[{index}].query")
    different = len(Tally.of(transcript.exchanges))
    if transcript.domain.sides and different > _MOST_DIFFERENT:
        reason = f"there are {different:,} different responses on a box"
        raise InvalidInput(f"{reason}; at most {_MOST_DIFFERENT:,} are proved", "exchanges")
    with localcontext(verify.EXACT):
        try:
            draft = _Draft.of(transcript, progress)
            best = draft.proof(effort)
        except verify.Failed as problem:
            raise InvalidInput(f"no certificate can be checked: {problem}") from None
        while finer := _choose_smaller_gap(draft, best.verdict, effort):
            try:
                effort, better = finer, draft.proof(finer)
            except verify.Failed:
                break  # it is too long to be checked
            if better.loss >= best.loss:
                break  # the nodes are used up
            best = better
    return best


def _choose_smaller_gap(draft: _Draft, verdict: verify.Verdict, effort: Effort) -> Effort | None:
    """Return a smaller gap if the loss may be shown to be within the budget, else None."""
    if verdict.budget is None or verdict.shows_end_within_budget or draft.box is None:
        return None
    if effort.used_up:
        return None
    total = log_likelihood(draft.transcript.domain, draft.transcript.exchanges)
    lower = total.loss(effort.with_share(0.5)).lower
    gap = max(SMALLEST_GAP, min(effort.gap / 2, 0.8 * (float(verdict.budget) - lower)))
    # If not even this gap was reached, the nodes were used up.
    was_reached = float(verdict.loss) <= lower + 2 * effort.gap
    hopeful = gap < effort.gap and lower <= verdict.budget and was_reached
    return replace(effort, gap=gap) if hopeful else None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A transcript in its JSON shape, its text, and as the checker reads that."""

    transcript: Transcript
    #: The search that is needed, if any.
    box: Box | None
    tree: dict[str, Any]
    text: str
    statement: Any
    progress: Callable[[int], None] | None
    #: The exchanges as the checker reads them, computed once.
    checker_cache: dict[verify.Name, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, transcript: Transcript, progress: Callable[[int], None] | None) -> _Draft:
        tree = readable_tree(transcript.tree())
        # Its file without spaces: how much work may be done depends on its length.
        text = json.dumps(json.loads(transcript.to_json()))
        box = transcript.domain if isinstance(transcript.domain, Box) else None
        return cls(transcript, box, tree, text, verify.read_transcript(text), progress)

    def proof(self, effort: Effort) -> Certificate:
        loss, _ = self._check_groups([])  # no search for what cannot be checked
        groups: list[dict[str, Any]] = []
        if self.box is not None:
            blocks = _Blocks.of(self, self.box, effort)
            try:
                groups = blocks.groups(curved=True)
                loss, bounds = self._check_groups(groups)
            except verify.Failed:
                # With many columns curvature is a lot of work to check.
                groups = blocks.groups(curved=False)
                loss, bounds = self._check_groups(groups)
            for leaf, bound in zip(_leaves(groups), bounds, strict=True):
                leaf["bound"] = _text(bound)
        document: dict[str, Any] = {"version": 1}
        if "filter" in self.tree:
            document["filter"] = self.tree["filter"]
        document["responses"] = [exchange["response"] for exchange in self.tree["exchanges"]]
        if groups:
            document["groups"] = groups
        document["loss"] = _text(loss, digits=24)
        text = _json(document)
        verify.need_size(text, "proof")
        stated, leaves = Decimal(document["loss"]), len(_leaves(groups))
        work = verify.Work(self.text, text)
        return Certificate(stated, document, verify.judged(stated, self.statement, leaves, work))

    def _check_groups(self, groups: list[dict[str, Any]]) -> tuple[Decimal, list[Decimal]]:
        """Return the loss that the groups prove, and the bounds of leaves, by the checker."""
        bounds: list[Decimal] = []

        def note(_leaf: Any, bound: Decimal, _path: str) -> None:
            bounds.append(bound)
            if self.progress is not None:
                self.progress(len(bounds))

        proof = _json(groups)
        work = verify.Work(self.text, proof)
        groups = verify.read(proof, "proof")
        return verify.loss_of(self.statement, groups, note, work, self.checker_cache), bounds


def _text(bound: Decimal, digits: int = 12) -> str:
    if not bound.is_finite():
        return str(bound)
    upward = Context(prec=1000, rounding=ROUND_CEILING)
    return str(bound.quantize(Decimal(10) ** -digits, context=upward))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Proofs for blocks of queries that share no coordinate, before they are written."""

    box: Box
    blocks: list[Block]
    #: The exchanges of every term; equal exchanges share one.
    indices: list[list[int]]
    scaled_terms: list[_ScaledTerm]

    @classmethod
    def of(cls, draft: _Draft, box: Box, effort: Effort) -> _Blocks:
        from expost.proof._search_tree import prove

        transcript, statement = draft.transcript, draft.statement
        alike = group_pairs(
            ((exchange.query.content_id, exchange.position), index)
            for index, exchange in enumerate(transcript.exchanges)
        )
        indices = list(alike.values())
        firsts = [transcript.exchanges[repeats[0]] for repeats in indices]
        terms = [
            (first.query.on(box).term(first.position), len(repeats))
            for first, repeats in zip(firsts, indices, strict=True)
        ]
        columns: Any = verify.read_domain(statement["domain"])
        names = verify.names_of(statement["exchanges"])
        scaled_terms = [
            _ScaledTerm.of(draft.checker_cache[names[repeats[0]]], times, term, box)
            for (term, times), repeats in zip(terms, indices, strict=True)
        ]
        unclipped = [_unclipped(scaled.term, columns) for scaled in scaled_terms]
        return cls(box, prove(terms, box, effort, unclipped), indices, scaled_terms)

    def groups(self, *, curved: bool) -> list[dict[str, Any]]:
        """Return a group per block, and one for the constant terms."""
        groups, remaining = [], set(range(len(self.scaled_terms)))
        for block in self.blocks:
            remaining -= set(block.terms)
            block_terms = [self.scaled_terms[term] for term in block.terms]
            groups.append(
                {
                    "terms": [self.indices[term] for term in block.terms],
                    "largest": _nodes(block.largest, block_terms, self.box, 1, curved=curved),
                    "smallest": _nodes(block.smallest, block_terms, self.box, -1, curved=curved),
                }
            )
        # A term that varies by as much as its epsilon is charged the same without a group.
        constant = [term for term in sorted(remaining) if self.scaled_terms[term].is_certain]
        if constant:
            leaf = {"multipliers": [0] * len(constant), "tangents": [[]] * len(constant)}
            names = [self.indices[term] for term in constant]
            groups.append({"terms": names, "largest": [{**leaf}], "smallest": [{**leaf}]})
        return groups


@dataclass(frozen=True, slots=True)
class _ScaledTerm:
    """A term of the checker, how often it counts, and what the solver makes of its score.

    The solver's affine form is scale · score + shift. The scale is 0 if the score is a constant.
    """

    term: verify.Term
    times: int
    scale: float
    shift: float
    #: The weights of the checker's score, as doubles.
    weights: list[float]

    @classmethod
    def of(cls, checker_term: verify.Term, times: int, term: ScoreTerm, box: Box) -> _ScaledTerm:
        weights = [float(a) for a in checker_term.a]
        largest = max(range(len(weights)), key=lambda j: abs(weights[j]))
        scale = term.weights[box.order[largest]] / weights[largest] if weights[largest] else 0.0
        return cls(checker_term, times, scale, term.offset - scale * float(checker_term.c), weights)

    @property
    def is_certain(self) -> bool:
        return self.term.curve.error < self.term.curve.epsilon / 3

    def score(self, form: float) -> float:
        return (form - self.shift) / self.scale if self.scale else float(self.term.c)


def _unclipped(term: verify.Term, columns: Any) -> bool:
    """Return whether the checker finds a term linear on the whole box."""
    if term.curve.kind != "linear":
        return False
    low, high = verify.score_range(term.a, term.c, verify.everywhere(columns))
    return term.curve.low <= low <= high <= term.curve.high


def _nodes(
    proof: Proof, scaled_terms: list[_ScaledTerm], box: Box, sign: int, *, curved: bool
) -> list[dict[str, Any]]:
    from expost.proof._search_tree import CoordinateSplit, EndsSplit, ScoreSplit

    index_of_column = {column: index for index, column in enumerate(box.order)}
    nodes: list[dict[str, Any]] = []
    for step in proof:
        if isinstance(step, CoordinateSplit):
            nodes.append({"column": index_of_column[step.column], "at": step.at})
        elif isinstance(step, EndsSplit):
            nodes.append({"column": index_of_column[step.column], "at": "ends"})
        elif isinstance(step, ScoreSplit):
            nodes.append({"score": step.term, "at": scaled_terms[step.term].score(step.at)})
        else:
            nodes.append(_leaf(step, scaled_terms, box, sign, curved=curved))
    return nodes


def _leaf(
    step: Leaf, scaled_terms: list[_ScaledTerm], box: Box, sign: int, *, curved: bool
) -> dict[str, Any]:
    """Return a leaf in the units of the checker, with the best points for tangents."""
    pairs = list(zip(scaled_terms, step.multipliers.tolist(), strict=True))
    lam = _shorten(scaled.scale * y for scaled, y in pairs)
    for index, scaled in enumerate(scaled_terms):
        if scaled.term.curve.kind == "straight":
            lam[index] = sign * scaled.times  # its slope is best
    pairs = list(zip(scaled_terms, step.curvatures.tolist(), strict=True))
    q = [_curvature(scaled.term.curve, scaled.scale * (scaled.scale * y)) for scaled, y in pairs]
    # Other coordinates than those of the block do not matter.
    centre = [step.centre.get(column, 0.0) for column in box.order]
    diagonal = _diagonal(step, scaled_terms, q, box)
    if not curved or not all(map(math.isfinite, (*q, *centre, *diagonal))):
        q = [0.0] * len(scaled_terms)
    points = []
    for index, scaled in enumerate(scaled_terms):
        curve, a = scaled.term.curve, scaled.weights
        low, high = (scaled.score(float(ends[index])) for ends in (step.low, step.high))
        if 0 > q[index] > -_LITTLE * min(1.0, float(curve.size)):
            # To be negative a term must be concave, and here rounding might have a say in that.
            for j, x in enumerate(a):
                diagonal[j] -= q[index] * abs(x) * math.fsum(map(abs, a))
            q[index] = 0.0
        middle = float(scaled.term.c) + math.fsum(x * y for x, y in zip(a, centre, strict=True))
        times = sign * scaled.times
        points.append(_shorten(tangents(curve, times, lam[index], q[index], middle, low, high)))
    leaf: dict[str, Any] = {"multipliers": lam, "tangents": points}
    if any(q):
        leaf |= {"curvatures": q, "centre": centre, "diagonal": diagonal}
    return leaf


def _diagonal(step: Leaf, scaled_terms: list[_ScaledTerm], q: list[float], box: Box) -> list[float]:
    """Return a diagonal slightly above the solver's; far above it at fixed columns."""
    result = []
    for index, column in enumerate(box.order):
        least = step.diagonal.get(column, 0.0)
        pairs = [(y, scaled.weights[index]) for scaled, y in zip(scaled_terms, q, strict=True)]
        size = sum(abs(y * weight) * abs(weight) for y, weight in pairs)
        if math.isinf(least):
            result.append(1e9 * len(box.order) * size)
        else:
            # The checker wants a margin against both.
            result.append(least * (1 + 10.0 ** (2 - _DIGITS)) + _LITTLE * size)
    return result


def _shorten(values: Iterable[float]) -> list[float]:
    """Round to a few digits: any multipliers are valid, and the bound hardly changes."""
    return [float(f"{x:.{_DIGITS}g}") for x in values]


def _curvature(curve: verify.Curve, curvature: float) -> float:
    """Round a curvature to a few digits, on the side that keeps its term bounded.

    Less needs no more of the diagonal. But a linear term has to be concave at its tangent, which
    may take all of it; the diagonal is made larger by as much.
    """
    moved = abs(curvature) * 10.0 ** (1 - _DIGITS)
    (short,) = _shorten([curvature + moved if curve.kind == "linear" else curvature - moved])
    return short

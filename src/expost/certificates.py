"""What proves that a realized loss is at most a number, for anybody to check.

``verify.py`` is the checker; it stands alone and believes nothing that is said here.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost import verify
from expost.domains import Box
from expost.errors import expect
from expost.extrema import GAP, NODES, Effort
from expost.likelihood import BoxLogLikelihood
from expost.transcript import Transcript, canonical, readable

if TYPE_CHECKING:
    from expost.extrema.proof import Leaf, Split

__all__ = ["Certificate", "certificate"]

_LARGE = 1 << 20


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
        sides = [
            group[side]
            for group in self.document.get("groups", [])
            for side in ("largest", "smallest")
        ]
        return sum("split" not in node for nodes in sides for node in nodes)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the file, and say how many bytes it has."""
        return Path(path).write_bytes(self.encode())


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
    effort = Effort(gap, nodes)
    # As the checker will read it: number texts, and nothing of ours.
    statement = verify.read(json.dumps(readable(transcript.tree())), "transcript")
    document: dict[str, Any] = {"version": 1, "statement": readable(transcript.tree())}
    with localcontext(Context(prec=verify.DIGITS)):
        if isinstance(transcript.domain, Box):
            groups = _groups(transcript, transcript.domain, effort)
            leaves = 0

            def state(leaf: dict[str, Any], bound: Decimal, _place: str) -> None:
                """Say in a leaf what the checker will find."""
                nonlocal leaves
                leaf["bound"] = _text(bound)
                leaves += 1
                if progress is not None:
                    progress(leaves)

            loss = verify.loss_on_box(statement, groups, state)
            document["groups"] = groups
        else:
            loss = verify.loss_on_values(statement)
    document["loss"] = _text(loss)
    return Certificate(Decimal(document["loss"]), document)


def _groups(transcript: Transcript, box: Box, effort: Effort) -> list[dict[str, Any]]:
    """A group per block of queries that share no coordinate: alike exchanges, and two trees."""
    from expost.extrema.proof import prove

    total = BoxLogLikelihood.of(box, transcript.exchanges)
    alike: dict[bytes, list[int]] = {}
    for index, exchange in enumerate(transcript.exchanges):
        query = exchange.query
        key = canonical([query.kind, query.tree(), exchange.response])
        alike.setdefault(key, []).append(index)
    indices = list(alike.values())
    terms = [(total.terms[several[0]], len(several)) for several in indices]
    return [
        {
            "terms": [indices[term] for term in block.terms],
            "largest": [_node(step) for step in block.largest],
            "smallest": [_node(step) for step in block.smallest],
        }
        for block in prove(terms, box, effort)
    ]


def _node(step: Split | Leaf) -> dict[str, Any]:
    from expost.extrema.proof import Split

    if isinstance(step, Split):
        return {"split": step.kind, "of": step.index, "at": step.at}
    if step.multipliers is None:
        return {"corners": True, "bound": ""}
    node: dict[str, Any] = {"multipliers": list(step.multipliers), "bound": ""}
    if step.curvature is not None:
        names = ("curvatures", "centre", "diagonal")
        node |= {name: list(part) for name, part in zip(names, step.curvature, strict=True)}
    return node


def _text(bound: Decimal) -> str:
    if not bound.is_finite():
        return str(bound)
    return str(bound.quantize(Decimal("1e-12"), rounding=ROUND_CEILING))

"""A ledger as a text file, which a stand-alone checker can verify.

The format is in docs/reference/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from expost.errors import InvalidInput, at
from expost.files.canonical import canonical, json_text, readable, value_tree
from expost.files.durable import sync_directory
from expost.ledger.batch import subject_of
from expost.ledger.engine import Engine
from expost.ledger.history import History
from expost.ledger.reserve import shown_state

__all__ = ["export_ledger"]

Tell = Callable[[int, int], None]

_BLOCK = 1 << 12


def export_ledger(engine: Engine, path: Path, tell: Tell) -> None:
    """Write everything to a new file; ``tell`` is called with the subjects done, and all."""
    temporary = path.with_name(f".{path.name}.part")
    with at(os.fspath(path), ": "):
        if path.exists():
            raise InvalidInput("already exists; not overwritten")
        try:
            with temporary.open("wb") as file:
                for text in _lines(engine, tell):
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_directory(path.parent)
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


def _lines(engine: Engine, tell: Tell) -> Iterator[bytes]:
    digest = hashlib.sha256()
    history = History.read(engine)
    for tree in chain([_header(engine)], _subjects(engine, history, tell)):
        line = json_text(tree).encode() + b"\n"
        digest.update(line)
        yield line
    end = {
        "subjects": len(history.subjects),
        "exchanges": len(history.responses),
        "digest": digest.hexdigest(),
    }
    yield json_text({"end": end}).encode() + b"\n"


def _header(engine: Engine) -> dict[str, Any]:
    tip = engine.backend.tip()
    queries = {
        query.content_id: readable({"kind": query.kind, **query.tree()})
        for query in engine.catalog.queries.values()
    }
    return {
        "ledger": 2,
        "policy": json.loads(engine.policy.to_json()),
        "policy_id": engine.policy.content_id,
        "queries": queries,
        "commits": tip.number,
        "root": tip.root.hex(),
    }


def _subjects(engine: Engine, history: History, tell: Tell) -> Iterator[dict[str, Any]]:
    catalog = engine.catalog
    pairs: list[tuple[str, Any]] = [("", None)]
    order: list[tuple[str, bytes]] = [("", b"")]
    for number in range(1, catalog.size + 1):
        entry = catalog.response(number)
        query_id = catalog.query_id(entry.query)
        pairs.append((query_id, json.loads(entry.text)))
        response = catalog.likelihood(entry.query).responses[entry.position]
        order.append((query_id, canonical(value_tree(response))))
    responses, starts = history.responses.tolist(), history.starts.tolist()
    for place, row in enumerate(history.subjects):
        given = responses[starts[place] : starts[place + 1]]
        tally = sorted(Counter(given).items(), key=lambda item: order[item[0]])
        extras = [pairs[extra.response] for extra in history.extras.get(row.name, ())]
        yield {
            "subject": subject_of(row.name),
            "number": row.number,
            "kind": row.kind,
            "exchanges": [pairs[response] for response in given],
            "head": row.head.hex(),
            "tally": [(*pairs[response], count) for response, count in tally],
            "state": shown_state(row, engine.generation),
            "extras": extras,
        }
        if place % _BLOCK == 0:
            tell(place, len(history.subjects))
    tell(len(history.subjects), len(history.subjects))

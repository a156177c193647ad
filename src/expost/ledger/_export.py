"""A ledger as a text file, which a stand-alone checker can verify.

The format is in docs/reference/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from expost.errors import InvalidInput, at
from expost.files.canonical import canonical_bytes, json_text, readable_tree, value_tree
from expost.files.durable import sync_directory
from expost.ledger._batch import subject_from_json
from expost.ledger._engine import CommitEngine
from expost.ledger._history import StudyHistory
from expost.ledger._reader import Progress
from expost.ledger._requests import subject_state

__all__ = ["export_ledger"]

_BLOCK = 1 << 12


def export_ledger(engine: CommitEngine, path: Path, progress: Progress) -> None:
    """Write everything to a new file; ``progress`` is called with the subjects done, and all."""
    temporary = path.with_name(f".{path.name}.part")
    with at(os.fspath(path), ": "):
        if path.exists():
            raise InvalidInput("already exists; not overwritten")
        try:
            with temporary.open("wb") as file:
                for text in _lines(engine, progress):
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_directory(path.parent)
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


def _lines(engine: CommitEngine, progress: Progress) -> Iterator[bytes]:
    digest = hashlib.sha256()
    history = StudyHistory.read(engine)
    for tree in chain([_header(engine)], _subjects(engine, history, progress)):
        line = json_text(tree).encode() + b"\n"
        digest.update(line)
        yield line
    counts = {"subjects": len(history.subjects), "exchanges": len(history.responses)}
    yield json_text({"end": counts | {"digest": digest.hexdigest()}}).encode() + b"\n"


def _header(engine: CommitEngine) -> dict[str, Any]:
    tip = engine.backend.tip()
    queries = {
        query.content_id: readable_tree(query.tagged_tree())
        for query in engine.catalog.queries.values()
    }
    return {
        "ledger": 2,
        "policy": json.loads(engine.policy.to_json()),
        "policy_id": engine.policy.content_id,
        "queries": queries,
        "commits": tip.commit_number,
        "root": tip.root.hex(),
    }


def _subjects(
    engine: CommitEngine, history: StudyHistory, progress: Progress
) -> Iterator[dict[str, Any]]:
    catalog = engine.catalog
    pairs: list[tuple[str, Any]] = [("", None)]
    sort_keys: list[tuple[str, bytes]] = [("", b"")]
    for response_number in range(1, catalog.size + 1):
        entry = catalog.response(response_number)
        query_id = catalog.query_id(entry.query)
        pairs.append((query_id, json.loads(entry.text)))
        response = catalog.likelihood(entry.query).responses[entry.position]
        sort_keys.append((query_id, canonical_bytes(value_tree(response))))
    responses, starts = history.responses.tolist(), history.starts.tolist()
    for index, row in enumerate(history.subjects):
        recorded = responses[starts[index] : starts[index + 1]]
        tally = sorted(Counter(recorded).items(), key=lambda item: sort_keys[item[0]])
        yield {
            "subject": subject_from_json(row.name),
            "number": row.number,
            "kind": row.kind,
            "exchanges": [pairs[response] for response in recorded],
            "head": row.head.hex(),
            "tally": [(*pairs[response], count) for response, count in tally],
            "state": subject_state(row, engine.generation),
            "extras": [pairs[extra.response] for extra in history.extras.get(row.name, ())],
        }
        if index % _BLOCK == 0:
            progress(index, len(history.subjects))
    progress(len(history.subjects), len(history.subjects))

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
from expost.ledger.core import Core
from expost.ledger.history import History

__all__ = ["export"]

Tell = Callable[[int, int], None]

_BLOCK = 1 << 12


def export(core: Core, path: Path, tell: Tell) -> None:
    """Write all of it to a new file, durably; ``tell`` is called with subjects done, and all."""
    temporary = path.with_name(f".{path.name}.part")
    with at(os.fspath(path), ": "):
        if path.exists():
            raise InvalidInput("is there already, and is not written over")
        try:
            with temporary.open("wb") as file:
                for text in _text(core, tell):
                    file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_directory(path.parent)
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


def _text(core: Core, tell: Tell) -> Iterator[bytes]:
    digest = hashlib.sha256()
    history = History.read(core)
    history.check(core)
    for tree in chain([_header(core)], _subjects(core, history, tell)):
        line = json_text(tree).encode() + b"\n"
        digest.update(line)
        yield line
    end = {
        "subjects": history.size,
        "exchanges": len(history.exchanges),
        "digest": digest.hexdigest(),
    }
    yield json_text({"end": end}).encode() + b"\n"


def _header(core: Core) -> dict[str, Any]:
    tip, words = core.backend.tip(), core.words
    queries = {
        query.content_id: readable({"kind": query.kind, **query.tree()})
        for query in words.queries.values()
    }
    return {
        "ledger": 1,
        "policy": json.loads(core.policy.to_json()),
        "policy_id": core.policy.content_id,
        "queries": queries,
        "commits": tip.commits,
        "root": tip.root.hex(),
    }


def _subjects(core: Core, history: History, tell: Tell) -> Iterator[dict[str, Any]]:
    words, names = core.words, core.people.names(core.backend)
    kept = Counter(each.subject for each, _ in core.backend.kept())
    pairs: list[tuple[str, Any]] = [("", None)]
    order: list[tuple[str, bytes]] = [("", b"")]
    for number in range(1, words.last_response + 1):
        word = words.response(number)
        content_id = words.content_ids[word.query]
        pairs.append((content_id, json.loads(word.response)))
        response = words.likelihood(word.query).responses[words.position(number)]
        order.append((content_id, canonical(value_tree(response))))
    responses, starts = history.exchanges.response.tolist(), history.starts.tolist()
    for first in range(0, history.size, _BLOCK):
        block = range(first, min(first + _BLOCK, history.size))
        for number, head in zip(block, core.backend.heads([n + 1 for n in block]), strict=True):
            given = responses[starts[number] : starts[number + 1]]
            tally = sorted(Counter(given).items(), key=lambda item: order[item[0]])
            yield {
                "subject": names[number],
                "number": number + 1,
                "exchanges": [pairs[response] for response in given],
                "head": head.digest.hex(),
                "tally": [(*pairs[response], times) for response, times in tally],
                "closed": bool(head.closed),
                "kept": kept[number + 1],
            }
        tell(block.stop, history.size)

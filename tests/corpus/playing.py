"""Seeded subjects who are asked several queries: their decisions, responses and losses.

Their randomness is fixed, so each draw is kept and not only each loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from random import Random

# The only names of the package that this module uses: a session resumes from the text of a file,
# and each query is read as the one exchange of such a text.
from expost import Session, Transcript
from expost.sampling import InsecureSource
from support.random_documents import (
    Tree,
    as_text,
    choose,
    decides,
    draw_domain,
    draw_query,
    draw_value,
    families_on,
    list_filters,
)

__all__ = ["all_plays", "play"]

_SHAPES = (
    "labels", "mixed", "integers", "numbers", "points", "attributes", "integer box", "real box",
)  # fmt: skip
_QUERIES = 6


def all_plays() -> Iterator[Tree]:
    """Yield what is played: an empty transcript, the subject's value, and the queries."""
    for guard in list_filters():
        if guard is None:
            continue
        for index in range(4):
            name = f"play {index} under {as_text(guard)}"
            random = Random(name)
            domain = draw_domain(random, choose(name, _SHAPES))
            families = [name for name in families_on(domain) if decides(guard, name)]
            queries = [draw_query(random, domain, families) for _ in range(_QUERIES)]
            budget = random.choice(("1", "2", "4"))
            yield {
                "name": name,
                "start": {
                    "version": 1,
                    "domain": domain.tree,
                    "filter": {**guard, "epsilon": budget},
                },
                "value": draw_value(random, domain),
                "asked": [{"query": q.tree, "response": q.responses[0]} for q in queries],
            }


def play(script: Tree) -> Tree:
    """Ask the queries of a script one after the other, and add what happened."""
    transcript = Transcript.from_json(as_text({**script["start"], "exchanges": []}))
    seed = int.from_bytes(sha256(script["name"].encode()).digest()[:8], "big")
    session = Session.resume(transcript, script["value"], source=InsecureSource(seed))
    steps: list[Tree] = []
    for exchange in script["asked"]:
        single = Transcript.from_json(as_text({**script["start"], "exchanges": [exchange]}))
        query = single.exchanges[0].query
        decision = session.decide(query)
        step: Tree = {"accepted": decision.accepted, "undecided": decision.undecided}
        if decision.accepted:
            response = session.ask(query)
            step["response"] = list(response) if isinstance(response, tuple) else response
        else:
            largest = decision.largest_epsilon
            step["largest_epsilon"] = None if largest is None else str(largest)
        step["loss"] = {"lower": session.loss.lower, "upper": session.loss.upper}
        steps.append(step)
    return {**script, "steps": steps, "content_id": session.transcript.content_id}

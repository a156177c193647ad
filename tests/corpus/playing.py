"""Subjects with a seed who are asked until nothing is left: what they answer, and what is decided.

Their randomness is fixed, so that not only losses are what they were, but every draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from corpus.drawing import Place, Tree, a_box, a_finite_set, a_query, document, filters, kinds_on

# All that is known of the package: a session goes on from the text of a file, and of that text's
# one exchange the query is taken.
from expost import Session, Transcript
from expost.sampling import InsecureSource

__all__ = ["all_plays", "kept_play"]

_SHAPES = ("labels", "integers", "points", "numbers")
_BOXES = ("integers", "reals")
_QUESTIONS = 6


def all_plays() -> Iterator[Tree]:
    """What is played: an empty transcript, the subject's value, a seed, and the queries."""
    random, guards = Random(6), filters()
    for index in range(48):
        guard = guards[1 + index % (len(guards) - 1)]
        on_box = index % 8 == 7
        place = (
            a_box(random, _BOXES[index % 2]) if on_box else a_finite_set(random, _SHAPES[index % 4])
        )
        kinds = kinds_on(place)
        if guard is not None and "delta" not in guard:
            kinds = [kind for kind in kinds if kind != "gaussian"]
        asked = [a_query(random, place, random.choice(kinds)) for _ in range(_QUESTIONS)]
        budget = random.choice(("1", "2", "4"))
        start = {"version": 1, "domain": place.tree, "filter": {**(guard or {}), "epsilon": budget}}
        yield {
            "start": start,
            "value": _value(random, place),
            "seed": index,
            "asked": [{"query": query, "response": some[0]} for query, some in asked],
        }


def _value(random: Random, place: Place) -> Any:
    if not place.on_box:
        return random.choice(place.values)
    return {side.name: random.randint(int(side.low), int(side.high)) for side in place.sides}


def kept_play(play: Tree) -> Tree:
    """A play and how it went."""
    transcript = Transcript.from_json(document({**play["start"], "exchanges": []}))
    session = Session.resume(transcript, play["value"], source=InsecureSource(play["seed"]))
    steps: list[Tree] = []
    for exchange in play["asked"]:
        one = Transcript.from_json(document({**play["start"], "exchanges": [exchange]}))
        query = one.exchanges[0].query
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
    return {**play, "steps": steps, "content_id": session.transcript.content_id}

"""What a notebook shows of answers: how many there are, and to which queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expost.cards import card

if TYPE_CHECKING:
    from expost.answers.answers import Answers

__all__ = ["answers_card"]


def answers_card(answers: Answers) -> str:
    """A row per query, with how many responses it got."""
    number = {key: place for place, key in enumerate(answers.queries)}
    asked = np.array([number[key] for key, _ in answers.given], dtype=np.intp)[answers.codes]
    counts = np.bincount(asked, minlength=len(number)).tolist()
    facts: dict[str, object] = {
        "domain": answers.domain,
        "subjects": f"{len(answers):,}",
        "responses": f"{len(answers.codes):,}",
        "complete": "yes" if answers.complete else "no",
        "filter": ", or ".join(
            "not known" if guard is None else f"{guard.kind}, budget {guard.limit}"
            for guard in answers.filters[:3]
        ),
    }
    return card(
        "Answers",
        facts,
        columns=("id", "query", "responses"),
        items=list(zip(answers.queries.items(), counts, strict=True)),
        row=lambda _number, each: (*each[0], f"{each[1]:,}"),
    )

"""Every number of the report, as one tree of plain JSON."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import expost
from examples.paper import health, worked_examples
from examples.paper.runs import ACCOUNTS, BUDGETS, FILTERS, Run, run_transcript
from examples.paper.streams import Stream
from expost.domains import Box
from expost.loss._on_box import BoxLogLikelihood, exact_ratio
from expost.numbers import Nats
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["PRINTED", "composition", "examples_tree", "health_tree", "proof", "versions"]

PRINTED = {"linear": 47, "logistic.steep": 21, "logistic.smooth": 21}
"""The printed medians at a budget of 1, for groups of ten.

Section 6 and Algorithm 5 of the paper name the Bayesian filter. The paper has one kind of logistic
regression, with parameters from [-10, 10], and one median for it.
"""

_PERCENTILES = (10, 50, 90)


def versions() -> dict[str, str]:
    """The versions behind the numbers, and a digest of the code, which changes within a version."""
    code = hashlib.sha256()
    for folder in (Path(expost.__file__).parent, Path(__file__).parent):
        for file in sorted(folder.rglob("*.py")):
            code.update(file.read_bytes())
    packages = ("expost", "numpy", "numba")
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
        "code": code.hexdigest()[:16],
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # numba, without which finite examples still run
        return "missing"


def composition(stream: Stream, runs: Sequence[Run]) -> dict[str, Any]:
    """The runs of one stream."""
    basic = [_basic(stream)] * len(runs)
    ungrouped = [run.traces["ungrouped"] for run in runs]
    decisions = sum(trace.decisions for trace in ungrouped)
    undecided = sum(trace.undecided for trace in ungrouped)
    tree: dict[str, Any] = {
        "theta": [-stream.scale, stream.scale],
        "dimension": stream.dimension,
        "epsilon": float(stream.epsilon),
        "printed": PRINTED[stream.name],
        "budgets": [float(budget) for budget in BUDGETS],
        # It never looks at a response, so the number is the same for every filter.
        "basic": {"accepted": basic, **{kind: {"accepted": basic} for kind in FILTERS}},
    }
    for account in ACCOUNTS:
        traces = [run.traces[account] for run in runs]
        tree[account] = {
            kind: _counts([trace.accepted[kind] for trace in traces]) for kind in FILTERS
        }
    middle = tree["ungrouped"]["bayesian"]["percentiles"]["50"][-1]
    return tree | {
        "times_printed": middle / tree["printed"],
        "largest_gap": max(loss.width for trace in ungrouped for loss in trace.losses),
        "decisions": decisions,
        "undecided": undecided,
        "undecided_share": undecided / decisions,
    }


def _basic(stream: Stream) -> int:
    """How many queries basic composition accepts with the largest budget."""
    return int(BUDGETS[-1] / Fraction(stream.epsilon))


def _counts(counts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Counts by run at the largest budget, and percentiles over the runs at every budget."""
    table = np.array(counts)
    return {
        "accepted": table[:, -1].tolist(),
        "percentiles": {
            str(percentile): np.percentile(table, percentile, axis=0).tolist()
            for percentile in _PERCENTILES
        },
    }


def proof(stream: Stream, seed: int, runs: Sequence[Run]) -> dict[str, Any] | None:
    """Two points of the box which prove that a run had to stop; None if none are found."""
    threshold = BUDGETS[-1] - Fraction(stream.epsilon)
    for run_index, run in enumerate(runs):
        trace = run.traces["ungrouped"]
        count = trace.accepted["simplified"][-1]
        outcomes = two_points(run_transcript(stream, seed, run_index, run.responses[:count]))
        if outcomes.loss > threshold:
            bound = trace.losses[count].upper
            return {"run": run_index, "queries": count, **asdict(outcomes), "upper": bound}
    return None


@dataclass(frozen=True, slots=True)
class TwoPoints:
    """Two points of a box that prove a loss, whatever any solver says.

    The search found them, and they are rounded to hundredths. The responses are likelier at one
    than at the other by a factor of e^loss, exactly, from the sampled weights.
    """

    likelier: tuple[float, ...]
    unlikelier: tuple[float, ...]
    loss: float
    """In nats, rounded down: the realized loss is at least this."""


def two_points(transcript: Transcript) -> TwoPoints:
    """Return the two points of the search, for real coordinates in [-1, 1]^d."""
    box = transcript.domain
    assert isinstance(box, Box)
    points = BoxLogLikelihood.of(box, transcript.exchanges).searched_points(Effort())
    likelier, unlikelier = (tuple(round(float(x), 2) for x in point) for point in points)
    ratio = exact_ratio(transcript.tally, box, likelier, unlikelier)
    return TwoPoints(likelier, unlikelier, Nats(ratio=ratio).enclosure.lower)


def examples_tree() -> list[dict[str, Any]]:
    """The printed numbers of the examples beside the exact ones."""
    return [asdict(printed) for printed in worked_examples.printed_numbers()]


def health_tree() -> dict[str, Any]:
    """The mock people, the sixteen outcomes, and what they leave of the budget."""
    outcomes = health.outcomes()
    losses = [outcome.loss.upper for outcome in outcomes]
    printed = [outcome.printed for outcome in outcomes]
    persons = [
        {
            "value": person,
            "predictions": {
                name: {"printed": text, "computed": health.prediction(name, person)}
                for name, text in texts.items()
            },
            "median_loss": health.weighted_median(losses, chances),
            "mean_loss": float(np.dot(losses, chances)),
        }
        for person, texts, chances in zip(
            health.PEOPLE,
            health.PREDICTED,
            zip(*(outcome.chances for outcome in outcomes), strict=True),
            strict=True,
        )
    ]
    return {
        "budget": health.BUDGET,
        "people": persons,
        "outcomes": [
            {
                "responses": list(outcome.responses),
                "printed": outcome.printed,
                "loss": asdict(outcome.loss),
                "share": outcome.loss.upper / health.BUDGET,
                "chances": list(outcome.chances),
                "largest_epsilon": {
                    "any": outcome.any_fifth,
                    "heart_again": outcome.heart_again,
                },
            }
            for outcome in outcomes
        ],
        "median": {"printed": float(np.median(printed)), "loss": float(np.median(losses))},
        "largest": {"printed": max(printed), "loss": max(losses)},
        # The epsilon that a fifth regression may have, after half of the outcomes and after all.
        "fifth": {
            "half": float(np.median([outcome.any_fifth for outcome in outcomes])),
            "all": min(outcome.any_fifth for outcome in outcomes),
        },
        "largest_gap": max(outcome.loss.width for outcome in outcomes),
    }

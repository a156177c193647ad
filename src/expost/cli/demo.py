"""``expost demo``: the running example of the paper, then a budget in four ways of asking."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from expost.cli.chart import chart
from expost.cli.show import show_json
from expost.domains import FiniteSet
from expost.filters.basic import BasicFilter
from expost.filters.bayesian import BayesianFilter
from expost.filters.filter import Filter
from expost.knowledge.belief import Belief
from expost.loss.odometer import Odometer
from expost.numbers import Nats
from expost.queries import Query, perturbation, randomized_response
from expost.report.figures import basic_prefix, odometer_figure, save
from expost.reproduce.examples import running_example
from expost.sampling import InsecureSource
from expost.session.session import Session
from expost.transcript import Transcript

__all__ = ["run"]

BUDGET = Nats.budget(epsilon=2)
EPSILON = "0.4"
PEOPLE = 40
FACTS = ("smokes", "drinks", "exercises")
EVERYBODY = FiniteSet(
    [dict(zip(FACTS, holds, strict=True)) for holds in itertools.product((0, 1), repeat=3)]
)
HOLDS = np.array(list(itertools.product((0, 1), repeat=3)))
"""Which facts hold, a row per value."""
SIGNS = 2 * HOLDS - 1
LABELS = {
    "basic": "basic composition, epsilon 0.4 each",
    "basic_at_best": "the same at its best: once, epsilon 2",
    "filter": "Bayesian filter, epsilon 0.4 each",
    "one_shot": "all three facts, once, epsilon 2",
}


@dataclass(frozen=True, slots=True)
class Way:
    """A way of asking: what it gives on average."""

    answered: float
    right: float
    """How often the best guess about a fact is right, afterwards."""


def run(out: Path | None, seed: int, *, as_json: bool) -> None:
    console = Console(quiet=as_json, highlight=False)
    accepted = _example(console)
    ways, odometer = _people(seed)
    _tell(console, ways, odometer)
    picture = None if out is None else _save(console, odometer, out)
    if as_json:
        measured = {name: asdict(way) for name, way in ways.items()}
        show_json({"example": accepted, "people": PEOPLE, **measured, "picture": picture})


def _example(console: Console) -> list[bool]:
    console.print("[bold]1. A budget that lasts[/] (Example 3 of the paper)\n")
    console.print(
        "A value between 0 and 10 is asked about X, X², X³, …; every query is ln 3/2-LDP."
    )
    console.print("The budget is 2 ln 3/2: basic composition would stop after two queries.\n")
    table = Table("query", "decision", "response", "e^loss", "budget", box=None, padding=(0, 2))
    steps = running_example()
    for step in steps:
        table.add_row(
            f"X^{step.exponent}",
            "[green]accepted[/]" if step.accepted else "[red]refused[/]",
            str(step.response) if step.accepted else "",
            f"{float(step.ratio):.4f}" if step.accepted else "",
            "2.25",
        )
    console.print(table)
    console.print("\nThe fourth query ends on exactly 2.25 ≤ 2.25, and is accepted.\n")
    return [step.accepted for step in steps]


def _people(seed: int) -> tuple[dict[str, Way], Odometer]:
    """All four ways, and the odometer of one person under the filter."""
    guarded = _asked(BayesianFilter.of(BUDGET), EPSILON, seed)
    ways = {
        "basic": _way(_asked(BasicFilter.of(BUDGET), EPSILON, seed)),
        "basic_at_best": _way(_asked(BasicFilter.of(BUDGET), "2", seed)),
        "filter": _way(guarded),
        "one_shot": _once(),
    }
    return ways, guarded[0]


def _asked(guard: Filter, epsilon: str, seed: int) -> list[Odometer]:
    """People who are asked for ever new scores, until the filter refuses one."""
    found = []
    for person in range(PEOPLE):
        generator = np.random.default_rng([seed, person])
        value = EVERYBODY.values[int(generator.integers(len(EVERYBODY)))]
        source = InsecureSource(int(generator.integers(2**62)))
        session = Session(EVERYBODY, value, filter=guard, source=source)
        for query in _scores(generator, epsilon):
            if not session.decide(query).accepted:
                break
            session.ask(query)
        found.append(session.odometer)
    return found


def _scores(generator: np.random.Generator, epsilon: str) -> Iterator[Query]:
    """Scores that weigh the facts at random, for and against, with an intercept; from -1 to 1."""
    while True:
        weights = generator.uniform(-1, 1, len(FACTS) + 1)
        scores = (SIGNS @ weights[1:] + weights[0]) / np.abs(weights).sum()
        scores = scores.clip(-1, 1)  # a rounding may lead outside
        yield perturbation(scores, range=(-1, 1), epsilon=epsilon)


def _way(odometers: list[Odometer]) -> Way:
    uniform = Belief.uniform(EVERYBODY)
    after = [uniform.updated(odometer.transcript).probabilities for odometer in odometers]
    answered = float(np.mean([len(odometer) for odometer in odometers]))
    return Way(answered, float(np.mean([_right(each) for each in after])))


def _right(probabilities: NDArray[np.float64]) -> float:
    holds = probabilities @ HOLDS
    return float(np.maximum(holds, 1 - holds).mean())


def _once() -> Way:
    """All three facts at once, by randomized response at the full budget."""
    # By symmetry any answer makes somebody as sure as any other.
    once = Odometer(Transcript(EVERYBODY)).add(
        randomized_response(epsilon="2"), EVERYBODY.values[0]
    )
    return _way([once])


def _tell(console: Console, ways: dict[str, Way], odometer: Odometer) -> None:
    basic = basic_prefix(odometer.transcript, BUDGET)
    charges = [loss.upper for loss in odometer.basic_history[: basic + 1]]
    losses = [loss.upper for loss in odometer.history]
    console.print("[bold]2. Questions that nobody knew beforehand[/]\n")
    console.print(
        "Somebody smokes or not, drinks or not, exercises or not. Analysts come one\n"
        "after the other and ask for scores that weigh these facts, each in another\n"
        f"way, at epsilon {EPSILON}. The budget is {BUDGET}. This is one person:\n"
    )
    series = [(losses, "•", "cyan"), (charges, "█", "red")]
    limit = BUDGET.enclosure.upper
    console.print(chart(series, limit, width=min(console.width - 24, 90), height=12))
    console.print(f"\n[red]█ basic composition[/] stops after {basic} responses.")
    console.print(f"[cyan]• realized loss[/] stops after {len(odometer)} responses.\n")
    console.print(f"And these are {PEOPLE} people, with the same guarantee in each row:\n")
    table = Table("", box=None, padding=(0, 2))
    table.add_column("answered", justify="right")
    table.add_column("right about a fact", justify="right")
    for name, label in LABELS.items():
        way = ways[name]
        table.add_row(label, f"{way.answered:.1f}", f"{100 * way.right:.1f} %")
    table.add_row("guessing", "0.0", "50.0 %")
    console.print(table)
    console.print(
        "\nMore answers are not more knowledge: basic composition does better with one\n"
        "answer at epsilon 2 than with five at 0.4. The filter tells more than either.\n"
        "Still, whoever knows beforehand that the facts themselves are wanted should ask\n"
        "for them once. The filter is for questions that come up on the way. And one\n"
        "yes/no question, asked again and again, gains nothing over asking it once."
    )


def _save(console: Console, odometer: Odometer, out: Path) -> str | None:
    try:
        save(odometer_figure(odometer, odometer.history, BUDGET), out)
    except ModuleNotFoundError:
        console.print("\nFor the picture, install the extra: pip install 'expost[plot]'.")
        return None
    console.print(f"\nThe picture is in {out}.")
    return str(out)

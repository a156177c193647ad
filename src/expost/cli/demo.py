"""``expost demo``: the running example of the paper, then a person who answers many questions."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from expost.accounting import BayesianFilter, Odometer, basic_prefix
from expost.cli.chart import chart
from expost.cli.show import show_json
from expost.domains import FiniteSet
from expost.errors import BudgetExceeded
from expost.plots import odometer_figure, save
from expost.queries import randomized_response
from expost.reproduce.examples import running_example
from expost.rounding import Nats
from expost.sampling import InsecureSource
from expost.session import Session

__all__ = ["run"]

BUDGET = Nats.budget(epsilon=1)


def run(out: Path, seed: int, *, as_json: bool) -> None:
    console = Console(quiet=as_json, highlight=False)
    accepted = _example(console)
    odometer, basic = _person(console, seed)
    picture: str | None = str(out)
    try:
        save(odometer_figure(odometer, odometer.history, BUDGET), out)
        console.print(f"\nThe picture is in {out}.")
    except ModuleNotFoundError:
        picture = None
        console.print("\nFor the picture, install the extra: pip install 'expost[plot]'.")
    if as_json:
        show_json(
            {
                "example": accepted,
                "basic_answered": basic,
                "answered": len(odometer),
                "picture": picture,
            }
        )


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


def _person(console: Console, seed: int) -> tuple[Odometer, int]:
    console.print("[bold]2. A person who answers the same question again and again[/]\n")
    query = randomized_response(epsilon="0.1")
    guard = BayesianFilter.of(BUDGET)
    domain = FiniteSet(["no", "yes"])
    session = Session(domain, "yes", filter=guard, source=InsecureSource(seed))
    try:
        while True:
            session.ask(query)
    except BudgetExceeded as refusal:
        message = str(refusal)
    odometer = session.odometer
    basic = basic_prefix(odometer.transcript, guard.budget)
    charges = [loss.upper for loss in odometer.basic_history[: basic + 1]]
    losses = [loss.upper for loss in odometer.history]
    limit = guard.budget.enclosure.upper
    console.print("Yes or no, with randomized response at epsilon 0.1; the budget is 1.\n")
    series = [(losses, "•", "cyan"), (charges, "█", "red")]
    console.print(chart(series, limit, width=min(console.width - 24, 90), height=12))
    console.print(f"\n[red]█ basic composition[/] stops after {basic} responses.")
    console.print(
        f"[cyan]• realized loss[/] stops after {len(odometer)} responses, "
        f"{len(odometer) / basic:.1f} times as many, with the same guarantee of 1."
    )
    console.print(f"\nThe next question gets: [dim]{message}[/]")
    return odometer, basic

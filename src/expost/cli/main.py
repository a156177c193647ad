"""The command line: parse input, show results, no arithmetic.

Exit codes: 0 done, 1 a negative outcome of a check or an action, 2 bad input. Whatever is heavy is
imported by the command that needs it, so that ``--help`` is instant.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    name="expost",
    help="Privacy accounting after the fact for local differential privacy.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A transcript file (JSON).")]
Gap = Annotated[float, typer.Option(help="On a box: how wide the loss may be, in nats.")]
Nodes = Annotated[int, typer.Option(help="On a box: the limit of nodes of every search.")]
Threads = Annotated[int, typer.Option(help="On a box: 1, or 2 for one per side.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from expost import __version__

        typer.echo(f"expost {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("odometer.png"),
    seed: Annotated[int, typer.Option(help="Seed of the simulated person.")] = 3,
    json: Json = False,
) -> None:
    """The idea in a minute: an example of the paper, then a person who answers many questions."""
    from expost.cli.demo import run

    run(out, seed, as_json=json)


@app.command()
def loss(
    file: File, gap: Gap = 0.01, nodes: Nodes = 100_000, threads: Threads = 1, json: Json = False
) -> None:
    """What an analyst has learned, at most, from the responses in a transcript."""
    from expost.cli.loss import run
    from expost.extrema import Effort

    run(file, Effort(gap, nodes, threads), as_json=json)


@app.command()
def decide(
    file: File,
    query: Annotated[Path, typer.Option(metavar="QUERY", help="The next query (JSON).")],
    gap: Gap = 0.01,
    nodes: Nodes = 100_000,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Whether the filter of a transcript would accept one more query. Changes nothing."""
    from expost.cli.decide import run
    from expost.extrema import Effort

    run(file, query, Effort(gap, nodes, threads), as_json=json)


def main() -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    from expost.errors import InvalidInput

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ε shows a question mark
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except InvalidInput as error:
        reason = str(error)
    except typer.TyperException as error:
        reason = error.format_message()
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        reason = f"cannot write: {error.strerror}"
    print(f"expost: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(2)

"""The command line: parse input, show results, no arithmetic.

Exit codes: 0 done, 1 a negative outcome of a check or an action, 2 bad input, 3 a proof that holds
and does not show that the loss is within the budget, 70 an error of ours. Whatever is heavy is
imported by the command that needs it, so that ``--help`` is instant.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any

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
NextQuery = Annotated[Path, typer.Option(metavar="QUERY", help="The next query (JSON).")]
Gap = Annotated[float, typer.Option(help="On a box: how wide the loss may be, in nats.")]
Nodes = Annotated[int | None, typer.Option(help="On a box: the limit of nodes of every search.")]
Threads = Annotated[int, typer.Option(help="On a box: 1, or 2 for one per side.")]
Delta = Annotated[
    str | None,
    typer.Option(metavar="D", help="For composition; that of the file's filter if not given."),
]
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
    out: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Where to save a picture; else none.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated people.")] = 3,
    json: Json = False,
) -> None:
    """The idea in a minute: an example of the paper, then what a budget tells in four ways."""
    from expost.cli.demo import run

    run(out, seed, as_json=json)


@app.command()
def loss(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A transcript file (JSON).")
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Answers of many subjects (CSV, JSONL, Parquet), all about one value of each.",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="QUERIES", help="With --many: all queries about their value (JSON)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="With --many: where to save the losses."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="With --many: where to save a histogram.")
    ] = None,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """What somebody who sees all responses of a subject, or of many, has learned at most."""
    from expost.errors import InvalidInput
    from expost.solver import Effort

    effort = Effort(gap, nodes, threads)
    if file is not None and many is None and (queries or out or plot) is None:
        from expost.cli import loss as one

        one.run(file, effort, as_json=json)
    elif file is None and many is not None and queries is not None:
        from expost.cli import losses

        losses.run(many, queries, out, plot, effort, as_json=json)
    else:
        raise InvalidInput("give either FILE, or --many DATA with --queries QUERIES")


@app.command()
def decide(
    file: File,
    query: NextQuery,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Whether the filter of a transcript would accept one more query. Changes nothing."""
    from expost.cli.decide import run
    from expost.solver import Effort

    run(file, query, Effort(gap, nodes, threads), as_json=json)


@app.command()
def ask(
    file: File,
    query: NextQuery,
    secret: Annotated[
        Path | None,
        typer.Option(metavar="SECRET", help="The subject's value (JSON); else it is asked for."),
    ] = None,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Ask one query of the subject of a transcript, and record it before the response is shown."""
    from expost.cli.ask import run
    from expost.solver import Effort

    run(file, query, secret, Effort(gap, nodes, threads), as_json=json)


@app.command()
def explain(
    file: File,
    prior: Annotated[
        Path | None,
        typer.Option(metavar="PRIOR", help="What somebody held likely before (CSV)."),
    ] = None,
    statement: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="With --prior: what it is about, as 'age >= 60'."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="OUT", help="With --prior: where to draw it as a page.")
    ] = None,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """What was asked and answered, what it did to the loss and what it means, in plain words.

    With a prior and a statement: how sure of it the answers make somebody.
    """
    from expost.errors import InvalidInput
    from expost.solver import Effort

    effort = Effort(gap, nodes, threads)
    if prior is not None and statement is not None:
        from expost.cli import learned

        learned.run(file, prior, statement, html, effort, as_json=json)
    elif prior is None and statement is None and html is None:
        from expost.cli.explain import run

        run(file, effort, as_json=json)
    else:
        raise InvalidInput("give --prior PRIOR and --statement TEXT together")


@app.command()
def plot(
    file: File,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to save the picture; .png, .svg or .pdf.")
    ] = Path("odometer.png"),
    delta: Delta = None,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """The loss after each response as a picture, beside basic composition and the budget.

    With a delta, here or in the filter of the file, also beside other composition rules.
    """
    from expost.cli.plot import run
    from expost.solver import Effort

    run(file, out, delta, Effort(gap, nodes, threads), as_json=json)


@app.command()
def compare(
    file: File,
    delta: Delta = None,
    epsilon_budget: Annotated[
        str | None,
        typer.Option(metavar="E", help="The budget; that of the file's filter if not given."),
    ] = None,
    gap: Gap = 0.01,
    nodes: Nodes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """What every accounting says of a transcript, and how many more queries it would accept."""
    from expost.cli.compare import run
    from expost.solver import Effort

    run(file, epsilon_budget, delta, Effort(gap, nodes, threads), as_json=json)


@app.command()
def check_client(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS", help="What a client answered to what (CSV).")
    ],
    query: Annotated[Path, typer.Option(metavar="CLAIM", help="What it claims to be (JSON).")],
    domain: Annotated[
        Path, typer.Option(metavar="DOMAIN", help="A domain, or a file that has one (JSON).")
    ],
    confidence: Annotated[
        str, typer.Option(help="How sure a refutation is to be, all comparisons together.")
    ] = "0.95",
    permanent: Annotated[
        bool, typer.Option("--permanent", help="A subject's response to an input stays the same.")
    ] = False,
    json: Json = False,
) -> None:
    """Whether a client has the probabilities that it claims. Exit code 1 if that is refuted."""
    from expost.cli.check_client import run

    run(pairs, query, domain, confidence=confidence, permanent=permanent, as_json=json)


@app.command()
def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="linear, logistic, health, examples, or all of them.")
    ] = "all",
    runs: Annotated[
        int | None, typer.Option(help="Runs of each experiment; 50 if not said else.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random queries and responses.")] = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write everything.")
    ] = Path("reproduced"),
    jobs: Annotated[
        int | None, typer.Option(help="Runs at the same time; all cores if not said else.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs and a wider gap: about a minute.")
    ] = False,
    json: Json = False,
) -> None:
    """Run the experiments of the paper, and write a report. What was interrupted goes on."""
    from expost.cli.reproduce import run

    run(experiment, out, runs=runs, seed=seed, jobs=jobs, quick=quick, as_json=json)


@app.command()
def certify(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PROOF", help="Where to write it.")],
    gap: Gap = 0.01,
    nodes: Nodes = None,
    json: Json = False,
) -> None:
    """Write a proof of an upper bound on the realized loss, for anybody to check."""
    from expost.cli.proof import certify as run
    from expost.solver import Effort

    run(file, out, Effort(gap, nodes), as_json=json)


@app.command()
def verify(
    file: File,
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="What certify has written.")],
    json: Json = False,
) -> None:
    """Check a proof of what the loss is at most at the end of a transcript.

    Exit code 1 if it fails, with the place where; 3 if it holds and does not show that the loss is
    within the budget.
    """
    from expost.cli.proof import check

    check(file, proof, as_json=json)


class _Patient(io.FileIO):
    """An output that somebody may stop reading (``| head -1``): the exit code stays what it is."""

    lost = False

    def write(self, data: Any) -> int:
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                # What is still in buffers comes here again when the program ends.
                self.lost = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


def main() -> None:
    """Run the command line; whatever goes wrong is one line on standard error, and an exit code."""
    from expost.errors import BudgetExceeded, InvalidInput

    out = sys.__stdout__
    if out is not None and out is sys.stdout and not out.isatty():
        patient = io.BufferedWriter(_Patient(out.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(patient, encoding=out.encoding)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ε shows a question mark
    code = 2
    try:
        done = app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(done)
    except BudgetExceeded as refusal:
        reason, code = str(refusal), 1
    except InvalidInput as error:
        reason = str(error)
    except typer.TyperException as error:
        reason = error.format_message()
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except OSError as error:
        which = f": {error.filename}" if error.filename else ""
        reason = f"cannot write: {error.strerror}{which}"
    except Exception as error:  # whatever it is, a traceback could show what is secret
        reason, code = _of_ours(error), 70
    print(f"expost: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(code)


def _of_ours(error: Exception) -> str:
    """What to say of a mistake in this program: its kind and its place.

    Never its message, in which anything may be, and no local variables.
    """
    import os
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    if os.environ.get("EXPOST_TRACEBACK"):
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
        hint = ""
    else:
        hint = "; EXPOST_TRACEBACK=1 shows how it came to it"
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "nowhere"
    kind = type(error).__name__
    return f"this is an error of expost and not of yours: {kind} in {place}{hint}. Please report it"

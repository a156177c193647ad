"""What an installation can do, for environments that have the package and nothing to test with.

``python installed.py finite frames`` runs two of these programs; a failed one is a traceback.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import expost as xp

__all__ = ["PROGRAMS"]


def finite() -> None:
    """A session, what it told, and what an analyst makes of many: what devices do."""
    habits = xp.FiniteSet(["never", "sometimes", "often"])
    guard, noise = xp.BayesianFilter(epsilon=1), xp.sampling.InsecureSource(8)
    session = xp.Session(habits, "often", filter=guard, source=noise)
    smoking = xp.randomized_response(epsilon="0.5")
    responses = [session.ask(smoking) for _ in range(2)]
    assert set(responses) <= set(habits.values)
    assert session.decide(xp.randomized_response(epsilon=2)).accepted is False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "subject.json"
        session.transcript.save(file)
        transcript = xp.load_transcript(file)
    assert transcript == session.transcript
    assert xp.realized_loss(transcript).lower <= session.loss.upper <= 1
    found = xp.estimation.estimate_frequencies(
        [(smoking, response) for response in responses], domain=habits
    )
    assert abs(sum(found.frequency) - 1) < 1e-9


def box() -> None:
    """A certified loss on a box."""
    person = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
    query = xp.logistic({"age": -0.059, "sex": -1.456}, intercept=3, epsilon=1)
    transcript = xp.Transcript(person).add(query, 1).add(query, 1)
    loss = xp.realized_loss(transcript, gap=0.01)
    assert 1.5 < loss.lower <= loss.upper <= 2
    assert loss.width <= 0.01


def excel() -> None:
    """A table from a workbook of one sheet with two rows."""
    from zipfile import ZipFile

    from expost.files.exported import read_exported

    schemas = "http://schemas.openxmlformats.org"
    office = f"{schemas}/officeDocument/2006/relationships"
    relations = f'<Relationships xmlns="{schemas}/package/2006/relationships">'
    link = f'{relations}<Relationship Id="r1" Type="{office}/%s" Target="%s"/></Relationships>'
    names = f'xmlns="{schemas}/spreadsheetml/2006/main" xmlns:r="{office}"'
    cells = '<c r="A%s" t="str"><v>%s</v></c><c r="B%s" t="str"><v>%s</v></c>'
    head, row = cells % (1, "who", 1, "answer"), cells % (2, "ann", 2, "yes")
    types = f'<Types xmlns="{schemas}/package/2006/content-types">'
    types += '<Default Extension="xml" ContentType="application/xml"/></Types>'
    parts = {
        "[Content_Types].xml": types,
        "_rels/.rels": link % ("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": link % ("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook {names}><sheets><sheet name="a" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/worksheets/sheet1.xml": f'<worksheet {names}><sheetData><row r="1">{head}</row>'
        f'<row r="2">{row}</row></sheetData></worksheet>',
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "survey.xlsx"
        with ZipFile(file, "w") as workbook:
            for name, text in parts.items():
                workbook.writestr(name, text)
        assert read_exported(file, ["who", "answer"]).rows == [["ann", "yes"]]


def frames() -> None:
    """Losses to a Parquet file, and back."""
    import polars

    domain, query = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon=1)
    table = polars.DataFrame({"subject": ["a", "b"], "query": "q", "response": ["no", "yes"]})
    losses = xp.realized_losses(xp.Answers(domain, {"q": query}, table))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "losses.parquet"
        xp.audits.save_losses(losses, file)
        assert polars.read_parquet(file)["subject"].to_list() == ["a", "b"]


def ledger() -> None:
    """A study on SQLite: nobody is asked twice by one key."""
    with tempfile.TemporaryDirectory() as folder:
        place, guard = Path(folder) / "study.db", xp.BayesianFilter(epsilon=1)
        with xp.Ledger.create(place, xp.FiniteSet(["no", "yes"]), filter=guard) as study:
            study.register(["ann", "bob"])
            query = xp.randomized_response(epsilon=1)
            first = study.ask(query, ["no", "yes"], key="first")
        with xp.Ledger(place) as study:
            assert study.ask(query, ["no", "yes"], key="first").responses == first.responses
            assert not study.decide(query).accepted.any()


def plot() -> None:
    """A picture of an odometer."""
    from click.testing import CliRunner

    from expost.cli.commands import group

    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    with tempfile.TemporaryDirectory() as folder:
        file, picture = Path(folder) / "subject.json", Path(folder) / "subject.png"
        transcript.add(xp.randomized_response(epsilon="0.5"), "yes").save(file)
        arguments = ["plot", str(file), "--out", str(picture)]
        CliRunner().invoke(group, arguments, catch_exceptions=False)
        assert picture.read_bytes().startswith(b"\x89PNG")


def postgres() -> None:
    """The driver of a PostgreSQL, with its own library; there is no server at this address."""
    import psycopg

    assert psycopg.pq.__impl__ == "binary"
    said = ""
    try:
        xp.Ledger("postgresql://127.0.0.1:1/study", checkpoint="checkpoint")
    except ValueError as error:
        said = str(error)
    assert "cannot be opened" in said


def serve() -> None:
    """A collector that answers."""
    import subprocess
    from urllib.request import urlopen

    guard = xp.BayesianFilter(epsilon=1)
    xp.Ledger.create("served.db", xp.FiniteSet(["no", "yes"]), filter=guard).close()
    program = [sys.executable, "-m", "expost", "serve", "served.db", "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the token
        address = process.stdout.readline().split()[-1]
        with urlopen(f"{address}/healthz") as answer:
            assert answer.status == 204
        process.terminate()
    assert process.returncode == 0


def sklearn() -> None:
    """A fitted model as a query."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    domain = xp.FiniteSet([{"x": x} for x in (0, 1, 2)])
    query = xp.from_sklearn(model, domain, 1, features=["x"], range=(0, 6))
    assert xp.realized_loss(xp.Transcript(domain).add(query, 6)).upper < 1


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__: program
    for program in (finite, box, excel, frames, ledger, plot, postgres, serve, sklearn)
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        PROGRAMS[name]()

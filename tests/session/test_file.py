"""Sessions whose transcript is a file, used from Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

import expost as xp
from expost.files.canonical import value_tree
from support.killed_commands import asking, together
from support.stack_frames import text_with_locals

SECRET = "the-secret-label"
DOMAIN = xp.FiniteSet(["a", "b", SECRET])
QUERY = xp.randomized_response(epsilon="0.5")
BLIND = xp.channel([["1/2", "1/2"]] * 3, responses=["x", "y"])  # no response looks like the secret


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "subject.json"
    xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon="3")).save(file)
    return file


def session(path: Path, seed: int = 1) -> xp.FileSession:
    return xp.FileSession(path, SECRET, source=xp.sampling.InsecureSource(seed))


def test_a_refusal_leaves_the_file_as_it_is(path: Path) -> None:
    before = path.read_bytes(), path.stat()
    with pytest.raises(xp.BudgetExceeded):
        session(path).ask(xp.randomized_response(epsilon=4))
    assert (path.read_bytes(), path.stat()) == before


def shorter(transcript: xp.Transcript) -> xp.Transcript:
    return xp.Transcript(transcript.domain, transcript.filter)


def other_response(transcript: xp.Transcript) -> xp.Transcript:
    (first,) = transcript.exchanges
    return shorter(transcript).add(QUERY, "b" if first.response == "a" else "a").add(QUERY, "a")


def other_budget(transcript: xp.Transcript) -> xp.Transcript:
    (first,) = transcript.exchanges
    return xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=9)).add(QUERY, first.response)


def other_domain(transcript: xp.Transcript) -> xp.Transcript:
    values = [*DOMAIN.values[1:], DOMAIN.values[0]]
    return xp.Transcript(xp.FiniteSet(values), transcript.filter).add(QUERY, "a")


@pytest.mark.parametrize("change", [shorter, other_response, other_budget, other_domain])
def test_a_file_that_was_rolled_back_or_changed_is_not_gone_on_with(
    path: Path, change: Callable[[xp.Transcript], xp.Transcript]
) -> None:
    subject = session(path)
    subject.ask(QUERY)
    changed = change(subject.transcript)
    changed.save(path, overwrite=True)
    with pytest.raises(
        xp.InvalidInput, match="no longer continues what this session has read"
    ) as caught:
        subject.ask(QUERY)
    assert caught.value.location == str(path)
    assert xp.load_transcript(path) == changed


@pytest.mark.parametrize("failing", ["os.replace", "os.fsync", "os.fchmod"])
def test_a_record_that_fails_releases_nothing_and_the_file_stays_the_truth(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    subject = session(path)
    subject.ask(BLIND)
    known = subject.transcript

    def fail(*arguments: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(OSError, match="Input/output error") as caught:
            subject.ask(BLIND)
    assert not _mentions(caught.value)
    assert subject.transcript == known
    spent = xp.load_transcript(path)
    assert len(spent) == (2 if failing == "os.fchmod" else 1)
    subject.ask(BLIND)
    assert subject.transcript.exchanges[: len(spent)] == spent.exchanges
    assert len(subject.transcript) == len(spent) + 1
    assert path.read_text("utf-8") == subject.transcript.to_json()


def test_sessions_that_take_turns_write_the_file_that_one_would_write(path: Path) -> None:
    first, second = session(path, 1), session(path, 2)
    for subject, query in zip(cycle([first, first, second]), [BLIND, QUERY] * 4, strict=False):
        subject.ask(query)
        assert path.read_text("utf-8") == subject.transcript.to_json()
    assert path.read_text("utf-8").count(BLIND.content_id) == 5


def test_one_more_answer_encodes_one_exchange(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def counted(value: object) -> object:
        nonlocal encoded
        encoded += 1
        return value_tree(value)

    monkeypatch.setattr("expost.transcript.value_tree", counted)
    subject = session(path)
    for _ in range(40):
        subject.ask(BLIND)
    assert encoded == 40


def test_no_answer_makes_a_file_that_takes_too_long_to_read_for_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spaces, which a session does not write, make room for work in a file."""
    monkeypatch.setattr("expost.queries.query_table._PER_MEGABYTE", 5)
    path = tmp_path / "t.json"
    known = xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(epsilon=9))
    asked = [xp.perturbation([0, 1], epsilon=f"0.{i}") for i in (1, 2, 3)]  # two steps for each
    for query in asked[:2]:
        known = known.add(query, 1)
    path.write_text(known.to_json() + " " * 2**21)
    subject = xp.FileSession(path, 1)
    with pytest.raises(
        xp.InvalidInput, match="queries that take 6 steps to set up; expected at most 5"
    ):
        subject.ask(asked[2])
    assert xp.load_transcript(path) == subject.transcript == known
    subject.ask(xp.perturbation([0, 1], epsilon="0.1"))  # as one that was asked before
    assert len(xp.load_transcript(path)) == 3


def test_what_a_killed_process_left_is_removed_and_nothing_else(path: Path) -> None:
    number = "0123456789abcdef" * 2
    stale = path.with_name(f".{path.name}.{number}.new")
    others = [
        path.with_name(f".other{path.name}.{number}.new"),
        path.with_name(f".{path.name}.{number}"),
        path.with_name(f".{path.name}.mine.new"),
    ]
    for file in (stale, *others):
        file.write_text("{")
    session(path).ask(BLIND)
    assert sorted(path.parent.iterdir()) == sorted([path, *others])


def test_a_hard_link_gets_no_budget_of_its_own(path: Path) -> None:
    link = path.with_name("link.json")
    link.hardlink_to(path)
    for name in (path, link):
        with pytest.raises(xp.InvalidInput, match=r"has 2 names \(hard links\)") as caught:
            session(name).ask(BLIND)
        assert caught.value.location == str(name)
    assert len(xp.load_transcript(path)) == 0
    link.unlink()
    session(path).ask(BLIND)
    assert len(xp.load_transcript(path)) == 1


def test_a_file_that_was_replaced_by_a_copy_meanwhile_is_not_recorded_over(path: Path) -> None:
    class Meddling:
        """Somebody puts a copy in the place of the file between the decision and the record."""

        def below(self, limit: int) -> int:
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            copy.replace(path)
            xp.FileSession(path, SECRET).ask(BLIND)
            return 0

    with pytest.raises(xp.InvalidInput, match="was replaced by another program"):
        xp.FileSession(path, SECRET, source=Meddling()).ask(BLIND)
    assert len(xp.load_transcript(path)) == 1


def test_no_meddling_with_locks_makes_a_released_response_go_unrecorded(
    tmp_path: Path, path: Path
) -> None:
    guard = xp.BayesianFilter(epsilon="3")
    xp.Transcript(xp.FiniteSet(["a", "b"]), guard).save(path, overwrite=True)
    done = threading.Event()

    def meddle() -> None:
        """Remove whatever else is there, such as a file with a lock."""
        while not done.wait(0.0005):
            for file in tmp_path.glob(f".{path.name}.lock"):
                file.unlink(missing_ok=True)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    outs = [tmp_path / f"out{i}" for i in range(4)]
    try:
        ended = together(*((asking, (6, out, path, str(i))) for i, out in enumerate(outs)))
    finally:
        done.set()
        meddler.join()
    assert ended == [0] * 4
    recorded = [str(exchange.response) for exchange in xp.load_transcript(path).exchanges]
    for i, out in enumerate(outs):
        released = out.read_text("utf-8").split()
        assert len(released) == 6
        assert released == [response for response in recorded if response[0] == str(i)]


def test_a_file_written_by_hand_is_gone_on_with(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\n", "\r\n")
    path.write_text(text, encoding="utf-8-sig", newline="")
    subject = session(path)
    subject.ask(QUERY)
    subject.ask(QUERY)
    assert len(xp.load_transcript(path)) == 2


def test_an_effort_is_what_its_odometer_searches_with(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    box, guard = xp.Box([(0, 1)]), xp.BayesianFilter(epsilon=2)
    xp.Transcript(box, guard).save(path)
    effort = xp.solver.Effort(gap=0.5, nodes=7)
    query = xp.linear([1], epsilon="0.5")
    for subject in (
        xp.FileSession(path, [0.5], effort=effort),
        xp.Session(box, [0.5], filter=guard, effort=effort),
        xp.Session.resume(xp.load_transcript(path), [0.5], effort=effort),
    ):
        subject.ask(query)
        assert subject.odometer.effort is effort
        with pytest.raises(xp.InvalidInput, match="effort: must be an Effort"):
            xp.Session(box, [0.5], filter=guard, effort=0.5)  # type: ignore[arg-type]


def test_resuming_in_memory_is_no_session_of_a_file(path: Path) -> None:
    subject = xp.FileSession.resume(xp.load_transcript(path), SECRET)
    assert type(subject) is xp.Session
    subject.ask(QUERY)
    assert len(xp.load_transcript(path)) == 0


def _mentions(error: BaseException) -> bool:
    """Whether an error shows the secret, also where local variables are printed with it."""
    # The domain is public, and lists all values.
    return SECRET in text_with_locals(error).replace(repr(DOMAIN), "")


def test_bad_files_are_one_line_without_the_value(tmp_path: Path, path: Path) -> None:
    bare = tmp_path / "bare.json"
    xp.Transcript(DOMAIN).save(bare)
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    cases: list[tuple[object, str]] = [
        (tmp_path, "cannot be read: Is a directory"),
        (loop, "cannot be read: Too many levels of symbolic links"),
        (bare, "the transcript names no filter, so there is no budget"),
        (None, "must be the name of a file, not NoneType"),
    ]
    # What is given first is perhaps the value, where there is no such file.
    hidden = "(name not shown, in case it is the value itself); pass the file before the value"
    cases += [(name, hidden) for name in (SECRET, tmp_path / SECRET, f"{SECRET}\0")]
    for file, message in cases:
        with pytest.raises(xp.InvalidInput) as caught:
            xp.FileSession(file, SECRET)  # type: ignore[arg-type]
        assert str(caught.value).endswith(message)
        assert not _mentions(caught.value)
    with pytest.raises(xp.errors.OutsideDomain) as outside:
        xp.FileSession(path, SECRET + "?")
    assert not _mentions(outside.value)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".lock")]
    assert SECRET not in repr(session(path))

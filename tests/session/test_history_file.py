"""Histories as files: on the disk before anything is answered about a step, and never shown."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.session import HistoryFile
from expost.session._history import History
from support.killed_commands import moving_on, together
from support.stack_frames import text_with_locals

SECRET = "the-secret-läbel"
PERSON = xp.Attributes(
    region=["north", SECRET],
    smokes=xp.changing(["no", "yes", SECRET], times=2),
    drinks=xp.changing([0, 0.5, 1], max_step="0.5"),
)
FIRST = {"region": SECRET, "smokes": "no", "drinks": 0}
LOUD = xp.randomized_response(epsilon=40)  # a lie has a probability of 1e-17
BLIND = xp.channel([["1/2", "1/2"]] * 3, responses=["x", "y"])


class Files:
    """A transcript and a history."""

    def __init__(self, directory: Path) -> None:
        self.transcript = directory / "subject.json"
        self.history = directory / "history.jsonl"
        xp.Transcript(PERSON, xp.BayesianFilter(epsilon=300)).save(self.transcript)
        self.file.begin(xp.load_transcript(self.transcript), FIRST)

    @property
    def file(self) -> HistoryFile:
        return HistoryFile(self.history)

    def session(self) -> xp.FileSession:
        return xp.FileSession(self.transcript, self.file)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_history_is_a_line_for_each_step_that_only_its_owner_can_read(files: Files) -> None:
    subject = files.session()
    subject.next(smokes="yes", drinks=0.5)
    subject.next()
    lines = files.history.read_text(encoding="utf-8").splitlines()
    assert lines == [
        '{"region": "the-secret-läbel", "smokes": "no", "drinks": 0}',
        '{"region": "the-secret-läbel", "smokes": "yes", "drinks": 0.5}',
        '{"region": "the-secret-läbel", "smokes": "yes", "drinks": 0.5}',
    ]
    assert stat.S_IMODE(files.history.stat().st_mode) == 0o600
    assert SECRET not in files.transcript.read_text(encoding="utf-8").replace("läbel", "", 2)


def test_sessions_of_one_history_see_the_steps_of_each_other(files: Files) -> None:
    first, second = files.session(), files.session()
    first.next(smokes="yes")
    second.next(drinks=1)  # which knows by now what the other one changed
    assert (first.step, second.step) == (2, 3)
    assert first.ask(LOUD.about("smokes", at=3)) == "yes"
    assert first.step == 3
    assert second.ask(LOUD.about("drinks", at=3)) == 0.5
    assert files.session().step == 3


def test_what_is_frozen_is_frozen_for_every_process(files: Files) -> None:
    for smokes in ("yes", "no", "yes", SECRET):
        files.session().next(smokes=smokes)
    subject = files.session()
    answers = [subject.ask(LOUD.about("smokes", at=step)) for step in range(1, 6)]
    assert answers == ["no", "yes", "no", "no", "no"]


def test_a_history_cut_off_at_any_byte_holds_its_complete_lines_or_is_refused(
    files: Files,
) -> None:
    subject = files.session()
    for smokes in ("yes", SECRET):
        subject.next(smokes=smokes)
    subject.ask(LOUD.about("smokes", at=2))
    whole = files.history.read_bytes()
    asked, transcript = xp.load_transcript(files.transcript), files.transcript.read_bytes()
    for length in range(len(whole) + 1):
        files.history.write_bytes(whole[:length])
        steps = whole[:length].count(b"\n")
        if steps < 2:
            expected = "is behind its transcript" if steps else "holds no complete record"
            with pytest.raises(xp.InvalidInput, match=expected):
                files.session()
            with pytest.raises(xp.InvalidInput, match=r"is behind|holds a history already"):
                files.file.begin(asked, FIRST)
            assert files.history.read_bytes() == whole[:length]
            continue
        again = files.session()
        assert again.step == steps
        again.next(smokes="no")  # and what was cut off is gone
        start = whole[:length].rindex(b"\n") + 1
        kept = files.history.read_bytes()
        assert kept[:start] == whole[:start]
        assert kept.count(b"\n") == steps + 1
    assert files.transcript.read_bytes() == transcript


def test_the_first_line_can_be_cut_off_too(files: Files) -> None:
    whole = files.history.read_bytes()
    for length in range(len(whole)):
        files.history.write_bytes(whole[:length])
        assert not files.file.begun
        files.file.begin(xp.load_transcript(files.transcript), FIRST)
        assert files.history.read_bytes() == whole
    assert files.file.begun


@pytest.mark.parametrize("failing", ["os.pwrite", "os.fsync", "os.ftruncate"])
def test_a_step_that_cannot_be_kept_has_not_come(
    files: Files, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    subject = files.session()
    before = files.history.read_bytes()

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(OSError, match="No space left on device") as caught:
            subject.next(smokes=SECRET)
    assert caught.value.filename == str(files.history)
    assert not _mentions(caught.value)
    assert subject.step == 1
    assert files.history.read_bytes() == before
    subject.next(smokes="yes")
    assert subject.ask(LOUD.about("smokes", at=2)) == "yes"


@pytest.mark.parametrize("where", ["_store_record", "_append_step"])
def test_an_interrupt_leaves_a_session_where_its_file_is(
    files: Files, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    subject = files.session()

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        kind = type(subject._value) if where == "_store_record" else History
        patch.setattr(kind, where, interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            subject.next(smokes=SECRET)
    assert not _mentions(caught.value)
    steps = 2 if where == "_append_step" else 1  # when it is written, it has come
    for each in (subject, files.session()):
        assert each.ask(LOUD.about("smokes", at=steps)) == ("no" if steps == 1 else SECRET)
        assert each.step == steps
    subject.next(smokes="yes")
    assert subject.step == files.session().step == steps + 1
    assert files.session().ask(LOUD.about("smokes", at=steps + 1)) == "yes"


def test_half_a_line_that_was_written_is_not_a_step(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, write = files.session(), os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, line, start: write(file, line[:7], start))
    subject.next(smokes="yes")  # seven bytes at a time
    assert files.session().step == 2


def test_steps_are_synced_by_who_answers_about_them(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote a line may have been killed before it was on the disk."""
    subject = files.session()
    line = files.history.read_bytes()
    with files.history.open("ab") as file:
        file.write(line)
    events: list[str] = []
    sync = os.fsync

    def watched(file: int) -> None:
        same = os.path.samestat(os.fstat(file), files.history.stat())
        events.append("history" if same else "other")
        sync(file)

    class Source(xp.sampling.InsecureSource):
        def below(self, limit: int) -> int:
            events.append("draw")
            return super().below(limit)

    monkeypatch.setattr(os, "fsync", watched)
    subject._source = Source(1)
    subject.ask(BLIND.about("smokes", at=2))
    assert events.index("history") < events.index("draw")


def shorter(lines: list[bytes]) -> list[bytes]:
    return lines[:1]


def other_past(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b"yes", b"no"), lines[2]]


@pytest.mark.parametrize("change", [shorter, other_past])
def test_a_history_that_was_rolled_back_or_changed_is_not_gone_on_with(
    files: Files, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    subject = files.session()
    subject.next(smokes="yes")
    subject.next()
    files.history.write_bytes(b"".join(change(files.history.read_bytes().splitlines(True))))
    for attempt in (subject.next, lambda: subject.ask(BLIND.about("smokes", at=1))):
        with pytest.raises(xp.InvalidInput, match="no longer continues what this") as caught:
            attempt()
        assert caught.value.location == str(files.history)
    assert len(xp.load_transcript(files.transcript)) == 0


def test_a_history_that_others_can_write_to_is_refused_and_one_to_read_warned_of(
    files: Files,
) -> None:
    for mode in (0o602, 0o622, 0o666):
        files.history.chmod(mode)
        with pytest.raises(
            xp.InvalidInput, match=r"history.jsonl: is writable by others; run chmod 600"
        ):
            files.session()
    files.history.chmod(0o644)
    with pytest.warns(UserWarning, match=r"history.jsonl is readable by others; run chmod 600"):
        subject = files.session()
    subject.next()  # once is enough
    files.history.chmod(0o602)
    with pytest.raises(xp.InvalidInput, match="is writable by others"):
        subject.next()


def test_processes_add_their_steps_one_after_the_other(files: Files) -> None:
    ended = together(*((moving_on, (8, files.transcript, files.history)) for _ in range(3)))
    assert ended == [0] * 3
    assert files.session().step == 25


def _mentions(error: BaseException) -> bool:
    """Whether an error shows the secret, also where local variables are printed with it."""
    return "the-secret" in text_with_locals(error)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"the-secret\n", "line 2: not a record in JSON (contents not shown)"),
        (b'["the-secret"]\n', "line 2: not a record in JSON (contents not shown)"),
        (b'{"region": "the-secret", "region": 1}\n', "line 2: not a record in JSON (contents"),
        (b'{"the-secret": "\xff"}\n', "line 2: not a record in JSON (contents not"),
        (b"\n", "line 2: not a record in JSON (contents not shown)"),
        (
            b'{"the-secret": "region"}\n',
            "line 2: a record must have exactly the attributes region, smokes, drinks",
        ),
        (
            b'{"region": "north", "smokes": "no", "drinks": 0}\n',
            "line 2: region differs from the step before, and it does not change",
        ),
        (
            '{"region": "the-secret-läbel", "smokes": "the-secret", "drinks": 0}\n'.encode(),
            "line 2: the value of smokes is outside the domain (and is not shown here)",
        ),
    ],
)
def test_a_bad_line_is_named_and_not_shown(files: Files, line: bytes, message: str) -> None:
    with files.history.open("ab") as file:
        file.write(line)
    for attempt in (files.session, lambda: files.file.locate_in(PERSON)):
        with pytest.raises(xp.InvalidInput) as caught:
            attempt()
        assert f"{files.history}: {message}" in str(caught.value)
        assert not _mentions(caught.value)


def test_a_session_that_knows_the_lines_before_a_bad_one_goes_on_when_it_is_mended(
    files: Files,
) -> None:
    subject, good = files.session(), files.history.read_bytes()
    files.history.write_bytes(good * 2 + b"bad\n")
    with pytest.raises(xp.InvalidInput, match="line 3: not a record"):
        subject.next()
    files.history.write_bytes(good * 3)
    subject.next()
    assert subject.step == 4


def test_bad_files_and_values_are_one_line_without_the_value(files: Files, tmp_path: Path) -> None:
    transcript = xp.load_transcript(files.transcript)
    constant = tmp_path / "constant.json"
    xp.Transcript(xp.FiniteSet(["a", "b"]), xp.BayesianFilter(1)).save(constant)
    new = HistoryFile(tmp_path / "new.jsonl")
    record = {**FIRST, "smokes": SECRET + "?"}
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: xp.FileSession(files.transcript, [FIRST]), "pass a HistoryFile"),
        (lambda: xp.FileSession(constant, files.file), "nothing changes on this domain; give"),
        (lambda: xp.FileSession(files.transcript, new), "new.jsonl: cannot be read: No such file"),
        (lambda: files.file.begin(transcript, FIRST), "history.jsonl: holds a history already"),
        (lambda: new.begin(transcript, record), "the value of smokes is outside the domain"),
        (lambda: HistoryFile(tmp_path).locate_in(PERSON), "cannot be locked: Is a directory"),
        (lambda: HistoryFile("no/such/place").begin(transcript, FIRST), "cannot be made: No such"),
        (lambda: HistoryFile("a\0b").begin(transcript, FIRST), "cannot be read: not a file name"),
        (lambda: HistoryFile(3), "must be the name of a file, not int"),  # type: ignore[arg-type]
        (lambda: new.begin(PERSON, FIRST), "must be a transcript, not Attributes"),  # type: ignore[arg-type]
    ]
    for attempt, message in cases:
        with pytest.raises(xp.InvalidInput) as caught:
            attempt()
        assert message in str(caught.value)
        assert not _mentions(caught.value)
    assert not (tmp_path / "new.jsonl").exists()


def test_nothing_that_is_shown_of_a_history_file_shows_what_is_in_it(files: Files) -> None:
    subject = files.session()
    subject.next(smokes=SECRET)
    for shown in (repr(subject), subject._repr_html_(), repr(subject._value), repr(files.file)):
        assert "the-secret" not in shown
    with pytest.raises(TypeError, match="is not copied"):
        subject._value.__reduce__()

"""One device speaks for a subject: enrolment, the journal, and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from expost.collector._journal import Journal
from expost.collector._problems import RequestProblem
from expost.collector._state import ServiceState
from expost.collector._tokens import Credential
from expost.ledger import LedgerDamaged

PHONE, TABLET = "1" * 64, "2" * 64


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def opened(journal: Path) -> ServiceState:
    return ServiceState(Journal(journal, "study"))


def enrolled(state: ServiceState, code: Credential, device: str, *, answered: bool = False) -> str:
    """Enroll, and return the token or the kind of the refusal."""
    try:
        subject, token = state.enroll(code, device, lambda subject: answered)
    except RequestProblem as problem:
        return problem.kind
    assert subject == "ann"
    return str(token)


def test_an_enrolment_is_repeated_and_another_device_refused(journal: Path) -> None:
    state = opened(journal)
    ((_, code),) = state.invite(["ann"])
    token = enrolled(state, code, PHONE)
    for again in (state, opened(journal)):
        assert enrolled(again, code, PHONE) == token
        assert enrolled(again, code, TABLET) == "another-device"
        assert enrolled(again, code._replace(secret="0" * 64), PHONE) == "unknown-invitation"
        credential = Credential(*token.split("."))
        assert again.authenticate(credential) is not None
        assert again.authenticate(credential._replace(secret="0" * 64)) is None


def test_a_new_invitation_binds_another_device_until_a_reservation_is_handed(
    journal: Path,
) -> None:
    state = opened(journal)
    ((_, first),) = state.invite(["ann"])
    phone = Credential(*enrolled(state, first, PHONE).split("."))
    ((_, second),) = state.invite(["ann"])
    assert enrolled(state, first, TABLET) == "invitation-void"
    tablet = Credential(*enrolled(state, second, TABLET).split("."))
    assert state.authenticate(phone) is None
    assert state.authenticate(tablet) is not None
    assert enrolled(state, first, PHONE) == "invitation-void"

    # The request of the phone was in the queue when the tablet enrolled.
    requests = [("ann", phone.name)]
    assert state.hand_out(requests) == {phone.name}
    assert state.hand_out([("ann", tablet.name)]) == set()
    for again in (state, opened(journal)):
        ((_, third),) = again.invite(["ann"])
        assert not again.accepts_any_device("ann")
        assert enrolled(again, third, PHONE) == "another-device"
        # The tablet gets a new token, and its old one ends.
        renewed = Credential(*enrolled(again, third, TABLET).split("."))
        assert again.authenticate(renewed) is not None
        assert again.authenticate(tablet) is None


def test_a_subject_whose_answers_are_recorded_keeps_its_device(journal: Path) -> None:
    state = opened(journal)
    for device in (PHONE, TABLET):
        ((_, code),) = state.invite(["ann"])
        outcome = enrolled(state, code, device, answered=True)
        assert (outcome == "another-device") == (device == TABLET)


def test_no_secret_is_stored(journal: Path) -> None:
    state = opened(journal)
    ((_, code),) = state.invite(["ann"])
    secrets = [
        code.secret, enrolled(state, code, PHONE).partition(".")[2],
        state.add_token(["analyst"], "").secret, PHONE,
    ]  # fmt: skip
    stored = journal.read_text("utf-8")
    assert not any(secret in stored for secret in secrets)
    assert journal.stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_crash_cut_off_is_removed(journal: Path) -> None:
    state = opened(journal)
    first, last = state.add_token(["analyst"], "first"), state.add_token(["analyst"], "last")
    journal.write_bytes(journal.read_bytes()[:-5])
    again = opened(journal)
    assert again.authenticate(first) is not None
    assert again.authenticate(last) is None
    another = again.add_token(["auditor"], "")
    assert opened(journal).authenticate(another) is not None


def test_a_changed_journal_is_refused(journal: Path) -> None:
    state = opened(journal)
    for label in ("first", "last"):
        state.add_token(["analyst"], label)
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b"analyst", b"auditor", 1))
    with pytest.raises(LedgerDamaged, match=r"line 1 of .* is damaged"):
        opened(journal)
    journal.write_bytes(content)
    with pytest.raises(LedgerDamaged, match=r"line 1 of .* is damaged"):
        ServiceState(Journal(journal, "another study"))

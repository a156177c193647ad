"""What the collector knows besides the ledger: tokens, invitations, bindings, groups and rounds.

It is in a journal next to the checkpoint, never in the database: a restored backup of the database
cannot make a used invitation new, nor bring back a revoked token. The ledger itself records
withdrawals, because every program that opens it must know them. All of it is in memory; a change
is durable before it takes effect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from expost.answers import Subject
from expost.collector._journal import Journal
from expost.collector._problems import RequestProblem
from expost.collector._tokens import (
    DEVICE,
    Credential,
    Token,
    device_credential,
    device_digest,
    new_credential,
)

__all__ = ["Binding", "Invitation", "RoundRecord", "ServiceState"]


class Invitation(NamedTuple):
    """A code with which a device can enroll."""

    digest: str
    subject: Subject


class Binding(NamedTuple):
    """The one device that speaks for a subject."""

    device: str
    #: The token that the device got last, and the invitation that it got it with.
    token: str
    invitation: str


class RoundRecord(NamedTuple):
    """The query and the subjects of a key."""

    #: The content id of the query.
    query: str
    #: None for everybody.
    group: str | None
    by_name: bool


class ServiceState:
    """Everything in the journal, in memory."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.lock = threading.RLock()
        self.tokens: dict[str, Token] = {}
        self.revoked: set[str] = set()
        self.invitations: dict[str, Invitation] = {}
        #: The last invitation of each subject: earlier ones are void.
        self._last_invitation: dict[Subject, str] = {}
        self.bindings: dict[Subject, Binding] = {}
        #: Subjects whose device was handed a reservation: no other device can speak for them.
        self.handed: set[Subject] = set()
        self.groups: dict[str, frozenset[Subject]] = {}
        self.rounds: dict[str, RoundRecord] = {}
        for entry in journal.entries():
            self._apply(entry)

    def _apply(self, entry: Mapping[str, Any]) -> None:
        """Take in one entry of the journal."""
        match entry["kind"]:
            case "token":
                name, scopes = entry["name"], frozenset(entry["scopes"])
                self.tokens[name] = Token(
                    name, entry["digest"], scopes, entry["label"], group=entry["group"]
                )
            case "revoked":
                self.revoked.add(entry["token"])
            case "invited":
                invitation = Invitation(entry["digest"], entry["subject"])
                self.invitations[entry["name"]] = invitation
                self._last_invitation[invitation.subject] = entry["name"]
            case "bound":
                subject, name = entry["subject"], entry["token"]
                before = self.bindings.get(subject)
                if before is not None and before.token != name:
                    self.revoked.add(before.token)
                self.bindings[subject] = Binding(entry["device"], name, entry["invitation"])
                scopes = frozenset((DEVICE,))
                self.tokens[name] = Token(name, entry["digest"], scopes, subject=subject)
            case "handed":
                self.handed.update(entry["subjects"])
            case "group":
                self.groups[entry["name"]] = frozenset(entry["subjects"])
            case "round":
                self.rounds[entry["key"]] = RoundRecord(
                    entry["query"], entry["group"], entry["by_name"]
                )

    def _write(self, *entries: Mapping[str, Any]) -> None:
        with self.lock:
            self._journal.append(entries)
            for entry in entries:
                self._apply(entry)

    # -- tokens

    def authenticate(self, credential: Credential) -> Token | None:
        """Return the token of a credential; None if it is unknown, wrong or revoked."""
        token = self.tokens.get(credential.name)
        if token is None or not credential.matches(token.digest):
            return None
        return None if token.name in self.revoked else token

    def add_token(
        self, scopes: Collection[str], label: str, group: str | None = None
    ) -> Credential:
        """Make a token; its secret is in the result only."""
        credential = new_credential()
        self._write(
            {
                "kind": "token",
                "name": credential.name,
                "digest": credential.digest,
                "scopes": sorted(scopes),
                "label": label,
                "group": group,
            }
        )
        return credential

    def revoke(self, name: str) -> None:
        """Refuse a token from now on."""
        if name not in self.tokens:
            raise RequestProblem(404, "unknown-token", "there is no such token")
        if name not in self.revoked:
            self._write({"kind": "revoked", "token": name})

    # -- devices

    def invite(self, subjects: Iterable[Subject]) -> list[tuple[Subject, Credential]]:
        """Make a code for each subject. Its earlier codes are void, used or not."""
        codes = [(subject, new_credential()) for subject in subjects]
        self._write(
            *(
                {"kind": "invited", "name": code.name, "digest": code.digest, "subject": subject}
                for subject, code in codes
            )
        )
        return codes

    def enroll(
        self, code: Credential, device: str, has_answered: Callable[[Subject], bool]
    ) -> tuple[Subject, Credential]:
        """Bind a device to the subject of a code; return its token.

        Repeating it returns the same token. Another device is refused once a device has enrolled
        with this code, or was handed a reservation: that one may have drawn an answer.
        """
        with self.lock:
            invitation = self.invitations.get(code.name)
            if invitation is None or not code.matches(invitation.digest):
                raise RequestProblem(403, "unknown-invitation", "there is no such invitation")
            subject, digest = invitation.subject, device_digest(device)
            token = device_credential(code, device)
            bound = self.bindings.get(subject)
            if bound == (digest, token.name, code.name):
                if token.name in self.revoked:
                    raise RequestProblem(
                        403, "token-revoked", "the token of this device was revoked"
                    )
                return subject, token
            if self._last_invitation[subject] != code.name:
                raise RequestProblem(
                    409, "invitation-void", "a later invitation has replaced this one"
                )
            other = bound is None or bound.device != digest
            taken = other and subject in self.handed
            if bound is not None and other:
                taken = taken or bound.invitation == code.name or has_answered(subject)
            if taken:
                reason = "another device speaks for this subject already"
                raise RequestProblem(409, "another-device", reason)
            self._write(
                {
                    "kind": "bound",
                    "subject": subject,
                    "device": digest,
                    "invitation": code.name,
                    "token": token.name,
                    "digest": token.digest,
                }
            )
            return subject, token

    def accepts_any_device(self, subject: Subject) -> bool:
        """Return whether a new invitation of a subject could bind another device."""
        return subject not in self.handed

    def hand_out(self, requests: Iterable[tuple[Subject, str]]) -> set[str]:
        """Record that subjects are about to get a reservation, each by the request of a token.

        Returns:
            The tokens that were revoked meanwhile: their requests must not be answered.
        """
        with self.lock:
            pairs = list(requests)
            revoked = {token for _, token in pairs if token in self.revoked}
            new = {subject for subject, token in pairs if token not in revoked} - self.handed
            if new:
                self._write({"kind": "handed", "subjects": list(new)})
            return revoked

    # -- groups and rounds

    def name_group(self, name: str, subjects: Collection[Subject]) -> None:
        """Name a group of subjects, which never changes."""
        self._write({"kind": "group", "name": name, "subjects": list(subjects)})

    def record_round(self, key: str, record: RoundRecord) -> None:
        """Record who is asked under a key, once."""
        with self.lock:
            if key not in self.rounds:
                self._write({"kind": "round", "key": key, **record._asdict()})
            elif self.rounds[key] != record:
                raise RequestProblem(
                    409, "key-used", "the key was used for another query or other subjects"
                )

    def close(self) -> None:
        self._journal.close()

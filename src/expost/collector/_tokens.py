"""Tokens and invitation codes: ``id.secret`` with 256 random bits; only digests are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from expost.answers import Subject
from expost.sampling import SystemSource, uniform_bytes

__all__ = [
    "ADMINISTRATOR",
    "ANALYST",
    "AUDITOR",
    "BY_NAME",
    "DEVICE",
    "GATEWAY",
    "REGISTRAR",
    "SCOPES",
    "Credential",
    "Token",
    "device_credential",
    "device_digest",
    "new_credential",
    "read_credential",
]

DEVICE, GATEWAY, ANALYST, BY_NAME, REGISTRAR, AUDITOR, ADMINISTRATOR = (
    "device", "gateway", "analyst", "asks-by-name", "registrar", "auditor", "administrator"
)  # fmt: skip

#: The scopes that a token can have, with what they permit.
SCOPES = {
    DEVICE: "sync and withdraw the token's own subject",
    GATEWAY: "sync the subjects of one group, or all",
    ANALYST: "ask everybody or groups, and read counts and estimates of them",
    BY_NAME: "also ask subjects by name, which reveals as much as their transcripts",
    REGISTRAR: "register and invite subjects, name groups, withdraw and resolve subjects",
    AUDITOR: "read transcripts, the audit, the export and the log of requests",
    ADMINISTRATOR: "make and revoke tokens, read metrics, end the study",
}

_CREDENTIAL = re.compile("([0-9a-f]{16})[.]([0-9a-f]{64})")


class Credential(NamedTuple):
    """A token or an invitation code as its holder has it."""

    name: str
    secret: str

    def __str__(self) -> str:
        return f"{self.name}.{self.secret}"

    def __repr__(self) -> str:
        return f"Credential({self.name!r})"

    @property
    def digest(self) -> str:
        """Return what is stored about the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        return hmac.compare_digest(self.digest, digest)


class Token(NamedTuple):
    """A token as the collector knows it."""

    name: str
    digest: str
    scopes: frozenset[str]
    #: For people; a device token has none.
    label: str = ""
    #: The only subject that a device token speaks for.
    subject: Subject | None = None
    #: The group that a gateway token speaks for; None for all subjects.
    group: str | None = None


def new_credential() -> Credential:
    """Draw a credential."""
    return Credential(
        uniform_bytes(SystemSource(), 8).hex(), uniform_bytes(SystemSource(), 32).hex()
    )


def device_credential(code: Credential, device: str) -> Credential:
    """Return the token of a device that enrolls with a code.

    It is a function of the code's secret and the device id, so a device that lost the answer gets
    the same token again, and the collector need not store the secret. Neither the code alone, which
    the registrar has seen, nor the device id alone is enough.
    """
    key = code.secret.encode()
    name = hmac.digest(key, b"token name " + device.encode(), "sha256").hex()[:16]
    return Credential(name, hmac.digest(key, b"token secret " + device.encode(), "sha256").hex())


def device_digest(device: str) -> str:
    """Return what is stored about a device id."""
    return hashlib.sha256(device.encode()).hexdigest()


def read_credential(text: str) -> Credential | None:
    """Read a token or a code; None if it is none."""
    match = _CREDENTIAL.fullmatch(text)
    return None if match is None else Credential(match[1], match[2])

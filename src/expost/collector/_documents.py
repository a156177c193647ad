"""The bodies and parameters of requests, and the answers, as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Raw, Struct

from expost.answers import Subject

# msgspec reads the annotations of these classes when they are made.
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Names = Annotated[list[Subject], Meta(min_length=1, max_length=100_000)]
Wait = Annotated[int, Meta(ge=0, le=30)]


class Body(Struct, forbid_unknown_fields=True):
    """A body or parameters: unknown fields are refused."""


class Enrolment(Body):
    """An invitation code, and the id that the device made when it was created."""

    code: Annotated[str, Meta(pattern="^[0-9a-f]{16}[.][0-9a-f]{64}$")]
    device: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Enrolled(Struct):
    """The token of a device, and its subject."""

    subject: Subject
    token: str
    ledger: str


class RoundRequest(Body):
    """A query for everybody, a group, or subjects by name."""

    #: The name of a query of the study, or a query document.
    query: Raw
    #: The idempotency key; required unless it is a dry run.
    key: Name | None = None
    group: Name | None = None
    subjects: Names | None = None
    dry_run: bool = False


class DryRun(Struct):
    """What a dry run returns: how many would accept."""

    subjects: int
    accepted: int
    refused: int
    undecided: int
    #: Suspended, unconfirmed, or still to answer an earlier round.
    busy: int


class RoundCounts(Struct):
    """What became of a round."""

    key: str
    query: str
    group: str | None
    subjects: int
    answered: int
    declined: int
    refused: int
    waiting: int
    #: Subjects that are not asked yet: suspended, unconfirmed, or busy. Only in the answer to the
    #: request that asks.
    later: int = 0


class Rounds(Struct):
    """All rounds that the token may see."""

    rounds: list[RoundCounts]


class Registration(Body):
    """Names of subjects."""

    subjects: Names


class Registered(Struct):
    """How many were new, and how many there are."""

    new: int
    subjects: int


class Invited(Struct):
    """A code for one subject, shown once."""

    subject: Subject
    code: str
    #: "any" or "same": the device that may enroll.
    device: str


class Invitations(Struct):
    """Codes in the order of the request."""

    invitations: list[Invited]


class GroupMembers(Body):
    """The members of a new group."""

    subjects: Names


class NamedGroup(Struct):
    """A group and its size."""

    name: str
    subjects: int


class GroupList(Struct):
    """All groups."""

    groups: list[NamedGroup]


class SubjectName(Body):
    """One subject."""

    subject: Subject


class Changed(Struct):
    """Whether a request changed anything."""

    changed: bool


class TokenRequest(Body):
    """The scopes of a new token."""

    scopes: Annotated[list[str], Meta(min_length=1, max_length=8)]
    label: Annotated[str, Meta(max_length=100)] = ""
    #: Only for the scope gateway: the subjects that it speaks for; by default all.
    group: Name | None = None


class NewToken(Struct):
    """A token, shown once."""

    id: str
    token: str


class TokenEntry(Struct):
    """A token without its secret."""

    id: str
    scopes: list[str]
    label: str
    revoked: bool


class TokenList(Struct):
    """All tokens except those of devices, which are counted."""

    tokens: list[TokenEntry]
    devices: int


class StatusCounts(Struct):
    """Counts and a histogram over a group."""

    commit: int
    root: str
    subjects: int
    answers: int
    states: dict[str, int]
    reserved: int
    #: Active subjects without any remaining budget.
    used_up: int
    #: Subjects by the share of the budget that is used: ten bins of equal width, from 0 to 1.
    used: list[int]
    ended: bool


class JobProgress(Struct):
    """How far a job is."""

    done: int
    total: int


# -- parameters


class SyncParameters(Body):
    """Parameters of a sync."""

    wait: Wait = 0


class GroupParameters(Body):
    """Parameters of a status."""

    group: str | None = None


class EstimateParameters(Body):
    """Parameters of an estimate; without mean, share and frequencies, a distribution."""

    group: str | None = None
    mean: str | None = None
    share: str | None = None
    frequencies: bool = False
    likelihood: bool = False
    #: Attributes, separated by commas.
    about: str | None = None
    step: int | None = None
    confidence: Annotated[str, Meta(max_length=20)] = "0.95"
    wait: Wait = 0


class JobParameters(Body):
    """Parameters of a job."""

    wait: Wait = 0


class NoParameters(Body):
    """An endpoint without parameters."""


Document = dict[str, Any]

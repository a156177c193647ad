"""One endpoint: routes, permissions, documentation and OpenAPI are made from a table of these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Struct

from expost.collector import _documents as documents
from expost.collector._service import Service
from expost.collector._tokens import Token

__all__ = ["Answer", "Call", "Endpoint"]


@dataclass(slots=True)
class Call:
    """A request after its token, parameters and body were checked."""

    service: Service
    #: None if the endpoint is public.
    token: Token | None
    path: Mapping[str, str]
    parameters: Any
    #: The decoded body, or bytes if the endpoint reads them itself.
    body: Any
    headers: Mapping[str, str]

    @property
    def holder(self) -> Token:
        """The token of an endpoint that needs one."""
        assert self.token is not None, "the endpoint is not public"
        return self.token


class Answer(NamedTuple):
    """The answer to a request."""

    content: bytes | str | Struct | Mapping[str, Any] | AsyncIterator[bytes]
    status: int = 200
    media_type: str = "application/json"
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Answer]]
    summary: str
    #: The scopes of which a token needs one; empty if the endpoint is public.
    scopes: tuple[str, ...]
    #: Everything that its answer reveals, and the holder of which token sees it.
    reveals: str
    parameters: type[Struct] = documents.NoParameters
    #: The body; bytes if the handler reads it itself.
    body: type[Struct] | type[bytes] | None = None
    #: Statuses of successes, with the documents of their answers.
    answers: Mapping[int, Any] = field(default_factory=dict)
    #: Further statuses of problems, with what they mean.
    problems: Mapping[int, str] = field(default_factory=dict)
    #: Whether requests are recorded in the log of who asked what.
    logged: bool = False

    def statuses(self) -> dict[int, str]:
        """Return all problems that it can answer with."""
        common = {400: "The parameters cannot be read.", 503: "Stopping, or too busy: repeat."}
        if self.scopes:
            common |= {401: "No valid token.", 403: "A scope is missing.", 429: "Too many."}
        if self.body is not None:
            common |= {400: "The body cannot be read.", 413: "The body is too large."}
        return dict(sorted((common | dict(self.problems)).items()))

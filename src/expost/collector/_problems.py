"""Refusals as problem details (RFC 9457), with the numbers that a refusal has."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["PROBLEM_TYPE", "RequestProblem", "unavailable"]

PROBLEM_TYPE = "application/problem+json"


class RequestProblem(Exception):
    """An answer that is no success.

    Args:
        status: The HTTP status.
        kind: The end of its type, such as ``group-too-small``.
        detail: One line for people; it never has a secret.
        headers: Further headers of the answer.
        members: The numbers.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.headers = headers or {}
        self._tree = {
            "type": f"urn:expost:problem:{kind}",
            "title": kind.replace("-", " ").capitalize(),
            "status": status,
            "detail": detail,
            **members,
        }

    def to_json(self) -> bytes:
        return json.dumps(self._tree).encode()


def unavailable(detail: str, seconds: int = 1) -> RequestProblem:
    """Return the refusal of a request that the client should repeat later."""
    return RequestProblem(503, "unavailable", detail, headers={"Retry-After": str(seconds)})

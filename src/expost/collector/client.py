"""The client of a collector, for analysts, registrars, auditors and administrators.

It needs the standard library only; devices have one of their own (device.py).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload
from urllib.parse import quote, urlencode

from expost.device.device import Collector as Connection
from expost.device.device import Offline, Refused
from expost.errors import ExpostError, InvalidInput, make_printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from expost._types import PathLike, Progress
    from expost.answers import Subject
    from expost.ledger import StudyPolicy
    from expost.queries import Query
    from expost.report._estimates import EstimateRow
    from expost.transcript import Transcript

__all__ = [
    "Collector",
    "CollectorAudit",
    "CollectorEstimates",
    "CollectorOffline",
    "CollectorRefusal",
    "CollectorStatus",
    "DryRunCounts",
    "RoundProgress",
]

Result = TypeVar("Result", bound="DataclassInstance")
# Seconds that the collector may wait for the end of a job before it reports progress.
_WAIT = 20


class CollectorOffline(ExpostError):
    """The collector cannot be reached, or is too busy. Repeat the call later."""


class CollectorRefusal(ExpostError):
    """The collector refused a request. The message is one line.

    ``status`` is the HTTP status, ``kind`` the end of the problem's type, such as
    ``group-too-small``, and ``members`` has the numbers of the problem.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.kind = str(problem.get("type", "")).rpartition(":")[2]
        known = ("type", "title", "status", "detail")
        self.members = {name: entry for name, entry in problem.items() if name not in known}
        super().__init__(make_printable(str(problem.get("detail") or f"status {status}"))[:1000])


@dataclass(frozen=True, slots=True)
class DryRunCounts:
    """How many subjects would accept a query now. Nobody is asked."""

    subjects: int
    accepted: int
    refused: int
    undecided: int
    #: Suspended, unconfirmed, or still to answer an earlier round.
    busy: int


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """What became of a round so far."""

    key: str
    #: The name of the query.
    query: str
    group: str | None
    subjects: int
    answered: int
    #: By devices.
    declined: int
    #: By the filter.
    refused: int
    #: Reserved, and not answered so far.
    waiting: int
    #: Subjects that cannot be asked yet: repeat the call with the same key. Only after ``round``.
    later: int = 0


@dataclass(frozen=True, slots=True)
class CollectorStatus:
    """Counts over everybody or a group."""

    commit: int
    root: str
    subjects: int
    answers: int
    states: Mapping[str, int]
    reserved: int
    used_up: int
    #: Subjects by the share of the budget that is used: ten bins of equal width, from 0 to 1.
    used: Sequence[int]
    ended: bool


@dataclass(frozen=True, slots=True)
class CollectorEstimates:
    """Estimates with intervals, as of a commit."""

    #: The estimated quantity, and the method.
    description: str
    rows: tuple[EstimateRow, ...]
    confidence: float
    subjects: int
    answers: int
    assumes: tuple[str, ...]
    warning: str | None
    commit: int
    root: str

    def __str__(self) -> str:
        lines = [
            f"{row.of}: {row.estimate:.4g}, {row.lower:.4g} to {row.upper:.4g}" for row in self.rows
        ]
        return "\n".join([self.description, *lines, *filter(None, [self.warning])])


@dataclass(frozen=True, slots=True)
class CollectorAudit:
    """The verdict about a study as of a commit, and everything out of the ordinary."""

    #: Whether all digests are right, and every recorded budget was respected.
    good: bool
    problems: Sequence[str]
    subjects: int
    exchanges: int
    #: Subjects whose budget was exceeded.
    broken: Sequence[Subject]
    suspended: Sequence[Subject]
    unconfirmed: Sequence[Subject]
    withdrawn: Sequence[Subject]
    reserved: Sequence[Subject]
    #: Each with subject, reason, and whether it is held.
    quarantined: Sequence[Mapping[str, Any]]
    extras: int
    two_outcomes: Sequence[Sequence[Any]]
    lost_imports: int
    marks: Sequence[str]
    commit: int
    root: str


class Collector:
    """A study on a collector, over HTTP.

    Each method needs a token with the scope that its description names. A call repeats its request
    if the network fails or the collector is busy, for about half a minute. Requests of one object
    follow each other; threads need one object each. ``SSL_CERT_FILE`` names further authorities.

    Args:
        url: Begins with https://; http:// only for this machine.
        token: Read it from a private file or the environment. None suffices for ``policy``.

    Raises:
        CollectorOffline: From every method, if the collector cannot be reached.
        CollectorRefusal: From every method, if the collector refuses the request.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            self._connection = Connection(url)
        except (Refused, ValueError) as error:
            raise InvalidInput(str(error), "url") from None
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InvalidInput("is no token of a collector", "token")
        self._token = token or ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.__exit__()

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        read: Callable[[Any], bytes] = lambda answer: answer.read(),
    ) -> tuple[int, bytes]:
        content = None if body is None else json.dumps(body).encode()
        try:
            status, answer = self._connection.request(method, path, content, self._token, read)
        except Offline as error:
            raise CollectorOffline(str(error)) from None
        except Refused as error:
            raise InvalidInput(str(error), "url") from None
        if 200 <= status < 300:
            return status, answer
        problem: Any = {}
        with suppress(ValueError, RecursionError):
            problem = json.loads(answer)
        raise CollectorRefusal(status, problem if isinstance(problem, dict) else {})

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._request(method, path, body)[1])

    def policy(self) -> StudyPolicy:
        """Return domain, filter and title of the study. Needs no token."""
        from expost.ledger import StudyPolicy

        return StudyPolicy.from_json(self._request("GET", "/v1/policy")[1].decode())

    # -- registrars

    def register(self, subjects: Iterable[Subject]) -> int:
        """Register subjects with devices; return how many are new (registrar)."""
        return int(self._call("POST", "/v1/subjects", {"subjects": [*subjects]})["new"])

    def invite(self, subjects: Iterable[Subject]) -> dict[Subject, str]:
        """Return a new invitation code for each subject (registrar).

        New names are registered. Earlier codes of these subjects are void.
        """
        answer = self._call("POST", "/v1/invitations", {"subjects": [*subjects]})
        return {entry["subject"]: entry["code"] for entry in answer["invitations"]}

    def name_group(self, name: str, subjects: Iterable[Subject]) -> int:
        """Name a group of subjects, permanently; return its size (registrar)."""
        path = f"/v1/groups/{quote(name, safe='')}"
        return int(self._call("PUT", path, {"subjects": [*subjects]})["subjects"])

    def groups(self) -> dict[str, int]:
        """Return names and sizes of groups (registrar, analyst)."""
        return {
            entry["name"]: entry["subjects"] for entry in self._call("GET", "/v1/groups")["groups"]
        }

    def withdraw(self, subject: Subject) -> bool:
        """Withdraw a subject; return whether that is new (registrar)."""
        return bool(self._call("POST", "/v1/withdrawals", {"subject": subject})["changed"])

    def resolve(self, subject: Subject) -> bool:
        """End the suspension of a subject; return whether there was one (registrar)."""
        return bool(self._call("POST", "/v1/resolutions", {"subject": subject})["changed"])

    def revoke_device(self, subject: Subject) -> bool:
        """Revoke the token of a subject's device; return whether that is new (registrar)."""
        return bool(self._call("POST", "/v1/devices/revoked", {"subject": subject})["changed"])

    # -- analysts

    @overload
    def round(
        self,
        query: Query | str,
        key: str,
        *,
        group: str | None = None,
        subjects: Iterable[Subject] | None = None,
        dry_run: Literal[False] = False,
    ) -> RoundProgress: ...

    @overload
    def round(
        self,
        query: Query | str,
        key: None = None,
        *,
        group: str | None = None,
        subjects: Iterable[Subject] | None = None,
        dry_run: Literal[True],
    ) -> DryRunCounts: ...

    def round(
        self,
        query: Query | str,
        key: str | None = None,
        *,
        group: str | None = None,
        subjects: Iterable[Subject] | None = None,
        dry_run: bool = False,
    ) -> RoundProgress | DryRunCounts:
        """Ask everybody or a group (analyst); repeating a key asks nobody twice.

        Args:
            query: A query, or the name of one of the study.
            key: The idempotency key of the round; a dry run has none.
            group: A group that a registrar has named; None for everybody.
            subjects: Names instead; that needs the scope asks-by-name.
            dry_run: Whether to count only who would accept.
        """
        body = {
            "query": query if isinstance(query, str) else json.loads(query.to_json()),
            "key": key,
            "group": group,
            "subjects": None if subjects is None else [*subjects],
            "dry_run": dry_run,
        }
        answer = self._call("POST", "/v1/rounds", body)
        return _read(DryRunCounts, answer) if dry_run else _read(RoundProgress, answer)

    def rounds(self) -> tuple[RoundProgress, ...]:
        """Return what became of every round (analyst, auditor)."""
        entries = self._call("GET", "/v1/rounds")["rounds"]
        return tuple(_read(RoundProgress, entry) for entry in entries)

    def status(self, group: str | None = None) -> CollectorStatus:
        """Count answers, states and used budgets (analyst, auditor)."""
        parameters = "" if group is None else "?" + urlencode({"group": group})
        return _read(CollectorStatus, self._call("GET", f"/v1/status{parameters}"))

    def estimate(
        self,
        *,
        mean: str | None = None,
        share: str | None = None,
        frequencies: bool = False,
        likelihood: bool = False,
        about: Sequence[str] | None = None,
        step: int | None = None,
        group: str | None = None,
        confidence: str = "0.95",
        progress: Progress = lambda done, total: None,
    ) -> CollectorEstimates:
        """Estimate a distribution, a mean or a share, as ``expost estimate`` does (analyst).

        Args:
            mean: The name of a query with a score, or of an attribute.
            share: A statement, such as ``smokes == "yes"``.
            frequencies: Whether to estimate without bias if all subjects were asked alike.
            likelihood: Whether to estimate a mean by likelihood.
            about: Attributes.
            step: The step of values that change.
            group: A named group; None for everybody.
            confidence: Of the intervals.
            progress: Called with steps done and their total, until the result is there.
        """
        from expost.report._estimates import EstimateRow

        parameters: dict[str, Any] = {"mean": mean, "share": share, "group": group, "step": step}
        parameters |= {"about": None if about is None else ",".join(about)}
        parameters |= {"confidence": confidence}
        chosen = {name: entry for name, entry in parameters.items() if entry is not None}
        flags = {"frequencies": frequencies, "likelihood": likelihood}
        chosen |= {name: "true" for name, wanted in flags.items() if wanted}
        answer = self._finish_job("/v1/estimates", chosen, progress)
        numbers = ("estimate", "standard_error", "lower", "upper")
        rows = (
            _read(EstimateRow, {**row, **{name: _read_double(row[name]) for name in numbers}})
            for row in answer["estimates"]
        )
        sources = {**answer, "description": answer["what"], "rows": tuple(rows)}
        return _read(CollectorEstimates, {**sources, "assumes": tuple(answer["assumes"])})

    def _finish_job(self, path: str, parameters: Mapping[str, Any], progress: Progress) -> Any:
        """Repeat a request until its job is done."""
        location = f"{path}?{urlencode({**parameters, 'wait': _WAIT})}"
        while True:
            status, content = self._request("GET", location)
            answer = json.loads(content)
            if status != 202:
                return answer
            progress(answer["done"], answer["total"])

    # -- auditors

    def audit(self, progress: Progress = lambda done, total: None) -> CollectorAudit:
        """Verify and audit the study (auditor).

        Args:
            progress: Called with subjects done and their total, until the result is there.
        """
        return _read(CollectorAudit, self._finish_job("/v1/audit", {}, progress))

    def transcript(self, subject: Subject) -> Transcript:
        """Return everything that a subject was asked and answered (auditor)."""
        from expost.transcript import Transcript

        name = quote(str(subject), safe="")
        content = self._request("GET", f"/v1/subjects/{name}/transcript")[1]
        return Transcript.from_json(content.decode())

    def export(self, path: PathLike) -> None:
        """Write the whole ledger to a file, which ``checks.py`` can check (auditor)."""
        self._download("/v1/export", Path(path))

    def requests(self, path: PathLike) -> None:
        """Write the log of who asked what to a file (auditor, administrator)."""
        self._download("/v1/requests", Path(path))

    def _download(self, location: str, path: Path) -> None:
        part = path.with_name(f"{path.name}.part")

        def read(answer: Any) -> bytes:
            if answer.status != 200:
                return bytes(answer.read())
            with part.open("wb") as file:
                shutil.copyfileobj(answer, file)
            if answer.length:
                raise ConnectionError("the answer was cut off")
            return b""

        try:
            self._request("GET", location, read=read)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    # -- administrators

    def make_token(self, *scopes: str, label: str = "", group: str | None = None) -> str:
        """Return a new token with these scopes, which is shown only once (administrator).

        Args:
            scopes: Some of gateway, analyst, asks-by-name, registrar, auditor and administrator.
            label: A remark for people.
            group: The subjects that a gateway speaks for; by default all.
        """
        body = {"scopes": scopes, "label": label, "group": group}
        return str(self._call("POST", "/v1/tokens", body)["token"])

    def revoke_token(self, name: str) -> bool:
        """Revoke a token by its id, the part before the dot (administrator)."""
        return bool(self._call("DELETE", f"/v1/tokens/{quote(name, safe='')}")["changed"])

    def end(self) -> None:
        """End the study, permanently (administrator)."""
        self._call("POST", "/v1/end")


def _read_double(entry: Any) -> float:
    """Read a number of a report: JSON has neither infinities nor NaN."""
    return float("nan") if entry is None else float(entry)


def _read(kind: type[Result], tree: Mapping[str, Any]) -> Result:
    """Make a result from the fields that it has; later versions may send more."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: entry for name, entry in tree.items() if name in names})

"""Endpoints of registrars, auditors and administrators, and those of the service itself."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from expost.answers import Subject
from expost.collector import _documents as documents
from expost.collector._analysts import job_answer
from expost.collector._devices import JSON_LINES
from expost.collector._endpoints import Answer, Call, Endpoint
from expost.collector._jobs import audit
from expost.collector._problems import RequestProblem, unavailable
from expost.collector._tokens import ADMINISTRATOR, AUDITOR, DEVICE, GATEWAY, REGISTRAR, SCOPES
from expost.ledger import Ledger

__all__ = ["ENDPOINTS"]

_BLOCK = 1 << 16


async def register(call: Call) -> Answer:
    body: documents.Registration = call.body
    writer = call.service.writer

    def add() -> documents.Registered:
        new = writer.register(list(dict.fromkeys(body.subjects)))
        return documents.Registered(new, len(writer))

    return Answer(await asyncio.to_thread(add))


async def invite(call: Call) -> Answer:
    body: documents.Registration = call.body
    service, subjects = call.service, list(dict.fromkeys(body.subjects))

    def make() -> documents.Invitations:
        service.writer.register(subjects)
        codes = service.state.invite(subjects)
        return documents.Invitations(
            [
                documents.Invited(
                    subject,
                    str(code),
                    "any" if service.state.accepts_any_device(subject) else "same",
                )
                for subject, code in codes
            ]
        )

    return Answer(await asyncio.to_thread(make), 201)


async def resolve(call: Call) -> Answer:
    body: documents.SubjectName = call.body
    changed = await asyncio.to_thread(call.service.writer.resolve, [body.subject])
    return Answer(documents.Changed(bool(changed)))


async def revoke_device(call: Call) -> Answer:
    body: documents.SubjectName = call.body
    state = call.service.state
    binding = state.bindings.get(body.subject)
    if binding is None:
        raise RequestProblem(404, "no-device", "no device has enrolled for this subject")
    changed = binding.token not in state.revoked
    await asyncio.to_thread(state.revoke, binding.token)
    return Answer(documents.Changed(changed))


def _find_subject(call: Call) -> Subject:
    """Return the subject of a path; digits may be a number."""
    name, reader = call.path["subject"], call.service.reader
    names = set(reader.subjects)
    if name in names:
        return name
    if name.removeprefix("-").isdecimal() and len(name) < 18 and int(name) in names:
        return int(name)
    raise RequestProblem(404, "unknown-subject", "there is no such subject")


async def transcript(call: Call) -> Answer:
    def read() -> str:
        return call.service.reader.transcript(_find_subject(call)).to_json()

    return Answer(await asyncio.to_thread(read))


async def audit_study(call: Call) -> Answer:
    return await job_answer(call, "audit", audit)


async def export(call: Call) -> Answer:
    folder = tempfile.TemporaryDirectory(prefix="expost-")
    path = Path(folder.name) / "export.jsonl"

    def write() -> None:
        service = call.service
        with Ledger(service.settings.database, checkpoint=service.checkpoint) as ledger:
            ledger.export(path)

    try:
        await asyncio.to_thread(write)
    except BaseException:
        folder.cleanup()
        raise
    return Answer(_stream(path, folder), media_type=JSON_LINES)


async def _stream(
    path: Path, folder: tempfile.TemporaryDirectory[str] | None
) -> AsyncIterator[bytes]:
    try:
        with path.open("rb") as file:
            while block := await asyncio.to_thread(file.read, _BLOCK):
                yield block
    finally:
        if folder is not None:
            folder.cleanup()


async def request_log(call: Call) -> Answer:
    return Answer(_stream(call.service.request_log.path, None), media_type=JSON_LINES)


async def make_token(call: Call) -> Answer:
    body: documents.TokenRequest = call.body
    state, scopes = call.service.state, set(body.scopes)
    unknown = scopes - SCOPES.keys()
    if unknown or DEVICE in scopes:
        choices = ", ".join(scope for scope in SCOPES if scope != DEVICE)
        raise RequestProblem(422, "invalid-input", f"scopes: expected some of {choices}")
    if body.group is not None and (GATEWAY not in scopes or body.group not in state.groups):
        raise RequestProblem(422, "invalid-input", "group: expected a named group, for a gateway")
    label = body.label if body.label.isprintable() else ""
    credential = await asyncio.to_thread(state.add_token, scopes, label, body.group)
    return Answer(documents.NewToken(credential.name, str(credential)), 201)


async def list_tokens(call: Call) -> Answer:
    state = call.service.state
    tokens = [token for token in state.tokens.values() if DEVICE not in token.scopes]
    entries = [
        documents.TokenEntry(
            token.name, sorted(token.scopes), token.label, token.name in state.revoked
        )
        for token in tokens
    ]
    return Answer(documents.TokenList(entries, len(state.bindings)))


async def revoke_token(call: Call) -> Answer:
    state, name = call.service.state, call.path["id"]
    changed = name not in state.revoked
    await asyncio.to_thread(state.revoke, name)
    return Answer(documents.Changed(changed))


async def end(call: Call) -> Answer:
    await asyncio.to_thread(call.service.writer.end)
    return Answer(documents.Changed(changed=True))


async def health(call: Call) -> Answer:
    return Answer(b"", 204)


async def ready(call: Call) -> Answer:
    if call.service.stopping.is_set():
        raise unavailable("the collector is stopping", 5)
    return Answer(b"", 204)


async def metrics(call: Call) -> Answer:
    service = call.service
    gauges = {"queue_requests": float(len(service.queue)), "enrolled": len(service.state.bindings)}
    gauges |= await asyncio.to_thread(service.count_states)
    text = service.metrics.to_text(gauges)
    return Answer(text, media_type="text/plain; version=0.0.4")


_UNKNOWN = {422: "A subject is not registered, or a name cannot be used."}

ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/subjects",
        register,
        "Register subjects with devices.",
        (REGISTRAR,),
        "How many names are new.",
        body=documents.Registration,
        answers={200: documents.Registered},
        problems=_UNKNOWN,
        logged=True,
    ),
    Endpoint(
        "POST",
        "/v1/invitations",
        invite,
        "Make an invitation code for each subject; register those that are new.",
        (REGISTRAR,),
        "Codes, which bind a device; whether a device of the subject was ever asked.",
        body=documents.Registration,
        answers={201: documents.Invitations},
        problems=_UNKNOWN,
        logged=True,
    ),
    Endpoint(
        "POST",
        "/v1/resolutions",
        resolve,
        "End the suspension of a subject.",
        (REGISTRAR,),
        "Whether the subject was suspended.",
        body=documents.SubjectName,
        answers={200: documents.Changed},
        problems=_UNKNOWN,
        logged=True,
    ),
    Endpoint(
        "POST",
        "/v1/devices/revoked",
        revoke_device,
        "Revoke the token of a subject's device.",
        (REGISTRAR,),
        "Whether the subject has a device with a valid token.",
        body=documents.SubjectName,
        answers={200: documents.Changed},
        problems={404: "No device has enrolled for this subject."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/subjects/{subject}/transcript",
        transcript,
        "Read the transcript of a subject.",
        (AUDITOR,),
        "Everything that the subject was asked and answered.",
        answers={200: documents.Document},
        problems={404: "No such subject."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/audit",
        audit_study,
        "Verify and audit the study; repeat the request until it is done.",
        (AUDITOR,),
        "Verdicts, and the names of subjects that are suspended, unconfirmed or withdrawn.",
        parameters=documents.JobParameters,
        answers={200: documents.Document, 202: documents.JobProgress},
        problems={422: "The audit needs a package that is not installed."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/export",
        export,
        "Read the whole ledger as JSON lines, which anyone can check.",
        (AUDITOR,),
        "All transcripts, with names.",
        answers={200: JSON_LINES},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/requests",
        request_log,
        "Read the log of who asked what.",
        (AUDITOR, ADMINISTRATOR),
        "Ids of tokens, times, requests, and the names of subjects that were asked by name.",
        answers={200: JSON_LINES},
    ),
    Endpoint(
        "POST",
        "/v1/tokens",
        make_token,
        "Make a token.",
        (ADMINISTRATOR,),
        "The token, once.",
        body=documents.TokenRequest,
        answers={201: documents.NewToken},
        problems={422: "A scope or the group is unknown."},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/v1/tokens",
        list_tokens,
        "List tokens without their secrets.",
        (ADMINISTRATOR,),
        "Ids, scopes and labels of tokens, and the number of devices.",
        answers={200: documents.TokenList},
    ),
    Endpoint(
        "DELETE",
        "/v1/tokens/{id}",
        revoke_token,
        "Revoke a token.",
        (ADMINISTRATOR,),
        "Whether it was valid.",
        answers={200: documents.Changed},
        problems={404: "No such token."},
        logged=True,
    ),
    Endpoint(
        "POST",
        "/v1/end",
        end,
        "End the study, permanently.",
        (ADMINISTRATOR,),
        "Nothing.",
        answers={200: documents.Changed},
        logged=True,
    ),
    Endpoint(
        "GET",
        "/metrics",
        metrics,
        "Read metrics in the text format of Prometheus.",
        (ADMINISTRATOR,),
        "Counts of requests and messages, and durations, over the whole study.",
        answers={200: "text/plain"},
    ),
    Endpoint(
        "GET",
        "/healthz",
        health,
        "Answer as long as the process lives.",
        (),
        "Nothing.",
        answers={204: None},
    ),
    Endpoint(
        "GET",
        "/readyz",
        ready,
        "Answer as long as requests are taken.",
        (),
        "Nothing.",
        answers={204: None},
    ),
)

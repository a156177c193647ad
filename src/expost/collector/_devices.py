"""Endpoints of devices: the policy, enrolment, sync and withdrawal."""

from __future__ import annotations

import asyncio

from expost.answers import Subject
from expost.collector import _documents as documents
from expost.collector._endpoints import Answer, Call, Endpoint
from expost.collector._problems import RequestProblem
from expost.collector._service import Service
from expost.collector._tokens import DEVICE, GATEWAY, REGISTRAR, read_credential
from expost.errors import InvalidInput
from expost.ledger import SyncAnswer
from expost.ledger._protocol import Message, SyncRequest

__all__ = ["ENDPOINTS"]

JSON_LINES = "application/jsonl"


async def policy(call: Call) -> Answer:
    tag = f'"{call.service.study}"'
    headers = {"ETag": tag, "Cache-Control": "public, max-age=3600"}
    if call.headers.get("if-none-match") == tag:
        return Answer(b"", 304, headers=headers)
    return Answer(call.service.policy, headers=headers)


async def enroll(call: Call) -> Answer:
    body: documents.Enrolment = call.body
    code = read_credential(body.code)
    if code is None:
        raise RequestProblem(403, "unknown-invitation", "there is no such invitation")
    service = call.service

    def bind() -> documents.Enrolled:
        subject, token = service.state.enroll(code, body.device, service.has_answered)
        return documents.Enrolled(subject, str(token), service.study)

    return Answer(await asyncio.to_thread(bind))


def _read(service: Service, content: bytes) -> SyncRequest:
    """Read a sync request whose messages are all about its own subject."""
    try:
        request = SyncRequest.read(content)
        subjects = {Message.read(message).subject for message in request.messages}
    except InvalidInput as error:
        raise RequestProblem(400, "invalid-body", str(error)) from None
    if request.ledger != service.study:
        raise RequestProblem(409, "another-study", "the request is about another study")
    if subjects - {request.subject}:
        raise RequestProblem(403, "foreign-subject", "a message is about another subject")
    return request


async def _answered(answer: asyncio.Future[SyncAnswer]) -> SyncAnswer:
    """Wait for an answer. A client that goes away does not take back what it has sent."""
    return await asyncio.shield(answer)


async def sync(call: Call) -> Answer:
    service, content = call.service, call.body
    request, parameters = _read(service, content), call.parameters
    await _check_subject(call, request.subject)
    if not parameters.wait or request.messages:
        return Answer((await _answered(service.queue.submit(content, call.holder.name))).to_json())
    event = service.watch(request.subject)
    try:
        answer = await _answered(service.queue.submit(content, call.holder.name))
        if _has_nothing(request, answer) and await service.wait_for_reservation(
            event, parameters.wait
        ):
            answer = await _answered(service.queue.submit(content, call.holder.name))
    finally:
        service.unwatch(request.subject, event)
    return Answer(answer.to_json())


def _has_nothing(request: SyncRequest, answer: SyncAnswer) -> bool:
    """Return whether an answer leaves a device nothing to do."""
    current = (request.sequence, request.head) == (answer.confirmed, answer.head)
    return current and answer.reservation is None and answer.state == "active"


async def _check_subject(call: Call, subject: Subject) -> None:
    """Refuse a request about a subject that the token does not speak for."""
    token = call.holder
    if GATEWAY in token.scopes:
        members = None if token.group is None else call.service.state.groups.get(token.group, ())
        allowed = members is None or subject in members
    else:
        allowed = token.subject == subject and type(token.subject) is type(subject)
    if not allowed:
        raise RequestProblem(403, "foreign-subject", "this token does not speak for the subject")


async def sync_batch(call: Call) -> Answer:
    """Answer many sync requests; each line has an answer or a problem."""
    service = call.service
    results: list[asyncio.Future[SyncAnswer] | RequestProblem] = []
    for line in call.body.splitlines():
        if not line.strip():
            continue
        try:
            await _check_subject(call, _read(service, line).subject)
            results.append(service.queue.submit(line, call.holder.name))
        except RequestProblem as problem:
            results.append(problem)
    lines = []
    for result in results:
        try:
            if isinstance(result, RequestProblem):
                raise result
            lines.append((await result).to_json().encode())
        except RequestProblem as problem:
            lines.append(problem.to_json())
    return Answer(b"".join(line + b"\n" for line in lines), media_type=JSON_LINES)


async def withdraw(call: Call) -> Answer:
    body: documents.SubjectName = call.body
    service, token = call.service, call.holder
    if REGISTRAR not in token.scopes:
        await _check_subject(call, body.subject)
    changed = await asyncio.to_thread(service.writer.withdraw, [body.subject])
    service.wake([body.subject])
    return Answer(documents.Changed(bool(changed)))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/policy",
        policy,
        "The policy of the study: domain and filter, as a device needs it.",
        (),
        "The study's domain, filter and title, to everybody.",
        answers={200: documents.Document, 304: None},
    ),
    Endpoint(
        "POST",
        "/v1/enroll",
        enroll,
        "Bind a device to the subject of an invitation, and get its token.",
        (),
        "The subject's name and the device's token, to the holder of the invitation code.",
        body=documents.Enrolment,
        answers={200: documents.Enrolled},
        problems={
            403: "The code is unknown, or the token of this device was revoked.",
            409: "Another device speaks for the subject, or a later invitation exists.",
        },
    ),
    Endpoint(
        "POST",
        "/v1/sync",
        sync,
        "Send messages, get receipts and the open reservation.",
        (DEVICE, GATEWAY),
        "The subject's own chain, state and open reservation, to its device.",
        parameters=documents.SyncParameters,
        body=bytes,
        answers={200: documents.Document},
        problems={
            403: "The request or a message is about another subject.",
            409: "The request is about another study.",
        },
    ),
    Endpoint(
        "POST",
        "/v1/sync/batch",
        sync_batch,
        "Sync many subjects: a request on each line, an answer or a problem on each line.",
        (GATEWAY,),
        "As sync, about every subject of the gateway.",
        body=bytes,
        answers={200: JSON_LINES},
    ),
    Endpoint(
        "POST",
        "/v1/withdrawals",
        withdraw,
        "Withdraw a subject: it is asked nothing more, and estimates leave it out.",
        (DEVICE, REGISTRAR),
        "Whether the subject had withdrawn before.",
        body=documents.SubjectName,
        answers={200: documents.Changed},
        problems={403: "The subject is not that of the device.", 422: "No such subject."},
        logged=True,
    ),
)

"""The application: it checks token, rate, body and parameters, then calls the endpoint."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from expost.collector import _analysts, _devices, _operators
from expost.collector._endpoints import Answer, Call, Endpoint
from expost.collector._openapi import describe
from expost.collector._problems import PROBLEM_TYPE, RequestProblem, unavailable
from expost.collector._service import Service
from expost.collector._tokens import Token, read_credential
from expost.errors import InvalidInput
from expost.ledger.errors import LedgerLocked, LedgerStopped

__all__ = ["ENDPOINTS", "make_app"]

LOG = logging.getLogger("expost.collector")

#: The largest body, in bytes.
LARGEST_BODY = 4 << 20

ENDPOINTS: tuple[Endpoint, ...] = (
    *_devices.ENDPOINTS,
    *_analysts.ENDPOINTS,
    *_operators.ENDPOINTS,
)

_JSON = msgspec.json.Encoder()
_OPENAPI_PATH = "/openapi.json"


def make_app(service: Service) -> Starlette:
    """Return the application of a service."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    document = json.dumps(describe(ENDPOINTS)).encode()

    async def openapi(request: Request) -> Response:
        return Response(document, media_type="application/json")

    routes = [
        # A name or a key may have slashes.
        Route(path.replace("}", ":path}"), _Dispatcher(service, methods), methods=list(methods))
        for path, methods in by_path.items()
    ]
    routes.append(Route(_OPENAPI_PATH, openapi, methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_problem})
    app.router.redirect_slashes = False
    return app


async def _http_problem(request: Request, error: Exception) -> Response:
    """Answer what no endpoint answers: an unknown path, or another method."""
    assert isinstance(error, HTTPException), "the handler of these"
    kind = "unknown-path" if error.status_code == 404 else "wrong-method"
    problem = RequestProblem(
        error.status_code, kind, error.detail, headers=dict(error.headers or {})
    )
    return _problem_response(problem)


class _Dispatcher:
    """The endpoints of one path, as an ASGI application."""

    def __init__(self, service: Service, endpoints: Mapping[str, Endpoint]) -> None:
        self._service, self._endpoints = service, endpoints

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        endpoint = self._endpoints.get("GET" if request.method == "HEAD" else request.method)
        start, token = time.perf_counter(), None
        if endpoint is None:
            allowed = ", ".join(self._endpoints)
            response = _problem_response(
                RequestProblem(405, "wrong-method", "no such method", headers={"Allow": allowed})
            )
            await response(scope, receive, send)
            return
        try:
            if endpoint.scopes:
                token = self._authenticate(request, endpoint)
            response = _response(await self._answer(request, endpoint, token))
        except ClientDisconnect:
            return
        except Exception as error:  # every answer is a problem document, whatever is wrong
            response = _problem_response(_problem_of(error, endpoint))
        self._service.metrics.count_answer(endpoint.method, endpoint.path, response.status_code)
        LOG.info(
            "%s %s %d %.1f ms token %s",
            endpoint.method,
            endpoint.path,
            response.status_code,
            1000 * (time.perf_counter() - start),
            "-" if token is None else token.name,
        )
        await response(scope, receive, send)

    def _authenticate(self, request: Request, endpoint: Endpoint) -> Token:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        credential = read_credential(text) if kind.lower() == "bearer" else None
        token = credential and self._service.state.authenticate(credential)
        if token is None:
            headers = {"WWW-Authenticate": "Bearer"}
            raise RequestProblem(401, "token-invalid", "expected a valid token", headers=headers)
        if not token.scopes.intersection(endpoint.scopes):
            needed = list(endpoint.scopes)
            raise RequestProblem(403, "scope-missing", "the token lacks a scope", scopes=needed)
        self._service.check_rate(token)
        return token

    async def _answer(self, request: Request, endpoint: Endpoint, token: Token | None) -> Answer:
        service = self._service
        if service.stopping.is_set() and endpoint.scopes:
            raise unavailable("the collector is stopping", 5)
        try:
            parameters = msgspec.convert(
                dict(request.query_params), endpoint.parameters, strict=False
            )
        except msgspec.ValidationError as error:
            raise RequestProblem(400, "invalid-parameters", str(error)) from None
        body: Any = None
        if endpoint.body is not None:
            content = await _read_body(request)
            body = content if endpoint.body is bytes else _decode(content, endpoint.body)
        path = {name: str(part) for name, part in request.path_params.items()}
        if endpoint.logged and token is not None:
            about = {**path, **_changed(parameters), **_summary(body)}
            await service.record_request(token, f"{endpoint.method} {endpoint.path}", about)
        call = Call(service, token, path, parameters, body, request.headers)
        return await endpoint.handler(call)


async def _read_body(request: Request) -> bytes:
    """Return the body, unless it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise RequestProblem(413, "body-too-large", "the body is too large", limit=LARGEST_BODY)
        parts.append(part)
    return b"".join(parts)


def _decode(content: bytes, kind: Any) -> Any:
    """Decode a body strictly."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestProblem(400, "invalid-body", str(error)) from None


def _changed(parameters: msgspec.Struct) -> dict[str, Any]:
    """Return the parameters that are not the defaults, except for how long to wait."""
    defaults = type(parameters)()
    fields = msgspec.structs.asdict(parameters)
    return {
        name: field
        for name, field in fields.items()
        if name != "wait" and field != getattr(defaults, name)
    }


def _summary(body: Any) -> dict[str, Any]:
    """Return what the log of requests has of a body: long lists are counted."""
    if not isinstance(body, msgspec.Struct):
        return {}
    summary: dict[str, Any] = {}
    for name, field in msgspec.structs.asdict(body).items():
        if isinstance(field, msgspec.Raw):
            summary[name] = bytes(field).decode(errors="replace")[:1000]
        elif isinstance(field, list) and len(field) > 100:
            summary[name] = len(field)
        elif field is not None:
            summary[name] = field
    return summary


def _response(answer: Answer) -> Response:
    content, headers = answer.content, dict(answer.headers)
    if isinstance(content, AsyncIterator):
        return StreamingResponse(content, answer.status, headers, answer.media_type)
    if not isinstance(content, bytes | str):
        content = _JSON.encode(content)
    headers.setdefault("Cache-Control", "no-store")
    return Response(content, answer.status, headers, answer.media_type)


def _problem_response(problem: RequestProblem) -> Response:
    return Response(problem.to_json(), problem.status, problem.headers, PROBLEM_TYPE)


def _problem_of(error: Exception, endpoint: Endpoint) -> RequestProblem:
    """Return the problem that an error is."""
    if isinstance(error, RequestProblem):
        return error
    if isinstance(error, LedgerStopped | LedgerLocked):
        LOG.error("%s %s: %s", endpoint.method, endpoint.path, error)
        return unavailable("the ledger cannot be used now", 5)
    if isinstance(error, InvalidInput):
        return RequestProblem(422, "invalid-input", str(error))
    # Its message may have anything: only its kind is shown.
    LOG.error("%s %s: error of expost: %s", endpoint.method, endpoint.path, type(error).__name__)
    return RequestProblem(500, "internal-error", "this is an error of expost; please report it")

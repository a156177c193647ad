"""The OpenAPI 3.1 document, made from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import UnionType
from typing import Any, get_args

import msgspec

from expost import __version__
from expost.collector._endpoints import Endpoint
from expost.collector._problems import PROBLEM_TYPE
from expost.collector._tokens import SCOPES

__all__ = ["describe"]

_REF = "#/components/schemas/{name}"
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document."""
    documents = [
        document
        for endpoint in endpoints
        for kind in (endpoint.body, *endpoint.answers.values())
        if kind not in (None, bytes) and not isinstance(kind, str)
        for document in _alternatives(kind)
    ]
    schemas, components = msgspec.json.schema_components(tuple(documents), ref_template=_REF)
    schema_of = {repr(kind): schema for kind, schema in zip(documents, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(
            endpoint, schema_of
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "expost collector",
            "version": __version__,
            "description": "A study over HTTP: devices answer, analysts ask, auditors check.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "; ".join(f"{name}: {what}" for name, what in SCOPES.items()),
                }
            },
        },
    }


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the documents of a union, which msgspec cannot describe without tags."""
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def _schema(kind: Any, schema_of: dict[str, Any]) -> dict[str, Any]:
    schemas = [schema_of[repr(document)] for document in _alternatives(kind)]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{endpoint.handler.__name__}",
        "summary": endpoint.summary,
        "description": f"Reveals: {endpoint.reveals}",
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {},
    }
    if endpoint.scopes:
        operation["security"] = [{"token": []}]
        operation["x-scopes"] = list(endpoint.scopes)
    if endpoint.body is not None:
        schema = {} if endpoint.body is bytes else schema_of[repr(endpoint.body)]
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    for status, kind in endpoint.answers.items():
        response: dict[str, Any] = {"description": "Success."}
        if isinstance(kind, str):
            response["content"] = {kind: {"schema": {"type": "string"}}}
        elif kind is not None:
            response["content"] = {"application/json": {"schema": _schema(kind, schema_of)}}
        operation["responses"][str(status)] = response
    reference = {"$ref": _REF.format(name="Problem")}
    for status, meaning in endpoint.statuses().items():
        content = {PROBLEM_TYPE: {"schema": reference}}
        operation["responses"][str(status)] = {"description": meaning, "content": content}
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(endpoint.parameters)
    ((_, struct),) = schema["$defs"].items()
    return [
        {"name": name, "in": "query", "required": False, "schema": parameter}
        for name, parameter in struct["properties"].items()
    ]

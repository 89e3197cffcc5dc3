"""Descriptions of requests and responses that FastAPI cannot derive: errors, files, and forms."""

from __future__ import annotations

from typing import Any

from crowdveil.server.views import ErrorAnswer
from crowdveil.verbs.base import Verb

Described = dict[int | str, dict[str, Any]]

ERRORS: Described = {
    status: {"model": ErrorAnswer, "description": meaning}
    for status, meaning in {
        400: "The request is broken.",
        401: "The token is missing, unknown, revoked or expired.",
        403: "The request comes from another site, the token lacks a scope, or the result is not approved.",
        404: "It does not exist, or belongs to another user.",
        409: "The job is not done yet, or the result was already reviewed.",
        410: "The result was removed.",
        411: "The request has no Content-Length.",
        413: "The request is too large.",
        415: "The request is not a form, or a file has an unexpected type.",
        422: "A parameter or a file is wrong; the message is that of the command line.",
        429: "The token has too many jobs or uploads; try again later.",
        503: "The database is unavailable; try again later.",
        507: "The disk of the server is full.",
    }.items()
}
"""The errors of all routes."""
FILE: Described = {
    200: {
        "description": "The file.",
        "content": {
            type_: {"schema": {} if type_.endswith("json") else {"type": "string", "format": "binary"}}
            for type_ in (
                "application/zip", "application/json", "application/geo+json", "application/octet-stream", "text/csv",
                "text/html", "image/png",
            )
        },
    }
}  # fmt: skip
"""A response that is a file."""
UPLOADS = {
    "type": "string",
    "description": 'Ids of files that were uploaded before, by field, as JSON: {"data": "30c2ad9d…"}.',
    "example": "{}",
}


def form(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a request body that is a form."""
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def form_schema(fields: dict[str, tuple[str, ...]], texts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form: files by field, with their endings, and other fields."""
    files = {
        field: {"type": "string", "format": "binary", "description": f"A file: {', '.join(endings)}."}
        for field, endings in fields.items()
    }
    return {"type": "object", "properties": {**files, **texts}, "additionalProperties": False}


def job_form(kind: Verb) -> dict[str, Any]:
    """Return the form of a job: its files, none of which is required since it may be uploaded before, and its parameters."""
    fields: dict[str, tuple[str, ...]] = {}
    for name in kind.names():
        for field, endings in kind.fields(name).items():
            fields[field] = tuple(dict.fromkeys([*fields.get(field, ()), *endings]))
    schemas = {kind.models(name): kind.schema(name) for name in kind.names()}  # all measures have the same models
    parameters = {
        "description": "Parameters of the method, of reading and of the run, as JSON.",
        "anyOf": list(schemas.values()),
        "example": kind.example,
    }
    return form(form_schema(fields, {"parameters": parameters, "uploads": UPLOADS}))

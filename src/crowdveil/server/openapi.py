"""Complete the OpenAPI description that FastAPI generates: forms, responses, examples, access."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from crowdveil.server.responses import ERROR_SCHEMA
from crowdveil.verbs.base import Verb
from crowdveil.verbs.table import VERBS

UPLOADS = {
    "type": "string",
    "description": 'Ids of files that were uploaded before, by field, as JSON: {"data": "30c2ad9d…"}.',
    "example": "{}",
}
_MEANING = {
    400: "The request is broken.",
    401: "No token, or one that is not known.",
    403: "The request comes from another site, the token lacks a scope, or the result is not approved.",
    404: "There is no such thing, or it is not yours.",
    409: "The job is not done yet.",
    411: "The request has no Content-Length.",
    410: "The result was removed.",
    413: "Too large.",
    415: "No form, or a kind of file that is not taken.",
    422: "A parameter or a file is wrong; the sentence is the command line's.",
    429: "Too many jobs, previews or requests at a time, or too much on the disk; try again later.",
    503: "The database does not answer; try again later.",
    507: "The disk of the server is full.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route, including those that every route can give."""
    schema = {"$ref": "#/components/schemas/Error"}
    all_statuses = sorted({401, 403, 422, 429, 503, *statuses, *((411, 507) if 413 in statuses else ())})
    return {s: {"description": _MEANING[s], "content": {"application/json": {"schema": schema}}} for s in all_statuses}


def file_answer() -> dict[int | str, dict[str, Any]]:
    """Return the response that is a file."""
    kinds = (
        "application/zip", "application/json", "application/geo+json", "application/octet-stream", "text/csv", "text/html",
        "image/png",
    )  # fmt: skip
    file: dict[str, Any] = {"type": "string", "format": "binary"}
    content = {kind: {"schema": {} if kind.endswith("json") else file} for kind in kinds}
    return {200: {"description": "The file.", "content": content}}


def upload_body(kind: Verb) -> dict[str, Any]:
    """Return the form of a job: its files, and its parameters as JSON."""
    fields: dict[str, tuple[str, ...]] = {}
    for name in kind.names():
        for field, endings in kind.fields(name).items():
            fields[field] = tuple(dict.fromkeys([*fields.get(field, ()), *endings]))
    parameters = {
        "description": "Parameters of the method, of reading and of the run, as JSON.",
        "anyOf": [{"$ref": f"#/components/schemas/{schema_name(kind, name)}"} for name in _distinct(kind)],
        "example": kind.example,
    }
    # No file is required in the form: it may have been uploaded before.
    schema = form_schema(fields, {"parameters": parameters, "uploads": UPLOADS})
    return form(schema)


def form_schema(fields: dict[str, tuple[str, ...]], texts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form: files by field, with their endings, and other fields."""
    files = {
        field: {"type": "string", "format": "binary", "description": f"A file: {', '.join(endings)}."}
        for field, endings in fields.items()
    }
    return {"type": "object", "properties": {**files, **texts}, "additionalProperties": False}


def form(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a request body that is a form."""
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _distinct(kind: Verb) -> list[str]:
    """Return one name for each set of models, since all measures take the same."""
    seen: dict[Any, str] = {}
    for name in kind.names():
        seen.setdefault(kind.models(name), name)
    return list(seen.values())


def schema_name(kind: Verb, name: str) -> str:
    """Return the name of the schema of parameters."""
    return f"{kind.verb}-{name}"


def describe(app: FastAPI) -> None:
    """Add schemas, access and examples to an app's description."""
    drawn = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = drawn()
            parts = schema.setdefault("components", {})
            parts["schemas"] = {
                **parts.get("schemas", {}),
                "Error": ERROR_SCHEMA,
                **{schema_name(k, name): k.schema(name) for k in VERBS.values() for name in _distinct(k)},
            }
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}, {}]
            for kind in VERBS.values():
                _name_known(schema["paths"], kind)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]


def _name_known(paths: dict[str, Any], kind: Verb) -> None:
    """List the known names."""
    for path in (f"/{kind.collection}/{{name}}", f"/{kind.collection}/{{name}}/jobs"):
        for operation in paths[path].values():
            for parameter in operation.get("parameters", []):
                if parameter["name"] == "name":
                    parameter["schema"] = {"type": "string", "enum": kind.names()}
                    parameter["example"] = kind.names()[0]

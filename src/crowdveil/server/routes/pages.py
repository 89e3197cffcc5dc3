"""The web page at /, and the routes that only the page uses."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response

from crowdveil.model.flows import Flows
from crowdveil.params import Params, rows
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods
from crowdveil.report.html import asset
from crowdveil.server.access import CurrentUser, OpenService
from crowdveil.server.queue.files import KEEP_S
from crowdveil.verbs.anonymize import FlowAuditOptions, JobOptions
from crowdveil.verbs.base import file_options
from crowdveil.verbs.table import VERBS
from crowdveil.version import __version__

PRESETS = (
    ("CNIL", 10, "The French data-protection authority accepts groups of 10 for origin-destination matrices (paper on ATG)."),
    ("INSEE", 11, "The French statistical office publishes no incomes of fewer than 11 households, as in its data on squares."),
    ("MDS", 10, "The Mobility Data Specification publishes no count below 10 in its Metrics and in its reports of trips."),
    ("ACRO", 10, "The checker of research outputs requires 10 in each cell, unless an organization sets another threshold."),
)  # fmt: skip
"""Smallest group sizes in use: the organization, k, and the source in a sentence."""
router = APIRouter()
_PAGE = "crowdveil.server.page"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
Asset = Annotated[Literal["app.js", "app.css", "icon.svg"], Path()]


@router.get("/", include_in_schema=False)
def page() -> Response:
    """Send the page."""
    return Response(_file("index.html"), media_type="text/html", headers={"Content-Security-Policy": _policy()})


@router.get("/page/{name}", include_in_schema=False)
def page_file(name: Asset) -> Response:
    """Send a file of the page."""
    return Response(_file(name), media_type=_TYPES[FilePath(name).suffix])


@router.get("/auth", include_in_schema=False)
def auth(service: OpenService) -> dict[str, Any]:
    """Return whether a token is needed."""
    return {"token_needed": not service.settings.no_auth, "version": __version__}


@router.get("/session", tags=["page"], summary="The caller and the rights of the token")
def session(service: OpenService, who: CurrentUser) -> dict[str, Any]:
    """Return the name, limits and scopes of a token."""
    return {
        "name": who.name, "limits": who.limits.model_dump(), "keep_hours": service.settings.keep_hours,
        "upload_hours": KEEP_S / 3600, "scopes": sorted(who.scopes), "four_eyes": service.settings.four_eyes,
    }  # fmt: skip


@router.get("/form", tags=["page"], summary="The fields of a form for anonymizing")
def form(who: CurrentUser) -> dict[str, Any]:
    """Return methods with their parameters, options of reading and of runs, and sources of the token."""
    return _form() | {"sources": list(who.sources)}


@cache
def _file(name: str) -> bytes:
    return files(_PAGE).joinpath(name).read_bytes()


@cache
def _policy() -> str:
    """Return a policy that allows only files of the page, and the script and style of a report, whose frame inherits it."""
    return (
        f"default-src 'none'; script-src 'self' {_hash('report.js')}; style-src 'self' {_hash('report.css')}; "
        "img-src 'self' data:; connect-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(name: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()}'"


@cache
def _form() -> dict[str, Any]:
    """Return methods with their parameters, input and run options, and presets; each is declared once in its own module."""
    kind = VERBS["anonymize"]
    return {
        "methods": [
            {"name": name, **kind.about(name), "fields": _drawn(method.params)}
            for name, method in all_methods().items()
        ],
        "reading": {"flows" if takes is Flows else "trajectories": _drawn(of) for takes, of in READINGS.items()},
        "run": _drawn(JobOptions),
        "audit": _drawn(FlowAuditOptions),
        "files": {field: list(endings) for name in kind.names() for field, endings in kind.fields(name).items()},
        "presets": [{"name": name, "k": k, "source": source} for name, k, source in PRESETS],
    }


def _drawn(model: type[Params]) -> list[dict[str, Any]]:
    """Return the fields of a model, with bounds as words and as numbers."""
    schema, uploads = model.model_json_schema()["properties"], file_options(model)
    return [
        {
            "name": row.name, "title": row.title, "kind": "file" if row.name in uploads else row.kind, "default": row.default,
            "required": row.required, "choices": row.choices, "bounds": row.bounds, "unit": row.unit, "help": row.help,
            **_range(schema[row.name]),
        }
        for row in rows(model)
    ]  # fmt: skip


def _range(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the minimum and maximum of a number."""
    plain: dict[str, Any] = next(
        (s for s in schema.get("anyOf", [schema]) if s.get("type") in ("integer", "number")), {}
    )
    bounds = {
        "least": plain.get("minimum", plain.get("exclusiveMinimum")),
        "most": plain.get("maximum", plain.get("exclusiveMaximum")),
    }
    return {name: value for name, value in bounds.items() if value is not None}

"""Build the web app; its routes are generated from the kinds of job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute

from crowdveil import __version__
from crowdveil.server import openapi
from crowdveil.server.access import CurrentUser, Sender
from crowdveil.server.observe import Observe
from crowdveil.server.responses import add_error_answers
from crowdveil.server.routes.accept import accept, known
from crowdveil.server.routes.jobs import add_job_routes, add_parts, shown
from crowdveil.server.routes.operations import Metrics, add_operations
from crowdveil.server.routes.pages import add_pages
from crowdveil.server.routes.preview import add_preview
from crowdveil.server.routes.review import add_review
from crowdveil.server.routes.uploads import add_uploads
from crowdveil.server.service import Service
from crowdveil.server.views import JobView
from crowdveil.verbs.base import Verb
from crowdveil.verbs.table import VERBS

Name = Annotated[str, Path(max_length=100)]


AddRoutes = Callable[[FastAPI], None]


def make_app(service: Service, extra: Sequence[AddRoutes] = ()) -> FastAPI:
    """Return the app of a service, with `extra` routes after those of jobs."""
    app = FastAPI(
        title="Crowdveil", version=__version__, summary="Hide every traveler in a crowd, and prove it.",
        docs_url=None, redoc_url=None, openapi_url="/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    add_error_answers(app)
    metrics = app.state.metrics = Metrics(service)
    app.add_middleware(Observe, service=service, metrics=metrics)
    app.router.routes.extend(_job_routes(tuple(extra)))
    add_operations(app, metrics)
    openapi.describe(app)
    return app


@cache
def _job_routes(extra: tuple[AddRoutes, ...]) -> tuple[BaseRoute, ...]:
    """Return the routes of jobs and of `extra`. They take the service from the request, so all apps of a process share them."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for kind in VERBS.values():
        _add_kind(app, kind)
    add_job_routes(app)
    for add in (*extra, add_pages, add_parts, add_preview, add_uploads, add_review):
        add(app)
    return tuple(app.routes)


def _add_kind(app: FastAPI, kind: Verb) -> None:
    """Add the routes that list a kind of job and submit one."""

    @app.get(f"/{kind.collection}", summary=f"What there is to {kind.verb} with", tags=[kind.collection],
             operation_id=f"list_{kind.collection}",
             responses=openapi.errors())  # fmt: skip
    def listing(who: CurrentUser) -> dict[str, Any]:
        return {kind.collection: [_described(kind, name) for name in kind.names()]}

    @app.get(f"/{kind.collection}/{{name}}", summary="One of them, with the schema of its parameters", tags=[kind.collection],
             operation_id=f"describe_{kind.collection}", responses=openapi.errors(404))  # fmt: skip
    def one(who: CurrentUser, name: Name) -> dict[str, Any]:
        return _described(kind, known(kind, name))

    @app.post(f"/{kind.collection}/{{name}}/jobs", status_code=202, summary=kind.summary, tags=[kind.collection],
              operation_id=f"{kind.verb}", openapi_extra=openapi.upload_body(kind),
              response_model=JobView, responses=openapi.errors(400, 404, 413, 415))  # fmt: skip
    async def post(request: Request, who: Sender, name: Name) -> Any:
        registered = await run_in_threadpool(known, kind, name)
        job = await accept(request, who, kind, lambda _form: (registered, None))
        return await run_in_threadpool(shown, request.app.state.service, job)


def _described(kind: Verb, name: str) -> dict[str, Any]:
    fields = kind.fields(name)
    return {
        "name": name,
        **kind.about(name),
        "parameters": kind.schema(name),
        "files": {
            field: {"required": field in kind.required_files(name), "endings": list(endings)}
            for field, endings in fields.items()
        },
    }

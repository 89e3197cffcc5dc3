"""Build the web app; the routes of verbs are drawn from their records."""

# Without postponed annotations, since FastAPI cannot evaluate those of functions inside functions.

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request
from starlette.concurrency import run_in_threadpool

from crowdveil.server.access import CurrentUser, Sender
from crowdveil.server.openapi import ERRORS, job_form
from crowdveil.server.responses import add_error_answers
from crowdveil.server.routes import jobs, operations, pages, preview, review, uploads
from crowdveil.server.service import Service
from crowdveil.server.views import JobView
from crowdveil.verbs.base import Verb
from crowdveil.verbs.table import VERBS
from crowdveil.version import __version__

ROUTES = (jobs, pages, preview, uploads, review, operations)
"""The modules with routes of their own."""


def make_app(service: Service, extra: Sequence[Callable[[FastAPI], None]] = ()) -> FastAPI:
    """Return the app of a service; each of `extra` adds more routes to it."""
    app = FastAPI(
        title="Crowdveil", version=__version__, summary="Hide every traveler in a crowd, and prove it.", responses=ERRORS,
        docs_url=None, redoc_url=None, redirect_slashes=False, generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    app.state.service = service
    add_error_answers(app)
    metrics = app.state.metrics = operations.Metrics(service)
    app.add_middleware(operations.Observe, metrics=metrics)
    for kind in VERBS.values():
        app.include_router(_router_of(kind))
    for add in extra:
        add(app)
    for module in ROUTES:
        app.include_router(module.router)
    return app


def _router_of(kind: Verb) -> APIRouter:
    """Return the routes that describe a verb, and those that submit its jobs."""
    router, names = APIRouter(tags=[kind.collection]), kind.names()
    Name = Annotated[str, Path(max_length=100, json_schema_extra={"enum": list(names)}, examples=names[:1])]  # noqa: N806

    @router.get(f"/{kind.collection}", summary=f"List the choices of {kind.verb}", name=f"list_{kind.collection}")
    def list_(who: CurrentUser) -> dict[str, Any]:
        return {kind.collection: [_described(kind, name) for name in kind.names()]}

    @router.get(
        f"/{kind.collection}/{{name}}",
        summary="Describe a choice, with the schema of its parameters",
        name=f"describe_{kind.verb}",
    )
    def describe(who: CurrentUser, name: Name) -> dict[str, Any]:
        return _described(kind, jobs.registered_name(kind, name))

    @router.post(f"/{kind.collection}/{{name}}/jobs", status_code=202, summary=kind.summary, name=kind.verb,
                 openapi_extra=job_form(kind))  # fmt: skip
    async def submit(request: Request, who: Sender, name: Name) -> JobView:
        registered = await run_in_threadpool(jobs.registered_name, kind, name)
        job = await jobs.accept(request, who, kind, lambda _form: (registered, None))
        return await run_in_threadpool(jobs.job_view, request.app.state.service, job)

    return router


def _described(kind: Verb, name: str) -> dict[str, Any]:
    required = kind.required_files(name)
    files = {f: {"required": f in required, "endings": list(endings)} for f, endings in kind.fields(name).items()}
    return {"name": name, **kind.about(name), "parameters": kind.schema(name), "files": files}

"""The service's routes, drawn from the kinds of job."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import ParameterError
from crowdveil.report.html import policy_in
from crowdveil.server import openapi
from crowdveil.server.access import HEADERS, caller
from crowdveil.server.answers import Refused, add_error_answers
from crowdveil.server.child import SUMMARY
from crowdveil.server.files import ID
from crowdveil.server.kind import Kind
from crowdveil.server.kinds import KINDS
from crowdveil.server.settings import Service
from crowdveil.server.store import Job, NewJob, new_id
from crowdveil.server.tokens import Caller
from crowdveil.server.uploads import Form, check_files, parsed, receive

REPORTS = ("report.html", "manifest.json")
"""What stands for the report of a job: the first of these in its result."""
Who = Annotated[Caller, Depends(caller)]
Name = Annotated[str, Path(max_length=100)]
Fields = dict[str, tuple[str, ...]]
"""Names of fields of files elsewhere, and those that they may be here."""
JobId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="A job's id.", examples=["30c2ad9df0f9470abfd8198b4cb4f86a"])
]


def make_app(service: Service) -> FastAPI:
    """The app of a service."""
    from crowdveil.server.document import add_document_routes
    from crowdveil.server.pages import add_pages
    from crowdveil.server.parts import add_parts
    from crowdveil.server.preview import add_preview

    app = FastAPI(
        title="Crowdveil", version=version("crowdveil"), summary="Hide every traveller in a crowd, and prove it.",
        docs_url=None, redoc_url=None, openapi_url="/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    add_error_answers(app)
    app.add_middleware(_Headers)
    for kind in KINDS.values():
        _add_kind(app, kind)
    _add_jobs(app)
    add_document_routes(app)
    for add in (add_pages, add_parts, add_preview):
        add(app)
    openapi.describe(app)
    return app


class _Headers:
    """Puts headers on every answer; plain ASGI, so that what comes in and goes out is passed on as it flows."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [(n.lower().encode(), v.encode()) for n, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in there)]
            await send(message)

        await self.app(scope, receive, with_headers)


def _add_kind(app: FastAPI, kind: Kind) -> None:
    """The listing of a kind, and the door for its jobs."""

    @app.get(f"/{kind.room}", summary=f"What there is to {kind.verb} with", tags=[kind.room], operation_id=f"list_{kind.room}",
             responses=openapi.errors(401, 403))  # fmt: skip
    def listing(who: Who) -> dict[str, Any]:
        return {kind.room: [_described(kind, name) for name in kind.names()]}

    @app.get(f"/{kind.room}/{{name}}", summary="One of them, with the schema of its parameters", tags=[kind.room],
             operation_id=f"describe_{kind.room}", responses=openapi.errors(401, 403, 404, 422))  # fmt: skip
    def one(who: Who, name: Name) -> dict[str, Any]:
        return _described(kind, _known(kind, name))

    @app.post(f"/{kind.room}/{{name}}/jobs", status_code=202, summary=kind.summary, tags=[kind.room],
              operation_id=f"{kind.verb}", openapi_extra=openapi.upload_body(kind),
              responses=openapi.errors(400, 401, 403, 404, 413, 415, 422, 429) | openapi.job_answer(202))  # fmt: skip
    async def post(request: Request, who: Who, name: Name) -> Any:
        known = await run_in_threadpool(_known, kind, name)
        job = await accept(request, who, kind, lambda _form: (known, None))
        return await run_in_threadpool(_shown, request.app.state.service, job)


def _described(kind: Kind, name: str) -> dict[str, Any]:
    fields = kind.fields(name)
    return {
        "name": name,
        **kind.about(name),
        "parameters": kind.schema(name),
        "files": {
            field: {"required": field in kind.needs(name), "endings": list(endings)}
            for field, endings in fields.items()
        },
    }


def _known(kind: Kind, name: str) -> str:
    """The name by which something is registered."""
    try:
        return kind.find(name)
    except ParameterError as error:
        raise Refused(404, "not_found", str(error)) from None


async def accept(
    request: Request,
    who: Caller,
    kind: Kind,
    chosen: Callable[[Form], tuple[str, dict[str, Any] | None]],
    fields: Fields | None = None,
    texts: tuple[str, ...] = ("parameters",),
) -> Job:
    """Take in a form, check all that can be checked without reading data, and put a job into the queue.

    `chosen` says what is to be run, and with which parameters where these are not a field of the form; `fields` maps names of
    fields of files in the form to ours: of several the one that what is run takes.
    """
    service: Service = request.app.state.service
    job, limits = new_id(), who.limits
    folder = await run_in_threadpool(service.files.receive, job)
    accepted = False
    try:
        allowed = await run_in_threadpool(_allowed, kind, request.path_params.get("name"), fields)
        form = await receive(request, folder / "inputs", allowed, texts, limits.upload_bytes, limits.max_rows)
        name, values = chosen(form)
        if values is None:
            values = parsed(form.texts.get("parameters") or "{}", "parameters")
        if fields is not None:
            taken = kind.fields(name)
            form.files = {next(f for f in fields[theirs] if f in taken): file for theirs, file in form.files.items()}
        await run_in_threadpool(kind.checked, name, values, form.files)
        await run_in_threadpool(check_files, form, folder / "inputs", limits.upload_bytes)
        await run_in_threadpool(service.files.accept, job)
        new = NewJob(
            job, who.id, kind.verb, name, values, form.files,
            {"max_seconds": limits.max_seconds, "max_rows": limits.max_rows, "upload_bytes": limits.upload_bytes},
            limits.max_running, service.settings.keep_s,
        )  # fmt: skip

        def add() -> None:
            # Noted in the same thread: whoever is interrupted while it waits must not remove the files of a job that is there.
            nonlocal accepted
            accepted = service.store.add(new, limits.max_waiting)

        await run_in_threadpool(add)
        if not accepted:
            most = limits.max_waiting
            raise Refused(
                429, "too_many", f"wanted at most {most:,} jobs at a time; wait until some end.", Retry_After="5"
            )
    finally:
        if not accepted:
            service.files.discard(job)
            service.files.remove(job)
    found = await run_in_threadpool(service.store.get, job)
    if found is None:
        raise Refused(404, "not_found", "there is no such job.")
    return found


def _allowed(kind: Kind, name: str | None, fields: Fields | None) -> dict[str, tuple[str, ...]]:
    """Fields of files in a form, with the endings of each; in the document's forms it is not known yet what is to be run."""
    if fields is None:
        return kind.fields(_known(kind, str(name)))
    known: dict[str, tuple[str, ...]] = {}
    for one in kind.names():
        known |= kind.fields(one)
    return {theirs: tuple(dict.fromkeys(e for f in ours for e in known[f])) for theirs, ours in fields.items()}


def _add_jobs(app: FastAPI) -> None:
    """What can be asked about jobs."""

    @app.get("/jobs", tags=["jobs"], summary="Your jobs, newest first", operation_id="list_jobs",
             responses=openapi.errors(401, 403, 422))  # fmt: skip
    def jobs(
        request: Request,
        who: Who,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            str | None, Query(pattern="^[0-9a-f]{32}$", description="Only those before this job of yours.")
        ] = None,
    ) -> dict[str, Any]:
        service: Service = request.app.state.service
        return {"jobs": [_shown(service, job) for job in service.store.of_owner(who.id, limit, before)]}

    @app.get("/jobs/{job_id}", tags=["jobs"], summary="State, progress and time of a job", operation_id="get_job",
             responses=openapi.errors(401, 403, 404, 422) | openapi.job_answer(200))  # fmt: skip
    def job(request: Request, who: Who, job_id: JobId) -> dict[str, Any]:
        return _shown(request.app.state.service, theirs(request, who, job_id))

    @app.delete("/jobs/{job_id}", tags=["jobs"], summary="End a job, and remove its files", operation_id="delete_job",
                responses=openapi.errors(401, 403, 404, 422) | openapi.job_answer(200))  # fmt: skip
    def delete(request: Request, who: Who, job_id: JobId) -> dict[str, Any]:
        service: Service = request.app.state.service
        ended = service.store.cancel(job_id, who.id)
        if ended is None:
            raise _no_job()
        service.files.remove(job_id)
        return _shown(service, ended)

    @app.get("/jobs/{job_id}/result", tags=["jobs"], summary="The result: a zip file, or one file", operation_id="get_result",
             response_class=StreamingResponse,
             responses=openapi.errors(401, 403, 404, 409, 410, 422) | openapi.file_answer())  # fmt: skip
    def result(request: Request, who: Who, job_id: JobId) -> Response:
        found = theirs(request, who, job_id)
        file, about = result_of(request.app.state.service, found, who)
        return sent(file, about["name"], about["media_type"], {"Content-Length": str(about["bytes"]), **_digest(about)})

    @app.get("/jobs/{job_id}/report", tags=["jobs"], summary="What a job says about its result", operation_id="get_report",
             responses=openapi.errors(401, 403, 404, 409, 410, 422) | openapi.file_answer())  # fmt: skip
    def report(request: Request, who: Who, job_id: JobId) -> Response:
        found = theirs(request, who, job_id)
        file, about = result_of(request.app.state.service, found, who)
        with file:
            if about["media_type"] != "application/zip":
                raise Refused(404, "no_report", "this kind of job has no report; its result says all of it.")
            with zipfile.ZipFile(file) as archive:
                for name in REPORTS:
                    if name in archive.namelist():
                        return as_report(name, archive.read(name))
        raise Refused(404, "no_report", "this result has no report.")


def as_report(name: str, content: bytes) -> Response:
    """A report as it is sent. A page may run the one script that it holds, and nothing else: its own policy in the header too."""
    if not name.endswith(".html"):
        return Response(content, media_type="application/json")
    policy = f"{policy_in(content.decode('utf-8'))}; frame-ancestors 'none'; sandbox allow-scripts"
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": policy})


def theirs(request: Request, who: Caller, job: str) -> Job:
    """A job of whoever asks; another's is as unknown as one that never was."""
    service: Service = request.app.state.service
    found = service.store.get(job, who.id) if ID.fullmatch(job) else None
    if found is None:
        raise _no_job()
    return found


def _no_job() -> Refused:
    return Refused(404, "no_job", "there is no such job.")


def sent(file: BinaryIO, name: str, kind: str, headers: dict[str, str]) -> Response:
    """A file that is open already: it is whole, even if somebody removes it now."""

    def pieces() -> Iterator[bytes]:
        with file:
            while piece := file.read(1 << 18):
                yield piece

    return StreamingResponse(
        pieces(), media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"', **headers}
    )


def result_of(service: Service, job: Job, who: Caller) -> tuple[BinaryIO, dict[str, Any]]:
    """A job's result, opened, and what is known of it."""
    if job.state in ("queued", "running"):
        raise Refused(409, "not_done", f"the job is {job.state}; ask again later.", Retry_After="1")
    if job.state == "failed":
        raise Refused(422, job.error_code or "failed", job.error or "the job failed.")
    gone = Refused(410, "gone", f"the job is {job.state}; its result was removed.")
    if job.state != "done" or job.result is None:
        raise gone
    try:
        file = (service.files.run(job.id, job.result["lease"]) / job.result["name"]).open("rb")
    except OSError:
        raise gone from None
    service.store.say(who.id, "fetched a result", job.id)
    return file, job.result


def _digest(about: dict[str, Any]) -> dict[str, str]:
    import base64

    return {"Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(about['sha256'])).decode()}:"}


def _shown(service: Service, job: Job) -> dict[str, Any]:
    """A job as its owner sees it."""
    told = None
    if job.state == "done" and job.result is not None:
        try:
            told = json.loads((service.files.run(job.id, job.result["lease"]) / SUMMARY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            told = None
    return {
        "id": job.id,
        "kind": job.kind,
        "name": job.name,
        "state": job.state,
        "created": job.created,
        "created_at": _when(job.created),
        "started_at": _when(job.started),
        "ended_at": _when(job.ended),
        "expires_at": _when(job.expires),
        "seconds": None if job.started is None or job.ended is None else round(job.ended - job.started, 3),
        "runs": job.runs,
        "progress": {"stage": job.stage, "done": job.done, "total": job.total},
        "files": job.files,
        "parameters": job.parameters,
        "error": None if job.error is None else {"code": job.error_code, "message": job.error},
        "result": None
        if job.result is None or job.state != "done"
        else {n: job.result[n] for n in ("name", "bytes", "sha256", "media_type")},
        "summary": told,
    }


def _when(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

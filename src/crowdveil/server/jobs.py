"""What can be asked about jobs: their state, their end, their results. Another's job is as unknown as one that never was."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import IO, Annotated, Any, BinaryIO

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from crowdveil.report.html import policy_in
from crowdveil.server import openapi
from crowdveil.server.access import Who
from crowdveil.server.answers import Refused
from crowdveil.server.child import SUMMARY
from crowdveil.server.files import ID
from crowdveil.server.settings import Service
from crowdveil.server.store import Job
from crowdveil.server.tokens import Caller

REPORTS = ("report.html", "manifest.json")
"""What stands for the report of a job: the first of these in its result."""
JobId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="A job's id.", examples=["30c2ad9df0f9470abfd8198b4cb4f86a"])
]


def add_job_routes(app: FastAPI) -> None:
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
        return {"jobs": [shown(service, job) for job in service.store.of_owner(who.id, limit, before)]}

    @app.get("/jobs/{job_id}", tags=["jobs"], summary="State, progress and time of a job", operation_id="get_job",
             responses=openapi.errors(401, 403, 404, 422) | openapi.job_answer(200))  # fmt: skip
    def job(request: Request, who: Who, job_id: JobId) -> dict[str, Any]:
        return shown(request.app.state.service, theirs(request, who, job_id))

    @app.delete("/jobs/{job_id}", tags=["jobs"], summary="End a job, and remove its files", operation_id="delete_job",
                responses=openapi.errors(401, 403, 404, 422) | openapi.job_answer(200))  # fmt: skip
    def delete(request: Request, who: Who, job_id: JobId) -> dict[str, Any]:
        service: Service = request.app.state.service
        ended = service.delete(job_id, who.id)
        if ended is None:
            raise _no_job()
        return shown(service, ended)

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


def sent(file: IO[bytes], name: str, kind: str, headers: dict[str, str], inside: IO[bytes] | None = None) -> Response:
    """A file that is open already: it is whole, even if somebody removes it now. `inside` is what it is a part of."""

    def pieces() -> Iterator[bytes]:
        with inside or nullcontext(), file:
            while piece := file.read(1 << 18):
                yield piece

    return StreamingResponse(
        pieces(), media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"', **headers}
    )


def result_of(
    service: Service, job: Job, who: Caller, what: str = "fetched a result"
) -> tuple[BinaryIO, dict[str, Any]]:
    """A job's result, opened, and what is known of it; `what` is written to the audit log."""
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
    service.space.writing(lambda: service.store.say(who.id, what, job.id))
    return file, job.result


def _digest(about: dict[str, Any]) -> dict[str, str]:
    return {"Repr-Digest": f"sha-256=:{base64.b64encode(bytes.fromhex(about['sha256'])).decode()}:"}


def shown(service: Service, job: Job) -> dict[str, Any]:
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

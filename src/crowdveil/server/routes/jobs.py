"""Routes of jobs: their state, their end, their results. Jobs of other users answer 404."""

from __future__ import annotations

import base64
import json
import mimetypes
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, StreamingResponse

from crowdveil.errors import as_json
from crowdveil.report.html import policy_in
from crowdveil.server import logs, openapi
from crowdveil.server.access import Follower, OpenService, Reader, Sender
from crowdveil.server.queue.files import ID
from crowdveil.server.queue.store import QueuedJob
from crowdveil.server.responses import ApiError
from crowdveil.server.sanitize import sendable
from crowdveil.server.service import Service
from crowdveil.server.tokens import Caller
from crowdveil.server.views import JOB_ID, FileList, JobList, JobView, ResultView, SummaryView, iso_time
from crowdveil.server.workers.job import SUMMARY
from crowdveil.verbs.table import VERBS

REPORTS = ("report.html", "manifest.json")
"""What stands for the report of a job: the first of these in its result."""
View = TypeVar("View")
JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="A job's id.", examples=[JOB_ID])]


def add_job_routes(app: FastAPI) -> None:
    """Add the routes of jobs."""

    @app.get("/jobs", tags=["jobs"], summary="Your jobs, newest first", operation_id="list_jobs",
             response_model=JobList, responses=openapi.errors())  # fmt: skip
    def jobs(
        service: OpenService,
        who: Follower,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        before: Annotated[
            str | None, Query(pattern="^[0-9a-f]{32}$", description="Only those before this job of yours.")
        ] = None,
    ) -> JobList:
        return JobList(jobs=readable(service.store.of_owner(who.id, limit, before), lambda job: shown(service, job)))

    @app.get("/jobs/{job_id}", tags=["jobs"], summary="State, progress and time of a job", operation_id="get_job",
             response_model=JobView, responses=openapi.errors(404))  # fmt: skip
    async def job(service: OpenService, who: Follower, job_id: JobId) -> JobView:
        # Clients ask this again and again: one change of threads for all of it.
        return await run_in_threadpool(lambda: shown(service, theirs(service, who, job_id)))

    @app.delete("/jobs/{job_id}", tags=["jobs"], summary="End a job, and remove its files", operation_id="delete_job",
                response_model=JobView, responses=openapi.errors(404))  # fmt: skip
    def delete(service: OpenService, who: Sender, job_id: JobId) -> JobView:
        ended = service.delete(job_id, who.id, who.who)
        if ended is None:
            raise no_job()
        return shown(service, ended)

    @app.get("/jobs/{job_id}/result", tags=["jobs"], summary="The result: a zip file, or one file", operation_id="get_result",
             response_class=FileResponse, responses=openapi.errors(404, 409, 410) | openapi.file_answer())  # fmt: skip
    def result(service: OpenService, who: Reader, job_id: JobId) -> Response:
        job = theirs(service, who, job_id)
        file, about = result_of(service, job)
        service.store.say(who.who, "fetched a result", job.id)
        digest = base64.b64encode(bytes.fromhex(about["sha256"])).decode()
        headers = {"Repr-Digest": f"sha-256=:{digest}:"}
        return FileResponse(file, media_type=about["media_type"], filename=about["name"], headers=headers)

    @app.get("/jobs/{job_id}/report", tags=["jobs"], summary="What a job says about its result", operation_id="get_report",
             responses=openapi.errors(404, 409, 410) | openapi.file_answer())  # fmt: skip
    def report(service: OpenService, who: Reader, job_id: JobId) -> Response:
        return report_of(service, theirs(service, who, job_id), who)


def report_of(service: Service, job: QueuedJob, who: Caller) -> Response:
    """Return what a job says about its result, even before the result is approved: a review is about it."""
    file, about = result_of(service, job, review=False)
    service.store.say(who.who, "saw a report", job.id)
    if about["media_type"] != "application/zip":
        raise ApiError(404, "no_report", "this kind of job has no report; its result says all of it.")
    with open_result(file) as archive:
        for name in REPORTS:
            if name in archive.namelist():
                return as_report(name, archive.read(name))
    raise ApiError(404, "no_report", "this result has no report.")


def as_report(name: str, content: bytes) -> Response:
    """Send a report. Its header repeats its own policy: a page may run the one script in it, and nothing else."""
    if not name.endswith(".html"):
        return Response(content, media_type="application/json")
    policy = f"{policy_in(content.decode('utf-8'))}; frame-ancestors 'none'; sandbox allow-scripts"
    return Response(content, media_type="text/html", headers={"Content-Security-Policy": policy})


def theirs(service: Service, who: Caller, job: str) -> QueuedJob:
    """Return a job of the caller."""
    found = service.store.get(job, who.id) if ID.fullmatch(job) else None
    if found is None:
        raise no_job()
    return found


def no_job() -> ApiError:
    """Return the error for an unknown job."""
    return ApiError(404, "no_job", "there is no such job.")


def review_of(service: Service, job: QueuedJob) -> str | None:
    """Return the state of a review: awaiting, approved or rejected; None if no review is required."""
    return job.review or ("awaiting" if service.settings.four_eyes else None)


def awaits(service: Service, job: QueuedJob) -> bool:
    """Return whether a result awaits review."""
    return job.state == "done" and review_of(service, job) == "awaiting"


def result_of(service: Service, job: QueuedJob, *, review: bool = True) -> tuple[FilePath, dict[str, Any]]:
    """Return the file of a job's result and its description; with `review`, only once it was approved where that is needed."""
    if job.state in ("queued", "running"):
        raise ApiError(409, "not_done", f"the job is {job.state}. Ask again later.", Retry_After="1")
    if job.state == "failed":
        raise ApiError(422, job.error_code or "failed", job.error or "the job failed.")
    if job.state != "done" or job.result is None:
        raise _gone(job.state)
    if review and awaits(service, job):
        raise ApiError(403, "awaiting_review", "the result awaits review; another token must approve its report first.")
    if review and review_of(service, job) == "rejected":
        raise ApiError(403, "rejected", "the result was rejected in its review. See the comment on the job.")
    file = service.files.run(job.id, job.result["lease"]) / job.result["name"]
    if not file.is_file():
        raise _gone("expired")
    asked = None if job.result["media_type"] == "application/zip" else job.parameters.get("result_name")
    return file, job.result | {"name": asked or job.result["name"]}


def open_result(file: FilePath) -> zipfile.ZipFile:
    """Open a result that is a zip file; it may have just been removed."""
    try:
        return zipfile.ZipFile(file)
    except OSError:
        raise _gone("expired") from None


def _gone(state: str) -> ApiError:
    return ApiError(410, "gone", f"the job is {state}; its result was removed.")


def _review(service: Service, job: QueuedJob) -> dict[str, Any] | None:
    state = review_of(service, job)
    if state is None or job.state not in ("done", "expired"):
        return None
    by = service.tokens.name_of(job.reviewer)
    return {"state": state, "by": by, "at": iso_time(job.reviewed), "comment": sendable(job.comment)}


def shown(service: Service, job: QueuedJob) -> JobView:
    """Return a job as its owner sees it."""
    done = job.result is not None and job.state == "done"
    return JobView.model_validate({
        **{name: getattr(job, name) for name in ("id", "kind", "name", "state", "created", "runs", "files")},
        **{f"{time}_at": iso_time(getattr(job, time)) for time in ("created", "started", "ended", "expires")},
        "seconds": None if job.started is None or job.ended is None else round(job.ended - job.started, 3),
        "progress": {"stage": job.stage, "done": job.done, "total": job.total},
        "parameters": {n: v for n, v in job.parameters.items() if n not in _secret(job.kind)},
        "error": None if job.error is None else as_json(job.error_code or "failed", job.error),
        "result": {n: job.result[n] for n in ResultView.model_fields} if done and job.result else None,
        "summary": _summary(service, job) if done else None,
        "review": _review(service, job),
    })  # fmt: skip


def readable(jobs: Iterable[QueuedJob], show: Callable[[QueuedJob], View]) -> list[View]:
    """Return jobs as `show` shows them, without those that it cannot show: one broken row must not hide the others."""
    found = []
    for job in jobs:
        try:
            found.append(show(job))
        except Exception as error:
            logs.say_fault(error, job=job.id)
    return found


def _secret(kind: str) -> tuple[str, ...]:
    """Return the parameters of a kind of job that are never shown back; a row may be of a kind of another version."""
    return VERBS[kind].secret if kind in VERBS else ()


def _summary(service: Service, job: QueuedJob) -> SummaryView | None:
    """Read the summary next to a job's result; it may have just been removed."""
    try:
        text = (service.files.run(job.id, (job.result or {})["lease"]) / SUMMARY).read_text(encoding="utf-8")
        return SummaryView.model_validate(sendable(json.loads(text)))
    except (OSError, ValueError, KeyError):
        return None


FileName = Annotated[
    str, Path(max_length=120, description="The name of a file of the result.", examples=["manifest.json"])
]


def add_parts(app: FastAPI) -> None:
    """Add the routes."""
    wrong = openapi.errors(404, 409, 410)

    @app.get("/jobs/{job_id}/files", tags=["jobs"], summary="The files of a result", operation_id="list_files",
             response_model=FileList, responses=wrong)  # fmt: skip
    def files(service: OpenService, who: Reader, job_id: JobId) -> Any:
        file, about = result_of(service, theirs(service, who, job_id), review=False)
        if about["media_type"] != "application/zip":
            return {"files": [{"name": about["name"], "bytes": about["bytes"]}]}
        with open_result(file) as archive:
            return {"files": [{"name": e.filename, "bytes": e.file_size} for e in archive.infolist()]}

    @app.get("/jobs/{job_id}/files/{name}", tags=["jobs"], summary="One file of a result", operation_id="get_file",
             response_class=StreamingResponse, responses=wrong | openapi.file_answer())  # fmt: skip
    def one(service: OpenService, who: Reader, job_id: JobId, name: FileName) -> Response:
        job = theirs(service, who, job_id)
        # What a review is about can be seen before it.
        file, about = result_of(service, job, review=name not in REPORTS)
        if about["media_type"] != "application/zip":
            if name != about["name"]:
                raise _no_file()
            service.store.say(who.who, "fetched a result", job.id)
            return FileResponse(file, media_type=_kind(name), filename=name)
        archive = open_result(file)
        if name not in archive.namelist():
            archive.close()
            raise _no_file()
        service.store.say(who.who, "fetched a file of a result", job.id)
        return part_of(archive, name)


def part_of(archive: zipfile.ZipFile, name: str) -> Response:
    """Send a file of an open archive as a download, so that nothing of a result runs as a page of ours."""
    size = archive.getinfo(name).file_size
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(size)}
    return StreamingResponse(_content(archive, name), media_type=_kind(name), headers=headers)


def _content(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Yield a file of an archive in pieces, and close the archive."""
    with archive, archive.open(name) as file:
        while piece := file.read(1 << 18):
            yield piece


def _kind(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _no_file() -> ApiError:
    return ApiError(404, "not_found", "the result has no file of that name.")

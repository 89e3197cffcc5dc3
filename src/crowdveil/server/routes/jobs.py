"""Routes of jobs: submission, state, cancellation and results. Jobs of other users answer 404."""

from __future__ import annotations

import base64
import json
import mimetypes
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import ParameterError, as_json
from crowdveil.report.html import policy_in
from crowdveil.server import logs
from crowdveil.server.access import Follower, OpenService, Reader, Sender
from crowdveil.server.openapi import FILE
from crowdveil.server.queue.database import sendable
from crowdveil.server.queue.files import ID
from crowdveil.server.queue.store import NewJob, QueuedJob
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.uploads import UPLOADS, Form, check_files, incoming, parsed, receive
from crowdveil.server.service import Service
from crowdveil.server.sources import with_source
from crowdveil.server.tokens import Caller
from crowdveil.server.views import JOB_ID, FileList, FileView, JobList, JobView, ResultView, SummaryView, iso_time
from crowdveil.server.workers.job import SUMMARY
from crowdveil.verbs.base import Verb
from crowdveil.verbs.table import VERBS

router = APIRouter(tags=["jobs"])
REPORTS = ("report.html", "manifest.json")
"""Files that serve as the report of a job: the first one in its result."""
View = TypeVar("View")
Fields = dict[str, tuple[str, ...]]
"""Other names of fields of files, and the fields that they may stand for."""
JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="A job's id.", examples=[JOB_ID])]
Before = Annotated[str | None, Query(pattern="^[0-9a-f]{32}$", description="Only those before this job of yours.")]
FileName = Annotated[
    str, Path(max_length=120, description="The name of a file of the result.", examples=["manifest.json"])
]
as_file: dict[str, Any] = {"response_class": Response, "responses": FILE}


# Accepting jobs


def registered_name(kind: Verb, name: str) -> str:
    """Return the registered name, or answer 404."""
    try:
        return kind.find(name)
    except ParameterError as error:
        raise ApiError(404, "not_found", error.text) from None


async def accept(
    request: Request,
    who: Caller,
    kind: Verb,
    chosen: Callable[[Form], tuple[str, dict[str, Any] | None]],
    fields: Fields | None = None,
    texts: tuple[str, ...] = ("parameters", UPLOADS),
) -> QueuedJob:
    """Receive a form, check everything that needs no reading of data, and queue the job.

    `chosen` returns the name of the method, measure, analysis or attack, and its parameters unless these are a field of the form.
    `fields` maps names of file fields in the form to one of ours, or to several of which the job takes one.
    """
    service: Service = request.app.state.service
    async with incoming(request, service, who) as (job, inputs):
        allowed = await run_in_threadpool(_allowed, kind, request.path_params.get("name"), fields)
        form = await receive(request, inputs, allowed, texts, who)

        def add() -> QueuedJob:  # in one thread, so that an interrupted request leaves a complete job or none
            name, values = chosen(form)
            if values is None:
                values = parsed(form.texts.get("parameters") or "{}", "parameters")
            if fields is not None:
                own = kind.fields(name)
                form.files = {next(f for f in fields[other] if f in own): file for other, file in form.files.items()}
            values = with_source(kind, name, values, who)
            kind.checked(name, values, form.files)
            check_files(form, inputs, who.limits.upload_bytes)
            return _queued(service, who, NewJob(
                job, who.id, kind.verb, name, values, form.files,
                {"max_seconds": who.limits.max_seconds, "upload_bytes": who.limits.upload_bytes},
                who.limits.max_running, service.settings.keep_s, service.settings.four_eyes, who.who,
            ))  # fmt: skip

        return await run_in_threadpool(add)


def _queued(service: Service, who: Caller, job: NewJob) -> QueuedJob:
    """Queue a job with its files."""
    service.files.accept(job.id)
    accepted = False
    try:
        accepted = service.store.add(job, who.limits.max_waiting)
    finally:
        if not accepted:
            service.files.remove(job.id)
    if not accepted:
        sentence = f"Too many jobs at once (limit {who.limits.max_waiting:,}). Wait for some to finish."
        raise ApiError(429, "too_many", sentence, Retry_After="5")
    return own_job(service, who, job.id)


def _allowed(kind: Verb, name: str | None, fields: Fields | None) -> dict[str, tuple[str, ...]]:
    """Return the file fields of a form with their endings; in the MobiDataLab forms the method is not known yet."""
    if fields is None:
        return kind.fields(registered_name(kind, str(name)))
    endings: dict[str, tuple[str, ...]] = {}
    for one in kind.names():
        endings |= kind.fields(one)
    return {other: tuple(dict.fromkeys(e for f in own for e in endings[f])) for other, own in fields.items()}


# States


@router.get("/jobs", summary="Your jobs, newest first")
def list_jobs(
    service: OpenService, who: Follower, limit: Annotated[int, Query(ge=1, le=1000)] = 100, before: Before = None
) -> JobList:
    """Return the jobs of the caller."""
    return JobList(jobs=readable(service.store.of_owner(who.id, limit, before), lambda job: job_view(service, job)))


@router.get("/jobs/{job_id}", summary="State, progress and time of a job")
def get_job(service: OpenService, who: Follower, job_id: JobId) -> JobView:
    """Return a job of the caller."""
    return job_view(service, own_job(service, who, job_id))


@router.delete("/jobs/{job_id}", summary="End a job, and remove its files")
def delete_job(service: OpenService, who: Sender, job_id: JobId) -> JobView:
    """Cancel a job, or remove its result."""
    ended = service.delete(job_id, who.id, who.who)
    if ended is None:
        raise no_job()
    return job_view(service, ended)


def own_job(service: Service, who: Caller, job: str) -> QueuedJob:
    """Return a job of the caller."""
    own = service.store.get(job, who.id) if ID.fullmatch(job) else None
    if own is None:
        raise no_job()
    return own


def no_job() -> ApiError:
    """Return the error for an unknown job."""
    return ApiError(404, "no_job", "there is no such job.")


def review_of(service: Service, job: QueuedJob) -> str | None:
    """Return the state of a review: awaiting, approved or rejected; None if no review is required."""
    return job.review or ("awaiting" if service.settings.four_eyes else None)


def awaits_review(service: Service, job: QueuedJob) -> bool:
    """Return whether a result awaits review."""
    return job.state == "done" and review_of(service, job) == "awaiting"


def readable(jobs: Iterable[QueuedJob], show: Callable[[QueuedJob], View]) -> list[View]:
    """Return the views of jobs that `show` makes, without jobs that it fails on: one broken row must not hide the others."""
    views = []
    for job in jobs:
        try:
            views.append(show(job))
        except Exception as error:
            logs.say_fault(error, job=job.id)
    return views


def job_view(service: Service, job: QueuedJob) -> JobView:
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


def _secret(kind: str) -> tuple[str, ...]:
    """Return the parameters of a kind of job that are never shown; a row may have a kind of another version."""
    return VERBS[kind].secret if kind in VERBS else ()


def _summary(service: Service, job: QueuedJob) -> SummaryView | None:
    """Read the summary next to a job's result; it may have just been removed."""
    try:
        text = (service.files.run(job.id, (job.result or {})["lease"]) / SUMMARY).read_text(encoding="utf-8")
        return SummaryView.model_validate(sendable(json.loads(text)))
    except (OSError, ValueError, KeyError):
        return None


def _review(service: Service, job: QueuedJob) -> dict[str, Any] | None:
    state = review_of(service, job)
    if state is None or job.state not in ("done", "expired"):
        return None
    by = service.tokens.name_of(job.reviewer)
    return {"state": state, "by": by, "at": iso_time(job.reviewed), "comment": sendable(job.comment)}


# Results


@router.get("/jobs/{job_id}/result", summary="The result: a zip file, or one file", **as_file)
def get_result(service: OpenService, who: Reader, job_id: JobId) -> Response:
    """Send the result of a job."""
    job = own_job(service, who, job_id)
    file, about = result_of(service, job)
    service.store.say(who.who, "fetched a result", job.id)
    digest = base64.b64encode(bytes.fromhex(about["sha256"])).decode()
    headers = {"Repr-Digest": f"sha-256=:{digest}:"}
    return FileResponse(file, media_type=about["media_type"], filename=about["name"], headers=headers)


@router.get("/jobs/{job_id}/report", summary="The report of a job's result", **as_file)
def get_report(service: OpenService, who: Reader, job_id: JobId) -> Response:
    """Send the report of a job."""
    return report_of(service, own_job(service, who, job_id), who)


@router.get("/jobs/{job_id}/files", summary="The files of a result")
def list_files(service: OpenService, who: Reader, job_id: JobId) -> FileList:
    """List the files of a result. This fetches no data, so it is allowed before an approval."""
    job = own_job(service, who, job_id)
    file, about = result_of(service, job, review=False)
    if not _is_packed(job):
        return FileList(files=[FileView(name=about["name"], bytes=about["bytes"])])
    with open_result(file) as archive:
        return FileList(files=[FileView(name=e.filename, bytes=e.file_size) for e in archive.infolist()])


@router.get("/jobs/{job_id}/files/{name}", summary="One file of a result", **as_file)
def get_file(service: OpenService, who: Reader, job_id: JobId, name: FileName) -> Response:
    """Send one file of a result. The reports of a release are available before an approval, since a review is about them."""
    job = own_job(service, who, job_id)
    # A result of one file is no report, whatever name the job gave it.
    file, about = result_of(service, job, review=not (_is_packed(job) and name in REPORTS))
    if not _is_packed(job):
        if name != about["name"]:
            raise _no_file()
        service.store.say(who.who, "fetched a result", job.id)
        return FileResponse(file, media_type=_media_type(name), filename=name)
    archive = open_result(file)
    if name not in archive.namelist():
        archive.close()
        raise _no_file()
    service.store.say(who.who, "fetched a file of a result", job.id)
    return part_of(archive, name)


def result_of(service: Service, job: QueuedJob, *, review: bool = True) -> tuple[FilePath, dict[str, Any]]:
    """Return the file of a job's result and its description; with `review`, only if it was approved or needs no approval."""
    if job.state in ("queued", "running"):
        raise ApiError(409, "not_done", f"the job is {job.state}. Ask again later.", Retry_After="1")
    if job.state == "failed":
        raise ApiError(422, job.error_code or "failed", job.error or "the job failed.")
    if job.state != "done" or job.result is None:
        raise _gone(job.state)
    if review and awaits_review(service, job):
        raise ApiError(403, "awaiting_review", "the result awaits review. Another token must approve its report first.")
    if review and review_of(service, job) == "rejected":
        raise ApiError(403, "rejected", "the result was rejected in its review. See the comment on the job.")
    file = service.files.run(job.id, job.result["lease"]) / job.result["name"]
    if not file.is_file():
        raise _gone("expired")
    name = None if _is_packed(job) else job.parameters.get("result_name")
    return file, job.result | {"name": name or job.result["name"]}


def _is_packed(job: QueuedJob) -> bool:
    """Return whether the result of a job is a zip file."""
    return job.result is not None and job.result["media_type"] == "application/zip"


def report_of(service: Service, job: QueuedJob, who: Caller) -> Response:
    """Return the report of a job's result, even before an approval, since a review is about it."""
    file, _ = result_of(service, job, review=False)
    service.store.say(who.who, "saw a report", job.id)
    if not _is_packed(job):
        raise ApiError(404, "no_report", "this kind of job has no report. Fetch its result.")
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


def open_result(file: FilePath) -> zipfile.ZipFile:
    """Open a result that is a zip file; it may have just been removed."""
    try:
        return zipfile.ZipFile(file)
    except OSError:
        raise _gone("expired") from None


def part_of(archive: zipfile.ZipFile, name: str) -> Response:
    """Send a file of an open archive as a download, so that no result runs as a page of the service."""
    size = archive.getinfo(name).file_size
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(size)}
    return StreamingResponse(_content(archive, name), media_type=_media_type(name), headers=headers)


def _content(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Yield a file of an archive in pieces, and close the archive."""
    with archive, archive.open(name) as file:
        while piece := file.read(1 << 18):
            yield piece


def _media_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _gone(state: str) -> ApiError:
    return ApiError(410, "gone", f"the job is {state}, and its result was removed.")


def _no_file() -> ApiError:
    return ApiError(404, "not_found", "the result has no file of that name.")

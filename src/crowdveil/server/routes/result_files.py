"""The files of a result one by one."""

from __future__ import annotations

import mimetypes
import zipfile
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import FastAPI, Path, Response
from fastapi.responses import FileResponse, StreamingResponse

from crowdveil.server import openapi
from crowdveil.server.access import Reader, TheService
from crowdveil.server.answers import ApiError
from crowdveil.server.routes.jobs import REPORTS, JobId, open_result, result_of, theirs
from crowdveil.server.views import FileList

FileName = Annotated[
    str, Path(max_length=120, description="The name of a file of the result.", examples=["manifest.json"])
]


def add_parts(app: FastAPI) -> None:
    """Add the routes."""
    wrong = openapi.errors(404, 409, 410)

    @app.get("/jobs/{job_id}/files", tags=["jobs"], summary="The files of a result", operation_id="list_files",
             response_model=FileList, responses=wrong)  # fmt: skip
    def files(service: TheService, who: Reader, job_id: JobId) -> Any:
        file, about = result_of(service, theirs(service, who, job_id), review=False)
        if about["media_type"] != "application/zip":
            return {"files": [{"name": about["name"], "bytes": about["bytes"]}]}
        with open_result(file) as archive:
            return {"files": [{"name": e.filename, "bytes": e.file_size} for e in archive.infolist()]}

    @app.get("/jobs/{job_id}/files/{name}", tags=["jobs"], summary="One file of a result", operation_id="get_file",
             response_class=StreamingResponse, responses=wrong | openapi.file_answer())  # fmt: skip
    def one(service: TheService, who: Reader, job_id: JobId, name: FileName) -> Response:
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

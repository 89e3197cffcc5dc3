"""The files of a result one by one."""

from __future__ import annotations

import mimetypes
import zipfile
from typing import Annotated, Any, BinaryIO

from fastapi import FastAPI, Path, Response
from fastapi.responses import StreamingResponse

from crowdveil.server import openapi
from crowdveil.server.access import Reader, TheService
from crowdveil.server.answers import ApiError
from crowdveil.server.routes.jobs import REPORTS, JobId, result_of, sent, theirs
from crowdveil.server.views import FileList

FileName = Annotated[
    str, Path(max_length=120, description="The name of a file of the result.", examples=["manifest.json"])
]


def add_parts(app: FastAPI) -> None:
    """The routes."""
    wrong = openapi.errors(404, 409, 410)

    @app.get("/jobs/{job_id}/files", tags=["jobs"], summary="The files of a result", operation_id="list_files",
             response_model=FileList, responses=wrong)  # fmt: skip
    def files(service: TheService, who: Reader, job_id: JobId) -> Any:
        file, about = result_of(service, theirs(service, who, job_id), who, review=False)
        with file:
            if about["media_type"] != "application/zip":
                return {"files": [{"name": about["name"], "bytes": about["bytes"]}]}
            with zipfile.ZipFile(file) as archive:
                return {"files": [{"name": e.filename, "bytes": e.file_size} for e in archive.infolist()]}

    @app.get("/jobs/{job_id}/files/{name}", tags=["jobs"], summary="One file of a result", operation_id="get_file",
             response_class=StreamingResponse, responses=wrong | openapi.file_answer())  # fmt: skip
    def one(service: TheService, who: Reader, job_id: JobId, name: FileName) -> Response:
        # What a review is about can be seen before it.
        file, about = result_of(service, theirs(service, who, job_id), who, review=name not in REPORTS)
        try:
            if about["media_type"] != "application/zip":
                if name != about["name"]:
                    raise _no_file()
                return _sent(file, file, name, about["bytes"])
            archive = zipfile.ZipFile(file)
            if name not in archive.namelist():
                raise _no_file()
            return _sent(archive.open(name), file, name, archive.getinfo(name).file_size)
        except ApiError:
            file.close()
            raise


def _no_file() -> ApiError:
    return ApiError(404, "not_found", "the result has no file of that name.")


def _sent(part: Any, whole: BinaryIO, name: str, size: int) -> Response:
    """A file out of an open archive. A page among the files is a download: nothing of a result runs as a page of ours."""
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return sent(part, name, kind, {"Content-Length": str(size)}, inside=whole)

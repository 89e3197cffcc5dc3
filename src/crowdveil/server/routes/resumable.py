"""Resumable uploads: a file is sent once, in chunks, and previews and jobs of its owner share it until its time is over."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Request, Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from crowdveil.errors import Option
from crowdveil.params import Params
from crowdveil.server import openapi
from crowdveil.server.access import Sender, TheService
from crowdveil.server.answers import ApiError
from crowdveil.server.queue.files import FLOWS, MAPS, RELEASE
from crowdveil.server.queue.upload_files import BusyError, UploadState
from crowdveil.server.routes.table_limits import count_rows
from crowdveil.server.routes.uploads import check_space, checked_name, no_space
from crowdveil.server.settings import Service
from crowdveil.server.tokens import Caller
from crowdveil.server.views import UploadView

UPLOADS_MOST = 64
"""Uploads of one owner at a time."""
_ENDINGS = tuple(dict.fromkeys((*FLOWS, *RELEASE, *MAPS)))
UploadId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The id of an upload.")]
Offset = Annotated[int, Header(alias="Upload-Offset", ge=0, description="The bytes that were received before.")]
_CHUNK: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class NewUpload(Params):
    """The beginning of an upload."""

    # FastAPI needs the validator of a body when it makes the route.
    model_config = ConfigDict(defer_build=False)

    name: str = Field(min_length=1, max_length=255, json_schema_extra={"example": "trips.csv"})
    """Name of the file; its ending states its type."""
    bytes: int = Field(ge=1)
    """Size of the file."""


def add_uploads(app: FastAPI) -> None:
    """Add the routes."""

    @app.post("/uploads", tags=["uploads"], summary="Begin an upload that can be resumed", operation_id="begin_upload",
              status_code=201, response_model=UploadView,
              responses=openapi.errors(413, 415))  # fmt: skip
    def begin(service: TheService, who: Sender, new: NewUpload) -> Any:
        return _shown(_begin(service, who, new))

    @app.get("/uploads/{upload_id}", tags=["uploads"], summary="The bytes of an upload that were received",
             operation_id="get_upload", response_model=UploadView,
             responses=openapi.errors(404))  # fmt: skip
    def state(service: TheService, who: Sender, upload_id: UploadId) -> Any:
        return _shown(upload_of(service, who, upload_id))

    @app.patch("/uploads/{upload_id}", tags=["uploads"], summary="Send the next chunk of an upload",
               operation_id="continue_upload", openapi_extra=_CHUNK, response_model=UploadView,
               responses=openapi.errors(400, 404, 409, 413))  # fmt: skip
    async def more(request: Request, service: TheService, who: Sender, upload_id: UploadId, offset: Offset) -> Any:
        found = await run_in_threadpool(upload_of, service, who, upload_id)
        await _receive(request, service, who, found, offset)
        return _shown(found)

    @app.delete("/uploads/{upload_id}", tags=["uploads"], summary="Remove an upload", operation_id="remove_upload",
                status_code=204, response_class=Response, response_model=None,
                responses=openapi.errors(404))  # fmt: skip
    def remove(service: TheService, who: Sender, upload_id: UploadId) -> None:
        found = upload_of(service, who, upload_id)
        service.uploads.remove(who.id, found.id)
        service.store.say(who.who, "removed an upload", found.id)


def upload_of(service: Service, who: Caller, upload: str) -> UploadState:
    """Return an upload of the caller; another's is answered like one that never was."""
    found = service.uploads.get(who.id, upload)
    if found is None:
        raise ApiError(404, "not_found", "there is no such upload, or its time is over; send the file again.")
    return found


def _begin(service: Service, who: Caller, new: NewUpload) -> UploadState:
    checked_name(new.name, "data", _ENDINGS, of="name")
    most = who.limits.upload_bytes
    if new.bytes > most:
        raise ApiError(413, "too_large", f"wanted at most {most >> 20:,} MiB in one file; send less data.")
    if service.uploads.count(who.id) >= UPLOADS_MOST:
        sentence = f"wanted at most {UPLOADS_MOST} uploads at a time; remove some, or wait until their time is over."
        raise ApiError(429, "too_many", sentence, Retry_After="60")
    check_space(service, new.bytes)
    try:
        made = service.uploads.create(who.id, new.name, new.bytes)
    except OSError:
        raise no_space() from None
    service.store.say(who.who, "began an upload", made.id)
    return made


async def _receive(request: Request, service: Service, who: Caller, state: UploadState, offset: int) -> None:
    """Append the body of a request; what arrived before a broken connection is kept."""
    if offset != state.received:
        sentence = f"wanted the bytes from {state.received:,} on; ask how many were received, and continue there."
        raise ApiError(409, "wrong_offset", Option("Upload-Offset"), sentence, Upload_Offset=str(state.received))
    declared = request.headers.get("content-length", "")
    check_space(service, min(int(declared), state.bytes) if declared.isdecimal() and len(declared) < 20 else 0)
    try:
        with service.uploads.appending(who.id, state) as file:
            async for chunk in request.stream():
                if state.received + len(chunk) > state.bytes:
                    raise ApiError(413, "too_large", "there are more bytes than were declared; begin a new upload.")
                file.write(chunk)
                state.received += len(chunk)
                count_rows(state, state.name, chunk, who.limits.max_rows)
    except BusyError:
        sentence = "another request sends to this upload; wait until it ends, and continue there."
        raise ApiError(409, "wrong_offset", sentence, Retry_After="1") from None
    except FileNotFoundError:
        raise ApiError(404, "not_found", "the upload was removed; send the file again.") from None
    except ClientDisconnect:
        raise ApiError(400, "bad_form", "the chunk ended too early; continue the upload.") from None
    except OSError:
        raise no_space() from None
    except ApiError:  # of no use any more
        service.uploads.remove(who.id, state.id)
        raise


def _shown(state: UploadState) -> UploadView:
    return UploadView(
        id=state.id, name=state.name, bytes=state.bytes, received=state.received, keep_seconds=state.keep_s
    )

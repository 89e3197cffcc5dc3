"""Uploads: forms of jobs and previews, and files that are sent once for several of them. Files are written to disk."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect

from crowdveil.errors import CrowdveilError, InputError, Option
from crowdveil.io.archive import check_archive
from crowdveil.server.access import OpenService, Sender
from crowdveil.server.queue.database import sendable
from crowdveil.server.queue.files import KEEP_S, safe_name, share, sync_file
from crowdveil.server.queue.store import new_id
from crowdveil.server.responses import ApiError
from crowdveil.server.service import Service
from crowdveil.server.tokens import Caller
from crowdveil.server.views import UploadView
from crowdveil.verbs.base import FLOWS, MAPS, RELEASE

UPLOADS = "uploads"
"""The field of a form with the ids of uploads, as JSON."""
UPLOADS_MOST = 64
"""Uploads of one owner at a time."""
TEXT_MOST = 1 << 20
"""Bytes of a field of a form that is no file."""
PARTS_MOST = 64
DEPTH_MOST = 32
"""How deep JSON may be nested."""
_ENDINGS = tuple(dict.fromkeys((*FLOWS, *RELEASE, *MAPS)))
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
UploadId = Annotated[str, PathParameter(pattern="^[0-9a-f]{32}$", description="The id of an upload.")]
FileName = Annotated[
    str, Query(min_length=1, max_length=255, description="The name of the file; its ending states its type.")
]
router = APIRouter(tags=["uploads"])
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it would log parts of the request


@dataclass
class Form:
    """A received form: texts by field, and names of files by field."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


# Files that are sent once


@router.post("/uploads", summary="Send a file for several previews and jobs", status_code=201, openapi_extra=_BODY)
async def upload(request: Request, service: OpenService, who: Sender, name: FileName) -> UploadView:
    """Receive the body of a request as a file; remove it if the request ends too early."""
    safe = checked_name(name, "name", _ENDINGS)
    if service.uploads.count(who.id) >= UPLOADS_MOST:
        sentence = f"Expected at most {UPLOADS_MOST} uploads at a time. Remove some, or wait until they expire."
        raise ApiError(429, "too_many", sentence, Retry_After="60")
    async with incoming(request, service, who) as (ident, folder):
        with arriving():
            with (folder / safe).open("xb") as file:
                async for piece in request.stream():
                    file.write(piece)
                size = file.tell()
            await run_in_threadpool(service.uploads.keep, who.id, ident, folder)
    await run_in_threadpool(service.store.say, who.who, "uploaded a file", ident)
    return UploadView(id=ident, name=safe, bytes=size, keep_seconds=KEEP_S)


@router.delete("/uploads/{upload_id}", summary="Remove an upload", status_code=204)
def remove_upload(service: OpenService, who: Sender, upload_id: UploadId) -> None:
    """Remove an upload; jobs keep their file."""
    _upload_of(service, who, upload_id)
    service.uploads.remove(who.id, upload_id)
    service.store.say(who.who, "removed an upload", upload_id)


def _upload_of(service: Service, who: Caller, upload: object) -> Path:
    """Return the file of an upload of the caller; uploads of others answer 404."""
    file = service.uploads.get(who.id, upload) if isinstance(upload, str) else None
    if file is None:
        raise ApiError(404, "not_found", "The upload does not exist, or it expired. Send the file again.")
    return file


def declared_size(request: Request, most: int) -> int:
    """Return the size of a request; reject one that states none, or that is too large."""
    declared = request.headers.get("content-length", "")
    # HTTP ignores the stated size of a request in chunks.
    if not declared.isdecimal() or "transfer-encoding" in request.headers:
        raise ApiError(411, "no_length", "Expected the size of the request. Send it with Content-Length.")
    if len(declared) > 18 or int(declared) > most:
        limit = f"{most >> 20:,} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise ApiError(413, "too_large", f"Expected at most {limit} in one request. Send less data.")
    return int(declared)


@asynccontextmanager
async def incoming(request: Request, service: Service, who: Caller) -> AsyncIterator[tuple[str, Path]]:
    """Yield a new id and a folder for the files of a request; remove files that were not moved elsewhere at the end.

    The server refuses a request that is too large for the token or the disk before receiving it.
    """
    # A form is on the disk twice for a moment: as received, and as the files of its job.
    if not service.has_room(2 * declared_size(request, who.limits.upload_bytes)):
        raise _no_space()
    ident = new_id()
    with arriving():
        folder = await run_in_threadpool(service.files.receive, ident)
    try:
        yield ident, folder / "inputs"
    finally:
        await run_in_threadpool(service.files.discard, ident)


@contextmanager
def arriving() -> Iterator[None]:
    """Answer requests that end too early, and a full disk."""
    try:
        yield
    except ClientDisconnect:
        raise ApiError(400, "bad_form", "The request ended too early. Send it again.") from None
    except OSError:
        raise _no_space() from None


def _no_space() -> ApiError:
    return ApiError(507, "no_space", "the disk of the server is full. Delete jobs, or ask the operator of the server.")


# Forms


async def receive(
    request: Request, folder: Path, fields: dict[str, tuple[str, ...]], texts: tuple[str, ...], who: Caller
) -> Form:
    """Write the files of a form, and those that were uploaded before, to a folder; `fields` has the endings of file names."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise ApiError(
            415, "bad_type", Option("content_type"), "Expected a form (multipart/form-data). Send the files in one."
        )
    service: Service = request.app.state.service
    with arriving():
        async with request.form(max_files=PARTS_MOST, max_fields=PARTS_MOST, max_part_size=TEXT_MOST) as sent:
            return await run_in_threadpool(_received, service, who, sent, folder, fields, texts)


def _received(
    service: Service,
    who: Caller,
    sent: FormData,
    folder: Path,
    fields: dict[str, tuple[str, ...]],
    texts: tuple[str, ...],
) -> Form:
    form = Form()
    for name, value in sent.multi_items():
        if name not in fields and name not in texts:
            name = name.lower()  # the document of mdl-anonymizer writes Input_dataset
        if name not in fields and name not in texts:
            raise ApiError(422, "bad_form", f"The form has an unknown field. Known are {', '.join([*fields, *texts])}.")
        if name in form.files or name in form.texts:
            raise ApiError(422, "bad_form", Option(name), "the form has this field twice. Send it once.")
        if name in texts:
            form.texts[name] = _text(name, value)
            continue
        if not isinstance(value, UploadFile):
            raise ApiError(422, "bad_form", Option(name), "Expected a file with its name in this field. Add it.")
        form.files[name] = checked_name(value.filename or "", name, fields[name], form.files.values())
        with (folder / form.files[name]).open("xb") as file:
            shutil.copyfileobj(value.file, file, 1 << 20)
    _attach(service, who, form, folder, fields)
    return form


def _text(name: str, value: UploadFile | str) -> str:
    """Return the text of a field that is no file, even if it was sent with a file name."""
    if isinstance(value, str):
        return value
    with closing(value.file):
        content = value.file.read(TEXT_MOST + 1)
    if len(content) > TEXT_MOST:
        raise ApiError(413, "too_large", Option(name), f"Expected at most {TEXT_MOST >> 20} MiB of text. Send less.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ApiError(422, "bad_form", Option(name), "Expected text in UTF-8. Convert it.") from None


def _attach(service: Service, who: Caller, form: Form, folder: Path, fields: dict[str, tuple[str, ...]]) -> None:
    """Put the uploads that a form names into its folder, as if they were sent with it."""
    for name, upload in parsed(form.texts.get(UPLOADS) or "{}", UPLOADS).items():
        if name not in fields:
            raise ApiError(422, "bad_form", Option(UPLOADS), f"Expected ids by field. Known are {', '.join(fields)}.")
        if name in form.files:
            raise ApiError(
                422, "bad_form", Option(name), "the file is in the form and among the uploads. Send it once."
            )
        file = _upload_of(service, who, upload)
        form.files[name] = checked_name(file.name, name, fields[name], form.files.values())
        share(file, folder / form.files[name])
    most = who.limits.upload_bytes
    if sum((folder / name).stat().st_size for name in form.files.values()) > most:
        raise ApiError(413, "too_large", f"Expected at most {most >> 20:,} MiB in one request. Send less data.")


def checked_name(name: str, field: str, endings: tuple[str, ...], taken: Iterable[str] = ()) -> str:
    """Return a safe name for an uploaded file; raise unless its name has one of the endings."""
    safe = safe_name(name, field, endings, tuple(taken))
    if safe is None:
        raise ApiError(
            415, "bad_type", Option(field), f"Expected a file whose name ends in {', '.join(endings)}. Rename it."
        )
    return safe


def check_files(form: Form, folder: Path, most: int) -> None:
    """Flush the files to disk, and reject archives and zones that libraries would unpack or follow without limit."""
    for name in form.files.values():
        path = folder / name
        sync_file(path)
        with path.open("rb") as file:
            head = file.read(1024)
        ending = path.suffix.lower()
        if ending == ".zip":
            check_archive(path, name, most)
        elif ending in (".geojson", ".json"):
            if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
                raise _no_zones(name)
        elif ending == ".gpkg" and not head.startswith(b"SQLite format 3\0"):
            raise _no_zones(name)


def _no_zones(name: str) -> CrowdveilError:
    return InputError(
        name, "Expected zones as GeoJSON or GeoPackage, got another or a damaged file. Export them again."
    )


def parsed(text: str, name: str) -> dict[str, Any]:
    """Parse a JSON object of a request."""
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ApiError(422, "bad_form", Option(name), "Expected valid JSON. Fix it.") from None
    if not isinstance(values, dict) or _depth(values) > DEPTH_MOST:
        raise ApiError(422, "bad_form", Option(name), "Expected an object of names and values.")
    if sendable(values) != values:
        raise ApiError(
            422, "bad_text", Option(name), "the text has a NUL character or half of a surrogate pair. Remove it."
        )
    return values


def _depth(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max((_depth(v) for v in inner if isinstance(v, dict | list)), default=0)


def _refuse_constant(_name: str) -> Any:
    raise ValueError

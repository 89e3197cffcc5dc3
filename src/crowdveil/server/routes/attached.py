"""Files of a request that were uploaded before: the form names their ids, by field."""

from __future__ import annotations

from pathlib import Path

from crowdveil.errors import Option
from crowdveil.server.answers import ApiError
from crowdveil.server.queue.upload_files import UploadState
from crowdveil.server.routes.resumable import upload_of
from crowdveil.server.routes.uploads import Form, checked_name, parsed
from crowdveil.server.settings import Service
from crowdveil.server.tokens import Caller

UPLOADS = "uploads"
"""The field of a form with the ids of uploads, as JSON."""
PART_BYTES = 20_000_000
"""Bytes of the beginning of a text table that a preview reads."""


def attach(
    service: Service, who: Caller, form: Form, folder: Path, fields: dict[str, tuple[str, ...]], *, part: bool = False
) -> None:
    """Put the uploads that a form names into its folder, as if they had come with it.

    With `part`, only the beginning of the data is taken, which may be all that arrived so far.
    """
    total = 0
    for field, upload in parsed(form.texts.get(UPLOADS) or "{}", UPLOADS).items():
        state = _known(service, who, form, fields, field, upload)
        safe = checked_name(state.name, field, fields[field], form.files.values())
        only = PART_BYTES if part and field == "data" else state.bytes
        if state.received < min(state.bytes, only):
            raise ApiError(
                409, "incomplete", Option(field), "the upload is not complete; send the rest, and ask again."
            )
        try:
            if only < state.bytes:
                service.uploads.copy_beginning(who.id, state, folder / safe, only)
            else:
                service.uploads.share(who.id, state, folder / safe)
        except FileNotFoundError:
            raise ApiError(404, "not_found", "the upload was removed; send the file again.") from None
        form.files[field] = safe
        total += min(only, state.bytes)
    most = who.limits.upload_bytes
    if total > most:
        raise ApiError(413, "too_large", f"wanted at most {most >> 20:,} MiB in one request; send less data.")


def _known(
    service: Service, who: Caller, form: Form, fields: dict[str, tuple[str, ...]], field: str, upload: object
) -> UploadState:
    if field not in fields:
        raise ApiError(422, "bad_form", Option(UPLOADS), f"wanted ids by field; known are {', '.join(fields)}.")
    if field in form.files:
        raise ApiError(422, "bad_form", Option(field), "the file is in the form and among the uploads; send it once.")
    return upload_of(service, who, upload if isinstance(upload, str) else "")

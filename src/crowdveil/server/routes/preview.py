"""Preview a file before a job is submitted: receive it, inspect it in the sandbox, and remove it before answering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import NO_MEMORY, Option, text_of
from crowdveil.reading import READINGS
from crowdveil.server import openapi
from crowdveil.server.access import OpenService, Sender
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.uploads import UPLOADS, Form, check_files, incoming, parsed, receive
from crowdveil.server.views import PreviewView
from crowdveil.server.workers.sandbox import Bounds, run_sandboxed
from crowdveil.verbs.base import FLOWS, check_word, endings_of, file_options

router = APIRouter(tags=["preview"])
SECONDS_MOST, MEMORY_MOST = 300, 4 << 30
TAKES = ("", "flows", "trajectories")
_OPTIONS = {option for reading in READINGS.values() for option in file_options(reading)}
_FIELDS = {"data": FLOWS, **{option: endings_of(option) for option in sorted(_OPTIONS)}}
_TEXTS: dict[str, dict[str, Any]] = {
    "parameters": {"description": "Options of reading, as JSON.", "example": '{"step": "1h"}'},
    "takes": {"enum": list(TAKES), "description": "The kind of data. [guessed from its columns]"},
    "part": {
        "enum": ["", "true"],
        "description": "Whether only the beginning of a text table is sent.",
    },
    "method": {"description": "A method, to check whether it can work on the data.", "example": "joint"},
    "method_parameters": {"description": "Its parameters, as JSON.", "example": '{"k": 10}'},
    UPLOADS: openapi.UPLOADS,
}
_BODY = openapi.form_schema(_FIELDS, {field: {"type": "string", **about} for field, about in _TEXTS.items()})


@router.post("/preview", summary="Preview a file without keeping it", openapi_extra=openapi.form(_BODY),
             response_model_exclude_unset=True)  # fmt: skip
async def preview(request: Request, service: OpenService, who: Sender) -> PreviewView:
    """Inspect a file in a sandboxed process."""
    limits = who.limits
    await run_in_threadpool(service.store.say, who.who, "previewed a file")
    async with incoming(request, service, who) as (_, folder):
        form = await receive(request, folder, _FIELDS, tuple(_TEXTS), who)
        inspection = _request(form, {"upload_bytes": limits.upload_bytes})
        await run_in_threadpool(check_files, form, folder, limits.upload_bytes)
        bounds = Bounds(min(service.memory_bytes, MEMORY_MOST), limits.upload_bytes * 8)
        async with service.previews:
            result = await run_in_threadpool(
                _inspected, inspection, folder, bounds, min(limits.max_seconds, SECONDS_MOST)
            )
    return PreviewView.model_validate(result | {"part": inspection["part"]})


def _inspected(request: dict[str, Any], folder: Path, bounds: Bounds, seconds: float) -> dict[str, Any]:
    try:
        answer = run_sandboxed("crowdveil.server.workers.inspect_upload", request, folder, bounds, seconds)
    except TimeoutError:
        raise ApiError(
            422, "too_long", "The preview takes too long. Start the job without it, or send less data."
        ) from None
    if answer is None:
        raise ApiError(422, "no_memory", NO_MEMORY)
    if "error" in answer:
        code = answer["error"]["code"]
        raise ApiError(500 if code in ("fault", "no_sandbox") else 422, code, text_of(answer["error"]["parts"]))
    result: dict[str, Any] = answer["result"]
    return result


def _request(form: Form, limits: dict[str, Any]) -> dict[str, Any]:
    """Return the request for the sandbox. Paths in parameters are never opened."""
    if "data" not in form.files:
        raise ApiError(422, "bad_form", Option("data"), "Expected a file in this field of the form. Add it.")
    takes, values = form.texts.get("takes", ""), parsed(form.texts.get("parameters") or "{}", "parameters")
    if takes not in TAKES:
        raise ApiError(422, "bad_form", Option("takes"), "Expected flows, trajectories or nothing.")
    for option in sorted(_OPTIONS):
        check_word(option, values.get(option), option in form.files)
    return {
        "data": form.files["data"], "files": {f: n for f, n in form.files.items() if f != "data"}, "takes": takes,
        "values": values, "method": form.texts.get("method", ""),
        "method_parameters": parsed(form.texts.get("method_parameters") or "{}", "method_parameters"),
        "part": form.texts.get("part") == "true", "limits": limits,
    }  # fmt: skip

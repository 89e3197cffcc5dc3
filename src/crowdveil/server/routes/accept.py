"""Accept jobs: receive the form, check it without reading data, and queue the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import ParameterError
from crowdveil.server.queue.store import NewJob, QueuedJob, new_id
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.uploads import UPLOADS, Form, check_files, check_size, make_folder, parsed, receive
from crowdveil.server.service import Service
from crowdveil.server.sources import with_source
from crowdveil.server.tokens import Caller
from crowdveil.verbs.base import Verb

Fields = dict[str, tuple[str, ...]]
"""Other names of fields of files, and the fields that they may stand for."""


def known(kind: Verb, name: str) -> str:
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
    """Take in a form, check all that can be checked without reading data, and put a job into the queue.

    `chosen` says what is to be run, and with which parameters where these are not a field of the form; `fields` maps names of
    fields of files in the form to ours: of several the one that what is run takes.
    """
    service: Service = request.app.state.service
    job, limits, accepted = new_id(), who.limits, False
    check_size(request, service, who)
    inputs = await run_in_threadpool(make_folder, service, job) / "inputs"

    def add(form: Form) -> QueuedJob | None:
        # All in one thread: an interrupted request must not remove the files of a job that was added.
        nonlocal accepted
        name, values = chosen(form)
        if values is None:
            values = parsed(form.texts.get("parameters") or "{}", "parameters")
        if fields is not None:
            taken = kind.fields(name)
            form.files = {next(f for f in fields[theirs] if f in taken): file for theirs, file in form.files.items()}
        values = with_source(kind, name, values, who)
        kind.checked(name, values, form.files)
        check_files(form, inputs, limits.upload_bytes)
        service.files.accept(job)
        new = NewJob(
            job, who.id, kind.verb, name, values, form.files,
            {"max_seconds": limits.max_seconds, "upload_bytes": limits.upload_bytes},
            limits.max_running, service.settings.keep_s, service.settings.four_eyes, who.who,
        )  # fmt: skip
        accepted = service.store.add(new, limits.max_waiting)
        return service.store.get(job) if accepted else None

    try:
        allowed = await run_in_threadpool(_allowed, kind, request.path_params.get("name"), fields)
        form = await receive(request, inputs, allowed, texts, who)
        found = await run_in_threadpool(add, form)
        if not accepted:
            sentence = f"Too many jobs at once (limit {limits.max_waiting:,}). Wait for some to finish."
            raise ApiError(429, "too_many", sentence, Retry_After="5")
    finally:
        if not accepted:
            service.files.discard(job)
            service.files.remove(job)
    if found is None:
        raise ApiError(404, "not_found", "there is no such job.")
    return found


def _allowed(kind: Verb, name: str | None, fields: Fields | None) -> dict[str, tuple[str, ...]]:
    """Return the file fields of a form with their endings; in the MobiDataLab forms the method is not known yet."""
    if fields is None:
        return kind.fields(known(kind, str(name)))
    endings: dict[str, tuple[str, ...]] = {}
    for one in kind.names():
        endings |= kind.fields(one)
    return {theirs: tuple(dict.fromkeys(e for f in ours for e in endings[f])) for theirs, ours in fields.items()}

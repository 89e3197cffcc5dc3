"""Add the routes of mdl-anonymizer's API, with its fields and answers, so that its clients work with this service.

They create the same jobs as the other routes. Only the form differs, and `GET /task/` returns the main file alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from crowdveil.analysis.study import Study
from crowdveil.compat.mobidatalab.runfiles import (
    KEYS,
    PAIRING,
    TILES,
    filter_input,
    lower_keys,
    task_of,
)
from crowdveil.errors import CrowdveilError, Option, ParameterError, Text, as_json
from crowdveil.registry import find_analysis
from crowdveil.server import openapi
from crowdveil.server.access import Reader, Sender
from crowdveil.server.queue.files import ID
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.jobs import Fields, accept, awaits_review, open_result, part_of, result_of
from crowdveil.server.routes.uploads import TEXT_MOST, Form, parsed
from crowdveil.verbs.measure import IF_POSSIBLE
from crowdveil.verbs.run_file import known_only, need, tables
from crowdveil.verbs.table import VERBS

PROCESSING = "Your task is being processed. Use the 'GET /task/' endpoint to obtain the results later"
CONFIG = Path("config_file")
OPTIONAL = (TILES, PAIRING)
"""Optional fields of files."""
Chosen = tuple[str, dict[str, Any]]


def _anonymize(content: dict[str, Any], uploaded: Container[str]) -> Chosen:
    task = task_of(VERBS["anonymize"], CONFIG, _here(content, input_file="input_dataset", output_folder="output"))
    values = dict(task.values)
    if values.pop("zones", None) is not None and TILES not in uploaded:
        raise ParameterError(
            Option(TILES), "Expected the file of tiles in this field of the form, got none. Upload it."
        )
    return task.name, values


def _here(content: dict[str, Any], **places: str) -> dict[str, Any]:
    """Return a run file with fixed names of files, since paths of the client's machine mean nothing here."""
    content = lower_keys(CONFIG, content)
    for key in ("main_output_file", "output_filename"):
        if isinstance(content.get(key), str):
            content[key] = _base_name(content[key])
    return content | places


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _named(name: str | Path | None) -> dict[str, Any]:
    """Return the requested name of a result, if there is one."""
    return {} if not name else {"result_name": _base_name(str(name))}


def _analyze(content: dict[str, Any], _uploaded: Container[str]) -> Chosen:
    content = lower_keys(CONFIG, content)
    analysis = find_analysis(need(CONFIG, content, "method"))
    if analysis.takes is Study:  # mdl-anonymizer has none of these
        known_only(CONFIG, content, KEYS)
        return analysis.name, tables(CONFIG, content, "params")
    task = task_of(VERBS["analyze"], CONFIG, _here(content, input_file="input_dataset", output_folder="output"))
    form = VERBS["analyze"].output(task.name).format_of(task.output)
    return task.name, task.values | {"format": form} | _named(content.get("main_output_file"))


def _measure(content: dict[str, Any], uploaded: Container[str]) -> Chosen:
    places = {"original_dataset": "original_dataset", "anonymized_dataset": "anonymized_dataset"}
    task = task_of(VERBS["measure"], CONFIG, _here(content, **places))
    if "pairing" in task.files and PAIRING not in uploaded:
        raise ParameterError(Option(PAIRING), "Expected the pairing in this field of the form, got none. Upload it.")
    by_id = {} if "pairing" in task.files else {"paired_by_id": IF_POSSIBLE}  # as mdl-anonymizer does
    return task.name, by_id | task.values | _named(task.output)


def _filter(content: dict[str, Any], _uploaded: Container[str]) -> Chosen:
    content = lower_keys(CONFIG, content)
    content = _here(content, **{filter_input(content): "input_dataset"})
    task, output = task_of(VERBS["filter"], CONFIG, content), content.get("output_filename")
    named = _named(output if isinstance(output, str) else None)
    form = {"format": "parquet"} if str(named.get("result_name", "")).endswith(".parquet") else {}
    return task.name, task.values | form | named


Choose = Callable[[dict[str, Any], Container[str]], Chosen]
ROUTES: tuple[tuple[str, str, Fields, Choose], ...] = (
    ("/anonymize/", "anonymize", {"input_dataset": ("data",), TILES: ("zones",)}, _anonymize),
    ("/analyze/", "analyze", {"input_dataset": ("data", "release")}, _analyze),
    (
        "/compute_measures/",
        "measure",
        {"original_dataset": ("original",), "anonymized_dataset": ("release",), PAIRING: ("pairing",)},
        _measure,
    ),
    ("/filter/", "filter", {"input_dataset": ("data",)}, _filter),
)
_TYPES: dict[type, str] = {str: "string", dict: "object", list: "array"}
_PLACES = {"input_file": "cabs.csv", "output_folder": "output"}
_EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "anonymize": ("method", {"method": "SimpleGeneralization", **_PLACES, "params": {"tile_size": 500}}),
    "analyze": ("method", {"method": "QuadTreeHeatMap", **_PLACES, "params": {"min_k": 5}}),
    "measure": ("measures", {"measures": [{"name": "TrajectoriesRemoved", "params": {}}]}),
    "filter": ("methods", {"methods": [{"min_locations": 5}, {"max_speed": 120}]}),
}
"""The required key and an example of each run file."""


def add_routes(app: FastAPI) -> None:
    """Add the routes to an app."""
    for path, verb, fields, chosen in ROUTES:
        _add(app, path, verb, fields, chosen)

    @app.get("/task", tags=["mobidatalab"], summary="The same as GET /task/, without the final slash",
             operation_id="get_task_without_slash", responses=openapi.FILE)  # fmt: skip
    @app.get("/task/", tags=["mobidatalab"], summary="The result of a task, or why there is none yet", operation_id="get_task",
             responses=openapi.FILE)  # fmt: skip
    def task(request: Request, who: Reader, task_id: str = Query(max_length=200)) -> Response:
        service = request.app.state.service
        job = service.store.get(task_id, who.id) if ID.fullmatch(task_id) else None
        if job is None or job.state in ("queued", "running", "cancelled", "expired") or awaits_review(service, job):
            # The answer does not repeat text of the request.
            shown = job.id if job is not None else "asked for"
            waits = {"status": "NOT_AVAILABLE", "message": f"task {shown} not available or still processing"}
            return JSONResponse(waits)
        try:
            found, about = result_of(service, job)
        except ApiError as error:
            return _error(error.code, error.text, 200)
        service.store.say(who.who, "fetched a result", job.id)
        if about["media_type"] != "application/zip" or job.kind != "anonymize":
            return FileResponse(found, media_type=about["media_type"], filename=about["name"])
        archive = open_result(found)  # its main file alone
        return part_of(archive, json.loads(archive.read("manifest.json"))["files"]["data"]["name"])


def _error(code: str, text: str | Text, status: int) -> JSONResponse:
    """Return an error in mdl-anonymizer's form and in ours."""
    error = as_json(code, text)
    return JSONResponse({"status": "ERROR", "message": error["message"], "error": error}, status)


def _add(app: FastAPI, path: str, verb: str, fields: Fields, chosen: Choose) -> None:
    async def post(request: Request, who: Sender) -> Response:
        def read(form: Form) -> Chosen:
            if "config_file" not in form.texts:
                raise ParameterError(
                    Option("config_file"), "Expected a file in this field of the form, got none. Add it."
                )
            return chosen(parsed(form.texts["config_file"], "config_file"), form.files)

        try:
            job = await accept(request, who, VERBS[verb], read, fields, ("config_file",))
        except ApiError as error:
            return _error(error.code, error.text, error.status)
        except CrowdveilError as error:
            return _error("bad_parameter", error.text, 422)
        return JSONResponse({"status": "OK", "message": PROCESSING, "task_id": job.id})

    # The client of mdl-anonymizer omits the final slash of its documentation.
    for route, suffix in ((path, ""), (path.rstrip("/"), "_without_slash")):
        app.post(route, tags=["mobidatalab"], summary=f"{VERBS[verb].summary} As in MobiDataLab.",
                 operation_id=f"mobidatalab_{verb}{suffix}", openapi_extra=_body(verb, fields))(post)  # fmt: skip


def _body(verb: str, fields: Fields) -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    needed, example = _EXAMPLES[verb]
    config = {
        "type": "object",
        "description": f"The run file of mdl-anonymizer, JSON of at most {TEXT_MOST >> 20} MiB; paths in it are ignored.",
        "properties": {name: {"type": _TYPES[type(value)]} for name, value in example.items()},
        "required": [needed],
        "example": example,
    }
    schema = {
        "type": "object",
        "properties": {**dict.fromkeys(fields, file), "config_file": config},
        "required": [*(field for field in fields if field not in OPTIONAL), "config_file"],
        "additionalProperties": False,
    }
    return openapi.form(schema)

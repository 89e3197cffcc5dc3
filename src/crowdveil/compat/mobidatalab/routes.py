"""Add the routes of mdl-anonymizer's API, with its fields and its answers, so that its clients work with this service.

They make the same jobs as the other routes. Only the form differs, and `GET /task/` gives the main file alone.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse

from crowdveil.analysis.study import Study
from crowdveil.compat.mobidatalab.runfiles import KEYS, analysis_of, filters_of, measures_of, request_of
from crowdveil.errors import CrowdveilError, Option, ParameterError, as_json
from crowdveil.registry import find_analysis
from crowdveil.runfiles.common import known_only, need, tables
from crowdveil.server import openapi
from crowdveil.server.access import Reader, Sender
from crowdveil.server.answers import ApiError
from crowdveil.server.kinds import KINDS
from crowdveil.server.kinds.filter import TRAJECTORIES
from crowdveil.server.kinds.measure import ALL
from crowdveil.server.queue.files import ID
from crowdveil.server.routes.accept import Fields, accept
from crowdveil.server.routes.jobs import awaits, result_of, sent
from crowdveil.server.routes.uploads import TEXT_MOST, Form, parsed

PROCESSING = "Your task is being processed. Use the 'GET /task/' endpoint to obtain the results later"
CONFIG = Path("config_file")
Chosen = tuple[str, dict[str, Any]]


def _anonymize(content: dict[str, Any]) -> Chosen:
    asked = request_of(CONFIG, _here(content, input_file="input_dataset", output_folder="output"))
    name = KINDS["anonymize"].find(asked.method)
    values = {**asked.parameters, **asked.reading, **asked.options}
    return name, values if asked.data_name is None else values | {"data_name": asked.data_name}


def _here(content: dict[str, Any], **places: str) -> dict[str, Any]:
    """Return a run file with our names for files, since paths of the client's machine mean nothing here."""
    named = content.get("main_output_file")
    if isinstance(named, str):
        content = content | {"main_output_file": named.replace("\\", "/").rsplit("/", 1)[-1]}
    return content | places


def _analyze(content: dict[str, Any]) -> Chosen:
    analysis = find_analysis(need(CONFIG, content, "method"))
    if analysis.takes is Study:  # mdl-anonymizer has none of these
        known_only(CONFIG, content, KEYS)
        return analysis.name, tables(CONFIG, content, "params")
    asked = analysis_of(CONFIG, _here(content, input_file="input_dataset", output_folder="output"))
    form = Path(str(asked.output)).suffix.lower().removeprefix(".")
    return analysis.name, asked.options | {"format": "geojson" if form == "json" else form}


def _measure(content: dict[str, Any]) -> Chosen:
    places = {"original_dataset": "original_dataset", "anonymized_dataset": "anonymized_dataset"}
    asked = measures_of(CONFIG, _here(content, **places))
    return ALL, {"measures": [measure.label for measure in asked.measures]}


def _filter(content: dict[str, Any]) -> Chosen:
    places = {"input_filename": "input_dataset", "output_filename": "output"}
    return TRAJECTORIES, {"filters": filters_of(CONFIG, content | places).methods}


ROUTES: tuple[tuple[str, str, Fields, Callable[[dict[str, Any]], Chosen]], ...] = (
    ("/anonymize/", "anonymize", {"input_dataset": ("data",)}, _anonymize),
    ("/analyze/", "analyze", {"input_dataset": ("data", "release")}, _analyze),
    (
        "/compute_measures/",
        "measure",
        {"original_dataset": ("original",), "anonymized_dataset": ("release",)},
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
"""The required key of the run file of each, and an example."""


def add_routes(app: FastAPI) -> None:
    """Add the routes to an app."""
    for path, verb, fields, chosen in ROUTES:
        _add(app, path, verb, fields, chosen)

    @app.get("/task", tags=["mobidatalab"], summary="The same without a slash", operation_id="get_task_without_slash",
             responses=openapi.errors(401, 403, 422) | openapi.file_answer())  # fmt: skip
    @app.get("/task/", tags=["mobidatalab"], summary="The result of a task, or why there is none yet", operation_id="get_task",
             responses=openapi.errors(401, 403, 422) | openapi.file_answer())  # fmt: skip
    def task(request: Request, who: Reader, task_id: str = Query(max_length=200)) -> Response:
        service = request.app.state.service
        job = service.store.get(task_id, who.id) if ID.fullmatch(task_id) else None
        if job is None or job.state in ("queued", "running", "cancelled", "expired") or awaits(service, job):
            # Text of the request is not repeated in the answer.
            shown = job.id if job is not None else "asked for"
            waits = {"status": "NOT_AVAILABLE", "message": f"task {shown} not available or still processing"}
            return JSONResponse(waits)
        try:
            found, about = result_of(service, job, who)
        except ApiError as error:
            return _error(error.code, error.text, 200)
        if about["media_type"] != "application/zip" or job.kind != "anonymize":
            return sent(found, about["name"], about["media_type"], {"Content-Length": str(about["bytes"])})
        return _main_file(found)


def _main_file(file: BinaryIO) -> Response:
    """Send the data file of a release, out of its zip file."""
    archive = zipfile.ZipFile(file)
    name = json.loads(archive.read("manifest.json"))["files"]["data"]["name"]
    kind = "text/csv" if name.endswith(".csv") else "application/octet-stream"
    return sent(archive.open(name), name, kind, {}, inside=file)


def _error(code: str, text: str, status: int) -> JSONResponse:
    """Return an error in mdl-anonymizer's form and in ours."""
    error = as_json(code, text)
    return JSONResponse({"status": "ERROR", "message": error["message"], "error": error}, status)


def _add(app: FastAPI, path: str, verb: str, fields: Fields, chosen: Callable[[dict[str, Any]], Chosen]) -> None:
    async def post(request: Request, who: Sender) -> Response:
        def read(form: Form) -> Chosen:
            if "config_file" not in form.texts:
                raise ParameterError(Option("config_file"), "wanted a file in this field of the form; add it.")
            return chosen(parsed(form.texts["config_file"], "config_file"))

        try:
            job = await accept(request, who, KINDS[verb], read, fields, ("config_file",))
        except ApiError as error:
            return _error(error.code, error.text, error.status)
        except CrowdveilError as error:
            return _error("bad_parameter", error.text, 422)
        return JSONResponse({"status": "OK", "message": PROCESSING, "task_id": job.id})

    # mdl-anonymizer's own client leaves out the slash at the end that its documentation has.
    for route, suffix in ((path, ""), (path.rstrip("/"), "_without_slash")):
        app.post(route, tags=["mobidatalab"], summary=f"{KINDS[verb].summary} As in MobiDataLab.",
                 operation_id=f"mobidatalab_{verb}{suffix}", openapi_extra=_body(verb, fields),
                 responses=openapi.errors(400, 401, 403, 413, 415, 422, 429))(post)  # fmt: skip


def _body(verb: str, fields: Fields) -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    needed, example = _EXAMPLES[verb]
    config = {
        "type": "object",
        "description": f"The run file of mdl-anonymizer, JSON of at most {TEXT_MOST >> 20} MiB; names of files are ignored.",
        "properties": {name: {"type": _TYPES[type(value)]} for name, value in example.items()},
        "required": [needed],
        "example": example,
    }
    schema = {
        "type": "object",
        "properties": {**dict.fromkeys(fields, file), "config_file": config},
        "required": [*fields, "config_file"],
        "additionalProperties": False,
    }
    return openapi.form(schema, dict.fromkeys(fields, ".csv"), "config_file")

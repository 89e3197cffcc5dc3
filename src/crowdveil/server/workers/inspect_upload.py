"""Inspect a file before a job is made of it: its columns and their roles, a few rows, and what is wrong with it.

It runs in a sandboxed process, in the folder with the files, by the same readers as a job.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError, Option, ParameterError, as_json, rows_that
from crowdveil.io.columns import USUAL, find_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import NAMED, ROLES, by_role, find_od_columns
from crowdveil.io.source import Source, open_source
from crowdveil.io.tiling import by_coordinates
from crowdveil.io.zones import with_files
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import READINGS, read
from crowdveil.registry import find_method
from crowdveil.run.verification import check_k_feasible
from crowdveil.server.workers.check_rows import check_rows
from crowdveil.server.workers.preview_times import near_time_zones, parsed_times

ROWS_SHOWN = 5
ROWS_TYPED = 1000
SIGNS_SHOWN = 60
TAKES: dict[str, type] = {"flows": Flows, "trajectories": Trajectories}
TRACK_ROLES = ("lat", "lon", "time", "trajectory", "user")
_TIME = re.compile(r"\d{4}-\d\d?-\d\d?([ T]\d.*)?|\d{4}/\d\d?/\d\d?.*|\d\d?[/.]\d\d?[/.]\d{2,4}.*|\d\d?:\d\d(:\d\d.*)?")


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Inspect the file that a request names; it has what the file is taken for (or nothing), options of reading, and limits."""
    path = Path(request["data"])
    for name in (path, *map(Path, request["files"].values())):
        check_rows(name, request["limits"])
    if path.suffix.lower() == ".omx":
        lists: dict[str, Any] = {"columns": [], "rows": [], "times": []}
        return {**lists, "looks_like": "flows", "takes": "flows", "roles": {}, **_read("flows", request)}
    if request["part"]:
        cut_last_line(path)
    source = open_source(path)
    first = next((b for b in source.batches(source.columns) if b.num_rows), None)
    head = first.slice(0, ROWS_TYPED).to_pydict() if first is not None else {c: [] for c in source.columns}
    like = _looks_like(source)
    takes = request["takes"] or like or "flows"
    roles = _roles(source, takes, with_files(request["values"], request["files"]))
    times = [] if first is None or "time" not in roles else _times(first, roles["time"], request["values"])
    return {
        "columns": [{"name": c, "type": _type(source.schema.field(c).type, head[c])} for c in source.columns],
        "rows": [[_shown(v) for v in row] for row in zip(*(head[c][:ROWS_SHOWN] for c in source.columns), strict=True)],
        "looks_like": like,
        "takes": takes,
        "roles": roles,
        "times": times,
        **_read(takes, request),
    }


def _times(first: Any, column: str, values: dict[str, Any]) -> list[dict[str, str | None]]:
    return parsed_times(first.slice(0, ROWS_TYPED).column(first.schema.get_field_index(column)), values)


def _looks_like(source: Source) -> str | None:
    """Flows or trajectories, from the names of columns; None where neither is there."""
    there = {role for role in USUAL if _found(source, role, None) is not None}
    if {"origin", "destination"} <= there or {r for r in ROLES if r.endswith(("_lon", "_lat"))} <= there:
        return "flows"
    return "trajectories" if {"lat", "lon"} <= there else None


def _roles(source: Source, takes: str, values: dict[str, Any]) -> dict[str, str]:
    """Which column each role is read from; of those that must be named and are not, none."""
    if takes == "flows":
        try:
            named = by_role({r: values.get(r) for r in NAMED}, source)
            found = find_od_columns(source, named, by_coordinates(values.get("zones")), ReadNotes())
            return {r: c for r in ROLES if (c := getattr(found, r)) is not None}
        except CrowdveilError:
            pass  # the reader says so; what is found is shown all the same
    roles = ROLES if takes == "flows" else TRACK_ROLES
    return {r: c for r in roles if (c := _found(source, r, values.get(r))) is not None}


def _found(source: Source, role: str, named: str | None) -> str | None:
    try:
        return find_column(source, role, named, ReadNotes())
    except CrowdveilError:
        return None


def _read(takes: str, request: dict[str, Any]) -> dict[str, Any]:
    """Read it as a job would: how much there is, what was guessed, and what is wrong, row by row where rows can be left out."""
    answer: dict[str, Any] = {"counts": {}, "notes": [], "problems": [], "error": None, "unfit": None, "near": []}
    values = {n: v for n, v in request["values"].items() if n != "drop_invalid"}
    try:
        return answer | _counted(takes, request, values)
    except CrowdveilError as error:
        answer["error"] = as_json(error.code, error.text)
        if not error.refers_to("drop_invalid"):
            return answer
    try:
        usable = _counted(takes, request, values | {"drop_invalid": True})
    except CrowdveilError:
        return answer
    return answer | usable


def _counted(takes: str, request: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    notes, reading = ReadNotes(), READINGS[TAKES[takes]]
    strange = [n for n in values if n not in reading.model_fields]
    if strange:
        raise ParameterError(Option(strange[0]), "there is no such input option; leave it out.")
    # A partition changes nothing of the data, and a release is unpacked for a job alone.
    given = {n: v for n, v in with_files(values, request["files"]).items() if n != "partition"}
    model = read(TAKES[takes], request["data"], reading.checked(given), notes)
    if isinstance(model, Flows):
        counts = {"flows": len(model), "trips": model.total, "zones": len(model.zones), "steps": model.steps}
    else:
        counts = {"trajectories": len(model), "points": model.points}
    return {
        "unfit": _unfit(model, request), "near": _near(model),
        "counts": {**counts, "crowd": int(model.total_people)}, "crowd_of": model.k_unit,
        "notes": [as_json("note", text) for text in notes.texts],
        "problems": [{"message": rows_that((), n, reason), "rows": n} for reason, n in notes.dropped.items()],
    }  # fmt: skip


def _unfit(model: Flows | Trajectories, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error that the chosen method would end with, as far as it is known before anything is solved."""
    name, method = request.get("method"), None
    try:
        method = find_method(name) if name else None
        if method is None or not isinstance(model, method.takes):
            return None
        params = method.params.checked(request["method_parameters"])
        if not request["part"]:  # there may be more people in the rest of the file
            check_k_feasible(model, params)
        if "partition" not in request["values"] | request["files"]:  # which previews do not read
            method.check_data(model, params)
    except CrowdveilError as error:
        return as_json(error.code, error.text)
    return None


def _near(model: Flows | Trajectories) -> list[str]:
    """Return time zones near the data, for a guess."""
    places = model.zones if isinstance(model, Flows) else model
    if isinstance(model, Flows) and not model.zones.located:
        return []
    lon, lat = np.asarray(places.lon, float), np.asarray(places.lat, float)
    return near_time_zones(float(np.median(lon)), float(np.median(lat))) if len(lon) else []


def _type(of: Any, values: list[Any]) -> str:
    """The type of a column in a word; that of text by its first rows."""
    if pa.types.is_integer(of):
        return "whole number"
    if pa.types.is_floating(of) or pa.types.is_decimal(of):
        return "number"
    if pa.types.is_temporal(of):
        return "time"
    if pa.types.is_boolean(of):
        return "yes or no"
    texts = [v for v in values if isinstance(v, str)]
    if not texts:
        return "empty" if not any(v is not None for v in values) else "other"
    for word, pattern in (("whole number", r"[+-]?\d+"), ("number", r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")):
        if all(re.fullmatch(pattern, t.strip()) for t in texts):
            return word
    return "time" if all(_TIME.fullmatch(t.strip()) for t in texts) else "text"


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= SIGNS_SHOWN else text[: SIGNS_SHOWN - 1] + "…"


def cut_last_line(path: Path) -> None:
    """End a table, of which only the beginning came, behind its last whole row."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    quotes = content.count(b'"', 0, end)
    while end > 0 and quotes % 2:  # a line may end inside quotes
        before = content.rfind(b"\n", 0, end - 1) + 1
        quotes, end = quotes - content.count(b'"', before, end), before
    if end > 0:
        with path.open("r+b") as file:
            file.truncate(end)

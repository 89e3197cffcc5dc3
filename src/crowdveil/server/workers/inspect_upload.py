"""Inspect a file for a preview: its columns and their roles, a few rows, and its problems.

It runs in a sandboxed process, in the folder with the files, by the same readers as a job.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.errors import CrowdveilError, InputError, Option, ParameterError, as_json, rows_that
from crowdveil.io.columns import USUAL, find_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import NAMED, ROLES, by_role, find_od_columns
from crowdveil.io.source import MAX_LISTED, Source, open_source, refuse_wide
from crowdveil.io.tiling import by_coordinates
from crowdveil.io.times import TimeForm, read_seconds
from crowdveil.io.zones import with_files
from crowdveil.model.flows import Flows
from crowdveil.model.projection import great_circle_m
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import READINGS, read
from crowdveil.registry import find_method
from crowdveil.run.verification import check_k_feasible, check_zones_given

_CELLS_FREE, _CELLS_A_BYTE = 4_000_000, 256
"""Values that any Parquet file may hold, and how many more it may hold for each byte of its size."""
ROWS_SHOWN = 5
ROWS_TYPED = 1000
SIGNS_SHOWN = 60
TAKES: dict[str, type] = {"flows": Flows, "trajectories": Trajectories}
TRACK_ROLES = ("lat", "lon", "time", "trajectory", "user")
_TIME = re.compile(r"\d{4}-\d\d?-\d\d?([ T]\d.*)?|\d{4}/\d\d?/\d\d?.*|\d\d?[/.]\d\d?[/.]\d{2,4}.*|\d\d?:\d\d(:\d\d.*)?")


def check_rows(path: Path, limits: dict[str, Any]) -> None:
    """Raise if a Parquet file holds more values than its size allows."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return
    try:
        with pq.ParquetFile(path, thrift_container_size_limit=MAX_LISTED) as file:
            about = file.metadata
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader reports what is wrong
    refuse_wide(str(path), about.num_columns)
    rows = about.num_rows
    # A value that repeats takes hardly any space in a file, but much memory when it is read.
    if rows * max(1, about.num_columns) > _CELLS_FREE + _CELLS_A_BYTE * path.stat().st_size:
        raise InputError(path.name, "the file holds far more rows than its size allows. Write it again as CSV.")
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    largest = limits.get("upload_bytes")
    if largest is not None and size > 16 * largest:
        raise InputError(path.name, "the file is too large once it is unpacked. Give less data.")


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Inspect the file of a request, which has its kind (or nothing), options of reading, and limits."""
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
    """Guess flows or trajectories from the names of columns; return None if neither fits."""
    roles = {role for role in USUAL if _found(source, role, None) is not None}
    if {"origin", "destination"} <= roles or {r for r in ROLES if r.endswith(("_lon", "_lat"))} <= roles:
        return "flows"
    return "trajectories" if {"lat", "lon"} <= roles else None


def _roles(source: Source, takes: str, values: dict[str, Any]) -> dict[str, str]:
    """Return the column of each role, as far as it is known."""
    if takes == "flows":
        try:
            named = by_role({r: values.get(r) for r in NAMED}, source)
            found = find_od_columns(source, named, by_coordinates(values.get("zones")), ReadNotes())
            return {r: c for r in ROLES if (c := getattr(found, r)) is not None}
        except CrowdveilError:
            pass  # the reader reports it; the columns that are found are shown
    roles = ROLES if takes == "flows" else TRACK_ROLES
    return {r: c for r in roles if (c := _found(source, r, values.get(r))) is not None}


def _found(source: Source, role: str, named: str | None) -> str | None:
    try:
        return find_column(source, role, named, ReadNotes())
    except CrowdveilError:
        return None


def _read(takes: str, request: dict[str, Any]) -> dict[str, Any]:
    """Read the file as a job would, and return counts, guesses and problems."""
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
    unknown = [n for n in values if n not in reading.model_fields]
    if unknown:
        raise ParameterError(Option(unknown[0]), "there is no such input option. Leave it out.")
    # A partition does not change the data, and only a job unpacks a release.
    options = {n: v for n, v in with_files(values, request["files"]).items() if n != "partition"}
    model = read(TAKES[takes], request["data"], reading.checked(options), notes)
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
    name = request["method"]
    try:
        method = find_method(name) if name else None
        if method is None or not isinstance(model, method.takes):
            return None
        params = method.params.checked(request["method_parameters"])
        check_zones_given(method, request["data"], request["files"].get("zones") or request["values"].get("zones"))
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
    """Return the type of a column in a word; for text it is guessed from the first rows."""
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
    """Truncate a partial table after its last complete row."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    quotes = content.count(b'"', 0, end)
    while end > 0 and quotes % 2:  # a line may end inside quotes
        before = content.rfind(b"\n", 0, end - 1) + 1
        quotes, end = quotes - content.count(b'"', before, end), before
    if end > 0:
        with path.open("r+b") as file:
            file.truncate(end)


VALUES_SHOWN = 5
NEAR_SHOWN = 8
_NEAR_FACTOR, _NEAR_KM = 2.0, 400.0
"""Zones of cities within twice the distance of the nearest, or within this distance, are near."""


def parsed_times(column: Any, values: dict[str, Any]) -> list[dict[str, str | None]]:
    """Return the first values of a time column, each as text and as local time; None where it cannot be read.

    The format is guessed from all values; the first ones that are not empty are shown.
    """
    rows = [i for i, value in enumerate(column.to_pylist()) if value not in (None, "")][:VALUES_SHOWN]
    texts = [str(column[i].as_py()) for i in rows]
    try:
        read = read_seconds(column, "time", TimeForm(values.get("time_format")))
        zone = ZoneInfo(str(values.get("tz") or "UTC"))
        local = [None if read.bad[i] else _local(int(read.values[i]), zone if read.instants else None) for i in rows]
    except (CrowdveilError, OSError, ValueError, pa.ArrowInvalid):  # the reader of the whole file reports the error
        local = [None] * len(rows)
    return [{"text": text, "read": moment} for text, moment in zip(texts, local, strict=True)]


def _local(seconds: int, zone: ZoneInfo | None) -> str:
    """Return a time as people read it: 'Mon 2 Mar 2026, 08:05:00'."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    moment = moment.astimezone(zone) if zone is not None else moment
    return f"{moment:%a} {moment.day} {moment:%b %Y, %H:%M:%S}"


def near_time_zones(lon: float, lat: float) -> list[str]:
    """Return time zones whose cities are near a position, the nearest first; only a guess, since borders are not known."""
    names, places = list(_cities()), np.array(list(_cities().values())).reshape(-1, 2)
    km = great_circle_m(np.array(lon), np.array(lat), places[:, 0], places[:, 1]) / 1000
    cities = sorted(zip(km.tolist(), names, strict=True))
    most = max(_NEAR_FACTOR * cities[0][0], _NEAR_KM) if cities else 0.0
    return [name for distance, name in cities[:NEAR_SHOWN] if distance <= most]


@cache
def _cities() -> dict[str, tuple[float, float]]:
    """Return longitude and latitude of the city of each time zone, from the time zone database."""
    try:
        lines = files("tzdata.zoneinfo").joinpath("zone1970.tab").read_text(encoding="utf-8").splitlines()
    except (OSError, ModuleNotFoundError):
        return {}
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {row[2]: _position(row[1]) for row in rows if len(row) >= 3}


def _position(text: str) -> tuple[float, float]:
    """Return longitude and latitude of ±DDMM±DDDMM or ±DDMMSS±DDDMMSS."""
    split = max(text.rfind("+"), text.rfind("-"))
    return _degrees(text[split:], 3), _degrees(text[:split], 2)


def _degrees(text: str, digits: int) -> float:
    sign, rest = (-1 if text[0] == "-" else 1), text[1:]
    whole, minutes, seconds = rest[:digits], rest[digits : digits + 2], rest[digits + 2 :]
    return sign * (int(whole) + int(minutes) / 60 + int(seconds or 0) / 3600)

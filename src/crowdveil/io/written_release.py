"""A release as written to files: their format, and reading them without other information."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, model_validator

from crowdveil.errors import InputError
from crowdveil.io.tables import unescape_formulas
from crowdveil.io.times import read_seconds
from crowdveil.io.values import encode_ids, one_array
from crowdveil.model.arrays import Floats, Ints, Mask, number_rows
from crowdveil.model.trajectories import Trajectories


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


class _Area(_Schema):
    area: str
    name: str | None = None
    """Readable name, of at most 60 characters."""
    tiles: list[str]
    size: int = 0
    area_km2: int | float | None = None
    lon: int | float = 0
    lat: int | float = 0

    @model_validator(mode="after")
    def _check_position(self) -> Self:
        if ("lon" in self.model_fields_set) != ("lat" in self.model_fields_set):
            raise ValueError("a position has a longitude and a latitude")
        return self


class _Outline(_Schema):
    type: str
    coordinates: list[Any]


class _Feature(_Schema):
    type: Literal["Feature"]
    properties: _Area
    geometry: _Outline | None = None


class AreaList(_Schema):
    """Content of the GeoJSON of areas, and nothing else."""

    type: Literal["FeatureCollection"]
    features: list[_Feature]


class Column(NamedTuple):
    """A column of a release: the kind of its values, and whether every table has it."""

    kind: Literal["time", "name", "integer", "number"]
    required: bool = True


BOUND_COLUMNS = ("volume_low", "volume_high")
"""Confidence bounds of noisy volumes."""
FLOWS = {
    "t": Column("time"), "origin_area": Column("name"), "destination_area": Column("name"), "volume": Column("integer"),
    "state": Column("name"), "until": Column("time", False), "people": Column("integer", False),
    "trips": Column("integer", False), **dict.fromkeys(BOUND_COLUMNS, Column("integer", False)),
}  # fmt: skip
STEPS = {
    "t": Column("time"), "published": Column("integer"), "suppressed": Column("integer"), "until": Column("time", False),
}  # fmt: skip
POINTS = {
    "lat": Column("number"), "lon": Column("number"), "timestamp": Column("time"), "published_id": Column("integer"),
    "user_id": Column("integer", False),
}  # fmt: skip
"""Columns of the tables of a release."""
_COLUMNS = FLOWS | STEPS | POINTS
AREAS_FILE, MANIFEST_FILE, REPORT_FILE = "areas.geojson", "manifest.json", "report.html"
NO_TIME = int(np.iinfo(np.int64).min)
"""Start of a time step without a time in the files."""
PointTable = tuple[Ints, Floats, Floats]
"""Time, latitude and longitude of each point."""


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file; for a folder, that of the list of its files with theirs."""
    if path.is_dir():
        return folder_hash({file.name: file_hash(file) for file in path.iterdir()})
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_hash(hashes: dict[str, str]) -> str:
    """Return the SHA-256 of the list of a folder's files, sorted by name, each with its own."""
    listed = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
    return hashlib.sha256(listed.encode()).hexdigest()


@dataclass(frozen=True)
class WrittenRelease:
    """A release as read from its files, the only input of checkers.

    Attributes
    ----------
    folder
        Folder of the release.
    data
        Table of flows or of points.
    steps_table
        For flows, the table of time steps.
    features
        Areas, as in the GeoJSON.
    """

    folder: Path
    data: pa.Table
    steps_table: pa.Table | None
    features: list[dict[str, Any]]
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _point_numbers: WeakKeyDictionary[Trajectories, tuple[Ints, Ints]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @property
    def is_flows(self) -> bool:
        """Whether it holds flows, not trajectories."""
        return self.steps_table is not None

    @property
    def content(self) -> str:
        """What it holds: flows or trajectories."""
        return "flows" if self.is_flows else "trajectories"

    @property
    def steps(self) -> pa.Table:
        """The table of time steps."""
        if self.steps_table is None:
            raise InputError(self.folder, "the release has no table of time steps.")
        return self.steps_table

    def column(self, name: str, rows: slice | None = None) -> Any:
        """Return a column as an array, or some consecutive rows of it; times as seconds."""
        values, is_time = self.values(name), name in _COLUMNS and _COLUMNS[name].kind == "time"
        if rows is not None and is_time and not pa.types.is_timestamp(values.type):
            # The form of text is found in the whole column.
            return self.cached(f"seconds of {name}", lambda: self.column(name))[rows]
        if rows is not None:
            values = values.slice(rows.start, rows.stop - rows.start)
        if is_time:
            return read_seconds(values, f"{self.folder.name}, column {name}").values
        return one_array(values).to_numpy(zero_copy_only=False)

    def values(self, name: str) -> Any:
        """Return a column as read."""
        if name not in self.data.column_names:
            raise InputError(self.folder, f"the release has no column {name}, which its manifest lists.")
        return self.data[name]

    def row_steps(self) -> tuple[Ints, Ints]:
        """Return the time steps of rows, as ascending seconds, and the index of each row's step.

        Rows without a time are one step, `NO_TIME`.
        """
        steps: tuple[Ints, Ints] = self.cached(
            "t", lambda: _steps_of(self.values("t"), f"{self.folder.name}, column t")
        )
        return steps

    @property
    def has_intervals(self) -> bool:
        """Whether rows have an end as well as a start, and may span several time steps."""
        return "until" in self.data.column_names

    def row_intervals(self) -> tuple[Ints, Ints]:
        """Return start and end of each row, where rows have intervals."""
        times, step = self.row_steps()
        ends, end = self.cached("until", lambda: _steps_of(self.values("until"), f"{self.folder.name}, column until"))
        return times[step], ends[end]

    def row_spans(self) -> tuple[Ints, Ints, Ints]:
        """Return start and end of each time step or interval of the rows, in order, and its index for each row.

        The end of a time step is not in the files, and is `NO_TIME`.
        """
        if not self.has_intervals:
            times, step = self.row_steps()
            return times, np.full(len(times), NO_TIME), step
        spans, index = np.unique(np.column_stack(self.row_intervals()), axis=0, return_inverse=True)
        return spans[:, 0], spans[:, 1], index.reshape(-1)

    def listed_windows(self) -> tuple[Ints, Ints]:
        """Return start and end of each window in the table of time steps, where rows have intervals."""
        if "until" not in self.steps.column_names:
            raise InputError(self.folder, "the table of time steps has no column until.")
        times, step = self.listed_steps()
        ends, end = _steps_of(self.steps["until"], f"{self.folder.name}, column until of the time steps")
        return times[step], ends[end]

    def row_windows(self) -> Ints:
        """Return the listed time step of each row, or its window where rows have intervals; -1 where it is not listed."""
        listed, number = self.listed_steps()
        place = np.full(len(listed) + 1, -1, np.int64)
        place[number[::-1]] = np.arange(len(number))[::-1]  # of times that are listed twice, the first
        times, step = self.row_steps()
        if not self.has_intervals:
            at = np.minimum(np.searchsorted(listed, times), len(listed))
            known = np.isin(times, listed)
            found: Ints = np.where(known, place[at], -1)[step]
            return found
        start, until = self.row_intervals()
        at = np.searchsorted(listed, start, side="right") - 1
        found = np.where(at >= 0, place[at], -1)
        ends = np.append(self.listed_windows()[1], NO_TIME)
        return np.where(until <= ends[found], found, -1)

    def listed_steps(self) -> tuple[Ints, Ints]:
        """Return the time steps of the table of time steps, and the index of each row's step."""
        if "t" not in self.steps.column_names:
            raise InputError(self.folder, "the table of time steps has no column t.")
        return _steps_of(self.steps["t"], f"{self.folder.name}, column t of the time steps")

    def listed(self, column: str) -> tuple[Ints, Mask]:
        """Return a column of the table of time steps (0 where null), and where it is given."""
        if column not in self.steps.column_names:
            raise InputError(self.folder, f"the table of time steps has no column {column}.")
        values = one_array(self.steps[column])
        given = values.is_valid().to_numpy(zero_copy_only=False)
        return values.fill_null(0).to_numpy(zero_copy_only=False), given

    def cached(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a value that several checkers, or parts of the report, need; computed once."""
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def number_points(self, original: Trajectories) -> tuple[Ints, Ints]:
        """Return a number for each written and each original point, equal for points of one location and time."""
        if original not in self._point_numbers:
            lat, lon = (np.asarray(self.column(name), np.float64) for name in ("lat", "lon"))
            points = (self.column("timestamp"), lat, lon), (original.t, original.lat, original.lon)
            self._point_numbers[original] = number_points(*points)
        return self._point_numbers[original]

    @cached_property
    def _area_number(self) -> dict[str, int]:
        return {f["properties"]["area"]: i for i, f in enumerate(self.features)}

    def area_numbers(self, column: str) -> Ints:
        """Return the index of each row's area in the list of areas, -1 if it is not listed."""
        areas: Ints = self.cached(column, lambda: self._find_areas(column))
        return areas

    def _find_areas(self, column: str) -> Ints:
        number, labels, missing = encode_ids(self.values(column))
        index = np.array([self._area_number.get(str(name), -1) for name in labels], np.int64)
        areas: Ints = index.take(number) if len(labels) else np.full(len(number), -1, np.int64)
        if missing is not None:
            areas[missing] = -1
        return areas

    @cached_property
    def _tile_number(self) -> dict[str, int]:
        names = sorted({t for f in self.features for t in f["properties"]["tiles"]})
        return {t: i for i, t in enumerate(names)}

    @property
    def tile_names(self) -> list[str]:
        """Distinct tiles of all areas; a tile's index here is its number."""
        return list(self._tile_number)

    @property
    def tile_count(self) -> int:
        """Number of distinct tiles in all areas."""
        return len(self._tile_number)

    @cached_property
    def area_tiles(self) -> list[Ints]:
        """Tile numbers of each area."""
        return [np.array([self._tile_number[t] for t in f["properties"]["tiles"]], np.int64) for f in self.features]

    @cached_property
    def area_sizes(self) -> Ints:
        """Number of tiles of each area."""
        return np.array([len(tiles) for tiles in self.area_tiles], np.int64)

    @property
    def tiles_by_area(self) -> tuple[Ints, Ints]:
        """The tile numbers of all areas, one area after the other: the offset of each, and the tiles."""
        none = np.zeros(1, np.int64)
        return np.concatenate([none, np.cumsum(self.area_sizes)]), np.concatenate([none[:0], *self.area_tiles])

    @property
    def area_centers(self) -> list[tuple[float, float]]:
        """Longitude and latitude of the center of each area."""
        return [(f["properties"]["lon"], f["properties"]["lat"]) for f in self.features if "lon" in f["properties"]]


def number_points(first: PointTable, second: PointTable) -> tuple[Ints, Ints]:
    """Return a number for each point of two tables, equal for points of one location and time."""
    numbers = number_rows(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
    return numbers[: len(first[0])], numbers[len(first[0]) :]


def _steps_of(column: Any, what: str) -> tuple[Ints, Ints]:
    # Times repeat in many rows: each distinct one is read once. Equal times in different spellings are one step.
    encoded = one_array(column).dictionary_encode()
    read = read_seconds(encoded.dictionary, what)
    seconds = np.where(read.bad, NO_TIME, read.values)
    if encoded.indices.null_count:
        seconds = np.append(seconds, NO_TIME)
    times, index = np.unique(seconds, return_inverse=True)
    return times, index[encoded.indices.fill_null(len(seconds) - 1).to_numpy(zero_copy_only=False)].astype(np.int64)


def read_release(folder: Path, files: dict[str, str]) -> WrittenRelease:
    """Read the files of a release; `files` are their names by role, as in the manifest."""
    try:
        data = _read_table(folder / files["data"])
        steps = _read_table(folder / files["steps"]) if "steps" in files else None
        features = read_features(folder / files["areas"]) if "areas" in files else []
        _check_types(data, POINTS if steps is None else FLOWS)
        if steps is not None:
            _check_types(steps, STEPS)
    except (KeyError, TypeError, OSError, ValueError, pa.ArrowException):
        raise InputError(folder, "the release lacks a file, or one is broken; it cannot be verified.") from None
    missing = [] if steps is None else [name for name in required(STEPS) if name not in steps.column_names]
    if missing:
        raise InputError(folder, f"the table of time steps has no column {missing[0]}.")
    return WrittenRelease(folder, data, steps, features)


def required(columns: Mapping[str, Column]) -> list[str]:
    """Return the columns that every table has."""
    return [name for name, column in columns.items() if column.required]


def has_columns(table: pa.Table, columns: Mapping[str, Column]) -> bool:
    """Return whether a table has all required columns, and no unknown ones."""
    return set(required(columns)) <= set(table.column_names) <= columns.keys()


def _check_types(table: pa.Table, columns: Mapping[str, Column]) -> None:
    """Raise if a column repeats or has another type than in a release: files are untrusted."""
    if len(set(table.column_names)) < len(table.column_names):
        raise ValueError("a column repeats")
    for found in table.schema:
        known = columns.get(found.name)
        kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
        if known is not None and not any(fits(kind) for fits in _TYPES[known.kind]):
            raise TypeError(f"Expected {known.kind}s")


def read_features(path: Path) -> list[dict[str, Any]]:
    """Return the areas of a release, as in the GeoJSON; errors of a broken file pass through."""
    listed: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    AreaList.model_validate(listed)
    features: list[dict[str, Any]] = listed["features"]
    return features


_TYPES: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "integer": (pa.types.is_integer,),
    "number": (pa.types.is_integer, pa.types.is_floating),
    "name": (pa.types.is_string, pa.types.is_large_string, pa.types.is_null),
    "time": (pa.types.is_timestamp, pa.types.is_string, pa.types.is_large_string, pa.types.is_null),
}
"""Arrow types of the kinds of columns, in Parquet files of any writer."""
_OF_CSV = {"integer": pa.int64(), "number": pa.float64(), "name": pa.string(), "time": pa.string()}


def _read_table(path: Path) -> pa.Table:
    """Return a table of a release; it may have no rows, since a release may suppress everything."""
    if path.suffix != ".csv":
        # Area names repeat in many rows: dictionary-encoded, each is looked up once.
        repeated = ["origin_area", "destination_area", "state"]
        if path.is_dir():
            return pq.read_table(path, read_dictionary=repeated).combine_chunks()
        names = pq.read_schema(path).names
        with pq.ParquetFile(path, read_dictionary=[name for name in repeated if name in names]) as file:
            return file.read().combine_chunks()
    with pacsv.open_csv(path) as head:
        names = head.schema.names
        types = {name: _OF_CSV[_COLUMNS[name].kind] if name in _COLUMNS else pa.string() for name in names}
    # An area may be called "NA": only an empty field is a missing value.
    options = pacsv.ConvertOptions(
        column_types=types, strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False
    )
    return unescape_formulas(pacsv.read_csv(path, convert_options=options))

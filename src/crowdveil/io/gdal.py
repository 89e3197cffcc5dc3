"""Read GeoPackages, FlatGeobuf and shapefiles with GDAL, each by one driver.

GDAL chooses a driver by the content of a file, and some drivers run commands, open other files or contact servers. So a file is
opened only if it begins with the bytes of its format up to a zero byte, where drivers of text stop reading, and alone in a
folder, under a fixed name. A database can hold tables that are other files, and columns and views that run functions: a
GeoPackage may hold plain tables alone.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import shapely

from crowdveil.errors import InputError, Text
from crowdveil.io.archive import check_plain, open_archive, write_entry
from crowdveil.io.notes import ReadNotes
from crowdveil.model.arrays import Labels

DRIVERS = {".fgb": "FlatGeobuf", ".gpkg": "GPKG", ".shp": "ESRI Shapefile"}
"""The only driver of each suffix."""
MAX_UNPACKED_BYTES = 4 << 30
_SHAPEFILE_SUFFIXES = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_INDEX = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\s+\S+\s+USING\s+rtree\s*\(", re.IGNORECASE)
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
_GENERATED = (2, 3)
"""Marks of SQLite for columns with computed values."""


def read_with_gdal(path: Path, notes: ReadNotes) -> tuple[pa.Table, Labels, Any]:
    """Return attributes, shapes and coordinate system of the first layer of a file; ValueError if it is broken.

    It is a GeoPackage, a FlatGeobuf file, or a shapefile, which may be zipped.
    """
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as name:
        folder, suffix = Path(name), path.suffix.lower()
        if suffix == ".zip":
            return _read(_unzip(path, folder), path, notes)
        beside = (path.with_suffix(end) for end in _SHAPEFILE_SUFFIXES) if suffix == ".shp" else ()
        for file in {path, *beside}:
            if file.is_file():
                (folder / f"zones{file.suffix.lower()}").symlink_to(file.resolve())
        return _read(folder / f"zones{suffix}", path, notes)


def _read(path: Path, given: Path, notes: ReadNotes) -> tuple[pa.Table, Labels, Any]:
    import pyogrio

    driver = DRIVERS[path.suffix]
    if not _begins_as(driver, path):
        raise ValueError("another format than its name has")
    if driver == "GPKG":
        _refuse_code(path, given)
    try:
        layers = [name for name, kind in pyogrio.list_layers(path) if kind is not None]
        if not layers or pyogrio.read_info(path, layer=layers[0])["driver"] != driver:
            raise ValueError("another format than its name has")
        if len(layers) > 1:
            notes.add(
                Text("{path} holds {layers} layers of features: the first is read.", path=given, layers=len(layers))
            )
        about, table = pyogrio.read_arrow(path, layer=layers[0])
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pyogrio.errors.FeatureError) as error:
        raise ValueError("a broken file") from error
    table.validate(full=True)
    column = about["geometry_name"] or "wkb_geometry"
    shapes = shapely.from_wkb(table[column].to_numpy())
    return table.drop_columns([column]), np.asarray(shapes, dtype=object), about["crs"]


def _begins_as(driver: str, path: Path) -> bool:
    """Return whether a file has the first bytes of a format; the size of FlatGeobuf's header is below 16 MiB."""
    with path.open("rb") as file:
        head = file.read(72)
    if driver == "GPKG":
        # Other drivers of SQLite leave a database with these marks alone.
        return head.startswith(b"SQLite format 3\0") and head[68:] in (b"GPKG", b"GP10", b"GP11")
    if driver == "ESRI Shapefile":
        return head.startswith(b"\x00\x00\x27\x0a")
    return head.startswith(b"fgb\x03fgb") and head[11:12] == b"\x00"


def _refuse_code(path: Path, given: Path) -> None:
    """Raise unless a database holds nothing but plain tables and spatial indexes."""
    try:
        # Immutable: SQLite looks for no journal next to the file and locks nothing.
        db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        try:
            db.execute("PRAGMA trusted_schema = OFF")
            listed = db.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
            tables = [name for name, sql in listed if _TABLE.match(sql or "")]
            hidden = "SELECT hidden FROM pragma_table_xinfo(?)"
            computed = any(kind in _GENERATED for name in tables for (kind,) in db.execute(hidden, (name,)))
        finally:
            db.close()
    except sqlite3.Error as error:
        raise ValueError("a broken database") from error
    if computed or any(not _INDEX.match(sql or "") for name, sql in listed if name not in tables):
        raise InputError(
            given, "it holds views, virtual tables or computed columns, which are not read. Write it with plain tables."
        )


def _unzip(path: Path, folder: Path) -> Path:
    """Unpack the one shapefile of a zip file under fixed names: no links, and no file above the size limit."""
    with open_archive(path, str(path)) as archive:
        for entry in _shapefile_entries(path, archive):
            write_entry(archive, entry, folder / f"zones{Path(entry.filename).suffix.lower()}", str(path))
    return folder / "zones.shp"


def _shapefile_entries(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = [e for e in archive.infolist() if not e.is_dir() and not Path(e.filename).name.startswith("._")]
    shapes = [e for e in found if e.filename.lower().endswith(".shp")]
    if len(shapes) != 1:
        raise InputError(path, f"Expected exactly one shapefile in the zip file, but it has {len(shapes)}.")
    stem = shapes[0].filename[:-4].lower()
    entries = [e for e in found if e.filename.lower() in [stem + suffix for suffix in _SHAPEFILE_SUFFIXES]]
    check_plain(entries, str(path), MAX_UNPACKED_BYTES)
    return entries

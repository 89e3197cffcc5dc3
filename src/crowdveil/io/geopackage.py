"""Read features from a GeoPackage with Python's own SQLite: the plain tables of one layer and nothing else.

A database can hold tables that are other files, and views and triggers that run code. An authorizer therefore lets each
statement read one plain table only.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.geojson_reader import MAX_COLUMNS, attribute_table
from crowdveil.model.arrays import Labels

MAX_VALUE_BYTES = 256 << 20
_RTREE = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\s+\S+\s+USING\s+rtree\s*\(", re.IGNORECASE)
_TABLE = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
_ENVELOPES = (0, 32, 48, 48, 64)


def read_geopackage(path: Path) -> tuple[pa.Table, Labels, Any, int]:
    """Return attributes, shapes and coordinate system (or None) of the first layer, and the number of layers.

    Raise ValueError for a broken file, and InputError for what needs its own message.
    """
    import shapely

    with _opened(path) as db:
        plain = _plain_tables(db, path)
        layers = _rows(db, plain, "gpkg_contents", ("table_name", "data_type", "srs_id"))
        layers = [layer for layer in layers if layer[1] == "features"]
        if not layers:
            raise ValueError("no layers")
        layer, _, _ = layers[0]
        geometries = _rows(db, plain, "gpkg_geometry_columns", ("table_name", "column_name", "srs_id"))
        column, srs = next((c, s) for t, c, s in geometries if str(t).lower() == str(layer).lower())
        names = _columns(db, plain, layer, column)
        rows = _rows(db, plain, layer, (column, *names))
        crs = _crs(_rows(db, plain, "gpkg_spatial_ref_sys",
                         ("srs_id", "organization", "organization_coordsys_id", "definition")), srs)  # fmt: skip
    shapes = shapely.from_wkb(np.array([_wkb(row[0]) for row in rows], dtype=object))
    held = {name: [row[i] for row in rows] for i, name in enumerate(names, 1)}
    table = attribute_table(len(rows), {n: v for n, v in held.items() if not any(isinstance(x, bytes) for x in v)})
    return table, np.asarray(shapes, dtype=object), crs, len(layers)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    # Immutable: SQLite looks for no journal next to the file and locks nothing.
    try:
        db = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise ValueError("no database") from error
    try:
        db.text_factory = lambda held: held.decode("utf-8", "replace")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        yield db
    except sqlite3.Error as error:
        raise ValueError("a broken database") from error
    finally:
        db.close()


def _plain_tables(db: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the names of the plain tables by lower-case name; raise for views and virtual tables but spatial indexes."""
    db.set_authorizer(_only("sqlite_master"))
    found = {}
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind == "view" or (kind == "table" and not (_TABLE.match(sql or "") or _RTREE.match(sql or ""))):
            raise InputError(path, "it holds views or virtual tables, which are not read. Write it with plain tables.")
        if kind == "table" and _TABLE.match(sql):
            found[name.lower()] = name
    return found


def _columns(db: sqlite3.Connection, plain: dict[str, str], layer: str, geometry: str) -> list[str]:
    """Return the columns of a layer without its shapes and row numbers."""
    name = plain[layer.lower()]
    db.set_authorizer(None)
    listed = db.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
    if len(listed) > MAX_COLUMNS:
        raise ValueError("too many columns")
    return [
        c for _, c, kind, _, _, key in listed if c.lower() != geometry.lower() and not (key and "INT" in kind.upper())
    ]


def _rows(db: sqlite3.Connection, plain: dict[str, str], table: str, columns: tuple[str, ...]) -> list[Any]:
    name = plain[table.lower()]
    db.set_authorizer(_only(name))
    return db.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(name)}").fetchall()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _only(table: str) -> Any:
    """Return an authorizer that lets a statement read one table and call no function."""

    def allowed(action: int, first: str | None, *_: Any) -> int:
        known = action == sqlite3.SQLITE_SELECT or (
            action == sqlite3.SQLITE_READ and (first or "").lower() in (table.lower(), "sqlite_schema")
        )
        return sqlite3.SQLITE_OK if known else sqlite3.SQLITE_DENY

    return allowed


def _crs(known: list[Any], srs: Any) -> Any:
    for number, organization, code, definition in known:
        if number == srs and number not in (-1, 0):
            named = f"{organization}:{code}"
            return named if str(organization).upper() in ("EPSG", "OGC", "ESRI") else definition
    return None


def _wkb(held: Any) -> bytes | None:
    """Return the WKB behind the header of a GeoPackage geometry."""
    if held is None:
        return None
    if not isinstance(held, bytes) or len(held) < 8 or held[:2] != b"GP":
        raise ValueError("no shape of a GeoPackage")
    envelope = (held[3] >> 1) & 7
    if held[3] & 0x20 or envelope >= len(_ENVELOPES):
        raise ValueError("a shape of another kind")
    return held[8 + _ENVELOPES[envelope] :]

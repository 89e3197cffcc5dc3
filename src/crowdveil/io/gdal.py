"""Features in: FlatGeobuf and shapefiles by GDAL, told which of its drivers to take and left no choice.

GDAL guesses a driver from what a file holds, and some of its drivers run commands that they find there, open other files and ask
servers. pyogrio has no way to name one, so its library is called directly.
"""

from __future__ import annotations

import ctypes
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.archive import is_plain_entry, write_entry
from crowdveil.model.arrays import Labels

DRIVERS = {".fgb": "FlatGeobuf", ".shp": "ESRI Shapefile"}
"""The driver of an ending; no other is ever taken."""
MAGIC = {".fgb": b"fgb\x03fgb", ".shp": b"\x00\x00\x27\x0a"}
ZIP_MOST = 4 << 30
"""Bytes of a zipped shapefile once it is unpacked."""
_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_VECTOR = 0x04


def read_with_gdal(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Attributes, shapes and coordinate system of a FlatGeobuf file, a shapefile or a zipped one; ValueError if it is broken."""
    if path.suffix.lower() == ".zip":
        with tempfile.TemporaryDirectory(prefix="crowdveil-") as folder:
            return _read(_unzipped(path, Path(folder)))
    return _read(path)


def _read(path: Path) -> tuple[pa.Table, Labels, Any]:
    import shapely

    ending = path.suffix.lower()
    with path.open("rb") as file:
        if not file.read(16).startswith(MAGIC[ending]):
            raise ValueError("not what its name says")
    full = path.resolve()
    if str(full).startswith("/vsi"):
        raise ValueError("no file")
    library = _library()
    with _quiet(library), _dataset(library, full, DRIVERS[ending]) as dataset:
        if library.GDALDatasetGetLayerCount(dataset) != 1:
            raise ValueError("not one layer")
        layer = library.GDALDatasetGetLayer(dataset, 0)
        crs = _crs(library, layer)
        column = (library.OGR_L_GetGeometryColumn(layer) or b"").decode() or "wkb_geometry"
        table = _arrow(library, layer)
    table.validate(full=True)
    shapes = shapely.from_wkb(table[column].to_numpy())
    return table.drop_columns([column]), np.asarray(shapes, dtype=object), crs


@cache
def _library() -> Any:
    """The GDAL that pyogrio brings, with types of what is called."""
    import pyogrio  # noqa: F401  (registers drivers, and says where GDAL's and PROJ's tables lie)
    from pyogrio import _ogr

    library = ctypes.CDLL(_ogr.__file__)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    texts = ctypes.POINTER(text)
    try:
        for name, result, arguments in (
            ("GDALOpenEx", pointer, [text, ctypes.c_uint, texts, texts, texts]),
            ("GDALClose", number, [pointer]),
            ("GDALDatasetGetLayerCount", number, [pointer]),
            ("GDALDatasetGetLayer", pointer, [pointer, number]),
            ("OGR_L_GetGeometryColumn", text, [pointer]),
            ("OGR_L_GetSpatialRef", pointer, [pointer]),
            ("OGR_L_GetArrowStream", ctypes.c_bool, [pointer, pointer, texts]),
            ("OSRExportToWkt", number, [pointer, ctypes.POINTER(pointer)]),
            ("VSIFree", None, [pointer]),
            ("CPLPushErrorHandler", None, [pointer]),
            ("CPLPopErrorHandler", None, []),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError:
        raise InputError(
            "this installation's GDAL cannot be told which format to read; write the zones as GeoJSON, GeoPackage or GeoParquet."
        ) from None
    return library


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    library.CPLPushErrorHandler(ctypes.cast(library.CPLQuietErrorHandler, ctypes.c_void_p))
    try:
        yield
    finally:
        library.CPLPopErrorHandler()


@contextmanager
def _dataset(library: Any, path: Path, driver: str) -> Iterator[Any]:
    allowed = (ctypes.c_char_p * 2)(driver.encode(), None)
    opened = library.GDALOpenEx(str(path).encode(), _VECTOR, allowed, None, None)
    if not opened:
        raise ValueError("not what its name says")
    try:
        yield opened
    finally:
        library.GDALClose(opened)


def _crs(library: Any, layer: Any) -> str | None:
    system = library.OGR_L_GetSpatialRef(layer)
    if not system:
        return None
    held = ctypes.c_void_p()
    if library.OSRExportToWkt(system, ctypes.byref(held)) != 0 or not held.value:
        return None
    try:
        return ctypes.string_at(held.value).decode("utf-8", "replace")
    finally:
        library.VSIFree(held)


def _arrow(library: Any, layer: Any) -> pa.Table:
    stream = (ctypes.c_void_p * 5)()  # Arrow's struct of a stream: four functions and its data
    options = (ctypes.c_char_p * 2)(b"INCLUDE_FID=NO", None)
    if not library.OGR_L_GetArrowStream(layer, ctypes.addressof(stream), options):
        raise ValueError("no rows")
    return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()


def _unzipped(path: Path, folder: Path) -> Path:
    """The one shapefile of a zip file, unpacked by ourselves: no links, no other names, nothing larger than it may be."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {Path(e.filename).suffix.lower(): e for e in _members(path, archive)}
            for ending, entry in entries.items():
                write_entry(archive, entry, folder / f"zones{ending}", str(path))
    except (zipfile.BadZipFile, OSError, NotImplementedError, OverflowError, zlib.error):
        raise InputError(path, "the zip file is broken; pack it again.") from None
    return folder / "zones.shp"


def _members(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = [e for e in archive.infolist() if not e.is_dir() and not Path(e.filename).name.startswith("._")]
    shapes = [e for e in found if e.filename.lower().endswith(".shp")]
    if len(shapes) != 1:
        raise InputError(path, f"wanted exactly one shapefile in the zip file, but it has {len(shapes)}.")
    stem = shapes[0].filename[:-4].lower()
    parts = [e for e in found if e.filename.lower() in [stem + ending for ending in _PARTS]]
    if not all(is_plain_entry(e) for e in parts):
        raise InputError(path, "wanted plain files in the zip file, no links and nothing encrypted.")
    if sum(e.file_size for e in parts) > ZIP_MOST:
        raise InputError(path, f"the zip file is too large once it is unpacked; at most {ZIP_MOST >> 20:,} MiB may be.")
    return parts

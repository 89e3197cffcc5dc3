"""Read FlatGeobuf and shapefiles with GDAL, each by one fixed driver.

GDAL guesses a driver from the content of a file, and some drivers run commands, open other files or contact servers.
pyogrio cannot fix the driver, so its library is called directly.
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
from crowdveil.io.archive import check_unpacked_size, is_plain_entry, write_entry
from crowdveil.model.arrays import Labels

DRIVERS = {".fgb": "FlatGeobuf", ".shp": "ESRI Shapefile"}
"""The only driver of each suffix."""
MAGIC = {".fgb": b"fgb\x03fgb", ".shp": b"\x00\x00\x27\x0a"}
MAX_UNPACKED_BYTES = 4 << 30
_SHAPEFILE_SUFFIXES = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_VECTOR = 0x04


def read_with_gdal(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Return attributes, shapes and coordinate system of a FlatGeobuf file or (zipped) shapefile; ValueError if broken."""
    if path.suffix.lower() == ".zip":
        with tempfile.TemporaryDirectory(prefix="crowdveil-") as folder:
            return _read(_unzip(path, Path(folder)))
    return _read(path)


def _read(path: Path) -> tuple[pa.Table, Labels, Any]:
    import shapely

    suffix = path.suffix.lower()
    with path.open("rb") as file:
        if not file.read(16).startswith(MAGIC[suffix]):
            raise ValueError("another format than its name has")
    full = path.resolve()
    if str(full).startswith("/vsi"):
        raise ValueError("no file")
    library = _library()
    with _quiet(library), _dataset(library, full, DRIVERS[suffix]) as dataset:
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
    """Return the GDAL library of pyogrio with the types of the functions called here."""
    import pyogrio  # noqa: F401  (registers drivers and the paths of GDAL's and PROJ's tables)
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
            "this installation's GDAL lacks a needed function; write the zones as GeoJSON, GeoPackage or GeoParquet."
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
        raise ValueError("another format than its name has")
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
    stream = (ctypes.c_void_p * 5)()  # ArrowArrayStream: four functions and private data
    options = (ctypes.c_char_p * 2)(b"INCLUDE_FID=NO", None)
    if not library.OGR_L_GetArrowStream(layer, ctypes.addressof(stream), options):
        raise ValueError("no rows")
    return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream)).read_all()


def _unzip(path: Path, folder: Path) -> Path:
    """Unpack the one shapefile of a zip file under fixed names: no links, and no file above the size limit."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {Path(e.filename).suffix.lower(): e for e in _shapefile_entries(path, archive)}
            for suffix, entry in entries.items():
                write_entry(archive, entry, folder / f"zones{suffix}", str(path))
    except (zipfile.BadZipFile, OSError, NotImplementedError, OverflowError, zlib.error):
        raise InputError(path, "the zip file is broken; pack it again.") from None
    return folder / "zones.shp"


def _shapefile_entries(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = [e for e in archive.infolist() if not e.is_dir() and not Path(e.filename).name.startswith("._")]
    shapes = [e for e in found if e.filename.lower().endswith(".shp")]
    if len(shapes) != 1:
        raise InputError(path, f"wanted exactly one shapefile in the zip file, but it has {len(shapes)}.")
    stem = shapes[0].filename[:-4].lower()
    entries = [e for e in found if e.filename.lower() in [stem + suffix for suffix in _SHAPEFILE_SUFFIXES]]
    if not all(is_plain_entry(e) for e in entries):
        raise InputError(path, "wanted plain files in the zip file, no links and nothing encrypted.")
    check_unpacked_size(entries, str(path), MAX_UNPACKED_BYTES)
    return entries

"""Read FlatGeobuf and shapefiles with GDAL, each by one driver.

GDAL chooses a driver by the content of a file, and some drivers run commands, open other files or contact servers. So a file is
opened only if it begins with the bytes of its format up to a zero byte, where drivers of text stop reading, and alone in a
folder, under a fixed name.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.io.archive import check_unpacked_size, is_plain_entry, write_entry
from crowdveil.model.arrays import Labels

DRIVERS = {".fgb": "FlatGeobuf", ".shp": "ESRI Shapefile"}
"""The only driver of each suffix."""
MAX_UNPACKED_BYTES = 4 << 30
_SHAPEFILE_SUFFIXES = (".shp", ".shx", ".dbf", ".prj", ".cpg")


def read_with_gdal(path: Path) -> tuple[pa.Table, Labels, Any]:
    """Return attributes, shapes and coordinate system of a FlatGeobuf file or (zipped) shapefile; ValueError if broken."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as name:
        folder, suffix = Path(name), path.suffix.lower()
        if suffix == ".zip":
            return _read(_unzip(path, folder))
        beside = (path.with_suffix(end) for end in _SHAPEFILE_SUFFIXES) if suffix == ".shp" else ()
        for file in {path, *beside}:
            if file.is_file():
                (folder / f"zones{file.suffix.lower()}").symlink_to(file.resolve())
        return _read(folder / f"zones{suffix}")


def _read(path: Path) -> tuple[pa.Table, Labels, Any]:
    import pyogrio
    import shapely

    driver = DRIVERS[path.suffix]
    if not _begins_as(driver, path):
        raise ValueError("another format than its name has")
    try:
        if len(pyogrio.list_layers(path)) != 1 or pyogrio.read_info(path)["driver"] != driver:
            raise ValueError("another format than its name has")
        about, table = pyogrio.read_arrow(path)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pyogrio.errors.FeatureError) as error:
        raise ValueError("a broken file") from error
    table.validate(full=True)
    column = about["geometry_name"] or "wkb_geometry"
    shapes = shapely.from_wkb(table[column].to_numpy())
    return table.drop_columns([column]), np.asarray(shapes, dtype=object), about["crs"]


def _begins_as(driver: str, path: Path) -> bool:
    """Return whether a file has the first bytes of a format; the size of FlatGeobuf's header is below 16 MiB."""
    with path.open("rb") as file:
        head = file.read(12)
    if driver == "ESRI Shapefile":
        return head.startswith(b"\x00\x00\x27\x0a")
    return head.startswith(b"fgb\x03fgb") and head[11:] == b"\x00"


def _unzip(path: Path, folder: Path) -> Path:
    """Unpack the one shapefile of a zip file under fixed names: no links, and no file above the size limit."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {Path(e.filename).suffix.lower(): e for e in _shapefile_entries(path, archive)}
            for suffix, entry in entries.items():
                write_entry(archive, entry, folder / f"zones{suffix}", str(path))
    except (zipfile.BadZipFile, OSError, NotImplementedError, OverflowError, zlib.error):
        raise InputError(path, "the zip file is broken. Pack it again.") from None
    return folder / "zones.shp"


def _shapefile_entries(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    found = [e for e in archive.infolist() if not e.is_dir() and not Path(e.filename).name.startswith("._")]
    shapes = [e for e in found if e.filename.lower().endswith(".shp")]
    if len(shapes) != 1:
        raise InputError(path, f"Expected exactly one shapefile in the zip file, but it has {len(shapes)}.")
    stem = shapes[0].filename[:-4].lower()
    entries = [e for e in found if e.filename.lower() in [stem + suffix for suffix in _SHAPEFILE_SUFFIXES]]
    if not all(is_plain_entry(e) for e in entries):
        raise InputError(path, "Expected plain files in the zip file, no links and nothing encrypted.")
    check_unpacked_size(entries, str(path), MAX_UNPACKED_BYTES)
    return entries

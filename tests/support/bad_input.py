"""Small files, and bad ones, given to the command: one sentence, exit code 2, no value of the data, nothing written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from conftest import Ran

Command = Callable[..., "Ran"]

POINTS = """lat,lon,timestamp,trajectory_id,user_id
37.75134,-122.39488,2008/06/08 07:00:01,tram-0451,anna-k7
37.75151,-122.39412,2008/06/08 07:01:04,tram-0451,anna-k7
37.76882,-122.41207,2008/06/08 07:00:31,tram-0452,bert-q2
37.76903,-122.41333,2008/06/08 07:02:17,tram-0452,bert-q2
"""
TRIPS = """origin,destination,departure,user_id
Zurbano,Ymirstad,2024-05-06 08:10:00,anna-k7
Zurbano,Ymirstad,2024-05-06 08:20:00,bert-q2
Zurbano,Ymirstad,2024-05-06 08:30:00,carl-x9
Ymirstad,Zurbano,2024-05-06 09:10:00,anna-k7
"""
FLOWS = """origin,destination,volume
Zurbano,Ymirstad,4711
Ymirstad,Zurbano,3141
"""
PLACES = """origin_lon,origin_lat,destination_lon,destination_lat
2.17340,41.38510,2.19011,41.40122
2.17341,41.38511,2.19012,41.40123
2.17342,41.38512,2.19013,41.40124
"""


def square(west: float, south: float, size: float = 0.01) -> list[list[float]]:
    east, north = west + size, south + size
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def zones_json(*zones: tuple[str, list[list[float]]]) -> str:
    features = [
        {"type": "Feature", "properties": {"zone_id": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in zones
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


ZONES = zones_json(("Zurbano", square(2.17, 41.38)), ("Ymirstad", square(2.18, 41.38)))


def edited(text: str, row: int, column: int, value: str) -> str:
    """A CSV with one value changed; rows count from 1 below the header."""
    lines = text.splitlines()
    values = lines[row].split(",")
    values[column] = value
    lines[row] = ",".join(values)
    return "\n".join(lines) + "\n"


def values_in(file: Path) -> set[str]:
    """Values of a data file that a message must not hold."""
    try:
        text = file.read_bytes().decode("utf-8", errors="ignore")
    except IsADirectoryError:
        return set()
    if file.suffix in (".json", ".toml"):
        return set()
    body = text if file.suffix == ".geojson" else text.partition("\n")[2]
    found = {v.strip() for v in re.split(r'[,;\n"\[\]{}:]', body)}
    return {
        v
        for v in found
        if len(v) > 3 and v not in ("type", "Feature", "geometry", "zone_id", "coordinates", "node", "parent")
    }


def tree_of(folder: Path) -> dict[str, bytes | None]:
    """All that lies in a folder, hidden things too."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def refused(command: Command, folder: Path, *args: object, code: int = 2) -> str:
    """Run a command that must fail; returns its sentence."""
    before = tree_of(folder)
    ran = command(*args)
    sentence = ran.sentence
    assert ran.code == code, ran
    assert "Internal error" not in sentence
    assert tree_of(folder) == before, "something was written"
    for file in folder.iterdir():
        leaked = {v for v in values_in(file) if v in sentence}
        assert not leaked, f"{sentence} has the values {leaked}"
    return sentence


@dataclass(frozen=True)
class Bad:
    """A file that must be refused, the arguments that it is given with, and what the sentence must name."""

    name: str
    content: str | bytes
    args: tuple[str, ...]
    says: tuple[str, ...]

    def __repr__(self) -> str:
        return self.name


def anonymized(file: str, *more: str) -> tuple[str, ...]:
    method = "suppression" if file.startswith(("trips", "flows", "places")) else "simple-generalization"
    return ("anonymize", method, file, *more, "-o", "out")


K2 = ("--k", "2")


def released(command: Command, *args: object) -> tuple[dict[str, Any], pa.Table]:
    """Run a command that must succeed; returns the manifest and the table of the release in `out`."""
    ran = command(*args)
    assert ran.code == 0, ran.err
    manifest = json.loads(Path("out/manifest.json").read_text())
    file = Path("out") / manifest["files"]["data"]["name"]
    table = pacsv.read_csv(file) if file.suffix == ".csv" else pq.read_table(file)
    assert command("verify", "out").code == 0
    return manifest, table


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

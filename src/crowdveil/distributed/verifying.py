"""A release that lies on a cluster, checked there: hashes and promises, part by part, from nothing but the files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.checking import check
from crowdveil.distributed.gathering import checked_parts, in_parts
from crowdveil.distributed.track_verifying import check_tracks_there
from crowdveil.engine.packing import in_runs, packed, unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, PromiseBrokenError
from crowdveil.guarantees import Finding, Guarantee, guarantee_from_manifest
from crowdveil.io.release import MANIFEST_FILE, WrittenRelease, file_hash, read_features, read_release
from crowdveil.manifest import folder_entry, read_manifest
from crowdveil.model.arrays import Ints
from crowdveil.progress import Progress, no_progress

PART_ROWS = 1_000_000
"""Rows of a release that are checked together, in whole time steps."""


@dataclass(frozen=True)
class CheckedPart:
    """Checks the rows of some whole time steps; it knows promises and files, and nothing of methods.

    Attributes
    ----------
    promises
        What is checked.
    rows
        The columns of the rows in packs.
    steps
        The table of all time steps.
    features
        The areas, as in the GeoJSON, without outlines.
    """

    promises: tuple[Guarantee, ...]
    rows: pa.Schema
    steps: pa.Table
    features: list[dict[str, Any]]
    schema = pa.schema([("told", pa.string())])

    def __call__(self, part: pa.Table) -> pa.Table:
        """One line: what came of each promise."""
        told = [asdict(finding) for _, finding in check(self.written(part), self.promises)]
        return pa.table({"told": [json.dumps(told)]}, schema=self.schema)

    def written(self, part: pa.Table) -> WrittenRelease:
        """The part of the release in packs: its rows, its steps, and the areas that it names."""
        rows = unpacked(part["packed"], self.rows)
        named = set(pc.unique(rows["origin_area"]).to_pylist()) | set(pc.unique(rows["destination_area"]).to_pylist())
        features = [feature for feature in self.features if feature["properties"]["area"] in named]
        here = pc.is_in(_moments(self.steps["t"]), value_set=pc.unique(_moments(rows["t"])))
        return WrittenRelease(Path("the part"), rows, self.steps.filter(here), features)


@dataclass(frozen=True)
class RowPacker:
    """Pieces of a release as packs of rows, each of one part.

    Attributes
    ----------
    rows
        The columns of the release.
    moments, parts
        The times of rows, rising, as `_moments` has them, and the part that each belongs to.
    """

    rows: pa.Schema
    moments: Ints
    parts: Ints
    schema = pa.schema([("part", pa.int64()), ("packed", pa.binary())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The packs of each piece."""
        for piece in pieces:
            place = np.searchsorted(self.moments, _moments(piece["t"]).to_numpy())
            runs = in_runs(pa.Table.from_batches([piece]).cast(self.rows), self.parts[place])
            packs = [(part, packed(run)) for part, run in runs]
            yield pa.RecordBatch.from_pylist(
                [dict(zip(self.schema.names, pack, strict=True)) for pack in packs], self.schema
            )


def _moments(column: Any) -> Any:
    """Times as whole milliseconds, whatever zone and unit they are written in; what has none is the least."""
    moments = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    return pc.fill_null(moments, -(2**63))


def check_there(
    engine: SparkEngine, rows: Frame, steps: pa.Table, features: list[dict[str, Any]], promises: Sequence[Guarantee],
    progress: Progress = no_progress,
) -> list[tuple[Guarantee, Finding]]:  # fmt: skip
    """What came of each promise on the rows of a release; steps without rows, and the areas as a whole, are looked at here."""
    plain = [{"properties": feature["properties"]} for feature in features]
    sizes = engine.gather(engine.sql("SELECT t, count(*) AS size FROM {rows} GROUP BY t", rows=rows)).sort_by("t")
    parts = in_parts(sizes["size"].to_pylist(), PART_ROWS)
    findings = []
    if parts:
        number = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        packer = RowPacker(engine.schema(rows), _moments(sizes["t"]).to_numpy(), number)
        packs = engine.map_rows(rows, packer, RowPacker.schema)
        function = CheckedPart(tuple(promises), packer.rows, steps, plain)
        told = engine.map_groups(packs, "part", function, CheckedPart.schema, len(parts))
        findings = [json.loads(line) for line in engine.gather(told, progress)["told"].to_pylist()]
    empty = pc.invert(pc.is_in(_moments(steps["t"]), value_set=_moments(sizes["t"]).combine_chunks()))
    rest = WrittenRelease(Path("the rest"), _no_rows(engine, rows), steps.filter(empty), plain)
    findings.append([asdict(finding) for _, finding in check(rest, tuple(promises))])
    return checked_parts(promises, findings)


def _no_rows(engine: SparkEngine, rows: Frame) -> pa.Table:
    table: pa.Table = engine.schema(rows).empty_table()
    return table


def part_hashes(engine: SparkEngine, folder: str) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name; the executors read them."""
    files = engine.session.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder)
    hashes = engine.gather(files.selectExpr("path", "sha2(content, 256) AS hash"))
    return {path.rsplit("/", 1)[-1]: digest for path, digest in zip(*hashes.to_pydict().values(), strict=True)}


def verify(
    engine: SparkEngine, folder: str, progress: Progress = no_progress
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """Check a release where it lies: that its files are those that were written, and every promise.

    Returns each promise with what came of it, and the manifest.
    """
    with tempfile.TemporaryDirectory(prefix="crowdveil-") as made:
        here, there = Path(made), folder.rstrip("/")
        if not engine.files.exists(f"{there}/{MANIFEST_FILE}"):
            raise InputError(f"{folder}: wanted a folder with a release, but there is no {MANIFEST_FILE} in it.")
        engine.files.fetch(f"{there}/{MANIFEST_FILE}", here / MANIFEST_FILE)
        manifest = read_manifest(here)
        entries = manifest["files"]
        gone = [e["name"] for e in entries.values() if not engine.files.exists(f"{there}/{e['name']}")]
        if gone:
            raise InputError(f"{folder}: the release lacks {', '.join(gone)}; it cannot be verified.")
        changed = []
        for role, entry in entries.items():
            address = f"{there}/{entry['name']}"
            if role == "data" and engine.files.is_folder(address):
                same = folder_entry(entry["name"], part_hashes(engine, address))["sha256"] == entry["sha256"]
            else:
                engine.files.fetch(address, here / entry["name"])
                same = file_hash(here / entry["name"]) == entry["sha256"]
            changed += [] if same else [entry["name"]]
        if changed:
            raise PromiseBrokenError(
                f"{folder}: {', '.join(changed)} changed since the release was made; do not publish it."
            )
        data = f"{there}/{entries['data']['name']}"
        if data.endswith(".csv"):
            raise InputError(f"{folder}: its tables are CSV, which is verified without Spark; leave --engine out.")
        promises = tuple(guarantee_from_manifest(entry) for entry in manifest["promises"])
        if "steps" not in entries:
            features = read_features(here / entries["areas"]["name"]) if "areas" in entries else []
            return check_tracks_there(engine, data, features, promises, progress), manifest
        small = read_release(
            here, {"data": entries["steps"]["name"], **{r: e["name"] for r, e in entries.items() if r != "data"}}
        )
        return check_there(engine, engine.read(data), small.steps, small.features, promises, progress), manifest

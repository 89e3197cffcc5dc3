"""A release that lies on a cluster, checked there: hashes and guarantees, part by part, from nothing but the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.packing import in_runs, packed, unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import GuaranteeViolatedError, InputError, Option
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.written import MANIFEST_FILE, WrittenRelease, file_hash, read_features, read_release
from crowdveil.model.arrays import Ints
from crowdveil.progress import Progress, no_progress
from crowdveil.run.manifest import folder_entry, read_manifest
from crowdveil.run.spark.merge_partitions import checked_parts, in_parts
from crowdveil.run.spark.trajectory_verifying import check_tracks_there
from crowdveil.run.verification import check, stated_guarantees

PART_ROWS = 1_000_000
"""Rows of a release that are checked together, in whole time steps."""
NO_MOMENT = -(2**63)
"""Stands for the time of rows that have none."""


@dataclass(frozen=True)
class ReleasePart:
    """From the packs of some whole time steps to the files of a release that speak of these steps alone; sent to executors.

    Attributes
    ----------
    rows
        The columns of the rows in packs.
    steps
        The table of all time steps.
    features
        The areas, as in the GeoJSON, without outlines.
    """

    rows: pa.Schema
    steps: pa.Table
    features: list[dict[str, Any]]

    def __call__(self, packs: Any, moments: Ints | None = None, *, all_areas: bool = False) -> WrittenRelease:
        """Rows, the areas that they name or all of them, and the steps of rows and of more `moments`."""
        rows, features = unpacked(packs, self.rows), self.features
        if not all_areas:
            named = {name for end in ("origin_area", "destination_area") for name in pc.unique(rows[end]).to_pylist()}
            features = [feature for feature in features if feature["properties"]["area"] in named]
        known = np.unique(moments_of(rows["t"]))
        here = np.isin(moments_of(self.steps["t"]), known if moments is None else np.union1d(known, moments))
        return WrittenRelease(Path("the part"), rows, self.steps.filter(pa.array(here)), features)


@dataclass(frozen=True)
class RowPacker:
    """Pieces of a release as packs of rows, each of one part.

    Attributes
    ----------
    rows
        The columns of the release.
    moments, parts
        The times of rows, rising, and the part that each belongs to.
    """

    rows: pa.Schema
    moments: Ints
    parts: Ints
    schema = pa.schema([("part", pa.int64()), ("packed", pa.binary())])

    def __call__(self, pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The packs of each piece."""
        for piece in pieces:
            part = self.parts[np.searchsorted(self.moments, moments_of(piece["t"]))]
            packs = [
                (number, packed(run)) for number, run in in_runs(pa.Table.from_batches([piece]).cast(self.rows), part)
            ]
            columns = zip(*packs, strict=True) if packs else ((), ())
            yield pa.RecordBatch.from_arrays(
                [pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema
            )


def moments_of(column: Any) -> Ints:
    """Times as whole milliseconds, whatever zone and unit they are written in; what has none is the least."""
    moments = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    found: Ints = pc.fill_null(moments, NO_MOMENT).to_numpy()
    return found


@dataclass(frozen=True)
class CheckedPart:
    """Checks the rows of some whole time steps; it knows guarantees and files, and nothing of methods."""

    guarantees: tuple[Guarantee, ...]
    release: ReleasePart
    schema = pa.schema([("told", pa.string())])

    def __call__(self, part: pa.Table) -> pa.Table:
        """One line: what came of each guarantee."""
        return told_findings(check(self.release(part["packed"]), self.guarantees))


def told_findings(checked: Sequence[tuple[Guarantee, Finding]]) -> pa.Table:
    """What came of each guarantee in a part, as one line."""
    line = json.dumps([finding.as_json() for _, finding in checked])
    return pa.table({"told": [line]}, schema=CheckedPart.schema)


def check_there(
    engine: SparkEngine, rows: Frame, steps: pa.Table, features: list[dict[str, Any]], guarantees: Sequence[Guarantee],
    progress: Progress = no_progress,
) -> list[tuple[Guarantee, Finding]]:  # fmt: skip
    """What came of each guarantee on the rows of a release; steps without rows, and the areas as a whole, are looked at here."""
    release = ReleasePart(engine.schema(rows), steps, without_outlines(features))
    moments, sizes = sizes_there(engine, rows)
    parts = in_parts(sizes.tolist(), PART_ROWS)
    findings = []
    if parts:
        packer = RowPacker(release.rows, moments, part_numbers(parts))
        packs = engine.map_rows(rows, packer, RowPacker.schema)
        function = CheckedPart(tuple(guarantees), release)
        findings = findings_there(engine, packs, function, len(parts), progress)
    findings.append([finding.as_json() for _, finding in check(rest_of(release, moments), tuple(guarantees))])
    return checked_parts(guarantees, findings)


def sizes_there(engine: SparkEngine, rows: Frame) -> tuple[Ints, Ints]:
    """The times of the rows of a release, rising, and how many rows each has."""
    sizes = engine.gather(engine.sql("SELECT t, count(*) AS size FROM {rows} GROUP BY t", rows=rows))
    moments, size = moments_of(sizes["t"]), sizes["size"].to_numpy()
    order = np.argsort(moments)
    return moments[order], size[order]


def part_numbers(parts: Sequence[Sequence[int]]) -> Ints:
    """The number of the part that each of what was put into parts, in order, belongs to."""
    numbers: Ints = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return numbers


def findings_there(
    engine: SparkEngine, packs: Frame, function: Any, parts: int, progress: Progress
) -> list[list[dict[str, Any]]]:
    """What a function that checks a part found in each."""
    told = engine.map_groups(packs, "part", function, CheckedPart.schema, parts)
    return [json.loads(line) for line in engine.gather(told, progress)["told"].to_pylist()]


def rest_of(release: ReleasePart, moments: Ints) -> WrittenRelease:
    """What no part has: listed steps of other moments, and all areas."""
    empty = ~np.isin(moments_of(release.steps["t"]), moments)
    steps = release.steps.filter(pa.array(empty))
    return WrittenRelease(Path("the rest"), release.rows.empty_table(), steps, release.features)


def without_outlines(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Areas with nothing but what is said of them."""
    return [{"properties": feature["properties"]} for feature in features]


def part_hashes(engine: SparkEngine, folder: str) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name; the executors read them."""
    files = engine.session.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder)
    hashes = engine.gather(files.selectExpr("path", "sha2(content, 256) AS hash"))
    return {path.rsplit("/", 1)[-1]: digest for path, digest in zip(*hashes.to_pydict().values(), strict=True)}


@dataclass(frozen=True)
class ReleaseThere:
    """A release whose rows lie on the cluster, and what is small of it.

    Attributes
    ----------
    folder, data
        Where it lies, and where its rows lie.
    manifest
        Its manifest.
    steps
        The table of time steps; None where it holds trajectories.
    features
        The areas.
    """

    folder: str
    data: str
    manifest: dict[str, Any]
    steps: pa.Table | None
    features: list[dict[str, Any]]


def open_there(engine: SparkEngine, folder: str) -> ReleaseThere:
    """Fetch what is small of a release, if its files are those that were written."""
    with scratch_folder() as made:
        here, there = Path(made), folder.rstrip("/")
        if not engine.files.exists(f"{there}/{MANIFEST_FILE}"):
            raise InputError(folder, f"wanted a folder with a release, but there is no {MANIFEST_FILE} in it.")
        engine.files.fetch(f"{there}/{MANIFEST_FILE}", here / MANIFEST_FILE)
        manifest = read_manifest(here)
        entries = manifest["files"]
        gone = [e["name"] for e in entries.values() if not engine.files.exists(f"{there}/{e['name']}")]
        if gone:
            raise InputError(folder, f"the release lacks {', '.join(gone)}; it cannot be verified.")
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
            raise GuaranteeViolatedError(
                folder, f"{', '.join(changed)} changed since the release was made; do not publish it."
            )
        data = f"{there}/{entries['data']['name']}"
        if data.endswith(".csv"):
            raise InputError(folder, f"its tables are CSV, which is read without Spark; leave {Option('engine')} out.")
        if "steps" not in entries:
            features = read_features(here / entries["areas"]["name"]) if "areas" in entries else []
            return ReleaseThere(folder, data, manifest, None, features)
        small = read_release(
            here, {"data": entries["steps"]["name"], **{r: e["name"] for r, e in entries.items() if r != "data"}}
        )
        return ReleaseThere(folder, data, manifest, small.steps, small.features)


def verify(
    engine: SparkEngine, folder: str, progress: Progress = no_progress
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """Check a release where it lies: that its files are those that were written, and every guarantee.

    Returns each guarantee with what came of it, and the manifest.
    """
    release = open_there(engine, folder)
    guarantees = guarantees_of(release)
    if release.steps is None:
        return check_tracks_there(engine, release.data, release.features, guarantees, progress), release.manifest
    rows = engine.read(release.data)
    return check_there(engine, rows, release.steps, release.features, guarantees, progress), release.manifest


def guarantees_of(release: ReleaseThere) -> tuple[Guarantee, ...]:
    """What its manifest guarantees."""
    return stated_guarantees(release.manifest)

"""Stages of a run on Spark that flows and trajectories share; only figures, areas and the rows of a report are fetched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.spark import Frame, GroupFunction, SparkEngine
from crowdveil.errors import Option, ParameterError
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.geojson import write_features
from crowdveil.io.manifest import FileEntry, Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import area_features, area_properties
from crowdveil.io.written_release import AREAS_FILE, MANIFEST_FILE, REPORT_FILE, WrittenRelease, read_release
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask
from crowdveil.progress import Progress
from crowdveil.run.backend import Backend
from crowdveil.run.ledgers import Recorder, open_recorder
from crowdveil.run.merge_partitions import SUMMARY
from crowdveil.run.releases import REPORT_ROWS, add_report, without_report
from crowdveil.run.seeds import drawn_seed
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.stages import FileEntries, RunSpec

PARTITIONS_FOLDER = "partitions"
FILE_ROWS = 1_000_000


def check_supported_on_spark(spec: RunSpec) -> None:
    """Raise if a run cannot be done on a cluster, with the reason."""
    options, reason = spec.options, spec.method.partitioning(spec.params)
    if reason is not None:
        raise ParameterError(
            Option("engine", "spark"), f"{spec.method.name} cannot be done in partitions, since {reason}."
        )
    if options.format == "csv" or spec.data_name is not None:
        raise ParameterError(
            f"{Option('engine', 'spark')} writes Parquet under its own names. Leave {Option('format', 'csv')} and the name out."
        )
    if options.pairing is not None:
        raise ParameterError(f"{Option('pairing')} shows the original, which does not leave the cluster. Leave it out.")
    if options.keep_unchanged:
        raise ParameterError(
            Option("keep_unchanged"), "rows of all time steps decide together. Leave it out, or run it on one machine."
        )


class SparkBackend(Backend):
    """Does the stages on a cluster: the release is written to a temporary folder there, small files to one here."""

    DATA_FOLDER: str
    output: str
    result: Frame
    areas: Areas | None = None
    drawn: Mask | None = None

    recorder: Recorder | None = None

    def __init__(self, spec: RunSpec, engine: SparkEngine) -> None:
        super().__init__(spec)
        self.engine, self.output = engine, str(spec.output).rstrip("/")

    def check_target(self) -> None:
        """Raise unless the release can be written to its folder, and audited where a ledger is named."""
        check_target(self.engine.files, self.output, overwrite=self.spec.options.overwrite)
        self.recorder = open_recorder(self.spec, self.output)

    def keep(self, *frames: Frame) -> None:
        """Cache rows that several queries need, and make the temporary folders."""
        self.seed = drawn_seed(self.spec.options.seed)
        for frame in frames:
            self.enter_context(self.engine.kept(frame))
        staged = new_folder(self.engine.files, self.output, overwrite=self.spec.options.overwrite)
        self.folder = self.enter_context(staged)
        self.data = f"{self.folder}/{self.DATA_FOLDER}"
        self.here = Path(self.enter_context(scratch_folder()))

    def solve_partitions(
        self, partitions: Sequence[Ints], keyed: Callable[[pa.Table], Frame], function: GroupFunction, schema: pa.Schema,
        progress: Progress,
    ) -> list[str]:  # fmt: skip
        """Solve partitions; return their summaries.

        A partition is an array of numbers, such as time steps. `keyed` returns the rows of all numbers in a table with the
        columns number and partition_id; its rows have a column partition_id too.
        """
        bins = keyed(partition_bins(partitions))
        solved = self.engine.map_groups(bins, "partition_id", function, schema, len(partitions))
        folder = f"{self.folder}/{PARTITIONS_FOLDER}"
        self.engine.write(solved, folder, by="kind", progress=progress)
        self.result = self.engine.read(folder)
        found = self.engine.gather(self.result.where(f"kind = '{SUMMARY}'").select(SUMMARY))
        lines: list[str] = found[SUMMARY].to_pylist()
        return lines

    @property
    def features(self) -> list[dict[str, Any]]:
        """Return the areas as in the GeoJSON, without outlines."""
        return [] if self.areas is None else [{"properties": p} for p in area_properties(self.areas)]

    def write_areas(self) -> None:
        """Write the areas here, if there are any."""
        if self.areas is not None:
            drawn = np.ones(len(self.areas), np.bool_) if self.drawn is None else self.drawn
            write_features(area_features(self.areas, drawn), self.here / AREAS_FILE)

    def fetch(self, files: Mapping[str, str]) -> WrittenRelease:
        """Return the release as read from its files, whose rows are fetched; `files` are the names by role."""
        if not (self.here / self.DATA_FOLDER).exists():
            self.engine.files.fetch(self.data, self.here / self.DATA_FOLDER)
        return read_release(self.here, dict(files))

    def file_entries(self, **small: Path) -> FileEntries:
        """Return all files by role, with their hashes. `small` are files that are here, next to the areas."""
        if self.areas is not None:
            small["areas"] = self.here / AREAS_FILE
        data = FileEntry.of_parts(self.DATA_FOLDER, file_hashes(self.engine, self.data))
        return {"data": data, **{role: FileEntry.of(path) for role, path in small.items()}}

    @property
    @abstractmethod
    def published_rows(self) -> int:
        """Return the number of rows in the data folder."""

    @property
    def fits_here(self) -> bool:
        """Return whether the published rows are few enough to be fetched."""
        return self.published_rows <= REPORT_ROWS

    def report(self, manifest: Manifest, notes: ReadNotes) -> Manifest:
        """Write the report here, if the published rows are few enough to be fetched."""
        if not self.fits_here:
            return without_report(manifest, notes)
        written = self.fetch(manifest.file_names)
        add_report(self.here, written, manifest)
        return manifest

    def publish(self, manifest: Manifest) -> str:
        """Copy the small files to the cluster, and move the temporary folder to its place."""
        manifest.write(self.here)
        small = [entry.name for role, entry in manifest.files.items() if role != "data"]
        report = [REPORT_FILE] if (self.here / REPORT_FILE).exists() else []
        for name in (*small, *report, MANIFEST_FILE):
            self.engine.files.put(self.here / name, f"{self.folder}/{name}")
        self.engine.files.remove(f"{self.folder}/{PARTITIONS_FOLDER}")
        self.put_in_place(self.here, manifest)
        return self.output


def partition_bins(partitions: Sequence[Ints]) -> pa.Table:
    """Return the numbers of all partitions, each with the partition that it is in."""
    ids = np.repeat(np.arange(len(partitions)), [len(partition) for partition in partitions])
    return pa.table({"number": np.concatenate(partitions), "partition_id": ids})


def file_hashes(engine: SparkEngine, folder: str) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by name; the executors read them."""
    files = engine.session.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder)
    hashes = engine.gather(files.selectExpr("path", "sha2(content, 256) AS hash"))
    return {path.rsplit("/", 1)[-1]: digest for path, digest in zip(*hashes.to_pydict().values(), strict=True)}

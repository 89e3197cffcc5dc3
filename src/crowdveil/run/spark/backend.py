"""Stages of a run on Spark that flows and trajectories share; only figures, areas and the rows of a report are fetched."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.finished import keep_until_done
from crowdveil.engine.spark import Frame, GroupFunction, SparkEngine
from crowdveil.errors import Option, ParameterError
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.geojson import write_features
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_writer import area_features, area_properties
from crowdveil.io.written_release import AREAS_FILE, MANIFEST_FILE, REPORT_FILE, WrittenRelease, read_release
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask
from crowdveil.progress import Progress
from crowdveil.run.backend import Backend
from crowdveil.run.ledgers import Recorder, open_recorder
from crowdveil.run.manifest import file_entry, folder_entry, write_manifest
from crowdveil.run.merge_partitions import SUMMARY
from crowdveil.run.releases import REPORT_ROWS, add_report, without_report
from crowdveil.run.resume import drawn_seed, first_entropy, run_key
from crowdveil.run.spark.finished_partitions import FinishedPartitions
from crowdveil.run.spark.release_verification import file_hashes
from crowdveil.run.spark.staging import check_target, new_folder
from crowdveil.run.stages import FileEntries, RunSpec

PARTITIONS_FOLDER = "partitions"
CHUNK_PARTITIONS_PER_SLOT = 4
"""Partitions for each slot of the cluster that are solved and kept together in a run that can be resumed."""
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
            f"{Option('engine', 'spark')} writes Parquet under its own names; leave {Option('format', 'csv')} and the name out."
        )
    if options.pairing is not None:
        raise ParameterError(f"{Option('pairing')} shows the original, which does not leave the cluster; leave it out.")
    for name in ("keep_unchanged", "like"):
        if getattr(options, name, False) or getattr(spec.reading, name, None) is not None:
            raise ParameterError(
                Option(name), "rows of all time steps decide together; leave it out, or run it on one machine."
            )
    if options.resume is not None and options.ledger is not None:
        raise ParameterError(
            Option("resume"), "the ledger may have changed since the interruption; leave it out, or the ledger."
        )
    if options.resume is not None and not isinstance(spec.data, str | Path):
        raise ParameterError(
            Option("resume"), "wanted data in a file, but it is a table or a data frame; write it to a file."
        )


class SparkBackend(Backend):
    """Does the stages on a cluster: the release is written to a temporary folder there, small files to one here."""

    DATA_FOLDER: str
    output: str
    KEPT = "time step"
    """What is kept of a run that can be resumed."""
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

    def key_partitions(self) -> dict[str, Any]:
        """Return what kept partitions depend on besides the request."""
        return {}

    def keep(self, *frames: Frame) -> None:
        """Cache rows that several queries need, open what is kept of an interrupted run, and make the temporary folders."""
        spec, resume = self.spec, self.spec.options.resume
        folder, key = None if resume is None else str(resume), None
        if resume is not None:
            key = {**run_key(spec, self.engine.files.fingerprint(str(spec.data))), **self.key_partitions()}
        self.finished = FinishedPartitions(self.engine, folder, key, self.KEPT, first_entropy(spec))
        self.seed = drawn_seed(spec.options.seed, self.finished)
        for frame in frames:
            self.enter_context(self.engine.kept(frame))
        self.enter_context(keep_until_done(self.finished))
        staged = new_folder(self.engine.files, self.output, overwrite=spec.options.overwrite)
        self.folder = self.enter_context(staged)
        self.data = f"{self.folder}/{self.DATA_FOLDER}"
        self.here = Path(self.enter_context(scratch_folder()))

    def solve_partitions(
        self, partitions: Sequence[Ints], keyed: Callable[[pa.Table], Frame], function: GroupFunction, schema: pa.Schema,
        progress: Progress,
    ) -> list[str]:  # fmt: skip
        """Solve partitions that are not finished, in chunks; return the summaries of all partitions.

        A partition is an array of numbers, such as time steps. `keyed` returns the rows of all numbers in a table with the
        columns number and partition_id; its rows have a column partition_id too.
        """
        at_once = max(len(partitions), 1)
        if self.spec.options.resume is not None:
            at_once = CHUNK_PARTITIONS_PER_SLOT * self.engine.slots
        for low in range(0, len(partitions), at_once):
            chunk = partitions[low : low + at_once]
            solved = self.engine.map_groups(keyed(partition_bins(chunk)), "partition_id", function, schema, len(chunk))
            self.finished.add(np.concatenate(chunk), solved, progress)
        self.result = self.finished.all()
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
        data = folder_entry(self.DATA_FOLDER, file_hashes(self.engine, self.data))
        return {"data": data, **{role: file_entry(path) for role, path in small.items()}}

    @property
    @abstractmethod
    def published_rows(self) -> int:
        """Return the number of rows in the data folder."""

    @property
    def fits_here(self) -> bool:
        """Return whether the published rows are few enough to be fetched."""
        return self.published_rows <= REPORT_ROWS

    def report(self, manifest: dict[str, Any], notes: ReadNotes) -> dict[str, Any]:
        """Write the report here, if the published rows are few enough to be fetched."""
        if not self.fits_here:
            return without_report(manifest, notes)
        written = self.fetch({role: entry["name"] for role, entry in manifest["files"].items()})
        add_report(self.here, written, manifest)
        return manifest

    def publish(self, manifest: dict[str, Any]) -> str:
        """Copy the small files to the cluster, and move the temporary folder to its place."""
        write_manifest(self.here, manifest)
        small = [entry["name"] for role, entry in manifest["files"].items() if role != "data"]
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

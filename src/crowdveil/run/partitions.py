"""Runs in partitions: each is solved, written, read back, verified and attacked by one function, and its findings are counts.

Partitions run one after the other on this machine, or on the executors of a cluster.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from crowdveil.guarantees import Finding
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_folder import ReleaseFolder, file_system
from crowdveil.io.tables import COMPRESSION
from crowdveil.io.written_release import WrittenRelease, read_release
from crowdveil.run.options import drawn_seed
from crowdveil.run.releases import REPORT_ROWS, add_report, without_report
from crowdveil.run.stages import Backend, Findings, Guarantees, RunSpec
from crowdveil.solve.od.step_solver import summarize_figures


def write_part(rows: pa.Table, folder: str, name: str) -> tuple[pa.Table, str]:
    """Write a file to a folder, by its path or URI; return the rows as read again, and the file's SHA-256."""
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer, compression=COMPRESSION)
    files, path = file_system(folder)
    with files.open_output_stream(f"{path}/{name}") as stream:
        stream.write(buffer.getvalue())
    with files.open_input_file(f"{path}/{name}") as stream:
        content: bytes = stream.read()
    return pq.read_table(pa.BufferReader(content)), hashlib.sha256(content).hexdigest()


def merged_findings(guarantees: Guarantees, parts: list[list[dict[str, Any]]]) -> Findings:
    """Return the finding of each guarantee, merged from those of all partitions."""
    return [
        (guarantee, guarantee.merge_findings([Finding.from_json(part[i]) for part in parts]))
        for i, guarantee in enumerate(guarantees)
    ]


def merged_facts(spec: RunSpec, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the facts for the manifest from the method's diagnostics in all partitions."""
    summarize, rows = spec.method.summarize_diagnostics, [row for summary in summaries for row in summary["figures"]]
    if summarize is None or not rows:
        return {}
    facts: dict[str, Any] = summarize_figures(
        np.array(rows, np.float64), lambda figures: summarize(spec.params, figures)
    )
    return facts


class PartitionedRun(Backend):
    """Does the stages of a run in partitions; the rows are a folder of files.

    Attributes
    ----------
    folder, data
        Paths or URIs of the temporary folder of the release, and of the folder of its rows.
    here
        A folder of this machine for all small files: the temporary folder of the release, unless that is on a remote file
        system.
    """

    DATA_FOLDER: ClassVar[str]

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec)
        self.output = spec.output
        self.target = ReleaseFolder(str(spec.output).rstrip("/"), overwrite=spec.options.overwrite)

    def check_target(self) -> None:
        """Raise unless the release can be written to its folder."""
        self.target.check()
        self.seed = drawn_seed(self.spec.options.seed)

    def make_folders(self) -> None:
        """Make the folders that the release is written to."""
        self.folder = self.enter_context(self.target.new())
        self.here = Path(self.enter_context(scratch_folder()) if self.target.is_remote else self.folder)
        self.data = f"{self.folder}/{self.DATA_FOLDER}"
        files, path = file_system(self.data)
        files.create_dir(path)

    @property
    @abstractmethod
    def published_rows(self) -> int:
        """Return the number of published rows."""

    @property
    def is_small(self) -> bool:
        """Whether the published rows are few enough for a report."""
        return self.published_rows <= REPORT_ROWS

    def written(self, names: dict[str, str]) -> WrittenRelease:
        """Return the release as read from its files, whose rows are few; `names` are those of the small files by role."""
        if not (self.here / self.DATA_FOLDER).exists():
            files, path = file_system(self.data)
            (self.here / self.DATA_FOLDER).mkdir()
            pafs.copy_files(path, str(self.here / self.DATA_FOLDER), files, pafs.LocalFileSystem())
        return read_release(self.here, {"data": self.DATA_FOLDER, **names})

    def report(self, manifest: Manifest, notes: ReadNotes) -> Manifest:
        """Write the report, if the published rows are few."""
        if not self.is_small:
            return without_report(manifest, notes)
        names = {role: name for role, name in manifest.file_names.items() if role in ("steps", "areas")}
        add_report(self.here, self.written(names), manifest)
        return manifest

    def publish(self, manifest: Manifest) -> Path | str:
        """Write the manifest, and move the temporary folder to its place."""
        manifest.write(self.here)
        if self.target.is_remote:
            self.target.put((path for path in self.here.iterdir() if path.is_file()), self.folder)
        self.put_in_place(self.here, manifest)
        return self.output

"""The result of a run: a verified release, in a folder or in memory, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import shapely

from crowdveil.errors import InputError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.guarantees.base import tally
from crowdveil.io.atomic import new_folder
from crowdveil.io.derived_files import with_area_names
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import MANIFEST_FILE, WrittenRelease, read_release
from crowdveil.model.tabular import Table, TableProperty
from crowdveil.report.cost_summary import over_budget
from crowdveil.report.html import public_report
from crowdveil.report.loss_summary import coarseness
from crowdveil.report.notebook import result_html
from crowdveil.report.plots.kinds import KINDS
from crowdveil.run import releases
from crowdveil.run.pictures import Picture, draw_picture


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A verified release.

    Attributes
    ----------
    folder
        Where it is; None for a release in memory.
    stated
        Its manifest.
    release
        The release as a model; None on a cluster, where it stays.
    notes
        Assumptions of the reader, and dropped rows.
    cost
        The information loss, in lines.
    files
        The files of a release in memory, by their paths in its folder; the rows of partitions are in a folder of it.
    """

    folder: Path | str | None
    stated: Manifest
    release: Any
    notes: ReadNotes
    cost: list[str]
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def k(self) -> int | None:
        """The smallest group size; None for a method without one."""
        return self.stated.k

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as plain values, as in manifest.json."""
        return self.stated.plain()

    def summary(self) -> str:
        """Return the guarantees, the information loss, and where the report is, as text."""
        return "\n".join(line.strip() for line in self.lines())

    def lines(self) -> list[str]:
        """Return the guarantees and the information loss, for the person who ran it."""
        manifest = self.stated
        guaranteed = [f"  {entry.outcome:<13}{entry.statement}" for entry in manifest.guarantees]
        if manifest.method.status == "heuristic":
            guaranteed.append("  no guarantee of anonymity: this method is a heuristic")
        guaranteed.append(f"  checked  {self._tally()}")
        return [*guaranteed, *(f"  {line}" for line in (*self.cost, *over_budget(manifest), *self._coarseness()))]

    def _tally(self) -> str:
        return tally([(entry.outcome, entry.with_original) for entry in self.stated.guarantees])

    def _coarseness(self) -> list[str]:
        """Return how coarse the release is; nothing for a release on a cluster or in memory."""
        if not isinstance(self.folder, Path):
            return []
        return [coarseness(self.written, self.stated)]

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        size = "" if self.release is None else f"{self.release.summary()}; "
        return f"<Result of {self.stated.method.name}: {size}{self._tally()} {where}>"

    def _repr_html_(self) -> str:
        """Return guarantees, loss and a small map, as a notebook shows them."""
        return result_html(self.stated, self.cost, self.notes.sentences(), self.written)

    @property
    def flows(self) -> Table:
        """The table of flows, with the readable names of their areas next to the ids."""
        table = self._table("flows", self.written.data)
        return Table(with_area_names(self.written)) if self.written.features else table

    @property
    def trajectories(self) -> Table:
        """The table of points."""
        table = self._table("trajectories", self.written.data)
        return Table(table.arrow, shapely.points(*(self.written.column(name) for name in ("lon", "lat"))))

    @property
    def steps(self) -> Table:
        """The table of time steps."""
        return self._table("flows", self.written.steps)

    @property
    def areas(self) -> Table:
        """The areas, with outlines in `to_geopandas()`."""
        features = self.written.features
        shapes = [f["geometry"] and shapely.geometry.shape(f["geometry"]) for f in features]
        return Table(pa.Table.from_pylist([f["properties"] for f in features]), shapes)

    def _table(self, wanted: str, table: Any) -> Table:
        content = self.written.content
        if content != wanted:
            raise InputError("release", f"it holds {content}, not {wanted}. Use .{content}.")
        return Table(table)

    @cached_property
    def written(self) -> WrittenRelease:
        """The release as read from its files."""
        with self.opened() as folder:
            return read_release(folder, self.stated.file_names)

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """Yield the folder of the release; for one in memory, a temporary folder with its files."""
        if isinstance(self.folder, str):
            raise InputError(self.folder, "the release is on a cluster. Read it with Spark.")
        if self.folder is not None:
            yield self.folder
            return
        with TemporaryDirectory(prefix="crowdveil-") as folder:
            self._write(Path(folder))
            yield Path(folder)

    def in_memory(self) -> Result:
        """Return the release with its files in memory, without a folder."""
        with self.opened() as folder:
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return replace(self, folder=None, files=files)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Result:
        """Write the files of the release, unchanged, to a folder; return the result in that folder."""
        files = self.in_memory()
        with new_folder(Path(folder), overwrite=overwrite, mark_file=MANIFEST_FILE) as target:
            files._write(target)
        return replace(self, folder=Path(folder), files={})

    def _write(self, folder: Path) -> None:
        for name, content in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)

    def verify(self, original: Any = None, **options: Any) -> Verification:
        """Check the files again, as `crowdveil.verify` does."""
        with self.opened() as folder:
            return Verification(tuple(releases.verify(folder, original, options)))

    def report(self) -> Report:
        """Return the report, which a notebook shows; `.save(file)` writes it."""
        return Report(public_report(self.written, self.stated))

    @property
    def plot(self) -> Plots:
        """Pictures of the release: `plot()` for the usual one, or `.flows()`, `.matrix()`, `.heatmap()` and more."""
        return Plots(self)


@dataclass(frozen=True, repr=False)
class Verification(TableProperty):
    """The findings of a verification: a table with a row for each guarantee, or pairs of a guarantee and its finding."""

    findings: tuple[tuple[Guarantee, Finding], ...]

    @property
    def ok(self) -> bool:
        """Whether no guarantee is violated; some may need the original to be checked."""
        return not any(finding.violated for _, finding in self.findings)

    @property
    def table(self) -> pa.Table:
        """The table: guarantee, statement, outcome, and details of the check."""
        rows = [(g.name, g.statement(), f.outcome.value, f.detail, f.with_original) for g, f in self.findings]
        names = ("guarantee", "statement", "outcome", "checked", "with_original")
        return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def summary(self) -> str:
        """Return how many guarantees have which outcome."""
        return tally([(finding.outcome, finding.with_original) for _, finding in self.findings])

    def __iter__(self) -> Iterator[tuple[Guarantee, Finding]]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


@dataclass(frozen=True, repr=False)
class Report:
    """The report of a release, a self-contained page."""

    html: str

    def save(self, file: str | Path) -> Path:
        """Write the page to a file."""
        Path(file).write_text(self.html, encoding="utf-8", newline="\n")
        return Path(file)

    def __repr__(self) -> str:
        return f"<Report: a page of {len(self.html) // 1024:,} KiB; write it with .save(file)>"

    def _repr_html_(self) -> str:
        """Return the page in a frame."""
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:720px;border:0"></iframe>'


@dataclass(frozen=True, repr=False)
class Plots:
    """Pictures of a release, by kind, also on the axes of a figure of matplotlib in `ax`.

    `original` is drawn too where it is given; the picture is then confidential.
    """

    result: Result

    def __call__(self, *, ax: Any = None, **options: Any) -> Picture:
        """Draw the largest flows on a map, or the paths of trajectories."""
        return (self.flows if self.result.written.is_flows else self.paths)(ax=ax, **options)

    def flows(self, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw the largest flows on a map; options: `top`, `zoom`, `at`, and `zones` for the base."""
        return self._draw("flows", original, options, ax)

    def matrix(self, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw the OD matrix, with tiles in the order of the tree; options: `at`, `zones`, `hierarchy`."""
        return self._draw("matrix", original, options, ax)

    def destinations(self, zone: str, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw where the trips of a zone go, or come from; options: `zones` (needed), `direction`, `zoom`, `at`."""
        return self._draw("destinations", original, {"zone": zone, **options}, ax)

    def coarsening(self, *, ax: Any = None, **options: Any) -> Picture:
        """Draw how many zones each zone was merged with; options: `zones`, `zoom`, `at`."""
        return self._draw("coarsening", None, options, ax)

    def profiles(self, *zones: str, ax: Any = None) -> Picture:
        """Draw trips by time step of some areas, or of the busiest."""
        return self._draw("profiles", None, {"zone": zones}, ax)

    def loss(self, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw the costs in the manifest or, with the original, every measure; each has its own axis."""
        return self._draw("loss", original, options, ax)

    def heatmap(self, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw the number of trajectories in each square cell; option: `zoom`."""
        return self._draw("heatmap", original, options, ax)

    def paths(self, *, original: Any = None, ax: Any = None, **options: Any) -> Picture:
        """Draw the distinct paths of trajectories with their points; option: `zoom`."""
        return self._draw("paths", original, options, ax)

    def __repr__(self) -> str:
        content = (self.result.written.content, "either")
        kinds = [kind.name for kind in KINDS.values() if kind.data in content and kind.releases != "no"]
        return f"<Plots: {', '.join(kinds)}; draw one with plot.{kinds[0]}()>"

    def _draw(self, kind: str, original: Any, options: dict[str, Any], ax: Any) -> Picture:
        picture = draw_picture(kind, [(self.result.stated, self.result.written)], original, options, ReadNotes())
        if ax is not None:
            picture.show(ax)
        return picture

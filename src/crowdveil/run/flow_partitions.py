"""A partition of whole time steps: from its rows to the rows of a release, checked and attacked, and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import attack_release
from crowdveil.errors import TimeStepError
from crowdveil.guarantees import Guarantee
from crowdveil.io.release_writer import area_properties, drawn_areas, flow_table, step_table
from crowdveil.io.values import one_array
from crowdveil.io.written_release import BOUND_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows, FlowUnit
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import step_classes
from crowdveil.params import Params
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.merge_partitions import BY_STEP
from crowdveil.run.seeds import ATTACKS, derive_seed
from crowdveil.run.stages import RunSpec
from crowdveil.run.verification import check


def row_schema(counts: FlowUnit, *, bounds: bool = False, intervals: bool = False) -> pa.Schema:
    """Return the columns of released flows, with confidence bounds of volumes and ends of intervals, or without."""
    text, whole = pa.string(), pa.int64()
    times = [(name, pa.timestamp("us", tz="UTC")) for name in ("t", *(("until",) if intervals else ()))]
    more = [(name, whole) for name in BOUND_COLUMNS if bounds]
    return pa.schema(
        [*times, ("origin_area", text), ("destination_area", text), ("volume", whole),
         *more, (counts, whole), ("state", text)]
    )  # fmt: skip


def file_schema(rows: pa.Schema, tz: str, *, intervals: bool) -> pa.Schema:
    """Return the columns of released flows as files have them: times in milliseconds, with the time zone of the time steps;
    ends of intervals only where any is longer than a time step.
    """
    zoned = pa.timestamp("ms", tz=tz)
    kept = [f for f in rows if f.name != "until" or intervals]
    return pa.schema([(f.name, zoned if pa.types.is_timestamp(f.type) else f.type) for f in kept])


class SolvedPartition(NamedTuple):
    """What becomes of a partition.

    Attributes
    ----------
    rows
        The released rows, with the columns of `row_schema`.
    areas
        Columns of its areas: name, tiles as bytes, and whether they are drawn.
    summary
        Findings, attacks, costs and time steps, as JSON can hold them.
    """

    rows: pa.Table
    areas: dict[str, Any]
    summary: dict[str, Any]


@dataclass(frozen=True)
class PartitionSolver:
    """Solves a partition with the code that solves all time steps together, then checks and attacks it.

    Attributes
    ----------
    method, params, seed
        What is to run.
    guarantees
        What is checked on its tables.
    attack
        Whether the release is attacked.
    starts
        Starts of all time steps of the data, to number one that fails.
    counts
        What the group sizes of released rows count.
    shared
        Boxes of each class of time steps, where one partition of the map is for all of them.
    least_people
        Whether k stands in place of numbers of people, since an earlier release shares records.
    """

    method: str
    params: Params
    seed: int
    guarantees: tuple[Guarantee, ...]
    attack: bool
    starts: Ints
    counts: FlowUnit
    shared: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    least_people: bool = False

    @classmethod
    def of(
        cls, spec: RunSpec, seed: int, guarantees: tuple[Guarantee, ...], frame: Flows, starts: Ints, **more: Any
    ) -> PartitionSolver:
        """Return the solver of a run; `frame` says what k counts."""
        counts: FlowUnit = "trips" if spec.method.row_semantics == "noisy" else frame.k_unit
        return cls(spec.method.name, spec.params, seed, guarantees, spec.options.attack, starts, counts, **more)

    @property
    def rows(self) -> pa.Schema:
        """Return the columns of released rows."""
        method = find_method(self.method)
        intervals = method.windowed(self.params) is not None
        return row_schema(self.counts, bounds=method.volume_bounds, intervals=intervals)

    def __call__(self, flows: Flows, progress: Progress = no_progress) -> SolvedPartition:
        """Return rows, areas and the summary of a partition."""
        solved = self._solve(flows, progress)
        release = self._rounded(solved)
        written = as_written(release)
        summary = {
            "t": release.t.tolist(),
            "crowd": flows.total_people,
            "figures": None if release.figures is None else release.figures.tolist(),
            **self._verified(flows, release, written),
        }
        windowed = find_method(self.method).windowed(self.params)
        by_step = solved if windowed is None else windowed.as_steps(flows, solved, self.params)
        if by_step is not solved:
            by_step = self._rounded(by_step)
            summary[BY_STEP] = self._verified(flows, by_step, as_written(by_step))
        rows = [one_array(written.data[field.name]).cast(field.type) for field in self.rows]
        return SolvedPartition(pa.table(rows, schema=self.rows), _area_columns(release), summary)

    def _rounded(self, release: FlowRelease) -> FlowRelease:
        return release.with_rounded_people(getattr(self.params, "k", None), least=self.least_people)

    def _verified(self, flows: Flows, release: FlowRelease, written: WrittenRelease) -> dict[str, Any]:
        """Return time steps, findings, attacks and costs of a release, for the summary."""
        checked, trials = check(written, self.guarantees, flows), []
        if self.attack:
            status = find_method(self.method).status
            trials = attack_release(flows, release, self.guarantees, status, derive_seed(self.seed, ATTACKS))
        return {
            "columns": written.steps.column_names,
            "steps": _plain(written.steps),
            "findings": [finding.as_json() for _, finding in checked],
            "trials": [asdict(trial) for trial in trials],
            "cost": asdict(FlowCost.of(flows, release)),
        }

    def _solve(self, flows: Flows, progress: Progress) -> FlowRelease:
        method, rng = find_method(self.method), np.random.default_rng(self.seed)
        shared, windowed = method.shared(self.params), method.windowed(self.params)
        if shared is not None:
            return shared.release(flows, step_classes(flows.t, flows.tz, shared.by), self.shared, self.params)
        if windowed is not None:
            return windowed.run(flows, self.params, progress)
        try:
            release = method.run(flows, self.params, rng, progress)
        except TimeStepError as error:  # its number is one of the partition
            number = int(np.searchsorted(self.starts, flows.t[error.step - 1])) + 1
            raise TimeStepError(number, len(self.starts), error.reason) from None
        if not isinstance(release, FlowRelease):
            raise TypeError(f"{self.method} makes no flows")
        return release


def _area_columns(release: FlowRelease) -> dict[str, Any]:
    areas = release.areas
    tiles = [areas.tiles[low:high].tobytes() for low, high in pairwise(areas.offsets)]
    return {
        "area": pa.array(areas.names, pa.string()),
        "tiles": pa.array(tiles, pa.binary()),
        "drawn": pa.array(drawn_areas(release, areas)),
    }


def as_written(release: FlowRelease) -> WrittenRelease:
    """Return a release as its files would be read, without writing them."""
    features = [{"properties": properties} for properties in area_properties(release.areas)]
    data = flow_table(release, "parquet")(slice(0, len(release)))
    return WrittenRelease(Path("the partition"), data, step_table(release, "parquet"), features)


def _plain(steps: pa.Table) -> list[list[int | None]]:
    """Return the rows of the table of time steps, with times in seconds; None where there is no time."""
    times = {
        name: steps[name].cast(pa.timestamp("s", tz="UTC"), safe=False).cast(pa.int64())
        for name in ("t", "until")
        if name in steps.column_names
    }
    return [list(row) for row in zip(*(times.get(n, steps[n]).to_pylist() for n in steps.column_names), strict=True)]

"""A partition of whole time steps: from its rows to the rows of a release, checked and attacked, and a summary."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine
from crowdveil.attacks.risk import attack_release
from crowdveil.engine import LocalEngine
from crowdveil.entropy import derive_seed
from crowdveil.errors import TimeStepError
from crowdveil.guarantees import Guarantee
from crowdveil.io.release_writer import area_properties, drawn_areas, flow_table, step_table
from crowdveil.io.values import one_array
from crowdveil.io.written_release import BOUND_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows, FlowUnit
from crowdveil.model.release import FlowRelease
from crowdveil.params import Params
from crowdveil.progress import no_progress
from crowdveil.registry import find_method
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.resume import ATTACKS
from crowdveil.run.spark.merge_partitions import AREA, ROW, SUMMARY, result_table
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.run.verification import check


def row_schema(counts: FlowUnit, *, bounds: bool = False) -> pa.Schema:
    """Return the columns of released flows, with confidence bounds of volumes or without."""
    text, whole = pa.string(), pa.int64()
    more = [(name, whole) for name in BOUND_COLUMNS if bounds]
    return pa.schema(
        [("t", pa.timestamp("us", tz="UTC")), ("origin_area", text), ("destination_area", text), ("volume", whole),
         *more, (counts, whole), ("state", text)]
    )  # fmt: skip


def result_schema(rows: pa.Schema) -> pa.Schema:
    """Return the columns of results: rows of the release, areas (name, tiles, whether to draw them), a summary; by kind."""
    more = [("area", pa.string()), ("tiles", pa.binary()), ("drawn", pa.bool_()), (SUMMARY, pa.string())]
    return pa.schema([("kind", pa.string()), *rows, *more])


@dataclass(frozen=True)
class FlowPartition:
    """Solves a partition with the code that solves all time steps on one machine; sent to executors.

    Attributes
    ----------
    method, params, seed
        What is to run.
    reader
        Reader of its flows.
    guarantees
        What is checked on its tables.
    attack
        Whether the release is attacked.
    numbers
        Sorted numbers of all time steps of the data, to name one that fails.
    counts
        What the group sizes of released rows count.
    """

    method: str
    params: Params
    seed: int
    reader: FlowPartitionReader
    guarantees: tuple[Guarantee, ...]
    attack: bool
    numbers: Ints
    counts: FlowUnit

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of results."""
        return result_schema(self.rows)

    @property
    def rows(self) -> pa.Schema:
        """Return the columns of released rows."""
        return row_schema(self.counts, bounds=find_method(self.method).volume_bounds)

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return rows, areas and the summary of the partition."""
        # One task has one processor: the cluster decides how many run at a time.
        with engine.use(LocalEngine(1)):
            flows = self.reader(partition)
            if flows is None:
                return self._summary({"cost": asdict(FlowCost(units=self.reader.weight(partition)))})
            release = self._solve(flows)
            written = as_written(release)
            checked = check(written, self.guarantees, flows)
            trials = []
            if self.attack:
                status = find_method(self.method).status
                trials = attack_release(flows, release, self.guarantees, status, derive_seed(self.seed, ATTACKS))
        summary = {
            "steps": _plain(written.steps),
            "t": flows.t.tolist(),
            "crowd": flows.total_people,
            "figures": None if release.figures is None else release.figures.tolist(),
            "findings": [finding.as_json() for _, finding in checked],
            "trials": [asdict(trial) for trial in trials],
            "cost": asdict(FlowCost.of(flows, release)),
        }  # fmt: skip
        rows = {field.name: one_array(written.data[field.name]).cast(field.type) for field in self.rows}
        return pa.concat_tables(
            [
                result_table(self.schema, ROW, len(written.data), rows),
                result_table(self.schema, AREA, len(release.areas), _area_columns(release)),
                self._summary(summary),
            ]
        )

    def _summary(self, summary: dict[str, Any]) -> pa.Table:
        return result_table(self.schema, SUMMARY, 1, {SUMMARY: pa.array([json.dumps(summary)])})

    def _solve(self, flows: Flows) -> FlowRelease:
        method, rng = find_method(self.method), np.random.default_rng(self.seed)
        try:
            release = method.run(flows, self.params, rng, no_progress)
        except TimeStepError as error:  # its number is one of the partition
            steps = self.reader.steps
            starts = steps.starts(self.numbers) if steps else np.zeros(1, np.int64)
            number = int(np.searchsorted(starts, flows.t[error.step - 1])) + 1
            raise TimeStepError(number, len(self.numbers), error.reason) from None
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
    t = steps["t"].cast(pa.timestamp("s", tz="UTC"), safe=False).cast(pa.int64()).to_pylist()
    return [list(row) for row in zip(t, steps["published"].to_pylist(), steps["suppressed"].to_pylist(), strict=True)]

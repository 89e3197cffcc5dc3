"""A part of some whole time steps: from its rows to the rows of a release, checked, and a line that tells what came of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine
from crowdveil.attacks.risk import against_guarantees
from crowdveil.engine import LocalEngine
from crowdveil.entropy import apart
from crowdveil.errors import InputError, StepError
from crowdveil.guarantees import Guarantee
from crowdveil.io.release import area_properties, drawn_areas, flow_table, step_table
from crowdveil.io.values import one_array
from crowdveil.io.written import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import FlowCounts, Flows
from crowdveil.model.release import FlowRelease
from crowdveil.params import Params
from crowdveil.progress import no_progress
from crowdveil.registry import find_method
from crowdveil.report.summary import FlowCost
from crowdveil.run.resume import ATTACKS
from crowdveil.run.spark.merge_partitions import AREA, ROW, TOLD
from crowdveil.run.spark.rows import PartReader
from crowdveil.run.verification import check


def row_schema(counts: FlowCounts) -> pa.Schema:
    """The columns of the rows of a release."""
    text, whole = pa.string(), pa.int64()
    return pa.schema(
        [("t", pa.timestamp("us", tz="UTC")), ("origin_area", text), ("destination_area", text), ("volume", whole),
         (counts, whole), ("state", text)]
    )  # fmt: skip


def outcome_schema(rows: pa.Schema) -> pa.Schema:
    """What a part gives: rows of the release, areas (name, tiles, whether to draw them) and one line of JSON, by kind."""
    more = [("area", pa.string()), ("tiles", pa.binary()), ("drawn", pa.bool_()), (TOLD, pa.string())]
    return pa.schema([("kind", pa.string()), *rows, *more])


@dataclass(frozen=True)
class StepsPart:
    """What is done with a part, by the code that does it with all time steps on one machine.

    Attributes
    ----------
    method, params, seed
        What is to run.
    reader
        From the rows of the part to its flows.
    guarantees
        What is checked on what is written.
    attack
        Whether adversaries are tried.
    numbers
        The numbers of all time steps of the data, to say which one failed.
    counts
        What the crowd of rows counts, as released.
    """

    method: str
    params: Params
    seed: int
    reader: PartReader
    guarantees: tuple[Guarantee, ...]
    attack: bool
    numbers: Ints
    counts: FlowCounts

    @property
    def schema(self) -> pa.Schema:
        """The columns of what comes of a part."""
        return outcome_schema(row_schema(self.counts))

    def __call__(self, part: pa.Table) -> pa.Table:
        """Rows, areas and what is told of the part."""
        # One task has one processor: the cluster decides how many run side by side.
        with engine.use(LocalEngine(1)):
            flows = self.reader(part)
            if flows is None:
                return self._told({"cost": asdict(FlowCost(units=self.reader.weight(part)))})
            release = self._made(flows, part)
            written = as_written(release)
            checked = check(written, self.guarantees, flows)
            trials = []
            if self.attack:
                status = find_method(self.method).status
                trials = against_guarantees(flows, release, self.guarantees, status, apart(self.seed, ATTACKS))
        told = {
            "steps": _plain(written.steps),
            "t": flows.t.tolist(),
            "crowd": flows.crowd,
            "figures": None if release.figures is None else release.figures.tolist(),
            "findings": [finding.as_json() for _, finding in checked],
            "trials": [asdict(trial) for trial in trials],
            "cost": asdict(FlowCost.of(flows, release)),
        }  # fmt: skip
        return pa.concat_tables([self._rows(written.data), self._areas(release), self._told(told)])

    def _made(self, flows: Flows, part: pa.Table) -> FlowRelease:
        method, rng = find_method(self.method), np.random.default_rng(self.seed)
        try:
            made = method.run(flows, self.params, rng, no_progress)
        except InputError as error:
            raise self._named(error, flows) from None
        if not isinstance(made, FlowRelease):
            raise TypeError(f"{self.method} makes no flows")
        return made

    def _named(self, error: InputError, flows: Flows) -> InputError:
        """The error with the number of its time step among all of the data, and not of the part."""
        method, steps = find_method(self.method), self.reader.steps
        for step in range(flows.steps):
            try:
                one = flows.at_steps(np.array([step]))
                method.run(one, self.params, np.random.default_rng(self.seed), no_progress)
            except InputError as again:
                starts = steps.starts(self.numbers) if steps else np.zeros(1, np.int64)
                number = int(np.searchsorted(starts, flows.t[step])) + 1
                return StepError(again.error if isinstance(again, StepError) else again, number, len(self.numbers))
        return error

    def _rows(self, data: pa.Table) -> pa.Table:
        made = {field.name: one_array(data[field.name]).cast(field.type) for field in row_schema(self.counts)}
        return self._filled(ROW, len(data), made)

    def _areas(self, release: FlowRelease) -> pa.Table:
        areas = release.areas
        tiles = [
            areas.tiles[low:high].tobytes() for low, high in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)
        ]
        made = {"area": pa.array(areas.names, pa.string()), "tiles": pa.array(tiles, pa.binary()),
                "drawn": pa.array(drawn_areas(release, areas))}  # fmt: skip
        return self._filled(AREA, len(areas), made)

    def _told(self, told: dict[str, Any]) -> pa.Table:
        return self._filled(TOLD, 1, {TOLD: pa.array([json.dumps(told)])})

    def _filled(self, kind: str, n: int, made: dict[str, Any]) -> pa.Table:
        made["kind"] = pa.array([kind] * n, pa.string())
        return pa.table([made.get(f.name, pa.nulls(n, f.type)) for f in self.schema], schema=self.schema)


def as_written(release: FlowRelease) -> WrittenRelease:
    """A release as its files would be read, without a file."""
    features = [{"properties": properties} for properties in area_properties(release.areas)]
    data = flow_table(release, "parquet")(slice(0, len(release)))
    return WrittenRelease(Path("the part"), data, step_table(release, "parquet"), features)


def _plain(steps: pa.Table) -> list[list[int | None]]:
    """The table of time steps in seconds; steps without a time have none."""
    t = steps["t"].cast(pa.timestamp("s", tz="UTC"), safe=False).cast(pa.int64()).to_pylist()
    return [list(row) for row in zip(t, steps["published"].to_pylist(), steps["suppressed"].to_pylist(), strict=True)]

"""What a release lost, measured where both lie: each part by itself, and over all steps from the sums of all parts."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine as engines
from crowdveil.engine import LocalEngine
from crowdveil.engine.spark import SparkEngine
from crowdveil.io.notes import ReadNotes
from crowdveil.io.read_back import flow_release_from
from crowdveil.measures.base import Asked, Scores, mean_of_steps
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.od.partition_sums import PartTotals, over_all_parts, sums_of_part
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress
from crowdveil.report.measures import Measurement, named_measures
from crowdveil.run.spark.aligned_partitions import BothParts, beside
from crowdveil.run.spark.verifying import moments_of, open_there, rest_of
from crowdveil.solve.od.assignment import check_steps


@dataclass(frozen=True)
class TotalsOfPart:
    """What must be known of all parts before any of them can be measured."""

    read: BothParts
    schema = pa.schema([("told", pa.string())])

    def __call__(self, part: pa.Table) -> pa.Table:
        """One line."""
        totals = PartTotals.of(compared(*self.read(part)))
        return pa.table({"told": [json.dumps(asdict(totals))]}, schema=self.schema)


@dataclass(frozen=True)
class MeasuredPart:
    """Measures some whole time steps.

    Attributes
    ----------
    measures
        What is measured.
    read
        What opens the packs of a part.
    totals
        What is known of all parts.
    """

    measures: tuple[Asked, ...]
    read: BothParts
    totals: PartTotals
    schema = pa.schema(
        [("measure", pa.int64()), ("t", pa.binary()), ("by_step", pa.binary()), ("sums", pa.list_(pa.binary()))]
    )

    def __call__(self, part: pa.Table) -> pa.Table:
        """Of each measure its values by step, and the sums that it needs over all steps, as arrays in bytes."""
        with engines.use(LocalEngine(1)):
            both = compared(*self.read(part))
            rows = [
                (number, _bytes(both.original.t), _bytes(asked.measure.of(both, asked.params)),
                 [_bytes(of_part) for of_part in sums_of_part(asked, both, self.totals)])
                for number, asked in enumerate(self.measures)
            ]  # fmt: skip
        columns = zip(*rows, strict=True)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema)


def compared(flows: Flows, written: Any) -> OdComparison:
    """A part of the original beside the rows that were made of it."""
    return OdComparison.between(flows, flow_release_from(written, flows))


def measure_there(
    engine: SparkEngine, original: Any, folder: str, measures: Sequence[str | Asked] | None, given: dict[str, Any],
    notes: ReadNotes, progress: Progress,
) -> Measurement:  # fmt: skip
    """Measure a release of flows on the cluster; none of the original comes here."""
    release = open_there(engine, folder)
    wanted = tuple(named_measures(measures))
    with beside(engine, release, original, given, notes, progress, members=False, all_areas=True) as both:
        listed = moments_of(both.read.release.steps["t"])
        check_steps(int((~np.isin(listed, both.original_moments)).sum()))
        told = engine.map_groups(both.packs, "part", TotalsOfPart(both.read), TotalsOfPart.schema, both.parts)
        lines = engine.gather(told, progress)["told"].to_pylist()
        totals = sum((PartTotals(**json.loads(line)) for line in lines), PartTotals())
        function = MeasuredPart(wanted, both.read, totals)
        parts = engine.gather(
            engine.map_groups(both.packs, "part", function, MeasuredPart.schema, both.parts), progress
        ).to_pylist()
        frame = replace(both.trips.frame, step_s=both.trips.step_s)
        nothing = compared(frame, rest_of(both.read.release, both.moments))
    found = [
        _scores(asked, nothing, totals, [part for part in parts if part["measure"] == number])
        for number, asked in enumerate(wanted)
    ]
    t = np.sort(np.concatenate([_array(part["t"]) for part in parts if part["measure"] == 0]))
    return Measurement(_without_rows(frame, t), tuple(found), totals.overlapping)


def _scores(asked: Asked, nothing: OdComparison, totals: PartTotals, parts: Sequence[dict[str, Any]]) -> Scores:
    t = np.concatenate([_array(part["t"]) for part in parts])
    by_step = np.concatenate([_array(part["by_step"]) for part in parts])[np.argsort(t)]
    sums = [[_array(content) for content in part["sums"]] for part in parts]
    return Scores(asked, by_step, mean_of_steps(by_step), over_all_parts(asked, nothing, totals, sums)[0])


def _without_rows(frame: Flows, t: Ints) -> Flows:
    """Flows with time steps and nothing in them."""
    return replace(frame, t=t, offsets=np.zeros(len(t) + 1, np.int64))


def _bytes(values: Floats | Ints) -> bytes:
    held = io.BytesIO()
    np.save(held, values, allow_pickle=False)
    return held.getvalue()


def _array(content: bytes) -> Any:
    return np.load(io.BytesIO(content), allow_pickle=False)

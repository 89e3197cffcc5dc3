"""Information loss of a release on a cluster: of each partition, and over all steps from the sums of all partitions."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine as engines
from crowdveil.comparison.requested_measures import named_measures
from crowdveil.engine import LocalEngine
from crowdveil.engine.spark import SparkEngine
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_reader import load_flow_release
from crowdveil.measures.base import MeasureRequest, Scores, mean_of_steps
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.od.partition_sums import PartitionTotals, over_all_partitions, sums_of_partition
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress
from crowdveil.report.measurement import Measurement
from crowdveil.run.release_partitions import rest_of
from crowdveil.run.spark.aligned_partitions import AlignedReader, align_partitions
from crowdveil.run.spark.release_verification import open_spark_release
from crowdveil.solve.od.assignment import check_steps


@dataclass(frozen=True)
class TotalsOfPartition:
    """Sums that must be known of all partitions before any can be measured."""

    read: AlignedReader
    schema = pa.schema([("totals", pa.string())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the sums as one row of JSON."""
        totals = PartitionTotals.of(compared(*self.read(partition)))
        return pa.table({"totals": [json.dumps(asdict(totals))]}, schema=self.schema)


@dataclass(frozen=True)
class MeasuresOfPartition:
    """Measures a partition of whole time steps.

    Attributes
    ----------
    measures
        What is measured.
    read
        Reader of a partition.
    totals
        What is known of all partitions.
    """

    measures: tuple[MeasureRequest, ...]
    read: AlignedReader
    totals: PartitionTotals
    schema = pa.schema(
        [("measure", pa.int64()), ("t", pa.binary()), ("by_step", pa.binary()), ("sums", pa.list_(pa.binary()))]
    )

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the values of each measure by step, and its sums for all steps, as arrays in bytes."""
        with engines.use(LocalEngine(1)):
            both = compared(*self.read(partition))
            t = both.original.t if both.listed is None else both.original.t[both.listed]
            rows = [
                (number, _bytes(t), _bytes(asked.measure.of(both, asked.params)),
                 [_bytes(of_part) for of_part in sums_of_partition(asked, both, self.totals)])
                for number, asked in enumerate(self.measures)
            ]  # fmt: skip
        columns = zip(*rows, strict=True)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema)


def compared(flows: Flows, written: Any) -> OdComparison:
    """Compare a partition of the original with its released rows."""
    return OdComparison.between(flows, load_flow_release(written, flows))


def measure_on_spark(
    engine: SparkEngine, original: Any, folder: str, measures: Sequence[str | MeasureRequest] | None, given: dict[str, Any],
    notes: ReadNotes, progress: Progress,
) -> Measurement:  # fmt: skip
    """Measure a release of flows on the cluster, where the original stays."""
    release = open_spark_release(engine, folder)
    wanted = tuple(named_measures(measures))
    with align_partitions(engine, release, original, given, notes, progress, members=False, all_areas=True) as both:
        listed = both.read.release.unit_of(both.read.release.steps["t"])
        check_steps(int((~np.isin(listed, both.original_units)).sum()))

        def gathered(function: TotalsOfPartition | MeasuresOfPartition) -> list[dict[str, Any]]:
            made = engine.map_groups(both.packed_rows, "partition_id", function, function.schema, both.partitions)
            rows: list[dict[str, Any]] = engine.gather(made, progress).to_pylist()
            return rows

        sums = [PartitionTotals(**json.loads(row["totals"])) for row in gathered(TotalsOfPartition(both.read))]
        totals = sum(sums, PartitionTotals())
        partitions = gathered(MeasuresOfPartition(wanted, both.read, totals))
        frame = both.trips.frame
        nothing = compared(frame, rest_of(both.read.release, both.units))
    found = [
        _scores(asked, nothing, totals, [partition for partition in partitions if partition["measure"] == number])
        for number, asked in enumerate(wanted)
    ]
    t = np.sort(np.concatenate([_array(partition["t"]) for partition in partitions if partition["measure"] == 0]))
    steps_alone = replace(frame, t=t, offsets=np.zeros(len(t) + 1, np.int64))
    return Measurement(steps_alone, tuple(found), totals.overlapping)


def _scores(
    asked: MeasureRequest, nothing: OdComparison, totals: PartitionTotals, partitions: Sequence[dict[str, Any]]
) -> Scores:
    t = np.concatenate([_array(partition["t"]) for partition in partitions])
    by_step = np.concatenate([_array(partition["by_step"]) for partition in partitions])[np.argsort(t)]
    sums = [[_array(content) for content in partition["sums"]] for partition in partitions]
    return Scores(asked, by_step, mean_of_steps(by_step), over_all_partitions(asked, nothing, totals, sums)[0])


def _bytes(values: Floats | Ints) -> bytes:
    held = io.BytesIO()
    np.save(held, values, allow_pickle=False)
    return held.getvalue()


def _array(content: bytes) -> Any:
    return np.load(io.BytesIO(content), allow_pickle=False)

"""Information loss of a release on a cluster: of each partition, and over all steps from the sums of all partitions."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.engine.spark import SparkEngine
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_reader import load_flow_release
from crowdveil.measures.base import MeasureRequest, Scores, mean_of_steps
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.od.partition_sums import PartitionTotals, over_all_partitions, sums_of_partition
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress
from crowdveil.report.measurement import Measurement
from crowdveil.run.release_partitions import rest_of
from crowdveil.run.spark.aligned_partitions import AlignedReader, align_partitions
from crowdveil.run.spark.release_verification import open_spark_release
from crowdveil.solve.od.assignment import check_steps

_PICKLED = pa.schema([("content", pa.binary())])


def _pickled(value: Any) -> pa.Table:
    return pa.table({"content": [pickle.dumps(value)]}, schema=_PICKLED)


def totals_of_partition(read: AlignedReader, partition: pa.Table) -> pa.Table:
    """Return the sums that must be known of all partitions before any can be measured."""
    return _pickled(PartitionTotals.of(compared(*read(partition))))


def measure_partition(
    measures: Sequence[MeasureRequest], read: AlignedReader, totals: PartitionTotals, partition: pa.Table
) -> pa.Table:
    """Return the time steps of a partition, and for each measure its values by step and its sums for all steps.

    `totals` are those of all partitions.
    """
    both = compared(*read(partition))
    t = both.original.t if both.listed is None else both.original.t[both.listed]
    return _pickled((t, [(a.measure.of(both, a.params), sums_of_partition(a, both, totals)) for a in measures]))


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

        def gathered(function: Any) -> list[Any]:
            made = engine.map_groups(both.packed_rows, "partition_id", function, _PICKLED, both.partitions)
            return [pickle.loads(content) for content in engine.gather(made, progress)["content"].to_pylist()]

        totals = sum(gathered(partial(totals_of_partition, both.read)), PartitionTotals())
        partitions = gathered(partial(measure_partition, wanted, both.read, totals))
        frame = both.trips.frame
        nothing = compared(frame, rest_of(both.read.release, both.units))
    t = np.concatenate([t for t, _ in partitions])
    order = np.argsort(t)
    found = []
    for number, asked in enumerate(wanted):
        by_step = np.concatenate([measured[number][0] for _, measured in partitions])[order]
        pooled = over_all_partitions(asked, nothing, totals, [measured[number][1] for _, measured in partitions])[0]
        found.append(Scores(asked, by_step, mean_of_steps(by_step), pooled))
    steps_alone = replace(frame, t=t[order], offsets=np.zeros(len(t) + 1, np.int64))
    return Measurement(steps_alone, tuple(found), totals.overlapping)

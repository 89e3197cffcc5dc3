"""A partition of whole time steps on an executor: from packed rows to the rows of a release, its areas and a summary."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from crowdveil.engine.packing import packed
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.flow_partitions import PartitionSolver
from crowdveil.run.merge_partitions import AREA, ROW, SUMMARY, result_table
from crowdveil.run.spark.trip_rows import FlowPartitionReader

PACKED_RESULTS = pa.schema(
    [("kind", pa.string()), ("packed", pa.binary()), ("area", pa.string()), ("tiles", pa.binary()),
     ("drawn", pa.bool_()), (SUMMARY, pa.string())]
)  # fmt: skip
"""Columns of results, by kind: packed rows of the release, areas (name, tiles, whether to draw them), and a summary."""
PACK_ROWS = 200_000
"""Rows of a release that are packed together at most: Java holds each pack in one piece."""


@dataclass(frozen=True)
class FlowPartition:
    """Reads and solves a partition; sent to executors."""

    solver: PartitionSolver
    reader: FlowPartitionReader

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return rows, areas and the summary of the partition."""
        flows = self.reader(partition)
        if flows is None:
            return self._summary({"cost": asdict(FlowCost(units=self.reader.weight(partition)))})
        solved = self.solver(flows)
        packs = [packed(batch) for batch in solved.rows.combine_chunks().to_batches(max_chunksize=PACK_ROWS)]
        return pa.concat_tables(
            [
                result_table(PACKED_RESULTS, ROW, len(packs), {"packed": pa.array(packs, pa.binary())}),
                result_table(PACKED_RESULTS, AREA, len(solved.areas["area"]), solved.areas),
                self._summary(solved.summary),
            ]
        )

    def _summary(self, summary: dict[str, Any]) -> pa.Table:
        return result_table(PACKED_RESULTS, SUMMARY, 1, {SUMMARY: pa.array([json.dumps(summary)])})

"""A partition of whole time steps on an executor: from packed rows to the rows of a release, its areas and a summary."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from crowdveil import engine
from crowdveil.engine import LocalEngine
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.flow_partitions import PartitionSolver
from crowdveil.run.merge_partitions import AREA, ROW, SUMMARY, result_table
from crowdveil.run.spark.trip_rows import FlowPartitionReader


def result_schema(rows: pa.Schema) -> pa.Schema:
    """Return the columns of results: rows of the release, areas (name, tiles, whether to draw them), a summary; by kind."""
    more = [("area", pa.string()), ("tiles", pa.binary()), ("drawn", pa.bool_()), (SUMMARY, pa.string())]
    return pa.schema([("kind", pa.string()), *rows, *more])


@dataclass(frozen=True)
class FlowPartition:
    """Reads and solves a partition; sent to executors."""

    solver: PartitionSolver
    reader: FlowPartitionReader

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of results."""
        return result_schema(self.solver.rows)

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return rows, areas and the summary of the partition."""
        # One task has one processor: the cluster decides how many run at a time.
        with engine.use(LocalEngine(1)):
            flows = self.reader(partition)
            if flows is None:
                return self._summary({"cost": asdict(FlowCost(units=self.reader.weight(partition)))})
            solved = self.solver(flows)
        rows = {name: solved.rows[name] for name in solved.rows.column_names}
        return pa.concat_tables(
            [
                result_table(self.schema, ROW, len(solved.rows), rows),
                result_table(self.schema, AREA, len(solved.areas["area"]), solved.areas),
                self._summary(solved.summary),
            ]
        )

    def _summary(self, summary: dict[str, Any]) -> pa.Table:
        return result_table(self.schema, SUMMARY, 1, {SUMMARY: pa.array([json.dumps(summary)])})

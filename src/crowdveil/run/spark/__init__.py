"""Runs on Spark: data stays on the cluster; it is read, solved, written and verified in partitions, and figures are gathered.

    rows ──▶ packed rows ──▶ partitions ──▶ method, table, guarantees, attacks ──▶ rows of the release, and a summary
    spark_trips.py           flow_partitions.py                                 merge_partitions.py      flow_backend.py

Rows travel packed (`crowdveil.engine.packing`): all rows of a chunk that have one key, here a time step, are one value of bytes,
which only Python opens. A release and its original are aligned in the same way: aligned_partitions.py and release_measures.py.

A partition is a set of whole time steps. Each is solved by the code that solves all of them on one machine: the same reader of
rows, `to_flows`, `Method.run`, the tables of a release, the checkers. Nothing that is chosen may depend on the partition: what is
chosen from all of the data (zones, visited tiles, the list of steps) is gathered before and sent to every partition. Where that
cannot be done, `Method.partitioning` returns the reason.

Trajectories follow the same path: spark_points.py, trajectory_partitions.py, trajectory_backend.py, trajectory_verification.py. A
partition is a set of trajectories that are solved together; they are planned in one task from their outlines (`PartitionPlan`).
Points and trajectories keep the order of the rows in the input, since a run on one machine uses it where times or distances are
equal. New numbers are given once all partitions are solved, and files are sorted by them.

A new kind of partition
-----------------------
1. A reader, as `TripReader`: a function from Arrow batches to packed rows with the key that partitions are made of, and notes as
   rows of their own. It is sent to executors whole, so it holds plain values and frozen models alone.
2. A partition, as `FlowPartition`: a function from the table of a partition to a table in the schema `PACKED_RESULTS`: packed
   rows of the release (kind "row"), its areas ("area") and a summary as one line of JSON ("summary").
3. Totals, as `FlowTotals`: the summaries of all partitions merged to findings, costs, facts and tables.
4. A backend, as `TrajectorySparkBackend`, and `partitioning=INDEPENDENT` in the records of methods that allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdveil.run.backend import Backend
    from crowdveil.run.stages import RunSpec


@contextmanager
def spark_backend(spec: RunSpec, session: Any, stage: Callable[[str], None]) -> Iterator[Backend]:
    """Start Spark, or use a session of the user; yield the backend for the method's kind of data."""
    from crowdveil.engine.spark import SparkTable, spark_engine
    from crowdveil.model.flows import Flows
    from crowdveil.run.spark.backend import check_supported_on_spark
    from crowdveil.run.spark.flow_backend import FlowSparkBackend
    from crowdveil.run.spark.trajectory_backend import TrajectorySparkBackend

    spec = replace(spec, data=SparkTable.of(spec.data, spec.options.table))
    check_supported_on_spark(spec)
    stage("starting Spark")
    kind = FlowSparkBackend if spec.method.takes is Flows else TrajectorySparkBackend
    with spark_engine(session, spec.options.master) as engine, kind(spec, engine) as backend:
        yield backend

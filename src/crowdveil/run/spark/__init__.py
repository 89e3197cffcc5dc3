"""Runs on Spark: data stays on the cluster; it is grouped to partitions there, and only counts and small tables are gathered.

Flows (`flows.py`): each row gets its time step, Spark groups the rows of some time steps, and an executor reads, solves, writes,
verifies and attacks them with the code of a run on one machine (`crowdveil.run.flow_partitions`). What is chosen from all of the
data (columns, zones, the list of steps) is found before and sent to every partition. Where that cannot be done,
`Method.partitioning` returns the reason.

Trajectories: spark_points.py, trajectory_partitions.py, trajectory_backend.py, trajectory_verification.py. A partition is a set
of trajectories that are solved together; they are planned in one task from their outlines (`PartitionPlan`). New numbers are
given once all partitions are solved, and files are sorted by them.
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
    from crowdveil.run.spark.flows import SparkFlows, check_supported
    from crowdveil.run.spark.trajectory_backend import TrajectorySparkBackend

    spec = replace(spec, data=SparkTable.of(spec.data, spec.options.table))
    (check_supported if spec.method.takes is Flows else check_supported_on_spark)(spec)
    stage("starting Spark")
    kind = SparkFlows if spec.method.takes is Flows else TrajectorySparkBackend
    with spark_engine(session, spec.options.master) as engine, kind(spec, engine) as backend:
        yield backend

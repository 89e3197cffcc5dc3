"""Runs on Spark: data stays on the cluster; it is grouped to partitions there, and only counts and small tables are gathered.

Spark groups the rows of each partition, and an executor solves, writes, reads back, verifies and attacks them with the code of a
run on one machine (`crowdveil.run.flow_partitions`, `crowdveil.run.trajectory_partitions`). What is chosen from all of the data
(columns, zones, the list of steps, the numbers of trajectories) is found before and sent to every partition. Where that cannot be
done, `Method.partitioning` returns the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdveil.run.stages import Backend, RunSpec


@contextmanager
def spark_backend(spec: RunSpec, session: Any, stage: Callable[[str], None]) -> Iterator[Backend]:
    """Start Spark, or use a session of the user; yield the backend for the method's kind of data."""
    from crowdveil.engine.spark import SparkTable, spark_engine
    from crowdveil.model.flows import Flows
    from crowdveil.run.spark.flows import SparkFlows
    from crowdveil.run.spark.sources import check_supported
    from crowdveil.run.spark.trajectories import SparkTrajectories

    spec = replace(spec, data=SparkTable.of(spec.data, spec.options.table))
    check_supported(spec)
    stage("starting Spark")
    kind = SparkFlows if spec.method.takes is Flows else SparkTrajectories
    with spark_engine(session, spec.options.master) as engine, kind(spec, engine) as backend:
        yield backend

"""One partition of the map for all time steps on a cluster: flows and costs are added up in partitions, and each class is solved.

    packed rows ──▶ flows of all steps together ──▶ candidates ──▶ sums over steps ──▶ boxes of each class ──▶ release
                    sum_flows, by partition         make_candidates  sum_candidates         solve_class             FlowPartition

A class of time steps, all of them by default, has one partition of the map. Candidates are boxes that k people are behind; they
and the boxes of the solution come to the driver, which sends them to all executors. Where boxes are cut again, the flows of all
time steps of a class are needed together: one task solves the class as one machine does (solve_whole_class).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.packing import packed, unpacked
from crowdveil.engine.spark import Frame, GroupFunction, SparkEngine
from crowdveil.io.values import encode_ids
from crowdveil.methods.base import SharedPartition
from crowdveil.model.arrays import Ints, refreeze
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import step_classes
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.registry import find_method
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution, check_person_ids
from crowdveil.solve.od.summed_steps import sum_steps

_PAIRS = pa.schema([("o", pa.int32()), ("d", pa.int32()), ("volume", pa.int64()), ("people", pa.int64())])
FLOW_SUMS = pa.schema([("step_class", pa.int64()), ("flows", pa.binary()), ("people", pa.binary())])
"""Columns of `SharedStage.sum_flows`."""
BY_CLASS = pa.schema([("step_class", pa.int64()), ("content", pa.binary())])
"""Columns of all other results."""


@dataclass(frozen=True)
class SharedStage:
    """The functions of all stages, from a partition or the results of a class to a table; sent to executors.

    Attributes
    ----------
    method, params
        What is to run.
    reader
        Reader of a partition's flows.
    candidates
        The candidates of each class, as bytes, once they are known.
    """

    method: str
    params: Params
    reader: FlowPartitionReader
    candidates: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def shared(self) -> SharedPartition:
        """Return how the method finds one partition of the map."""
        found = find_method(self.method).shared(self.params)
        if found is None:
            raise TypeError(f"{self.method} solves each time step on its own")
        return found

    def by_class(self, flows: Flows) -> list[tuple[int, Flows]]:
        """Return the flows of each class of time steps."""
        classes = step_classes(flows.t, flows.tz, self.shared.by)
        return [(number, flows.at_steps(np.flatnonzero(classes == number))) for number in np.unique(classes).tolist()]

    @property
    def people(self) -> pa.Schema | None:
        """Return the columns of the people of flows; None where they are not known."""
        rows = self.reader.rows
        return pa.schema([rows.field(name) for name in ("o", "d", "person")]) if "person" in rows.names else None

    def sum_flows(self, partition: pa.Table) -> pa.Table:
        """Add up the flows of a partition over its time steps: by class the trips, and the people, of each pair of zones."""
        flows = self.reader(partition)
        if flows is None:
            return FLOW_SUMS.empty_table()
        check_person_ids(flows)
        made = []
        for number, own in self.by_class(flows):
            summed = sum_steps(own)
            pairs = [summed.origin, summed.destination, summed.volume, summed.people]
            made.append((number, packed(pa.record_batch(pairs, schema=_PAIRS)), self._people_behind(partition, own)))
        return _table(made, FLOW_SUMS)

    def _people_behind(self, partition: pa.Table, flows: Flows) -> bytes | None:
        """Return who is behind each pair of zones, with the ids of the data: partitions number people differently."""
        reader, schema = self.reader, self.people
        if flows.person_ids is None or schema is None:
            return None
        rows = unpacked(partition["packed"], reader.rows)
        start = reader.steps.starts(rows["step"].to_numpy()) if reader.steps else np.zeros(len(rows), np.int64)
        zones = len(flows.zones)
        step = np.minimum(np.searchsorted(flows.t, start), flows.steps - 1)
        pair, of_flow = (
            o.astype(np.int64) * zones + d
            for o, d in ((rows["o"].to_numpy(), rows["d"].to_numpy()), (flows.origin, flows.destination))
        )
        # Flows whose weight is nothing, and time steps of other classes, are not among the flows.
        kept = (flows.t[step] == start) & np.isin(step * zones**2 + pair, flows.step * zones**2 + of_flow)
        people = rows.filter(pa.array(kept)).select(schema.names).group_by(schema.names).aggregate([])
        batches = people.select(schema.names).cast(schema).combine_chunks().to_batches()
        return packed(batches[0]) if batches else None

    def make_candidates(self, sums: pa.Table) -> pa.Table:
        """Return the candidates of a class from the flows of all of its time steps together; no row where there are none."""
        begun = self.shared.begin(self._summed(sums), self.params)
        return _table([] if begun is None else [(_class_of(sums), pickle.dumps(begun))], BY_CLASS)

    def _summed(self, sums: pa.Table) -> Flows:
        frame, names = self.reader.frame, ("volume", "people")
        pairs = unpacked(sums["flows"], _PAIRS).group_by(["o", "d"]).aggregate([(name, "sum") for name in names])
        o, d, volume, people = (pairs[name].to_numpy() for name in ("o", "d", "volume_sum", "people_sum"))
        key = o.astype(np.int64) * len(frame.zones) + d
        order = np.argsort(key)
        offsets, ids = None, None
        if self.people is not None:
            offsets, ids = self._people_of(sums, key[order])
            people = np.diff(offsets)[np.argsort(order)]
        return replace(
            frame, t=np.zeros(1, np.int64), offsets=np.array([0, len(o)]), origin=o[order], destination=d[order],
            volume=volume[order], people=people[order], person_offsets=offsets, person_ids=ids,
            weight=None if frame.weight is None else np.zeros(len(o), np.int64),
        )  # fmt: skip

    def _people_of(self, sums: pa.Table, pairs: Ints) -> tuple[Ints, Ints]:
        """Return the distinct people of each pair of zones, as numbers."""
        rows = unpacked(sums["people"].drop_null(), self.people)
        rows = rows.group_by(rows.column_names).aggregate([])
        number = encode_ids(rows["person"])[0].astype(np.int64)
        pair = rows["o"].to_numpy().astype(np.int64) * len(self.reader.frame.zones) + rows["d"].to_numpy()
        order = np.lexsort((number, pair))
        return np.append(np.searchsorted(pair[order], pairs), len(pair)), number[order]

    def sum_candidates(self, partition: pa.Table) -> pa.Table:
        """Add up over the time steps of a partition what the candidates of each class publish and cost."""
        flows, made = self.reader(partition), []
        for number, own in [] if flows is None else self.by_class(flows):
            if number in self.candidates:
                begun = refreeze(pickle.loads(self.candidates[number]))
                made.append((number, pickle.dumps([*self.shared.add_up(own, begun, self.params)])))
        return _table(made, BY_CLASS)

    def solve_class(self, sums: pa.Table) -> pa.Table:
        """Find the boxes of a class, with diagnostics, from the sums of all partitions."""
        number = _class_of(sums)
        parts = [pickle.loads(content) for content in sums["content"].to_pylist()]
        added = [np.sum(columns, axis=0) for columns in zip(*parts, strict=True)]
        begun = refreeze(pickle.loads(self.candidates[number]))
        solved = self.shared.find_boxes(self.reader.frame, begun, added, self.params)
        return _table([(number, pickle.dumps([*solved]))], BY_CLASS)

    def solve_whole_class(self, rows: pa.Table) -> pa.Table:
        """Find the boxes of a class, with diagnostics, from the packed rows of its time steps; no row where there are none."""
        flows, made = self.reader(rows), []
        if flows is not None:
            check_person_ids(flows)
        for number, own in [] if flows is None else self.by_class(flows):
            begun = self.shared.begin(sum_steps(own), self.params)
            if begun is not None:
                sums = self.shared.add_up(own, begun, self.params)
                made.append((number, pickle.dumps([*self.shared.find_boxes(own, begun, sums, self.params)])))
        return _table(made, BY_CLASS)


def find_boxes_of_whole_classes(
    engine: SparkEngine, stage: SharedStage, rows_by_class: Frame, classes: Ints, progress: Progress
) -> dict[int, Sequence[Any]]:
    """Find the boxes of each class of time steps in one task, from packed rows whose partition_id is their class."""
    every = np.unique(classes)
    found = engine.map_groups(rows_by_class, "partition_id", stage.solve_whole_class, BY_CLASS, len(every))
    return boxes_by_class(_by_class(engine.gather(found, progress)), every)


def find_shared_boxes(
    engine: SparkEngine, stage: SharedStage, packed_rows: Callable[[], Frame], partitions: int, classes: Ints,
    progress: Progress,
) -> dict[int, Sequence[Any]]:  # fmt: skip
    """Find the boxes of each class of time steps; a class without any has empty ones.

    `packed_rows` returns the packed rows of the trips with their partition_id, of which there are `partitions`.
    """

    every = np.unique(classes)

    def by_class(rows: Frame, function: GroupFunction) -> dict[int, bytes]:
        return _by_class(engine.gather(engine.map_groups(rows, "step_class", function, BY_CLASS, len(every)), progress))

    sums = engine.map_groups(packed_rows(), "partition_id", stage.sum_flows, FLOW_SUMS, partitions)
    stage = replace(stage, candidates=by_class(sums, stage.make_candidates))
    of_steps = engine.map_groups(packed_rows(), "partition_id", stage.sum_candidates, BY_CLASS, partitions)
    return boxes_by_class(by_class(of_steps, stage.solve_class), every)


def boxes_by_class(solved: Mapping[int, bytes], classes: Ints) -> dict[int, Sequence[Any]]:
    """Return the boxes of every class, from the bytes of those that have any."""
    return {number: pickle.loads(solved[number]) if number in solved else ALL_SUPPRESSED for number in classes.tolist()}


def facts_by_class(shared: Mapping[int, Sequence[Any]]) -> list[Sequence[float]]:
    """Return the diagnostics of each class of time steps that has any."""
    found = [StepSolution(*boxes).facts.tolist() for _, boxes in sorted(shared.items())]
    return [facts for facts in found if facts]


def _by_class(results: pa.Table) -> dict[int, bytes]:
    return dict(zip(results["step_class"].to_pylist(), results["content"].to_pylist(), strict=True))


def _class_of(rows: pa.Table) -> int:
    number: int = rows["step_class"][0].as_py()
    return number


def _table(rows: list[Any], schema: pa.Schema) -> pa.Table:
    return pa.table(list(zip(*rows, strict=True)) or [()] * len(schema), schema=schema)

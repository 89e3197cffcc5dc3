"""One partition of the map for all time steps on a cluster: flows and costs are added up in partitions, and each class is solved.

    packed rows ──▶ flows of all steps together ──▶ candidates ──▶ sums over steps ──▶ boxes of each class ──▶ release
                    FlowSums, by partition          Candidates     CandidateSums            SolvedClass             FlowPartition

A class of time steps, all of them by default, has one partition of the map. Candidates are boxes that k people are behind; they
and the boxes of the solution come to the driver, which sends them to all executors. Where boxes are cut again, the flows of all
time steps of a class are needed together: one task solves the class as one machine does (WholeClass).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil import engine as engines
from crowdveil.engine import LocalEngine
from crowdveil.engine.packing import packed, unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.io.step_classes import step_classes
from crowdveil.io.values import encode_ids
from crowdveil.method import SharedPartition
from crowdveil.model.arrays import Ints, refreeze
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.registry import find_method
from crowdveil.run.spark.trip_rows import FlowPartitionReader
from crowdveil.solve.od.step_solver import ALL_SUPPRESSED, StepSolution, check_person_ids
from crowdveil.solve.od.summed_steps import sum_steps

_PAIRS = pa.schema([("o", pa.int32()), ("d", pa.int32()), ("volume", pa.int64()), ("people", pa.int64())])
_RESULT = pa.schema([("step_class", pa.int64()), ("content", pa.binary())])


@dataclass(frozen=True)
class SharedStage:
    """What the functions of all stages have in common; sent to executors.

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


@dataclass(frozen=True)
class FlowSums:
    """Adds up the flows of a partition over its time steps: by class the trips, and the people, of each pair of zones."""

    stage: SharedStage
    schema = pa.schema([("step_class", pa.int64()), ("flows", pa.binary()), ("people", pa.binary())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return a row for each class."""
        flows = self.stage.reader(partition)
        if flows is None:
            return self.schema.empty_table()
        check_person_ids(flows)
        made = []
        for number, own in self.stage.by_class(flows):
            summed = sum_steps(own)
            columns = (summed.origin, summed.destination, summed.volume, summed.people)
            pairs = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _PAIRS, strict=True)], schema=_PAIRS)
            made.append((number, packed(pairs), self._people(partition, own)))
        return _table(made, self.schema)

    def _people(self, partition: pa.Table, flows: Flows) -> bytes | None:
        """Return who is behind each pair of zones, with the ids of the data: partitions number people differently."""
        reader, schema = self.stage.reader, self.stage.people
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


@dataclass(frozen=True)
class Candidates:
    """Makes the candidates of a class from the flows of all of its time steps together."""

    stage: SharedStage
    schema = _RESULT

    def __call__(self, sums: pa.Table) -> pa.Table:
        """Return the candidates; no row where nothing can be published."""
        with engines.use(LocalEngine(1)):
            begun = self.stage.shared.begin(self._summed(sums), self.stage.params)
        return _table([] if begun is None else [(_class_of(sums), pickle.dumps(begun))], self.schema)

    def _summed(self, sums: pa.Table) -> Flows:
        frame, names = self.stage.reader.frame, ("volume", "people")
        pairs = unpacked(sums["flows"], _PAIRS).group_by(["o", "d"]).aggregate([(name, "sum") for name in names])
        o, d, volume, people = (pairs[name].to_numpy() for name in ("o", "d", "volume_sum", "people_sum"))
        key = o.astype(np.int64) * len(frame.zones) + d
        order = np.argsort(key)
        offsets, ids = None, None
        if self.stage.people is not None:
            offsets, ids = self._people(sums, key[order])
            people = np.diff(offsets)[np.argsort(order)]
        return replace(
            frame, t=np.zeros(1, np.int64), offsets=np.array([0, len(o)]), origin=o[order], destination=d[order],
            volume=volume[order], people=people[order], person_offsets=offsets, person_ids=ids,
            weight=None if frame.weight is None else np.zeros(len(o), np.int64),
        )  # fmt: skip

    def _people(self, sums: pa.Table, pairs: Ints) -> tuple[Ints, Ints]:
        """Return the distinct people of each pair of zones, as numbers."""
        rows = unpacked(sums["people"].drop_null(), self.stage.people)
        rows = rows.group_by(rows.column_names).aggregate([])
        number = encode_ids(rows["person"])[0].astype(np.int64)
        pair = rows["o"].to_numpy().astype(np.int64) * len(self.stage.reader.frame.zones) + rows["d"].to_numpy()
        order = np.lexsort((number, pair))
        return np.append(np.searchsorted(pair[order], pairs), len(pair)), number[order]


@dataclass(frozen=True)
class CandidateSums:
    """Adds up over the time steps of a partition what its class's candidates publish and cost."""

    stage: SharedStage
    schema = _RESULT

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the sums of each class."""
        stage, made = self.stage, []
        with engines.use(LocalEngine(1)):
            flows = stage.reader(partition)
            for number, own in [] if flows is None else stage.by_class(flows):
                if number in stage.candidates:
                    begun = refreeze(pickle.loads(stage.candidates[number]))
                    made.append((number, pickle.dumps([*stage.shared.add_up(own, begun, stage.params)])))
        return _table(made, self.schema)


@dataclass(frozen=True)
class SolvedClass:
    """Finds the boxes of a class from the sums of all partitions."""

    stage: SharedStage
    schema = _RESULT

    def __call__(self, sums: pa.Table) -> pa.Table:
        """Return the boxes, with diagnostics."""
        stage, number = self.stage, _class_of(sums)
        parts = [pickle.loads(content) for content in sums["content"].to_pylist()]
        added = [np.sum(columns, axis=0) for columns in zip(*parts, strict=True)]
        with engines.use(LocalEngine(1)):
            begun = refreeze(pickle.loads(stage.candidates[number]))
            solved = stage.shared.find_boxes(stage.reader.frame, begun, added, stage.params)
        return _table([(number, pickle.dumps([*solved]))], self.schema)


@dataclass(frozen=True)
class WholeClass:
    """Finds the boxes of a class from the packed rows of all of its time steps."""

    stage: SharedStage
    schema = _RESULT

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the boxes, with diagnostics; no row where nothing can be published."""
        stage, made = self.stage, []
        with engines.use(LocalEngine(1)):
            flows = stage.reader(rows)
            if flows is not None:
                check_person_ids(flows)
            for number, own in [] if flows is None else stage.by_class(flows):
                begun = stage.shared.begin(sum_steps(own), stage.params)
                if begun is not None:
                    sums = stage.shared.add_up(own, begun, stage.params)
                    made.append((number, pickle.dumps([*stage.shared.find_boxes(own, begun, sums, stage.params)])))
        return _table(made, self.schema)


def find_boxes_of_whole_classes(
    engine: SparkEngine, stage: SharedStage, rows_by_class: Frame, classes: Ints, progress: Progress
) -> dict[int, Sequence[Any]]:
    """Find the boxes of each class of time steps in one task, from packed rows whose partition_id is their class."""
    every, function = np.unique(classes), WholeClass(stage)
    found = engine.map_groups(rows_by_class, "partition_id", function, function.schema, len(every))
    return boxes_by_class(_by_class(engine.gather(found, progress)), every)


def find_shared_boxes(
    engine: SparkEngine, stage: SharedStage, packed_rows: Callable[[], Frame], partitions: int, classes: Ints,
    progress: Progress,
) -> dict[int, Sequence[Any]]:  # fmt: skip
    """Find the boxes of each class of time steps; a class without any has empty ones.

    `packed_rows` returns the packed rows of the trips with their partition_id, of which there are `partitions`.
    """

    def mapped(rows: Frame, key: str, function: Any, groups: int) -> Frame:
        return engine.map_groups(rows, key, function, function.schema, groups)

    def gathered(rows: Frame) -> dict[int, bytes]:
        return _by_class(engine.gather(rows, progress))

    every = np.unique(classes)
    sums = mapped(packed_rows(), "partition_id", FlowSums(stage), partitions)
    stage = replace(stage, candidates=gathered(mapped(sums, "step_class", Candidates(stage), len(every))))
    of_steps = mapped(packed_rows(), "partition_id", CandidateSums(stage), partitions)
    solved = gathered(mapped(of_steps, "step_class", SolvedClass(stage), len(every)))
    return boxes_by_class(solved, every)


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
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

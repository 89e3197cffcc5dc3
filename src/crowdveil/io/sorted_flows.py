"""Read flows whose rows are already sorted by step, origin and destination without repeats: no grouping is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.io.od_rows import OdReader
from crowdveil.model.arrays import Indices, Ints
from crowdveil.model.flows import Flows, FlowUnit
from crowdveil.model.time_axis import TimeAxis
from crowdveil.model.zones import Zones


def read_in_order(reader: OdReader, zones: Zones, steps: TimeAxis | None) -> Flows | None:
    """Return flows from sorted rows; None at the first row out of order, after which the caller groups from the start.

    Unusable rows are counted in the reader's `problems`.
    """
    rows = _Rows(zones, steps, reader.columns.people is not None, reader.source.rows or 0)
    if not all(rows.take(batch) for batch in reader.batches()) or rows.count == 0:
        return None
    return rows.flows()


def flows_in_order(
    zones: Zones,
    steps: TimeAxis | None,
    numbers: Ints,
    offsets: Ints,
    rows: tuple[Indices, Indices, Ints, Ints],
    counts: FlowUnit,
    members: tuple[Ints | None, Ints | None] = (None, None),
    weight: Ints | None = None,
) -> Flows:
    """Return `Flows` from sorted rows: step numbers, the first row of each step, and the four columns."""
    t = steps.starts(numbers) if steps else np.zeros(1, np.int64)
    seconds, tz = (steps.step_s, steps.tz) if steps else (None, "UTC")
    return Flows(zones, t, offsets, *rows, counts, seconds, tz, *members, weight=weight)


@dataclass
class _Rows:
    """Rows read so far. Only the first row of each step is kept, since steps have many rows."""

    zones: Zones
    steps: TimeAxis | None
    with_people: bool
    expected: int
    count: int = 0
    _last: tuple[int, int] = (-1, -1)
    _numbers: list[Ints] = field(default_factory=list)
    _starts: list[Ints] = field(default_factory=list)
    _columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def take(self, batch: pa.RecordBatch) -> bool:
        """Append a chunk; return False if it is out of order or has people below 1, which grouping handles."""
        if pc.min(batch["volume"]).as_py() == 0:  # a row of volume 0 is no flow
            batch = batch.filter(pc.greater(batch["volume"], 0))
        if batch.num_rows == 0:
            return True
        columns = {name: batch[name].to_numpy() for name in ("o", "d", "volume", "people")[: 3 + self.with_people]}
        numbers, starts = self._steps_of(batch)
        pair = self._pairs(columns["o"], columns["d"])
        if (self.with_people and columns["people"].min() < 1) or not self._goes_on(numbers, starts, pair):
            return False
        self._last = int(numbers[-1]), int(pair[-1])
        self._numbers.append(numbers)
        self._starts.append(starts + self.count)
        for name, column in columns.items():
            self._append(name, column)
        self.count += batch.num_rows
        return True

    def _append(self, name: str, values: npt.NDArray[Any]) -> None:
        """Append values to a column, allocated for all rows at once if their number is known."""
        need = self.count + len(values)
        column = self._columns.get(name)
        if column is None or len(column) < need:
            larger = np.empty(max(self.expected, need, 2 * self.count), values.dtype)
            if column is not None:
                larger[: self.count] = column[: self.count]
            self._columns[name] = column = larger
        column[self.count : need] = values

    def _steps_of(self, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        """Return the steps of a chunk in row order, and the first row of each."""
        if self.steps is None:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
        wall = batch["wall"].to_numpy()
        starts = np.append(0, np.flatnonzero(wall[1:] != wall[:-1]) + 1)
        numbers = self.steps.number(wall[starts])
        begins = np.append(True, numbers[1:] != numbers[:-1])
        return numbers[begins], starts[begins]

    def _pairs(self, origin: Indices, destination: Indices) -> npt.NDArray[Any]:
        n = len(self.zones)
        wide: npt.NDArray[Any] = origin if n * n < 2**31 else origin.astype(np.int64)
        pairs: npt.NDArray[Any] = wide * n + destination
        return pairs

    def _goes_on(self, numbers: Ints, starts: Ints, pair: npt.NDArray[Any]) -> bool:
        """Return whether steps ascend, and pairs inside each step."""
        falls = pair[1:] <= pair[:-1]
        falls[starts[1:] - 1] = False  # pairs restart with a new step
        first = int(numbers[0]), int(pair[0])
        return first > self._last and bool(np.all(numbers[1:] > numbers[:-1])) and not falls.any()

    def flows(self) -> Flows:
        """Return `Flows` of all rows."""
        numbers, starts = np.concatenate(self._numbers), np.concatenate(self._starts)
        begins = np.append(True, numbers[1:] != numbers[:-1])  # a step may span chunks
        columns = {name: column[: self.count] for name, column in self._columns.items()}
        o, d, volume = (columns[name] for name in ("o", "d", "volume"))
        rows, offsets = (o, d, volume, columns.get("people", volume)), np.append(starts[begins], self.count)
        counts: FlowUnit = "people" if self.with_people else "trips"
        return flows_in_order(self.zones, self.steps, numbers[begins], offsets, rows, counts)

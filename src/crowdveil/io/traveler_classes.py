"""Read the classes of travelers from a column of the trips: how many trips of each class each flow has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, counted
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.original_rows import flow_of_rows, reader_over
from crowdveil.io.source import Source
from crowdveil.io.values import encode_ids
from crowdveil.model.arrays import Ints, group_sums
from crowdveil.model.flows import Flows

NOT_GIVEN = ""
"""The class of trips whose column is empty."""


@dataclass(frozen=True, eq=False)
class TravelerClasses:
    """Trips of flows by class of traveler.

    Attributes
    ----------
    names
        The classes: in the given order, otherwise sorted.
    ordered
        Whether neighbors in `names` are alike, so that the distance of two classes is the number of steps between them.
    flow, number, trips
        A flow, a class, and the trips of that class in the flow.
    """

    names: tuple[str, ...]
    ordered: bool
    flow: Ints
    number: Ints
    trips: Ints


@dataclass(frozen=True)
class _ClassColumn:
    """Adds the class of each row."""

    columns: Mapping[str, str]

    def __call__(self, rows: Any, prepared: Any, instants: bool | None) -> dict[str, Any]:
        number, labels, missing = encode_ids(rows[self.columns["class"]], self.columns["class"])
        named = np.array([*map(str, labels), NOT_GIVEN], dtype=object)
        return {"traveler_class": named[number if missing is None else np.where(missing, -1, number)].tolist()}


def read_classes(
    data: Any, options: Mapping[str, Any], flows: Flows, column: str, order: Sequence[str] | None
) -> TravelerClasses:
    """Read the classes of trips from `column`; `order` lists all classes if neighbors are alike."""
    if isinstance(data, Flows):
        raise InputError(
            Option("traveler_class"), "classes are in a column of trips or flows; give a file or a table of them."
        )

    def content(source: Source, found: OdColumns) -> _ClassColumn:
        if column not in source.columns:
            raise InputError(
                Option("traveler_class"), f"{source.name} has no column {column}; name one of its columns."
            )
        return _ClassColumn({"class": column})

    reader = reader_over(flows, data, options, content)
    rows = pa.Table.from_batches(list(reader.batches()))
    flow = flow_of_rows(flows, rows, options.get("fold"))
    given = np.array(rows["traveler_class"].to_pylist(), dtype=object)
    names = tuple(sorted(set(given.tolist()))) if order is None else tuple(order)
    if len(set(names)) != len(names):
        raise InputError(Option("class_order"), "a class is listed twice; list each once.")
    place = {name: i for i, name in enumerate(names)}
    number = np.array([place.get(name, -1) for name in given.tolist()], np.int64)
    unknown = int(np.count_nonzero(number < 0))
    if unknown:
        raise InputError(
            Option("class_order"),
            f"the class of {counted(unknown, 'row')} is not in it; list all classes, or leave it out.",
        )
    volume = rows["volume"].to_numpy() if reader.columns.is_flows else np.ones(len(rows), np.int64)
    inside = flow >= 0
    key, inverse = np.unique(flow[inside] * max(len(names), 1) + number[inside], return_inverse=True)
    trips = group_sums(inverse, volume[inside], len(key))
    width = max(len(names), 1)
    return TravelerClasses(names, order is not None, key // width, key % width, trips)

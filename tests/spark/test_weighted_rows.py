"""Weights on a cluster: rows in any pieces give the flows that one machine gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from crowdveil.io.flows import read_flows
from crowdveil.io.od_columns import OdColumns
from crowdveil.io.source import open_source
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.run.spark.trip_rows import FlowPartitionReader, TripReader


def test_weights_in_pieces_are_those_of_one_machine() -> None:
    rng = np.random.default_rng(2)
    ids = [f"z{i}" for i in range(5)]
    n = 300
    table = pa.table({
        "origin": [ids[i] for i in rng.integers(0, 5, n)], "destination": [ids[i] for i in rng.integers(0, 5, n)],
        "user": [f"p{i}" for i in rng.integers(0, 40, n)], "w": rng.choice([0.01, 0.07, 1.3, 2.125], n),
    })  # fmt: skip
    zones = Zones.from_ids(ids)
    wanted = read_flows(table, zones=zones, weight="w", user="user", members=True)
    columns = OdColumns(origin="origin", destination="destination", user="user", weight="w")
    reader = TripReader(open_source(table), columns, zones, "UTC", None, None)
    pieces = [batch for part in np.array_split(rng.permutation(n), 7) for batch in table.take(part).to_batches()]
    packs = pa.Table.from_batches([made for piece in pieces for made in reader(iter([piece]))])
    none = np.zeros(0, np.int64)
    frame = Flows(zones, none, np.zeros(1, np.int64), none, none, none, none, "people")
    found = FlowPartitionReader(reader.schema, None, frame, True)(packs)
    assert found is not None and found.weight is not None and wanted.weight is not None
    for name in ("origin", "destination", "volume", "people", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))

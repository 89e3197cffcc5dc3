"""Read the rows of an original again, over the zones and time steps of flows that were read from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.cropping import parse_crop
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_columns import NAMED, OdColumns, by_role, find_od_columns
from crowdveil.io.od_rows import OdReader, RowHashes, ZoneNames
from crowdveil.io.source import Source, open_source
from crowdveil.io.tiling import by_coordinates
from crowdveil.io.time_forms import TimeForm
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import Clock, TimeAxis, period_seconds


def reader_over(
    flows: Flows, data: Any, options: Mapping[str, Any], content: Callable[[Source, OdColumns], RowHashes]
) -> OdReader:
    """Return a reader of the rows of `data` over the zones of `flows`; `content` makes further columns of the rows."""
    source = open_source(data)
    named = by_role({role: options.get(role) for role in NAMED}, source)
    found = find_od_columns(source, named, by_coordinates(options["zones"]), ReadNotes())
    crop = parse_crop(options["bbox"], options["time_window"], options["tz"])
    form = TimeForm(options["time_format"])
    names, made = ZoneNames(flows.zones), content(source, found)
    return OdReader(source, found, names, options["tz"], form, ReadNotes(), crop, content=made)


def flow_of_rows(flows: Flows, rows: pa.Table, fold: str | None = None) -> Ints:
    """Return the flow that each row lies in, -1 where there is none; `fold` is the period that the flows are folded by."""
    n = len(flows.zones)
    step = np.zeros(len(rows), np.int64)
    if flows.step_s is not None:
        clock, wall = Clock(flows.tz), rows["wall"].to_numpy()
        if fold is not None and len(flows.t):
            t = TimeAxis(period_seconds(fold), flows.tz).folded(wall, clock.to_wall(flows.t))
        else:
            t = clock.to_utc(wall)
        step = np.searchsorted(flows.t, t, side="right") - 1
    pair = (step * n + rows["o"].to_numpy()) * n + rows["d"].to_numpy()
    known = (flows.step * n + flows.origin) * n + flows.destination
    place = np.minimum(np.searchsorted(known, pair), len(known) - 1)
    return np.where(known[place] == pair, place, -1)

"""Crop trips and flows while they are read: a bounding box, a time window.

No output counts the trips that are left out: their number is a fact about people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.times import Seconds, read_seconds
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.globe import Box
from crowdveil.model.tessellation import zones_at
from crowdveil.model.time_axis import Clock

BOX_WANTED = (
    "Expected west,south,east,north in degrees, west before east (or across the date line) and south before north."
)
WINDOW_WANTED = "Expected two times, the first before the second, such as 2008-06-08T07:00,2008-06-08T07:15."


@dataclass(frozen=True)
class Crop:
    """The part of the input that is read.

    Attributes
    ----------
    box
        Trips that begin or end outside of it are left out, and zones whose center is outside.
    window
        First time and the time after the last, in seconds of the local clock.
    """

    box: Box | None = None
    window: tuple[int, int] | None = None

    def outside(self, lon: Floats, lat: Floats) -> Mask:
        """Return which points lie outside of the box."""
        return np.zeros(len(lon), np.bool_) if self.box is None else ~in_box(self.box, lon, lat)

    def outside_times(self, wall: Ints) -> Mask:
        """Return which local times lie outside of the window."""
        if self.window is None:
            return np.zeros(len(wall), np.bool_)
        return (wall < self.window[0]) | (wall >= self.window[1])


EVERYTHING = Crop()


def parse_crop(bbox: str | None, time_window: str | None, tz: str) -> Crop:
    """Return the crop of the options as they are written: W,S,E,N and FROM,TO."""
    return Crop(
        None if bbox is None else parse_box(bbox.split(",")),
        None if time_window is None else _parse_window(time_window, tz),
    )


def parse_box(values: Any) -> Box:
    """Return the box of four numbers; as in GeoJSON, west is above east where a box crosses the date line."""
    try:
        west, south, east, north = (float(v) for v in values)
    except ValueError:
        raise ParameterError(Option("bbox"), BOX_WANTED) from None
    across = east < west and east + 360 - west <= 180
    # A box around the globe is a mistake.
    if not (-180 <= west <= 180 and -180 <= east <= 180 and (west < east or across) and -90 <= south < north <= 90):
        raise ParameterError(Option("bbox"), BOX_WANTED)
    return Box(west, south, east + 360 if across else east, north)


def in_box(box: Box, lon: Floats, lat: Floats) -> Mask:
    """Return which points lie in a box; its borders belong to it."""
    within = (lon >= box.west) & (lon <= box.east)
    if box.east > 180:
        within |= lon <= box.east - 360
    inside: Mask = within & (lat >= box.south) & (lat <= box.north)
    return inside


def _parse_window(text: str, tz: str) -> tuple[int, int]:
    times = parse_times(text.split(","))
    start, end = (Clock(tz).to_wall(times.values) if times.instants else times.values).tolist()
    return start, end


def parse_times(values: Sequence[str]) -> Seconds:
    """Return two times, the first before the second."""
    times = read_seconds(pa.array([value.strip() for value in values], pa.string()), "time_window")
    if len(values) != 2 or times.bad.any() or times.values[0] >= times.values[1]:
        raise ParameterError(Option("time_window"), WINDOW_WANTED)
    return times


def crop_zones(flows: Flows, box: Box) -> Flows:
    """Return flows over the zones whose center lies in a box; all trips must be between them."""
    flows.zones.need_location("a bounding box")
    keep = in_box(box, flows.zones.lon, flows.zones.lat)
    if keep.all():
        return flows
    if not keep.any():
        raise InputError(Option("bbox"), "no zone has its center in the box. Give another box.")
    number = np.cumsum(keep) - 1
    return replace(
        flows,
        zones=zones_at(flows.zones, np.flatnonzero(keep)),
        origin=number[flows.origin].astype(flows.origin.dtype),
        destination=number[flows.destination].astype(flows.destination.dtype),
    )

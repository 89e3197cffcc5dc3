"""Refuse coordinates whose longitude and latitude are exchanged."""

from __future__ import annotations

import numpy as np

from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.model.arrays import Floats
from crowdveil.model.zones import Zones

INHABITED = (-60.0, 78.0)
"""Latitudes where people live."""


def check_axes(
    lon: Floats, lat: Floats, columns: tuple[str, str], name: str, zones: Zones | None, notes: ReadNotes | None
) -> None:
    """Raise if longitudes and latitudes look exchanged; note it if nothing shows whether they are.

    They are compared with the zones or, without zones, with the latitudes where people live.

    `columns` are those of longitude and latitude. Without `notes` nothing is noted.
    """
    if len(lon) == 0 or (zones is not None and not zones.located):
        return
    if zones is not None:
        fit, exchanged = _near(zones, lon, lat), _near(zones, lat, lon)
    else:
        fit, exchanged = (float(np.mean((v > INHABITED[0]) & (v < INHABITED[1]))) for v in (lat, lon))
    if fit < 0.5 <= exchanged:
        where = "where nobody lives" if zones is None else "far from the zones"
        raise InputError(
            name,
            f"Expected longitudes in column {columns[0]} and latitudes in column {columns[1]}, got places {where}. "
            "Exchange the two columns, also in the zones if they are wrong there.",
        )
    if notes is not None and zones is None and exchanged >= 0.5:
        notes.add(
            f"longitude is read from column {columns[0]} and latitude from column {columns[1]}; no zones show whether these are "
            "exchanged, so check the map."
        )


def _near(zones: Zones, lon: Floats, lat: Floats) -> float:
    """Return the share of places in the box of the zones, which is extended by a quarter on each side."""
    inside = np.ones(len(lon), np.bool_)
    for values, places in ((zones.lon, lon), (zones.lat, lat)):
        low, high = values.min(), values.max()
        pad = 0.1 + 0.25 * (high - low)
        inside &= (places >= low - pad) & (places <= high + pad)
    return float(inside.mean())

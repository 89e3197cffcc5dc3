"""Define trips: one row for each journey of a person from one tile to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Indices, Ints, check_lengths, freeze_columns, require
from crowdveil.model.tabular import Tabular
from crowdveil.model.zones import Zones


@dataclass(frozen=True, eq=False, repr=False)
class Trips(Tabular):
    """Trips in memory. Files of trips are read into flows directly (`io.flows`).

    Attributes
    ----------
    zones
        The tiles; origins and destinations are indices of them.
    origin, destination
        Tile indices.
    t
        Departure, seconds since 1970-01-01 UTC; None where the data have no times.
    person
        The number of the person who made the trip; None where people are not known.
    weight
        Trips of the population that this one represents; None where each represents itself. Summed into volumes, never
        counted towards k.
    """

    zones: Zones
    origin: Indices
    destination: Indices
    t: Ints | None = None
    person: Ints | None = None
    weight: Floats | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        n = len(self.origin)
        columns = {"destination": self.destination, "t": self.t, "person": self.person, "weight": self.weight}
        check_lengths("trips", n, **columns)
        if n and (
            min(self.origin.min(), self.destination.min()) < 0
            or max(self.origin.max(), self.destination.max()) >= len(self.zones)
        ):
            raise InputError("trips", f"an origin or destination is not one of the {len(self.zones):,} zones.")
        if self.weight is not None:
            require(
                bool(np.all(np.isfinite(self.weight) & (self.weight >= 0))),
                "trips: weights must be finite and not below zero.",
            )

    def __len__(self) -> int:
        return len(self.origin)

    def to_arrow(self) -> pa.Table:
        """Return a row for each trip: the ids of its zones, and its time, person and weight where they are known."""
        ids = pa.array([str(zone) for zone in self.zones.ids], pa.string())
        columns: dict[str, Any] = {}
        if self.person is not None:
            columns["person"] = self.person
        if self.t is not None:
            columns["t"] = pa.array(self.t).cast(pa.timestamp("s", tz="UTC"))
        columns |= {"origin": ids.take(pa.array(self.origin)), "destination": ids.take(pa.array(self.destination))}
        if self.weight is not None:
            columns["weight"] = self.weight
        return pa.table(columns)

    def summary(self) -> str:
        """Return the numbers of trips, zones and people."""
        people = "" if self.person is None else f", {len(np.unique(self.person)):,} people"
        return f"{len(self):,} trips, {len(self.zones):,} zones{people}"

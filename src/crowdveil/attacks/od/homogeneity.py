"""Learn the destination of travelers where all trips of one origin go to one destination (homogeneity).

The adversary knows the origin area and the time step of a person's trip, and that it is in the file. If all published flows of
that origin go to one destination, k hides who made a trip, but not its destination.

Destination area known: all published flows of the origin area in the time step go to a single area, of one tile or of many. The
adversary learns that area.
Destination tile known: they go to a single area of a single tile, the smallest unit of the map. The adversary learns the
destination at the precision of the data. These trips are among the former.

Notes
-----
No k protects from it: it depends on the diversity of the travelers of a group (l-diversity). It is measured, not guaranteed.
Where trips were suppressed, some from the origin may have gone to other areas. The same is measured with origin and destination
exchanged.

References
----------
Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.attacks.base import Attack, Exposure, FlowAttackParams, percent
from crowdveil.attacks.od.published import Published
from crowdveil.errors import counted
from crowdveil.model.arrays import Indices, Ints, Mask, ranks, sorted_distinct
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease

AREA, TILE = "homogeneity-area", "homogeneity-tile"
"""The two risks in a manifest: the share of trips whose destination is known as an area, and as a tile."""


@dataclass(frozen=True)
class KnownEnds:
    """Groups of rows, of one origin area in one time step, and whether each group has a single end.

    Attributes
    ----------
    ends
        Number of distinct areas at the other end of each group.
    area, tile
        Whether there is a single area, and a single tile.
    volume
        Trips of each group.
    """

    ends: Ints
    area: Mask
    tile: Mask
    volume: Ints

    @classmethod
    def of(cls, group: Ints, other: Ints, sizes: Ints, volume: Ints) -> KnownEnds:
        """Make it from the group, the area at the other end and the volume of each row, and the tiles of each area."""
        groups = int(group.max(initial=-1)) + 1
        ends = _different(group, other, len(sizes))
        large = np.bincount(group[sizes[other] > 1], minlength=groups) > 0
        total = np.bincount(group, volume, groups).astype(np.int64)
        return cls(ends, ends == 1, (ends == 1) & ~large, total)

    @property
    def trips(self) -> tuple[int, int, int]:
        """Return the number of all trips, of those with known area and of those with known tile."""
        return int(self.volume.sum()), int(self.volume[self.area].sum()), int(self.volume[self.tile].sum())


def known_destinations(published: Published) -> KnownEnds:
    """Find the destinations that are known from the origin area and the time step."""
    return _known_ends(published, published.release.origin, published.release.destination)


def known_destinations_of_original(flows: Flows) -> tuple[int, int]:
    """Return the trips of the original whose destination zone is known from origin zone and time step, and all trips."""
    group, _ = ranks(flows.step * max(len(flows.zones), 1) + flows.origin)
    sizes = np.ones(len(flows.zones), np.int64)
    trips, known, _ = KnownEnds.of(group, flows.destination.astype(np.int64), sizes, flows.volume).trips
    return known, trips


def run(published: Published, params: FlowAttackParams) -> Exposure:
    """Measure the shares of origins, and of trips, with known destination area and tile; and the reverse."""
    release = published.release
    values: dict[str, float | int | None] = {}
    found: dict[str, KnownEnds] = {}
    for side, other, area, end in (
        ("origins", "destination", release.origin, release.destination),
        ("destinations", "origin", release.destination, release.origin),
    ):
        known = found[side] = _known_ends(published, area, end)
        values[side] = len(known.ends)
        trips, to_area, to_tile = known.trips
        for unit, which, reached in (("area", known.area, to_area), ("tile", known.tile, to_tile)):
            values[f"{side}_with_{other}_{unit}_known_percent"] = percent(which.sum(), len(which))
            values[f"trips_with_{other}_{unit}_known_percent"] = percent(reached, trips)
    origins = found["origins"]
    values["fewest_destinations"] = int(origins.ends.min()) if len(origins.ends) else None
    areas, tiles = int(origins.area.sum()), int(origins.tile.sum())
    sentence = (
        f"{counted(len(origins.ends), 'origin')} of time steps checked; from {areas:,} all published trips go to one area "
        f"(destination area known), from {tiles:,} of these to one tile (destination tile known): k hides who made these trips, "
        "and not their destination."
    )
    return Exposure(ATTACK.name, ATTACK.title, values, None, False, sentence)


def _known_ends(published: Published, area: Indices, end: Indices) -> KnownEnds:
    release = published.release
    group, _ = published.margins(area, over_steps=False)
    return KnownEnds.of(group, end.astype(np.int64), release.areas.size, release.volume)


def _different(number: Ints, area: Indices | Ints, areas: int) -> Ints:
    """Count the distinct areas of each group of rows."""
    return np.bincount(sorted_distinct(number * areas + area) // areas, minlength=int(number.max(initial=-1)) + 1)


ATTACK = Attack("homogeneity", "one destination for all", takes=FlowRelease, params=FlowAttackParams, run=run)

"""Promises about a map of sectors, checked on the written GeoJSON, and with the original locations at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind
from crowdveil.io.sectors import NUMBERS, WrittenSectors
from crowdveil.model.arrays import Floats, Indices, Ints, Mask
from crowdveil.model.trajectories import Trajectories

NEAR_M = 0.25
"""Coordinates are written to a tenth of a metre, so that outlines are this near to where they should be."""
_BAND = 512
"""Columns that are painted at once."""
NOWHERE, TWICE = -1, -2


class SectorGuarantee(Guarantee):
    """A promise about a map of sectors."""

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Whether the file keeps it, with the original locations at hand or without."""
        raise NotImplementedError


class SectorKAnonymity(SectorGuarantee):
    """Every sector has the locations of k people."""

    name: ClassVar[str] = "sector-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    k: int
    """Smallest crowd."""
    counts: Literal["people", "trajectories"]
    """What is counted."""

    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Every sector of the map has locations of at least {self.k:,} {self.counts}."

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Look at the numbers in the file; with the original count locations and people in each sector anew."""
        if written.counts != self.counts:
            return Finding(False, f"the file counts {written.counts}.")
        small = int((written.crowd < self.k).sum())
        if small or original is None:
            return Finding(small == 0, _looked(written, f"{small:,} with fewer than {self.k:,} {self.counts}"))
        place = sector_of(written, original)
        there = place >= 0
        locations = np.bincount(place[there], minlength=len(written))
        pairs = np.sort(place[there] * original.people + _person(original)[there])
        first = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
        crowd = np.bincount(first // original.people, minlength=len(written))
        wrong = int(((locations != written.locations) | (crowd != written.crowd)).sum())
        small = int((crowd < self.k).sum())
        detail = _looked(written, f"{small:,} with fewer than {self.k:,} {self.counts}, {wrong:,} with other numbers")
        return Finding(small == 0 and wrong == 0, detail, with_original=True)


class DisjointSectors(SectorGuarantee):
    """No place lies in two sectors."""

    name: ClassVar[str] = "disjoint-sectors"
    kind: ClassVar[Kind] = "privacy"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "No two sectors overlap, so that none can be subtracted from another."

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Paint every sector, and see whether anything is painted twice; the outlines must be those of what was painted."""
        strange = int((~_outlined(written)).sum())
        if strange:
            return Finding(False, _looked(written, f"{strange:,} with another outline than its bounds"))
        twice = sum(int((band == TWICE).sum()) for _, band in _painted(written, *_lines(written)))
        return Finding(twice == 0, _looked(written, "some overlap" if twice else "none overlap"))


class EveryLocationCounted(SectorGuarantee):
    """Locations are in a sector or withheld; how many were withheld is told only if a crowd is behind them."""

    name: ClassVar[str] = "every-location-counted"
    kind: ClassVar[Kind] = "privacy"
    k: int
    """Smallest crowd."""

    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            "Every location is in one sector or withheld, and how many are withheld is told only where it is none "
            f"or they are of at least {self.k:,} people or trajectories."
        )

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Look whether the number can be one; with the original count what lies in no sector."""
        told = written.withheld
        if original is None:
            many = told is None or told == 0 or told >= self.k
            return Finding(many, "the number of withheld locations is " + ("possible." if many else "too small."))
        outside = sector_of(written, original) < 0
        people = len(np.unique(_person(original)[outside]))
        may_be_told = people == 0 or people >= self.k
        right = int(outside.sum()) == told if may_be_told else told is None
        detail = f"{counted(original.points, 'location')} looked at; what is told of withheld ones is "
        return Finding(bool(right), detail + ("right." if right else "wrong."), with_original=True)


class WellFormedSectors(SectorGuarantee):
    """The file holds what a map of sectors holds, and nothing else."""

    name: ClassVar[str] = "well-formed-sectors"
    kind: ClassVar[Kind] = "structure"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "Sectors are numbered 1, 2, … and have area, locations, crowd and density that fit, and nothing else."

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Look at the names, and reckon area and density anew."""
        names, faults = {"sector", "locations", written.counts, *NUMBERS}, []
        if any(set(entry) != names for entry in written.properties):
            faults.append("properties are missing or more than they should be")
        if not np.array_equal(written.sector, np.arange(1, len(written) + 1)):
            faults.append("sectors are not numbered 1, 2, …")
        west, south, east, north = written.bounds.T
        area = (east - west) * (north - south) / 1e6
        if not (np.all(area > 0) and np.allclose(written.area_km2, area, rtol=1e-9, atol=0)):
            faults.append("an area is not that of its bounds")
        elif not np.allclose(written.locations_per_km2, written.locations / area, rtol=1e-9, atol=0):
            faults.append("a density is not locations over area")
        if np.any(written.locations < written.crowd):
            faults.append("a sector has fewer locations than a crowd has")
        return Finding(not faults, "; ".join(faults) + "." if faults else _looked(written, "all well formed"))


def sector_of(written: WrittenSectors, original: Trajectories) -> Ints:
    """The sector that each original location lies in, as a number from 0; NOWHERE, or TWICE if it lies in several.

    A location on a line belongs to the sector east or north of it.
    """
    x, y = written.plane.to_plane(original.lon, original.lat)
    columns, rows = _lines(written)
    column, row = np.searchsorted(columns, x, "right") - 1, np.searchsorted(rows, y, "right") - 1
    column[column >= len(columns) - 1] = -1  # beyond the last line
    inside = (column >= 0) & (row >= 0) & (row < len(rows) - 1)
    sector = np.full(original.points, NOWHERE, np.int64)
    for first, band in _painted(written, columns, rows):
        here = np.flatnonzero(inside & (column >= first) & (column < first + len(band)))
        sector[here] = band[column[here] - first, row[here]]
    return sector


def _lines(written: WrittenSectors) -> tuple[Floats, Floats]:
    """All lines that a sector begins or ends at, from west to east, and from south to north."""
    return np.unique(written.bounds[:, [0, 2]]), np.unique(written.bounds[:, [1, 3]])


def _painted(written: WrittenSectors, columns: Floats, rows: Floats) -> Iterator[tuple[int, Indices]]:
    """What lies between the lines: of each band of columns the first one, and the sector at each column and row."""
    west, east = (np.searchsorted(columns, written.bounds[:, i]) for i in (0, 2))
    south, north = (np.searchsorted(rows, written.bounds[:, i]) for i in (1, 3))
    for first in range(0, max(len(columns) - 1, 0), _BAND):
        band = np.full((min(_BAND, len(columns) - 1 - first), len(rows) - 1), NOWHERE, np.int32)
        for i in np.flatnonzero((west < first + len(band)) & (east > first)):
            part = band[max(west[i] - first, 0) : east[i] - first, south[i] : north[i]]
            part[...] = np.where(part == NOWHERE, i, TWICE)
        yield first, band


def _outlined(written: WrittenSectors) -> Mask:
    """Whether the outline of each sector is the rectangle that its bounds tell."""
    import shapely

    if not len(written):
        return np.zeros(0, np.bool_)
    plane = written.plane.polygons_to_plane(written.polygons)
    west, south, east, north = written.bounds.T
    for i in np.flatnonzero(shapely.get_type_id(plane) == 6):
        # Cut at the date line: its parts must not overlap, and are one polygon on the plane but for a thin seam.
        parts = shapely.get_parts(plane[i])
        together = shapely.union_all(shapely.buffer(parts, NEAR_M / 10, join_style="mitre"))
        apart = shapely.area(shapely.intersection(parts[:-1], parts[1:])).sum()
        plane[i] = together if len(parts) == 2 and apart <= NEAR_M else plane[i]
    near = np.all(np.abs(shapely.bounds(plane) - written.bounds) <= NEAR_M, axis=1)
    # What fills the box around it but for a thin strip is that box.
    missing = np.abs((east - west) * (north - south) - shapely.area(plane))
    simple = (shapely.get_type_id(plane) == 3) & shapely.is_valid(plane)
    return np.asarray(simple & near & (missing <= NEAR_M * 2 * (east - west + north - south)))


def _person(original: Trajectories) -> Ints:
    return np.repeat(original.person, np.diff(original.offsets))


def _looked(written: WrittenSectors, what: str) -> str:
    return f"{counted(len(written), 'sector')} looked at, {what}."

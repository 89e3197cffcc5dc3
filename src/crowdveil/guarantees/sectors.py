"""Check guarantees about a map of sectors on the written GeoJSON, with or without the original locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import numpy as np
import shapely

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge, faults_in, flags
from crowdveil.io.sectors import NUMBERS, WrittenSectors
from crowdveil.model.arrays import Floats, Indices, Ints, Mask, sorted_distinct
from crowdveil.model.trajectories import Trajectories

NEAR_M = 0.25
"""Largest distance of an outline from its exact position: coordinates are written to a tenth of a meter."""
_BAND = 512
"""Number of columns that are painted at once."""
NOWHERE, TWICE = -1, -2
_FAULTS = {
    "properties": "properties are missing, or there are others",
    "not_numbered": "sectors are not numbered 1, 2, …",
    "wrong_area": "an area is not that of its bounds",
    "wrong_density": "a density is not locations over area",
    "few_locations": "a sector has fewer locations than people",
}


class SectorGuarantee(Guarantee):
    """A guarantee about a map of sectors."""

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Check the file, with or without the original locations."""
        raise NotImplementedError


class SectorKAnonymity(SectorGuarantee):
    """Every sector has the locations of at least k people."""

    name: ClassVar[str] = "sector-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"sectors": "sum", "small": "sum", "wrong": "sum", "counts_differ": "max"}
    k: int
    """Smallest group size."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return f"Every sector of the map has locations of at least {self.k:,} {self.k_unit}."

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Check the numbers in the file; with the original, recount the locations and people of each sector."""
        if written.counts != self.k_unit:
            return self.make_finding(True, {"counts_differ": 1})
        small = int((written.people < self.k).sum())
        if small or original is None:
            return self.make_finding(small > 0, {"sectors": len(written), "small": small})
        sector = sector_of(written, original)
        inside = sector >= 0
        locations = np.bincount(sector[inside], minlength=len(written))
        pairs = sorted_distinct(sector[inside] * original.people + _person(original)[inside])
        crowd = np.bincount(pairs // original.people, minlength=len(written))
        wrong = int(((locations != written.locations) | (crowd != written.people)).sum())
        small = int((crowd < self.k).sum())
        return self.make_finding(
            small + wrong > 0, {"sectors": len(written), "small": small, "wrong": wrong}, with_original=True
        )

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many sectors are too small."""
        if counts["counts_differ"]:
            return f"the file does not count {self.k_unit}."
        wrong = f", {counts['wrong']:,} with wrong numbers" if with_original else ""
        return _checked(counts, f"{counts['small']:,} with fewer than {self.k:,} {self.k_unit}{wrong}")


class DisjointSectors(SectorGuarantee):
    """No location lies in two sectors."""

    name: ClassVar[str] = "disjoint-sectors"
    kind: ClassVar[Kind] = "privacy"
    sentence: ClassVar[str] = "No two sectors overlap, so that none can be subtracted from another."
    tallies: ClassVar[Mapping[str, Merge]] = {"sectors": "sum", "strange": "sum", "overlap": "max"}

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Paint every sector, and find cells painted twice; outlines must match the painted sectors."""
        strange = int((~_outlined(written)).sum())
        if strange:
            return self.make_finding(True, {"sectors": len(written), "strange": strange})
        twice = any(bool((band == TWICE).any()) for _, band in _painted(written, *_lines(written)))
        return self.make_finding(twice, {"sectors": len(written), "overlap": twice})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return whether sectors overlap."""
        if counts["strange"]:
            return _checked(counts, f"{counts['strange']:,} with another outline than its bounds")
        return _checked(counts, "some overlap" if counts["overlap"] else "none overlap")


class EveryLocationCounted(SectorGuarantee):
    """Every location is in a sector or suppressed; the number of suppressed ones is published only for at least k people."""

    name: ClassVar[str] = "every-location-counted"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"locations": "sum", "wrong": "max"}
    k: int
    """Smallest group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            "Every location is in one sector or suppressed, and the number of suppressed locations is published only if it is 0 "
            f"or they are of at least {self.k:,} people or trajectories."
        )

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Check whether the number is possible; with the original, count the locations outside of all sectors."""
        given = written.suppressed
        if original is None:
            possible = given is None or given == 0 or given >= self.k
            return self.make_finding(not possible, {"wrong": not possible}, open_=True)
        outside = sector_of(written, original) < 0
        people = len(np.unique(_person(original)[outside]))
        may_be_given = people == 0 or people >= self.k
        right = int(outside.sum()) == given if may_be_given else given is None
        return self.make_finding(not right, {"locations": original.points, "wrong": not right}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return whether the number of suppressed locations is right, or possible."""
        if with_original:
            verdict = "wrong" if counts["wrong"] else "right"
            # Without numbers: a total would reveal the suppressed number by subtraction.
            return f"every location of the original checked; the number of suppressed locations is {verdict}."
        if counts["wrong"]:
            return "the number of suppressed locations is too small."
        return "the number of suppressed locations is possible; files alone do not show whether it is right."


class WellFormedSectors(SectorGuarantee):
    """The file is a map of sectors, and has nothing else."""

    name: ClassVar[str] = "well-formed-sectors"
    kind: ClassVar[Kind] = "structure"
    sentence: ClassVar[str] = (
        "Sectors are numbered 1, 2, … and have consistent area, locations, group size and density, and nothing else."
    )
    tallies: ClassVar[Mapping[str, Merge]] = {"sectors": "sum", **flags(_FAULTS)}

    def check_sectors(self, written: WrittenSectors, original: Trajectories | None = None) -> Finding:
        """Check the names, and recompute area and density."""
        names = {"sector", "locations", written.counts, *NUMBERS}
        west, south, east, north = written.bounds.T
        area = (east - west) * (north - south) / 1e6
        right = bool(np.all(area > 0)) and np.allclose(written.area_km2, area, rtol=1e-9, atol=0)
        faults = {
            "properties": any(set(entry) != names for entry in written.properties),
            "not_numbered": not np.array_equal(written.sector, np.arange(1, len(written) + 1)),
            "wrong_area": not right,
            "wrong_density": right
            and not np.allclose(written.locations_per_km2, written.locations / area, rtol=1e-9, atol=0),
            "few_locations": bool(np.any(written.locations < written.people)),
        }
        return self.make_finding(any(faults.values()), {"sectors": len(written), **faults})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the faults, or the number of sectors checked."""
        faults = faults_in(counts, _FAULTS)
        return f"{faults}." if faults else _checked(counts, "all well formed")


def sector_of(written: WrittenSectors, original: Trajectories) -> Ints:
    """Return the sector of each original location, from 0; NOWHERE if it is in none, TWICE if it is in several.

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
    """Return the coordinates where sectors begin or end, from west to east and from south to north."""
    return np.unique(written.bounds[:, [0, 2]]), np.unique(written.bounds[:, [1, 3]])


def _painted(written: WrittenSectors, columns: Floats, rows: Floats) -> Iterator[tuple[int, Indices]]:
    """Yield bands of columns: the first column, and the sector at each column and row of the band."""
    west, east = (np.searchsorted(columns, written.bounds[:, i]) for i in (0, 2))
    south, north = (np.searchsorted(rows, written.bounds[:, i]) for i in (1, 3))
    for first in range(0, max(len(columns) - 1, 0), _BAND):
        band = np.full((min(_BAND, len(columns) - 1 - first), len(rows) - 1), NOWHERE, np.int32)
        for i in np.flatnonzero((west < first + len(band)) & (east > first)):
            part = band[max(west[i] - first, 0) : east[i] - first, south[i] : north[i]]
            part[...] = np.where(part == NOWHERE, i, TWICE)
        yield first, band


def _outlined(written: WrittenSectors) -> Mask:
    """Return whether the outline of each sector is the rectangle of its bounds."""
    if not len(written):
        return np.zeros(0, np.bool_)
    plane = written.plane.polygons_to_plane(written.polygons)
    west, south, east, north = written.bounds.T
    for i in np.flatnonzero(shapely.get_type_id(plane) == 6):
        # A sector cut at the date line: its parts must not overlap, and on the plane they form one polygon, except for a seam.
        parts = shapely.get_parts(plane[i])
        joined = shapely.union_all(shapely.buffer(parts, NEAR_M / 10, join_style="mitre"))
        overlap = shapely.area(shapely.intersection(parts[:-1], parts[1:])).sum()
        plane[i] = joined if len(parts) == 2 and overlap <= NEAR_M else plane[i]
    near = np.all(np.abs(shapely.bounds(plane) - written.bounds) <= NEAR_M, axis=1)
    # A shape that fills its bounding box except for a thin strip is that box.
    missing = np.abs((east - west) * (north - south) - shapely.area(plane))
    simple = (shapely.get_type_id(plane) == 3) & shapely.is_valid(plane)
    return np.asarray(simple & near & (missing <= NEAR_M * 2 * (east - west + north - south)))


def _person(original: Trajectories) -> Ints:
    return np.repeat(original.person, np.diff(original.offsets))


def _checked(counts: Mapping[str, int], what: str) -> str:
    return f"{counted(counts['sectors'], 'sector')} checked, {what}."

"""Check the sizes of the areas of released flows: not too small to hide people, not too large to be useful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.original import NEEDS_ORIGINAL
from crowdveil.guarantees.original_rows import original_zones
from crowdveil.io.values import encode_ids
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.release import PUBLISHED, STATES

WRITTEN_KM2 = 1e-6
"""Last digit of written areas, square kilometers."""


class GeneralizationLimit(Guarantee):
    """Flows to several tiles cover at most a number of tiles."""

    name: ClassVar[str] = "generalization-limit"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "over": "sum"}
    from_data: ClassVar[tuple[str, ...]] = ("tiles",)

    tiles: float = Field(gt=0)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Origin and destination of a flow to more than one tile have at most {self.tiles:g} tiles together, "
            "unless the row aggregates small flows."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Add up the tiles of each row."""
        size = _sizes(written)
        start, to = (size[numbers] for numbers in _ends(written, _published(written)))
        over = int(((to > 1) & (start + to > self.tiles)).sum())
        return self.make_finding(over > 0, {"rows": len(to), "over": over})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows are larger."""
        return f"{counted(counts['rows'], 'row')} checked, {counts['over']:,} are larger."


class _LargeEnough(Guarantee):
    """No row names an area that is too small to hide people."""

    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "small": "sum"}

    def _naming(self, written: WrittenRelease, small: Mask, *, open_: bool = False, known: bool = False) -> Finding:
        """Count the rows with a small area at either end; the last is for an area that is not in the list.

        Rows are counted, not areas: a row lies in one partition, an area in several. `known`: with the original.
        """
        rows, ends = len(written.data), [small[numbers] for numbers in _ends(written)]
        found = int((ends[0] | ends[1]).sum())
        counts = {"rows": rows, "small": found}
        return self.make_finding(found > 0, counts, open_=open_ and rows > 0, with_original=known)


class MinTiles(_LargeEnough):
    """No area is smaller than a number of tiles."""

    name: ClassVar[str] = "min-tiles"

    tiles: int = Field(ge=1)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return f"Every origin and every destination has at least {counted(self.tiles, 'tile')}."

    def check(self, written: WrittenRelease) -> Finding:
        """Count the tiles of the areas that each row names."""
        return self._naming(written, _sizes(written) < self.tiles)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows name a smaller area."""
        return f"{counted(counts['rows'], 'row')} checked, {counts['small']:,} name a smaller area."


class MinInhabitedTiles(_LargeEnough):
    """No area is one inhabited tile with empty land around it (l-diversity)."""

    name: ClassVar[str] = "min-inhabited-tiles"

    tiles: int = Field(ge=1)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Every origin and every destination has at least {counted(self.tiles, 'tile')} in which any trip of the "
            "data starts or ends."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count the tiles of the areas that each row names; inhabited tiles are not published."""
        return self._naming(written, _sizes(written) < self.tiles, open_=True)

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Count the tiles of the areas that each row names and that a flow of any time step starts or ends in."""
        inhabited = np.append(original.visited, False)  # the last is for tiles that the original lacks
        is_inhabited = inhabited[original_zones(written, original)]
        homes = [int(is_inhabited[np.unique(tiles)].sum()) for tiles in written.area_tiles]
        return self._naming(written, np.array([*homes, 0]) < self.tiles, known=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows name an area with fewer tiles."""
        said = f"{counted(counts['rows'], 'row')} checked, {counts['small']:,} name an area with fewer"
        return f"{said}." if with_original else f"{said}; {NEEDS_ORIGINAL} which tiles are inhabited."


class _MinPois(_LargeEnough):
    """Areas contain points of interest; which tiles have some, only the user's table shows."""

    def check(self, written: WrittenRelease) -> Finding:
        """Return that this needs the table of points of interest."""
        return self._naming(written, np.zeros(len(written.features) + 1, np.bool_), open_=True)

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Count the points of interest in the tiles of the areas that each row names."""
        if original.pois is None:
            return self.check(written)
        entries = zip(*(getattr(original.pois, name).tolist() for name in ("tile", "category", "count")), strict=True)
        own = dict(zip(original_zones(written, original).tolist(), range(len(written.tile_names)), strict=True))
        held: dict[int, list[tuple[int, int]]] = {}
        for tile, category, count in entries:
            if tile in own:
                held.setdefault(own[tile], []).append((category, count))
        enough = [
            self._fits([entry for tile in {*tiles.tolist()} for entry in held.get(tile, ())])
            for tiles in written.area_tiles
        ]
        return self._naming(written, ~np.array([*enough, False]), known=True)

    def _fits(self, entries: list[tuple[int, int]]) -> bool:
        """Return whether points, as pairs of a category and a number of points, are enough."""
        raise NotImplementedError

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows name an area with fewer points or categories."""
        said = f"{counted(counts['rows'], 'row')} checked, {counts['small']:,} name an area with fewer"
        return f"{said}." if with_original else f"{NEEDS_ORIGINAL} where points of interest are; give their table."


class MinPois(_MinPois):
    """No area has fewer points of interest (l-diversity)."""

    name: ClassVar[str] = "min-pois"

    pois: int = Field(ge=1)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Every origin and every destination has at least {counted(self.pois, 'point')} of interest of the table that the "
            "release was made with."
        )

    def _fits(self, entries: list[tuple[int, int]]) -> bool:
        return sum(count for _, count in entries) >= self.pois


class MinPoiCategories(_MinPois):
    """No area has points of interest of fewer categories (l-diversity)."""

    name: ClassVar[str] = "min-poi-categories"

    categories: int = Field(ge=1)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Every origin and every destination has points of interest of at least {self.categories:,} different categories of "
            "the table that the release was made with."
        )

    def _fits(self, entries: list[tuple[int, int]]) -> bool:
        return len({category for category, count in entries if count > 0 and category >= 0}) >= self.categories


class MaxArea(Guarantee):
    """Areas of published flows are small enough to be useful."""

    name: ClassVar[str] = "max-area"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "over": "sum", "unknown": "max"}

    km2: float = Field(gt=0)

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return f"Origin and destination of a flow have at most {self.km2:g} km² each, unless the row aggregates small flows."

    def check(self, written: WrittenRelease) -> Finding:
        """Compare the size of the areas that each row names; one of unknown size may be too large."""
        given = [feature["properties"].get("area_km2") for feature in written.features]
        # Written values may be rounded up by half their last digit.
        limit = self.km2 * (1 + 1e-12) + WRITTEN_KM2 / 2
        fits = [isinstance(a, int | float) and a <= limit for a in given]
        large = ~np.array([*fits, False])  # the last is for an area that is not listed
        origin, destination = _ends(written, _published(written))
        over = int((large[origin] | large[destination]).sum())
        return self.make_finding(over > 0, {"rows": len(origin), "over": over, "unknown": None in given})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows are larger."""
        unknown = ", or the size of their areas is not known" if counts["unknown"] else ""
        return f"{counted(counts['rows'], 'row')} checked, {counts['over']:,} are larger{unknown}."


def _sizes(written: WrittenRelease) -> Ints:
    """Count the distinct tiles of each area; the last is 0, for the area -1, which is not in the list."""
    return np.array([*(len(np.unique(tiles)) for tiles in written.area_tiles), 0], np.int64)


def _ends(written: WrittenRelease, rows: Mask | slice = slice(None)) -> tuple[Ints, Ints]:
    """Return the areas at both ends of some rows."""
    return written.area_numbers("origin_area")[rows], written.area_numbers("destination_area")[rows]


def _published(written: WrittenRelease) -> Mask:
    """Rows that are not small destinations taken together."""
    number, labels, _ = encode_ids(written.values("state"))
    published: Mask = np.array([label == STATES[PUBLISHED] for label in labels], bool)
    return published[number]

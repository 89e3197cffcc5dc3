"""Check the sizes of the areas of released flows: not too small to hide people, not too large to be useful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.original import NEEDS_ORIGINAL, original_zones
from crowdveil.io.values import encode_ids
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import VISITED, Flows
from crowdveil.model.release import PUBLISHED, STATES

WRITTEN_KM2 = 1e-6
"""The last digit of written areas, in square kilometers."""


class GeneralizationLimit(Guarantee):
    """Flows to several tiles cover at most a given number of tiles."""

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


class MinTiles(Guarantee):
    """No row names an area that is too small to hide people (l-diversity)."""

    name: ClassVar[str] = "min-tiles"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "small": "sum", "unseen": "max"}

    tiles: int = Field(ge=1)
    of: str | None = None
    """The tiles that count: "visited" for those in which a trip starts or ends, or a column of the zones that must be above
    0; null for all."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        which = "" if self.of is None else f" in which the column {self.of} of the zones is above 0"
        if self.of == VISITED:
            which = " in which any trip of the data starts or ends"
        return f"Every origin and every destination has at least {counted(self.tiles, 'tile')}{which}."

    def check(self, written: WrittenRelease) -> Finding:
        """Count the tiles of the areas of each row; the files do not show which of them count."""
        return self._naming(written, _sizes(written) < self.tiles, unseen=self.of is not None)

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Count those tiles in the areas of each row that count according to the original."""
        if self.of == VISITED:
            counts = np.zeros(len(original.zones), np.bool_)
            counts[original.origin] = counts[original.destination] = True
        elif self.of is not None and original.counted is not None and original.counted.of == self.of:
            counts = original.counted.tiles
        else:
            return self.check(written)
        # The last place is for tiles that the original lacks.
        counts_here = np.append(counts, False)[original_zones(written, original)]
        sizes = [int(counts_here[np.unique(tiles)].sum()) for tiles in written.area_tiles]
        return self._naming(written, np.array([*sizes, 0]) < self.tiles, with_original=True)

    def _naming(
        self, written: WrittenRelease, small: Mask, *, unseen: bool = False, with_original: bool = False
    ) -> Finding:
        """Count the rows with a small area at either end; the last place is for areas that are not in the list.

        Rows are counted, not areas, since a row is in one partition and an area in several.
        """
        rows, ends = len(written.data), [small[numbers] for numbers in _ends(written)]
        found = int((ends[0] | ends[1]).sum())
        unseen = unseen and rows > 0
        counts = {"rows": rows, "small": found, "unseen": unseen}
        return self.make_finding(found > 0, counts, open_=unseen, with_original=with_original)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows name a smaller area."""
        unseen = f"; {NEEDS_ORIGINAL} which tiles count" if counts["unseen"] else ""
        return f"{counted(counts['rows'], 'row')} checked, {counts['small']:,} name a smaller area{unseen}."


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
        """Compare the sizes of the areas of each row; an area of unknown size may be too large."""
        given = [feature["properties"].get("area_km2") for feature in written.features]
        # Written values may be rounded up by half their last digit.
        limit = self.km2 * (1 + 1e-12) + WRITTEN_KM2 / 2
        fits = [isinstance(a, int | float) and a <= limit for a in given]
        large = ~np.array([*fits, False])  # the last place is for areas that are not in the list
        origin, destination = _ends(written, _published(written))
        over = int((large[origin] | large[destination]).sum())
        return self.make_finding(over > 0, {"rows": len(origin), "over": over, "unknown": None in given})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows are larger."""
        unknown = ", or the size of their areas is not known" if counts["unknown"] else ""
        return f"{counted(counts['rows'], 'row')} checked, {counts['over']:,} are larger{unknown}."


def _sizes(written: WrittenRelease) -> Ints:
    """Count the distinct tiles of each area; the last place is 0, for areas that are not in the list (-1)."""
    return np.array([*(len(np.unique(tiles)) for tiles in written.area_tiles), 0], np.int64)


def _ends(written: WrittenRelease, rows: Mask | slice = slice(None)) -> tuple[Ints, Ints]:
    """Return the areas at both ends of some rows."""
    return written.area_numbers("origin_area")[rows], written.area_numbers("destination_area")[rows]


def _published(written: WrittenRelease) -> Mask:
    """Return which rows are flows, and not aggregated small flows."""
    number, labels, _ = encode_ids(written.values("state"))
    published: Mask = np.array([label == STATES[PUBLISHED] for label in labels], bool)
    return published[number]

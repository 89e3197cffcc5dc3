"""Define partitions of the map that were made before: boxes of an earlier release, or groups of zones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Indices, Ints, check_lengths, check_offsets, freeze_columns, require
from crowdveil.model.time_axis import StepClass


@dataclass(frozen=True, eq=False)
class BoxPartition:
    """Boxes, pairs of an origin area and a destination area, for each class of time steps. Boxes of a class are disjoint.

    Attributes
    ----------
    areas
        The areas; origins and destinations are indices of them.
    by
        How time steps are classified.
    classes, offsets
        Rising numbers of the classes; the boxes of class i are offsets[i] to offsets[i + 1].
    origin, destination
        Areas of each box.
    suppressed_percent
        Percentage of trips that the release of these boxes suppressed; None where unknown.
    """

    areas: Areas
    by: StepClass
    classes: Ints
    offsets: Ints
    origin: Indices
    destination: Indices
    suppressed_percent: float | None = None

    def __post_init__(self) -> None:
        freeze_columns(self)
        check_offsets(self.offsets, len(self.origin), "partition")
        check_lengths("partition", len(self.offsets) - 1, classes=self.classes)
        check_lengths("partition", len(self.origin), destination=self.destination)
        require(bool(np.all(np.diff(self.classes) > 0)), "partition: classes must rise.")

    def __len__(self) -> int:
        return len(self.origin)

    def boxes_of(self, step_class: Ints) -> tuple[Ints, Ints]:
        """Return where the boxes of each time step begin and end, from the class of the step; none for an unknown class."""
        if len(self.classes) == 0:
            return np.zeros(len(step_class), np.int64), np.zeros(len(step_class), np.int64)
        place = np.minimum(np.searchsorted(self.classes, step_class), len(self.classes) - 1)
        known = self.classes[place] == step_class
        return np.where(known, self.offsets[place], 0), np.where(known, self.offsets[place + 1], 0)

    def overlapping_pairs(self) -> int:
        """Return how many pairs of tiles lie in more than one box of a class, counted up to the first origin that has any."""
        areas, tiles = self.areas, len(self.areas.zones)
        for low, high in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            boxes_from: dict[int, list[int]] = {}
            for box in range(low, high):
                area = self.origin[box]
                for tile in areas.tiles[areas.offsets[area] : areas.offsets[area + 1]].tolist():
                    boxes_from.setdefault(tile, []).append(box)
            for boxes in boxes_from.values():
                to = self.destination[boxes]
                reached = [areas.tiles[areas.offsets[d] : areas.offsets[d + 1]] for d in to.tolist()]
                twice = int(np.count_nonzero(np.bincount(np.concatenate(reached), minlength=tiles) > 1))
                if twice:
                    return twice
        return 0


@dataclass(frozen=True, eq=False)
class ZoneGroups:
    """Groups of zones, the areas of both origins and destinations: every pair of groups is a box.

    Attributes
    ----------
    areas
        The groups.
    part
        The group of each zone.
    """

    areas: Areas
    part: Ints

    def __post_init__(self) -> None:
        freeze_columns(self)
        check_lengths("partition", len(self.areas.zones), part=self.part)


Partition = BoxPartition | ZoneGroups

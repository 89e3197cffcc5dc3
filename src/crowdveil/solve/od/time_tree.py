"""Trees over time: the intervals that a window of time can be cut into."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from crowdveil.model.arrays import Ints, frozen, row_slices
from crowdveil.model.intervals import Intervals


@dataclass(frozen=True, eq=False)
class TimeTree:
    """The intervals of one window, each after the intervals that it consists of.

    Attributes
    ----------
    first, last
        Slots of each interval, half-open. A slot is one time step of the calendar, with trips or without.
    child_offsets, children
        The intervals that each interval can be split into.
    tops
        The longest intervals that may be published, in order; together they are the window.
    """

    first: Ints
    last: Ints
    child_offsets: Ints
    children: Ints
    tops: Ints

    @classmethod
    def of_levels(cls, low: int, levels: list[Ints]) -> TimeTree:
        """Build the tree of the slots from `low` on; each level has a key for each slot, and slots with equal keys are joined.

        Keys of a level must differ wherever those of the next one do.
        """
        count = len(levels[0]) if levels else 0
        first, last, tops = list(range(count)), list(range(1, count + 1)), list(range(count))
        offsets, children = [0] * (count + 1), []
        for keys in levels:
            joined: list[int] = []
            groups: list[list[int]] = []
            for node in tops:
                if groups and keys[first[groups[-1][0]]] == keys[first[node]]:
                    groups[-1].append(node)
                else:
                    groups.append([node])
            for group in groups:
                if len(group) == 1:
                    joined.append(group[0])
                    continue
                joined.append(len(first))
                first.append(first[group[0]])
                last.append(last[group[-1]])
                children += group
                offsets.append(len(children))
            tops = joined
        arrays = (
            low + np.array(first, np.int64),
            low + np.array(last, np.int64),
            np.array(offsets),
            np.array(children),
            tops,
        )
        return cls(*(frozen(a, np.int64) for a in arrays))

    def __len__(self) -> int:
        return len(self.first)

    def parts(self, node: int) -> Ints:
        """Return the intervals that an interval can be split into."""
        return self.children[self.child_offsets[node] : self.child_offsets[node + 1]]


@dataclass(frozen=True, eq=False)
class TimeWindows:
    """The windows that a data set is cut into, each with its tree.

    Attributes
    ----------
    start, end
        Start and end of each slot of all windows, UTC seconds; slots of a window follow one another.
    step
        The time step of the data that each slot is; -1 where the data have none.
    offsets
        Slots of each window.
    trees
        The tree of each window.
    step_weight
        What each time step after the first costs a trip, in tiles.
    """

    start: Ints
    end: Ints
    step: Ints
    offsets: Ints
    trees: tuple[TimeTree, ...]
    step_weight: Fraction

    def __len__(self) -> int:
        return len(self.trees)

    def of_steps(self, steps: int) -> Ints:
        """Return the window of each time step of the data, of which there are `steps`."""
        window = np.full(steps, -1, np.int64)
        held = self.step >= 0
        window[self.step[held]] = row_slices(self.offsets)[held]
        return window

    def intervals(self, first: Ints, last: Ints) -> Intervals:
        """Return the intervals of rows, from the slots of each, half-open."""
        return Intervals(self.start, self.end, self.offsets, first, last)

    def steps_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the time steps of the data in a range of slots, half-open."""
        held = self.step[first:last]
        held = held[held >= 0]
        return (int(held[0]), int(held[-1]) + 1) if len(held) else (0, 0)

"""Compare groups of zones with a known map of them: adjusted Rand index and confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option, counted
from crowdveil.model.arrays import Ints, Labels
from crowdveil.model.tabular import align_rows


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """Known classes of zones, and the groups that their zones are in.

    Attributes
    ----------
    classes, groups
        Names of the classes in the order of the alphabet, and numbers of the groups from 1.
    counts
        Zones of each class (row) in each group (column).
    without_class
        Zones that have no known class, which are not compared.
    """

    classes: tuple[str, ...]
    groups: tuple[int, ...]
    counts: Ints
    without_class: int

    @classmethod
    def of(cls, labels: Labels, cluster: Ints) -> ReferenceMap:
        """Compare the class of each zone, None where it is unknown, with its group, from 0."""
        known = np.array([label is not None for label in labels], np.bool_)
        if not known.any():
            raise InputError(Option("reference"), "no zone that is grouped has a class in this column. Name another.")
        classes, row = np.unique(labels[known].astype(str), return_inverse=True)
        groups, column = np.unique(cluster[known], return_inverse=True)
        counts = np.zeros((len(classes), len(groups)), np.int64)
        np.add.at(counts, (row, column), 1)
        return cls(tuple(map(str, classes)), tuple(int(g) + 1 for g in groups), counts, int((~known).sum()))

    @property
    def agreement(self) -> float:
        """Return the adjusted Rand index: 1 if both are the same partition, about 0 by chance."""

        def pairs(sizes: Ints) -> float:
            return float((sizes * (sizes - 1) / 2).sum())

        both, rows, columns = pairs(self.counts), pairs(self.counts.sum(axis=1)), pairs(self.counts.sum(axis=0))
        every = pairs(np.array([self.counts.sum()]))
        by_chance = rows * columns / every if every else 0.0
        largest = (rows + columns) / 2
        return 1.0 if largest == by_chance else (both - by_chance) / (largest - by_chance)

    def lines(self) -> list[str]:
        """Return the confusion matrix and the agreement as text."""
        rows = [["class", *(f"group {group}" for group in self.groups)]]
        rows += [[name, *map(str, row)] for name, row in zip(self.classes, self.counts.tolist(), strict=True)]
        without = f"; {counted(self.without_class, 'zone')} without a class not compared" if self.without_class else ""
        said = f"agreement with the known map (adjusted Rand index) {self.agreement:.3f}{without}"
        return ["Zones of each known class by group:", "", *align_rows(rows), "", said]

    def about(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "agreement": round(self.agreement, 6),
            "classes": list(self.classes),
            "groups": list(self.groups),
            "zones": self.counts.tolist(),
            "zones_without_class": self.without_class,
        }

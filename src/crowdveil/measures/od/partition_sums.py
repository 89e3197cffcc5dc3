"""Measures of flows that lie in parts, each of some whole time steps: what a part adds up, and the value of all of them from it.

A measure over all steps is made of sums over them. In a part it is computed once with a list beside it that keeps each sum it
asks for; what comes of it there means nothing. Where all lists are known, it is computed on no rows at all, and each sum that
it asks for is that of all parts, in the same order. No measure knows of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.measures.base import Asked
from crowdveil.measures.od.comparison import AllParts, OdComparison
from crowdveil.model.arrays import Floats


@dataclass(frozen=True)
class PartTotals:
    """What must be known of all parts before any of them can be measured over all steps.

    Attributes
    ----------
    volume, published
        Trips of the original and in rows.
    overlapping
        Whether flows lie in several rows.
    """

    volume: float = 0.0
    published: float = 0.0
    overlapping: bool = False

    @classmethod
    def of(cls, compared: OdComparison) -> PartTotals:
        """Those of one part."""
        original, release = compared.original, compared.release
        return cls(float(original.volume.sum()), float(release.volume.sum()), compared.row is None)

    def __add__(self, other: PartTotals) -> PartTotals:
        return PartTotals(
            self.volume + other.volume, self.published + other.published, self.overlapping or other.overlapping
        )


def sums_of_part(asked: Asked, compared: OdComparison, totals: PartTotals) -> list[Floats]:
    """The sums that a measure over all steps asks for, of this part."""
    sums: list[Floats] = []

    def keep(of_part: Floats) -> Floats:
        sums.append(of_part)
        return of_part

    with np.errstate(all="ignore"):
        asked.measure.of(_over_all(compared, totals, keep), asked.params)
    return sums


def over_all_parts(asked: Asked, nothing: OdComparison, totals: PartTotals, sums: Sequence[Sequence[Floats]]) -> Floats:
    """The value over all steps, from the sums of each part; `nothing` is a comparison of all areas without a row."""
    added = iter([np.sum(np.stack(of_parts), axis=0) for of_parts in zip(*sums, strict=True)])
    return asked.measure.of(_over_all(nothing, totals, lambda _: next(added)), asked.params)


def _over_all(compared: OdComparison, totals: PartTotals, add: Callable[[Floats], Floats]) -> OdComparison:
    known = AllParts(np.array([totals.volume]), np.array([totals.published]), add)
    row = None if totals.overlapping else compared.row
    return replace(compared, row=row, pooled=True, parts=known)

"""Measure flows in partitions of whole time steps: the sums of each partition, and the value of all from them.

A measure over all steps consists of sums over them. In a partition it is computed once, and a list records each sum that it
uses; its value there is discarded. With all lists, it is computed on no rows, and each sum that it uses is that of all
partitions, in the same order. Measures need no code for this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.measures.base import MeasureRequest
from crowdveil.measures.od.comparison import OdComparison, PartitionContext
from crowdveil.model.arrays import Floats


@dataclass(frozen=True)
class PartitionTotals:
    """Totals of all partitions, needed before a partition can be measured over all steps.

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
    def of(cls, compared: OdComparison) -> PartitionTotals:
        """Return those of one partition."""
        original, release = compared.original, compared.release
        return cls(float(original.volume.sum()), float(release.volume.sum()), compared.row is None)

    def __add__(self, other: PartitionTotals) -> PartitionTotals:
        return PartitionTotals(
            self.volume + other.volume, self.published + other.published, self.overlapping or other.overlapping
        )


def sums_of_partition(asked: MeasureRequest, compared: OdComparison, totals: PartitionTotals) -> list[Floats]:
    """Return the sums that a measure over all steps uses, of this partition."""
    sums: list[Floats] = []

    def keep(of_partition: Floats) -> Floats:
        sums.append(of_partition)
        return of_partition

    with np.errstate(all="ignore"):
        asked.measure.of(_over_all(compared, totals, keep), asked.params)
    return sums


def over_all_partitions(
    asked: MeasureRequest, empty: OdComparison, totals: PartitionTotals, sums: Sequence[Sequence[Floats]]
) -> Floats:
    """Return the value over all steps, from the sums of each partition; `empty` is a comparison of all areas without a row."""
    added = iter([np.sum(np.stack(of_parts), axis=0) for of_parts in zip(*sums, strict=True)])
    return asked.measure.of(_over_all(empty, totals, lambda _: next(added)), asked.params)


def _over_all(compared: OdComparison, totals: PartitionTotals, add: Callable[[Floats], Floats]) -> OdComparison:
    known = PartitionContext(np.array([totals.volume]), np.array([totals.published]), add)
    row = None if totals.overlapping else compared.row
    return replace(compared, row=row, pooled=True, parts=known)

"""Check k-anonymity against background knowledge of a few visits, on the written table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import CountedByPeople, Kind, Merge, unknown_people
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints

_BLOCK = 2_000_000
"""Approximate number of combinations that are checked at once."""


class CombinationKAnonymity(CountedByPeople):
    """Every combination of a few visits is shared by a group of at least k."""

    name: ClassVar[str] = "combination-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"checked": "sum", "small": "sum", "whose": "max", "other_number": "max"}
    k: int
    """Smallest group size."""
    knowledge: int
    """Number of visits in the background knowledge."""
    interval_s: int | None
    """Precision of known times: null for published times, 0 for no times."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        when = "with their times"
        if self.interval_s is not None:
            when = f"with times no finer than {self.interval_s:,} s" if self.interval_s else "without times"
        return (
            f"Every combination of up to {counted(self.knowledge, 'location')}, {when}, that a published trajectory visits in "
            f"this order is shared by at least {self.k:,} {self.k_unit}{self._only()}."
        )

    def what_was_done(self) -> str:
        """Describe the anonymization."""
        return (
            f"Positions were replaced by tiles, and visits were removed until every combination of "
            f"{counted(self.knowledge, 'visit')} is shared by at least {self.k:,} {self.k_unit}. Ids are new."
        )

    def _only(self) -> str:
        """Return the adversary that the guarantee does not cover."""
        if self.interval_s is None:
            return ""
        finer = f"times finer than {self.interval_s:,} s" if self.interval_s else "times"
        return f"; times are published to the second, so that it does not hold against an adversary with {finer}"

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many combinations are shared by too few."""
        what = "people" if with_original else "trajectories"
        checked = f"{counted(counts['checked'], 'combination')} checked"
        return f"{checked}, {counts['small']:,} with fewer than {self.k:,} {what}{unknown_people(counts)}."

    def _count(self, written: WrittenRelease, owner: Ints) -> tuple[int, int]:
        """Return the number of combinations, and of those shared by too few."""
        symbol, number = self._visits(written)
        checked, small = 0, 0
        for size in _group_sizes(symbol, number, owner, self.knowledge):
            checked += len(size)
            small += int((size < self.k).sum())
        return checked, small

    def _visits(self, written: WrittenRelease) -> tuple[Ints, Ints]:
        """Return a number for each location with its time, at the known precision, and its trajectory (from 0).

        Consecutive rows with equal numbers are one visit.
        """
        t, number = written.column("timestamp"), written.column("published_id") - 1
        when = t if self.interval_s is None else t // self.interval_s if self.interval_s else np.zeros(len(t))
        seen = np.column_stack([written.column("lon"), written.column("lat"), when])
        _, symbol = np.unique(seen, axis=0, return_inverse=True)
        symbol = symbol.reshape(-1).astype(np.int64)
        first = np.flatnonzero((np.diff(symbol, prepend=-1) != 0) | (np.diff(number, prepend=-1) != 0))
        return symbol[first], number[first]


def _group_sizes(symbol: Ints, number: Ints, who: Ints, knowledge: int) -> Iterator[Ints]:
    """Yield the number of distinct `who` of each combination of 1, 2, … visits, in blocks of first visits."""
    end = np.searchsorted(number, number, "right")
    symbols = int(symbol.max(initial=0)) + 1
    for at in _blocks(symbol, end, knowledge):
        combination = symbol[at]
        yield _different(combination, who[number[at]])
        for _ in range(1, knowledge):
            # Each combination is continued with every later visit of its trajectory.
            more = end[at] - at - 1
            before = np.repeat(np.arange(len(at)), more)
            at = at[before] + 1 + np.arange(len(before)) - np.repeat(np.cumsum(more) - more, more)
            _, combination = np.unique(combination[before] * symbols + symbol[at], return_inverse=True)
            yield _different(combination, who[number[at]])


def _blocks(symbol: Ints, end: Ints, knowledge: int) -> Iterator[Ints]:
    """Split visits into blocks of about `_BLOCK` combinations, each with all visits of its symbols."""
    order = np.argsort(symbol, kind="stable")
    begins = np.maximum(end - np.arange(len(end)), 1).astype(np.float64) ** (knowledge - 1)
    last = np.flatnonzero(np.diff(symbol[order], append=-1))
    work = np.cumsum(begins[order])[last] // _BLOCK
    cuts = last[np.flatnonzero(np.diff(work, append=-1))] + 1
    return (block for block in np.split(order, cuts[:-1]) if len(block))


def _different(combination: Ints, who: Ints) -> Ints:
    """Count the distinct `who` of each combination."""
    people = int(who.max(initial=0)) + 1
    return np.unique(np.unique(combination * people + who) // people, return_counts=True)[1]

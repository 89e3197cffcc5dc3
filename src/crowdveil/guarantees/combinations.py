"""A guarantee about what somebody may know of a trajectory, a few of its visits, checked on the written table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.trajectories import OTHER_NUMBER, WHOSE
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints

_BLOCK = 2_000_000
"""Combinations that are looked at at once, about."""


class CombinationKAnonymity(Guarantee):
    """Whoever knows a few visits of somebody finds a crowd that has them."""

    name: ClassVar[str] = "combination-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"looked": "sum", "small": "sum", "whose": "max", "other_number": "max"}
    k: int
    """Smallest crowd."""
    knowledge: int
    """How many visits may be known."""
    interval_s: int | None
    """How finely times may be known: null for as they are published, 0 for not at all."""
    counts: Literal["people", "trajectories"]
    """What is counted."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        when = "with their times"
        if self.interval_s is not None:
            when = f"with times no finer than {self.interval_s:,} s" if self.interval_s else "without times"
        return (
            f"Every combination of up to {counted(self.knowledge, 'place')}, {when}, that a published trajectory visits in this "
            f"order is in those of at least {self.k:,} {self.counts}{self._only()}."
        )

    def _only(self) -> str:
        """Whom the guarantee does not hold against."""
        if self.interval_s is None:
            return ""
        finer = f"times finer than {self.interval_s:,} s" if self.interval_s else "times"
        return f"; times are published to the second, so that it does not hold against whoever knows {finer}"

    def check(self, written: WrittenRelease) -> Finding:
        """Count the trajectories of each combination. The files do not tell whose they are."""
        looked, small = self._counted(written, np.arange(int(written.column("trajectory_id").max(initial=0))))
        whose = self.counts == "people" and looked > 0 and not small
        return self.judged(small > 0, {"looked": looked, "small": small, "whose": whose}, open_=whose)

    def check_behind(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of each combination."""
        if int(written.column("trajectory_id").max(initial=0)) != len(person):
            return self.judged(True, {"other_number": 1}, with_original=True)
        if self.counts != "people":
            return self.check(written)
        looked, small = self._counted(written, person)
        return self.judged(small > 0, {"looked": looked, "small": small}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many combinations have too few."""
        if counts["other_number"]:
            return OTHER_NUMBER
        what = "people" if with_original else "trajectories"
        said = f"{counted(counts['looked'], 'combination')} looked at, {counts['small']:,} with fewer than {self.k:,} {what}"
        return f"{said}; {WHOSE}." if counts["whose"] else f"{said}."

    def _counted(self, written: WrittenRelease, who: Ints) -> tuple[int, int]:
        """How many combinations there are, and how many have too few."""
        symbol, number = self._visits(written)
        looked, small = 0, 0
        for crowd in _crowds(symbol, number, who, self.knowledge):
            looked += len(crowd)
            small += int((crowd < self.k).sum())
        return looked, small

    def _visits(self, written: WrittenRelease) -> tuple[Ints, Ints]:
        """A number for each place with its time, as finely as it may be known, and the trajectory (from 0); rows that follow one
        another with equal ones are one visit.
        """
        t, number = written.column("timestamp"), written.column("trajectory_id") - 1
        when = t if self.interval_s is None else t // self.interval_s if self.interval_s else np.zeros(len(t))
        seen = np.column_stack([written.column("lon"), written.column("lat"), when])
        _, symbol = np.unique(seen, axis=0, return_inverse=True)
        symbol = symbol.reshape(-1).astype(np.int64)
        first = np.flatnonzero((np.diff(symbol, prepend=-1) != 0) | (np.diff(number, prepend=-1) != 0))
        return symbol[first], number[first]


def _crowds(symbol: Ints, number: Ints, who: Ints, knowledge: int) -> Iterator[Ints]:
    """How many different `who` have each combination of 1, 2, … visits, block by block of what it begins with."""
    end = np.searchsorted(number, number, "right")
    symbols = int(symbol.max(initial=0)) + 1
    for at in _blocks(symbol, end, knowledge):
        combination = symbol[at]
        yield _different(combination, who[number[at]])
        for _ in range(1, knowledge):
            # Each one is continued with every later visit of its trajectory.
            more = end[at] - at - 1
            before = np.repeat(np.arange(len(at)), more)
            at = at[before] + 1 + np.arange(len(before)) - np.repeat(np.cumsum(more) - more, more)
            _, combination = np.unique(combination[before] * symbols + symbol[at], return_inverse=True)
            yield _different(combination, who[number[at]])


def _blocks(symbol: Ints, end: Ints, knowledge: int) -> Iterator[Ints]:
    """Visits in blocks that hold all visits of a symbol, and begin about as many combinations as fit."""
    order = np.argsort(symbol, kind="stable")
    begins = np.maximum(end - np.arange(len(end)), 1).astype(np.float64) ** (knowledge - 1)
    last = np.flatnonzero(np.diff(symbol[order], append=-1))
    work = np.cumsum(begins[order])[last] // _BLOCK
    cuts = last[np.flatnonzero(np.diff(work, append=-1))] + 1
    return (block for block in np.split(order, cuts[:-1]) if len(block))


def _different(combination: Ints, who: Ints) -> Ints:
    """How many different `who` each combination has."""
    people = int(who.max(initial=0)) + 1
    return np.unique(np.unique(combination * people + who) // people, return_counts=True)[1]

"""Define a guarantee about a written release, and the finding of its check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import shapely
from pydantic import BaseModel, ConfigDict

from crowdveil.errors import GuaranteeViolatedError, counted
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories

Kind = Literal["privacy", "structure"]
Merge = Literal["sum", "max"]
"""How to merge a count over partitions. sum: each counted item is in one partition; max: a flag, 1 if any is 1."""


class Outcome(StrEnum):
    """The outcome of a check. A guarantee holds only if all of its statement was checked."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_CHECKED = "not checked"


OTHER_NUMBER = "the number of trajectories in the files is not that of the release."


@dataclass(frozen=True)
class Finding:
    """The finding of a check, in counts and never in values of the data.

    Attributes
    ----------
    outcome
        Whether the guarantee holds, is violated, or could not be checked in full and no violation was found.
    counts
        The numbers in the sentence, by name.
    detail
        The check and its outcome in one sentence, made from the counts.
    with_original
        Whether the original data were used.
    sums
        Sums by group of time steps, from which partitions are merged if a group is in several of them. Confidential, do
        not publish.
    """

    outcome: Outcome
    counts: dict[str, int] = field(default_factory=dict)
    detail: str = ""
    with_original: bool = False
    sums: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def holds(self) -> bool:
        """Return whether the guarantee was checked in full and holds."""
        return self.outcome is Outcome.HOLDS

    @property
    def violated(self) -> bool:
        """Return whether the guarantee is violated."""
        return self.outcome is Outcome.VIOLATED

    def as_json(self) -> dict[str, Any]:
        """Return the finding in plain values."""
        return asdict(self) | {"outcome": self.outcome.value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Finding:
        """Make a finding from plain values."""
        return cls(**{**values, "outcome": Outcome(values["outcome"])})


class Guarantee(BaseModel):
    """A guarantee that is checked on the written files, without the code that made them.

    The fields of a subclass are the guarantee's parameters. The manifest has them, so that `crowdveil verify` can make the
    guarantee again.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    name: ClassVar[str]
    kind: ClassVar[Kind]
    """privacy: protects people; structure: the files are well formed and true."""
    sentence: ClassVar[str]
    """The guarantee in one sentence, if it has no parameters."""
    tallies: ClassVar[Mapping[str, Merge]] = {}
    """The counts of a finding by name, and how to merge them over partitions."""
    of_mechanism: ClassVar[bool] = False
    """Whether it is a property of the mechanism that neither the files nor the original can show."""
    from_data: ClassVar[tuple[str, ...]] = ()
    """Parameters that come from the data; all others follow from the parameters of the method."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return self.sentence

    def what_was_done(self) -> str:
        """Describe the anonymization for the first page of the report; "" if the guarantee says nothing about it."""
        return ""

    def check(self, written: WrittenRelease) -> Finding:
        """Check the guarantee on the files."""
        raise NotImplementedError

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Check the guarantee on the files and the original flows, if the files alone do not show it."""
        return self.check(written)

    def check_with_people(self, written: WrittenRelease, person: Ints) -> Finding:
        """Check the guarantee on the files and the person of each written trajectory."""
        return self.check(written)

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Check the guarantee on the files, the original trajectories and, if known, the source of each written one."""
        return self.check(written) if source is None else self.check_with_people(written, original.person[source])

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the sentence of a finding from its counts, which include every name in `tallies`.

        If `other_number` is counted, `OTHER_NUMBER` replaces the sentence.
        """
        return ", ".join(f"{name.replace('_', ' ')}: {counts[name]:,}" for name in self.tallies) + "."

    def make_finding(
        self, violated: bool, counts: Mapping[str, int], *, open_: bool = False, with_original: bool = False
    ) -> Finding:
        """Return the finding of some counts: violated, not checked (if `open_`), or holds."""
        outcome = Outcome.VIOLATED if violated else Outcome.NOT_CHECKED if open_ else Outcome.HOLDS
        return self._finding(outcome, counts, with_original)

    def merge_findings(self, findings: Sequence[Finding]) -> Finding:
        """Merge the findings of all partitions. The guarantee holds if it holds in each of at least one."""
        outcomes = {finding.outcome for finding in findings} or {Outcome.NOT_CHECKED}
        order = (Outcome.VIOLATED, Outcome.NOT_CHECKED, Outcome.HOLDS)
        counts = {}
        for name, merge in self.tallies.items():
            values = [finding.counts.get(name, 0) for finding in findings]
            counts[name] = sum(values) if merge == "sum" else max(values, default=0)
        return self._finding(next(o for o in order if o in outcomes), counts, any(f.with_original for f in findings))

    def _finding(self, outcome: Outcome, counts: Mapping[str, int], with_original: bool) -> Finding:
        undeclared = counts.keys() - self.tallies.keys()
        if undeclared:
            raise KeyError(f"{self.name} does not declare the counts {', '.join(sorted(undeclared))}")
        every = {name: int(counts.get(name, 0)) for name in self.tallies}
        detail = OTHER_NUMBER if every.get("other_number") else self.describe(every, with_original)
        return Finding(outcome, every, detail, with_original)


def unknown_people(counts: Mapping[str, int]) -> str:
    """Return the end of a sentence about groups whose people are unknown."""
    hidden = "; the people behind them are known only during the run, and files do not show them"
    return hidden if counts["whose"] else ""


class CountedByPeople(Guarantee):
    """A guarantee about groups of published trajectories, whose people the files do not show.

    `_count` returns the first tallies: the number of groups, of those that are too small, and of those of unknown size.
    """

    if TYPE_CHECKING:  # each subclass declares it among its parameters
        k_unit: Literal["people", "trajectories"]

    def _count(self, written: WrittenRelease, owner: Ints) -> tuple[int, ...]:
        raise NotImplementedError

    def check(self, written: WrittenRelease) -> Finding:
        """Count the trajectories of each group. The files do not show their people."""
        checked, small, *unknown = found = self._count(written, np.arange(_trajectories(written)))
        whose = self.k_unit == "people" and checked > 0 and not small
        counts = {"whose": whose, **dict(zip(self.tallies, found, strict=False))}
        return self.make_finding(small > 0, counts, open_=whose or any(unknown))

    def check_with_people(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of each group."""
        if _trajectories(written) != len(person):
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        if self.k_unit != "people":
            return self.check(written)
        _, small, *unknown = found = self._count(written, person)
        counts = dict(zip(self.tallies, found, strict=False))
        return self.make_finding(small > 0, counts, open_=any(unknown), with_original=True)


def _trajectories(written: WrittenRelease) -> int:
    """Return the number of written trajectories, or more if they are not numbered 1, 2, …."""
    number = written.column("published_id")
    return max(len(np.unique(number)), int(number.max(initial=0)))


class ComparedWithOriginal(Guarantee):
    """A guarantee that can be checked only with the original."""

    kind: ClassVar[Kind] = "structure"
    unseen: ClassVar[str]
    """The sentence of a finding from the files alone."""

    def check(self, written: WrittenRelease) -> Finding:
        """Check nothing: the original is missing."""
        return self.make_finding(False, {}, open_=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the differences from the original."""
        return self._differences(counts) if with_original else self.unseen

    def _differences(self, counts: Mapping[str, int]) -> str:
        raise NotImplementedError


def faults_in(counts: Mapping[str, int], faults: Mapping[str, str]) -> str:
    """Return the faults with a flag, in words, as the beginning of a sentence; "" if there are none."""
    return "; ".join(words for name, words in faults.items() if counts[name])


def flags(faults: Mapping[str, str]) -> dict[str, Merge]:
    """Return the tallies of faults, which are flags."""
    return dict.fromkeys(faults, "max")


FROM_FILES = "cannot be checked from the files alone"


def tally(found: Sequence[tuple[str, bool]], unchecked: str = "not checked") -> str:
    """Return how many guarantees were verified, violated and not checked, in words.

    `found` has each outcome, and whether the guarantee was checked against the original.
    """
    by_anyone, by_publisher = (found.count((Outcome.HOLDS.value, original)) for original in (False, True))
    violated, open_ = (sum(outcome == o for outcome, _ in found) for o in (Outcome.VIOLATED, Outcome.NOT_CHECKED))
    parts = [f"{counted(by_anyone, 'guarantee')} can be checked from the files by anyone"]
    if by_publisher:
        parts.append(
            f"{by_publisher:,} {'was' if by_publisher == 1 else 'were'} checked by the publisher against the original"
        )
    if violated:
        parts.append(f"{violated:,} violated")
    if open_:
        parts.append(f"{open_:,} {unchecked}")
    return "; ".join(parts)


def require_not_violated(checked: Sequence[tuple[Guarantee, Finding]]) -> None:
    """Raise if any guarantee is violated."""
    for guarantee, finding in checked:
        if finding.violated:
            raise GuaranteeViolatedError(
                f"the guarantee {guarantee.name} is violated, so nothing was published: {finding.detail}"
            )


def require_checked(checked: Sequence[tuple[Guarantee, Finding]]) -> None:
    """Raise if a guarantee is violated, or if one of privacy was not checked although the original was available.

    Guarantees of structure, and of the mechanism (`of_mechanism`), may be unchecked.
    """
    require_not_violated(checked)
    for guarantee, finding in checked:
        if guarantee.kind == "privacy" and not guarantee.of_mechanism and not finding.holds:
            raise GuaranteeViolatedError(
                f"the guarantee {guarantee.name} could not be checked, so nothing was published: {finding.detail}"
            )


def broken_outlines(features: Sequence[dict[str, Any]]) -> int:
    """Count polygons that are invalid, unreadable, or beyond ±180°; features without an outline do not count."""
    texts = [json.dumps(f["geometry"]) for f in features if f.get("geometry") is not None]
    if not texts:
        return 0

    shapes = shapely.from_geojson(np.array(texts, dtype=object), on_invalid="ignore")
    bounds = shapely.bounds(shapes).reshape(-1, 4)
    outside = (np.abs(bounds[:, [0, 2]]) > 180).any(axis=1) | (np.abs(bounds[:, [1, 3]]) > 90).any(axis=1)
    # Anything but a geometry is invalid, too.
    return int((~shapely.is_valid(shapes) | outside).sum())

"""A guarantee about a written release, and what came of checking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from crowdveil.errors import GuaranteeViolatedError, counted
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories

Kind = Literal["privacy", "structure"]
Pieces = Literal["none", "runs", "equal"]
"""How a table of trajectories may be cut so that a guarantee that holds in each piece holds of all. none: not at all; runs: into
rows that follow one another, in whole trajectories that are numbered from 1 in each; equal: so that equal ones stay together."""
Merge = Literal["sum", "max"]
"""How a count of several partitions becomes one of all. sum: what is counted lies in one partition; max: a flag, 1 where
something is so in any of them."""


class Outcome(StrEnum):
    """The outcome of a check. A guarantee holds only if all of its statement was checked."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Finding:
    """The outcome of a check, in counts and never in values of the data.

    Attributes
    ----------
    outcome
        Whether the guarantee holds, is violated, or could not be checked in full on what was available: then nothing was found
        against it, and it is not shown to hold.
    counts
        The numbers behind the sentence, by name.
    detail
        What was looked at and what was found, in one sentence that is made from the counts.
    with_original
        Whether the original data were used.
    """

    outcome: Outcome
    counts: dict[str, int] = field(default_factory=dict)
    detail: str = ""
    with_original: bool = False

    @property
    def holds(self) -> bool:
        """Whether the guarantee was checked in full and holds."""
        return self.outcome is Outcome.HOLDS

    @property
    def violated(self) -> bool:
        """Whether the guarantee was found violated."""
        return self.outcome is Outcome.VIOLATED

    def as_json(self) -> dict[str, Any]:
        """Return the finding in plain values."""
        return asdict(self) | {"outcome": self.outcome.value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Finding:
        """Make a finding from plain values."""
        return cls(**{**values, "outcome": Outcome(values["outcome"])})


class Guarantee(BaseModel):
    """A guarantee that can be checked on the written files alone, plainly, without the code that made them.

    The fields of a subclass are the guarantee's parameters; they go into the manifest, and `crowdveil verify` makes the
    guarantee anew from there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: ClassVar[str]
    kind: ClassVar[Kind]
    """privacy: hides people; structure: the files are what they say they are."""
    pieces: ClassVar[Pieces] = "none"
    """For guarantees about trajectories that may be looked at in pieces."""
    tallies: ClassVar[Mapping[str, Merge]] = {}
    """The counts of a finding by name, and how those of several partitions are merged."""
    of_mechanism: ClassVar[bool] = False
    """Whether it is a property of the mechanism that made the files, which no file and no original can show."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        raise NotImplementedError

    def check(self, written: WrittenRelease) -> Finding:
        """Whether the files keep it."""
        raise NotImplementedError

    def check_with(self, written: WrittenRelease, original: Flows) -> Finding:
        """Whether the files keep it, with the original flows at hand: of use where files alone cannot tell."""
        return self.check(written)

    def check_behind(self, written: WrittenRelease, person: Ints) -> Finding:
        """Whether the files keep it, with the person behind each written trajectory at hand."""
        return self.check(written)

    def check_from(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Whether the files keep it, with the original trajectories at hand, and of each written one which of them it comes
        from, where that is known.
        """
        return self.check(written) if source is None else self.check_behind(written, original.person[source])

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the sentence of a finding, from its counts alone; every name in `tallies` is in them."""
        return ", ".join(f"{name.replace('_', ' ')}: {counts[name]:,}" for name in self.tallies) + "."

    def judged(
        self, violated: bool, counts: Mapping[str, int], *, open_: bool = False, with_original: bool = False
    ) -> Finding:
        """Return the finding of some counts: violated, or not checked where something is `open_`, or else it holds."""
        outcome = Outcome.VIOLATED if violated else Outcome.NOT_CHECKED if open_ else Outcome.HOLDS
        return self._told(outcome, counts, with_original)

    def merged(self, findings: Sequence[Finding]) -> Finding:
        """Return one finding of those of all partitions. It holds only if it holds in each; of none, nothing was checked."""
        outcomes = {finding.outcome for finding in findings} or {Outcome.NOT_CHECKED}
        order = (Outcome.VIOLATED, Outcome.NOT_CHECKED, Outcome.HOLDS)
        counts = {}
        for name, way in self.tallies.items():
            values = [finding.counts.get(name, 0) for finding in findings]
            counts[name] = sum(values) if way == "sum" else max(values, default=0)
        return self._told(next(o for o in order if o in outcomes), counts, any(f.with_original for f in findings))

    def _told(self, outcome: Outcome, counts: Mapping[str, int], with_original: bool) -> Finding:
        strange = counts.keys() - self.tallies.keys()
        if strange:
            raise KeyError(f"{self.name} does not declare the counts {', '.join(sorted(strange))}")
        every = {name: int(counts.get(name, 0)) for name in self.tallies}
        return Finding(outcome, every, self.describe(every, with_original), with_original)


def faults_in(counts: Mapping[str, int], faults: Mapping[str, str]) -> str:
    """Return the faults whose flag is set, in words, as the beginning of a sentence; "" if there are none."""
    return "; ".join(words for name, words in faults.items() if counts[name])


def flags(faults: Mapping[str, str]) -> dict[str, Merge]:
    """Return the tallies of faults that are flags."""
    return dict.fromkeys(faults, "max")


FROM_FILES = "not checkable from files alone"


def tally(outcomes: Sequence[str], unchecked: str = "not checked") -> str:
    """Return how many guarantees were verified, violated and not checked, in words; what was not checked is never among those
    that hold.
    """
    holds, violated, open_ = (outcomes.count(o.value) for o in (Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_CHECKED))
    parts = [f"{counted(holds, 'guarantee')} verified on these files"]
    if violated:
        parts.append(f"{violated:,} violated")
    if open_:
        parts.append(f"{open_:,} {unchecked}")
    return ", ".join(parts)


def refuse_broken(checked: Sequence[tuple[Guarantee, Finding]]) -> None:
    """Raise if any guarantee is violated."""
    for guarantee, finding in checked:
        if finding.violated:
            raise GuaranteeViolatedError(
                f"the guarantee {guarantee.name} is violated, so nothing was published: {finding.detail}"
            )


def refuse_unchecked(checked: Sequence[tuple[Guarantee, Finding]]) -> None:
    """Raise if a guarantee of privacy was not checked although the original was available.

    What may stay unchecked then are guarantees of structure, and those of the mechanism (`of_mechanism`).
    """
    refuse_broken(checked)
    for guarantee, finding in checked:
        if guarantee.kind == "privacy" and not guarantee.of_mechanism and not finding.holds:
            raise GuaranteeViolatedError(
                f"the guarantee {guarantee.name} could not be checked, so nothing was published: {finding.detail}"
            )

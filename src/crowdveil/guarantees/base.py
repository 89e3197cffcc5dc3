"""A promise about a written release, and what came of checking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from crowdveil.errors import PromiseBrokenError
from crowdveil.io.written import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories

Kind = Literal["privacy", "structure"]
Pieces = Literal["none", "runs", "equal"]
"""How a table of trajectories may be cut so that a promise that holds in each piece holds of all. none: not at all; runs: into
rows that follow one another, in whole trajectories that are numbered from 1 in each; equal: so that equal ones stay together."""


@dataclass(frozen=True)
class Finding:
    """The outcome of a check, in counts and never in values of the data.

    Attributes
    ----------
    holds
        False if the promise was found broken.
    detail
        What was looked at, and what was found.
    looked
        Whether it could be checked on what was at hand. If not, nothing speaks against the promise, and nothing for it.
    with_original
        Whether the original flows were used.
    """

    holds: bool
    detail: str
    looked: bool = True
    with_original: bool = False


class Guarantee(BaseModel):
    """A promise that can be checked on the written files alone, plainly, without the code that made them.

    The fields of a subclass are the promise's parameters; they go into the manifest, and `crowdveil verify` makes the
    promise anew from there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: ClassVar[str]
    kind: ClassVar[Kind]
    """privacy: hides people; structure: the files are what they say they are."""
    pieces: ClassVar[Pieces] = "none"
    """For promises about trajectories that may be looked at in pieces."""

    def statement(self) -> str:
        """The promise in one sentence."""
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


def refuse_broken(checked: Sequence[tuple[Guarantee, Finding]]) -> None:
    """Raise if any promise does not hold."""
    broken = [(p, f) for p, f in checked if not f.holds]
    if broken:
        promise, finding = broken[0]
        raise PromiseBrokenError(
            f"the promise {promise.name} does not hold, so nothing was published: {finding.detail}"
        )

"""What an attack is: its record, its parameters, and what comes of one on trajectories or on a release of flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.attacks.adversary_view import Precision, Units
from crowdveil.model.arrays import Floats, Ints
from crowdveil.params import Params

USUAL_K = 10
"""What risks are held against where no crowd is named."""


class SightParams(Params):
    """What every adversary of trajectories sees."""

    tile_m: float | None = Field(None, gt=0, le=1_000_000)
    """Side of the square tiles that places are told apart by; exact positions where not given."""
    units: Literal["auto", "people", "trajectories"] = "auto"
    """Whose records go together: a person's, or a trajectory's where people are unknown or not linked in the release."""
    people: int | None = Field(None, ge=1)
    """Try so many of them, drawn at random; all where not given."""
    k: int | None = Field(None, ge=2)
    """Crowd that risks are held against; that of the release where not given, otherwise 10."""
    seed: int = Field(0, ge=0)
    """Of every random choice."""


class KnowledgeParams(SightParams):
    """What every adversary knows who knows a few places."""

    knowledge: int = Field(2, ge=1, le=10)
    """How many places are known (h)."""
    most_combinations: int = Field(1_000_000, ge=1)
    """Choices of known places that are looked at for one person; beyond, the risk is a lower bound, and it is said."""
    samples: int = Field(10_000, ge=100, le=10_000_000)
    """Random choices that the average is estimated from; it is exact where there are no more choices than that."""


class TimeParams(KnowledgeParams):
    """What is known of times too."""

    time_precision: Precision = "hour"
    """How finely times are known (UTC)."""


class ToleranceParams(KnowledgeParams):
    """What is known up to a tolerance."""

    tolerance: float = Field(0.0, ge=0, le=1)
    """How far a number may be from the known one, as a share of it."""


class HomeWorkParams(SightParams):
    """Which two places are known."""

    visited: Literal["most", "least"] = "most"
    """The two most visited places, or the two least visited ones, which is what scikit-mobility's code takes."""


class AllParams(TimeParams, ToleranceParams, HomeWorkParams):
    """Parameters of all adversaries of trajectories at once."""


class FlowAttackParams(Params):
    """What every adversary of flows is held against."""

    k: int | None = Field(None, ge=2)
    """Crowd that counts are held against; that of the release where not given, otherwise 10."""


@dataclass(frozen=True)
class Attack:
    """The record of an attack: what the command line, the docs and every other door are drawn from.

    Attributes
    ----------
    name
        In lower case with hyphens.
    title
        A few words for a table.
    takes
        What it is made on: `Trajectories`, original or released, or `FlowRelease`.
    params
        Its parameters.
    run
        (scene, params, progress) → `Risk` for trajectories, (published, params) → `Exposure` for flows.
    doc
        The docstring of its module: what the adversary knows, and how it is matched.
    aliases
        Names elsewhere.
    """

    name: str
    title: str
    takes: type
    params: type[Params]
    run: Callable[..., Any]
    doc: str
    aliases: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().splitlines()[0]


@dataclass(frozen=True)
class Interval:
    """An estimate with the bounds that hold it in 95 of 100 cases; they are the estimate itself where it is exact."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether it is no estimate."""
        return self.low == self.high == self.value

    @classmethod
    def known(cls, value: float) -> Interval:
        """One that is exact."""
        return cls(value, value, value)

    @classmethod
    def of_sample(cls, values: Floats) -> Interval:
        """The mean of values from 0 to 1 that were drawn at random, with Wilson's interval.

        It is made for shares of hits; numbers between 0 and 1 vary less than hits of the same mean, so that it is wide
        rather than narrow.
        """
        n, z = len(values), 1.959964
        mean = float(values.mean()) if n else float("nan")
        if not n:
            return cls(mean, 0.0, 1.0)
        middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(max(mean * (1 - mean), 0.0) / n + z * z / (4 * n * n))
        return cls(mean, float(min(mean, max(0.0, middle - half))), float(max(mean, min(1.0, middle + half))))


@dataclass(frozen=True, eq=False)
class Risk:
    """What an adversary of trajectories finds.

    Attributes
    ----------
    units
        What an individual is: a person, or a single trajectory.
    tried, of
        The individuals that were tried, by their number among all `of` them.
    crowd
        The fewest people that something known of each leads to; 0 where nothing leads to a crowd with the individual in it.
    exact
        Whether every choice of known places was looked at. If not, risks are lower bounds.
    average
        The risk over random individuals and random choices of what is known, where `crowd` is over the worst choice.
    paired
        Whether it was known whose published trajectories are; if not, a crowd counts without the individual in it.
    """

    units: Units
    tried: Ints
    of: int
    crowd: Ints
    exact: bool
    average: Interval
    paired: bool = True

    @property
    def risk(self) -> Floats:
        """The probability of finding each one by the worst choice of what is known: 1 / crowd, 0 where there is none."""
        found: Floats = np.zeros(len(self.crowd))
        np.divide(1.0, self.crowd, out=found, where=self.crowd > 0)
        return found

    @property
    def mean(self) -> Interval:
        """Mean risk; estimated where some were tried."""
        return self._over(self.risk)

    @property
    def unique(self) -> Interval:
        """Share of those whom the worst choice finds for sure."""
        return self._over((self.crowd == 1).astype(np.float64))

    @property
    def highest(self) -> float:
        """The highest risk of those tried."""
        return float(self.risk.max(initial=0.0))

    def above(self, k: int) -> Interval:
        """Share of those whom the worst choice finds with a probability above 1/k."""
        return self._over(((self.crowd > 0) & (self.crowd < k)).astype(np.float64))

    def _over(self, values: Floats) -> Interval:
        if len(self.tried) < self.of:
            return Interval.of_sample(values)
        return Interval.known(float(values.mean()) if len(values) else 0.0)


@dataclass(frozen=True)
class Exposure:
    """What an adversary finds in a release of flows, which anybody can find who has it.

    Attributes
    ----------
    name, title
        Of the attack.
    values
        Counts and shares, by name.
    worst
        The smallest crowd that it leads to, None where there is nothing to look at.
    beats_k
        Whether it leads to fewer than k.
    explanation
        What was found, in a sentence.
    """

    name: str
    title: str
    values: Mapping[str, float | int | None]
    worst: int | None
    beats_k: bool
    explanation: str

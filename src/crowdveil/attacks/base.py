"""Define the record of an attack, its parameters, and its results on trajectories or on a release of flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from crowdveil.attacks.adversary_view import Precision, Units
from crowdveil.model.arrays import Floats, Ints
from crowdveil.params import Described, Params


class AdversaryParams(Params):
    """Parameters of every adversary of trajectories."""

    tile_m: float | None = Field(None, gt=0, le=1_000_000)
    """Side of the square tiles of locations; exact positions where not given."""
    units: Literal["auto", "people", "trajectories"] = "auto"
    """Whose records are one history: a person's, or a trajectory's where people are unknown or not linked in the release."""
    people: int | None = Field(None, ge=1)
    """Number of individuals to attack, drawn at random; all where not given."""
    k: int | None = Field(None, ge=2)
    """Group size that risks are compared with; that of the release where not given, otherwise 10."""
    seed: int = Field(0, ge=0)
    """Seed of every random choice."""


class KnowledgeParams(AdversaryParams):
    """Parameters of every adversary with background knowledge of a few locations."""

    knowledge: int = Field(2, ge=1, le=10)
    """Number of known locations (h)."""
    max_combinations: int = Field(1_000_000, ge=1)
    """Combinations of known locations tried for one person; beyond, the risk is a lower bound, and is marked so."""
    samples: int = Field(10_000, ge=100, le=10_000_000)
    """Random combinations for the average; it is exact where there are no more combinations than that."""


class TimeParams(KnowledgeParams):
    """Parameters with the precision of known times."""

    time_precision: Precision = "hour"
    """Precision of known times (UTC)."""


class ToleranceParams(KnowledgeParams):
    """Parameters with a tolerance of known numbers."""

    tolerance: float = Field(0.0, ge=0, le=1)
    """Relative deviation from a known number that still matches."""


class HomeWorkParams(AdversaryParams):
    """Parameters with the two known locations."""

    visited: Literal["most", "least"] = "most"
    """The two most visited locations, or the two least visited ones, as in scikit-mobility's code."""


class AllAttackParams(TimeParams, ToleranceParams, HomeWorkParams):
    """Parameters of all adversaries of trajectories."""


class FlowAttackParams(Params):
    """Parameters of every adversary of flows."""

    k: int | None = Field(None, ge=2)
    """Group size that counts are compared with; that of the release where not given, otherwise 10."""


@dataclass(frozen=True)
class Attack(Described):
    """The record of an attack. The command line, the docs, the service and the web page are generated from it.

    Attributes
    ----------
    name
        In lower case with hyphens.
    title
        A few words for a table.
    takes
        The data that it attacks: `Trajectories`, original or released, or `FlowRelease`.
    params
        Its parameters.
    run
        (scenario, params, progress) → `Risk` for trajectories, (published, params) → `Exposure` for flows. The docstring of its
        module, or `text`, describes the adversary's background knowledge, and how it is matched.
    aliases
        Names in other tools.
    text
        The description, where a module has several attacks.
    """

    name: str
    title: str
    takes: type
    params: type[Params]
    run: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    text: str = ""

    @property
    def doc(self) -> str:
        """Return the description: its text, or the docstring of its module."""
        return self.text or super().doc


@dataclass(frozen=True)
class Interval:
    """An estimate with 95 % confidence bounds; they equal the estimate where it is exact."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Return whether it is exact."""
        return self.low == self.high == self.value

    @classmethod
    def known(cls, value: float) -> Interval:
        """Return an exact value as an interval."""
        return cls(value, value, value)

    @classmethod
    def of_sample(cls, values: Floats) -> Interval:
        """Return the mean of a random sample of values from 0 to 1, with Wilson's confidence bounds.

        The bounds are for shares of hits; numbers between 0 and 1 vary less than hits of the same mean, so that the bounds
        are rather too wide.
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
    """The re-identification risk of individuals by an adversary of trajectories.

    Attributes
    ----------
    units
        The individuals: people, or single trajectories.
    tried, of
        The individuals attacked, by their number among all `of` them.
    group_size
        The smallest group that matches background knowledge of each; 0 where no group with the individual matches.
    exact
        Whether every combination of known locations was tried. If not, risks are lower bounds.
    average
        The risk over random individuals and random combinations, where `group_size` is for the worst combination.
    paired
        Whether the sources of published trajectories are known; if not, a group counts without the individual in it.
    """

    units: Units
    tried: Ints
    of: int
    group_size: Ints
    exact: bool
    average: Interval
    paired: bool = True

    @property
    def risk(self) -> Floats:
        """Return the probability of re-identifying each by the worst combination: 1 / group size, 0 where there is none."""
        found: Floats = np.zeros(len(self.group_size))
        np.divide(1.0, self.group_size, out=found, where=self.group_size > 0)
        return found

    @property
    def mean(self) -> Interval:
        """Return the mean risk; estimated where some were attacked."""
        return self._over(self.risk)

    @property
    def unique(self) -> Interval:
        """Return the share that the worst combination re-identifies with certainty."""
        return self._over((self.group_size == 1).astype(np.float64))

    @property
    def highest(self) -> float:
        """Return the highest risk."""
        return float(self.risk.max(initial=0.0))

    def above(self, k: int) -> Interval:
        """Return the share that the worst combination re-identifies with a probability above 1/k."""
        return self._over(((self.group_size > 0) & (self.group_size < k)).astype(np.float64))

    def _over(self, values: Floats) -> Interval:
        if len(self.tried) < self.of:
            return Interval.of_sample(values)
        return Interval.known(float(values.mean()) if len(values) else 0.0)


@dataclass(frozen=True)
class Exposure:
    """The finding of an adversary in a release of flows, without other knowledge.

    Attributes
    ----------
    name, title
        Of the attack.
    values
        Counts and shares, by name.
    worst
        The smallest group found, None where there is none.
    below_k
        Whether a group below k was found.
    explanation
        The finding, in a sentence.
    """

    name: str
    title: str
    values: Mapping[str, float | int | None]
    worst: int | None
    below_k: bool
    explanation: str


def percent(part: float, whole: float) -> float | None:
    """Return a share in per cent, to two digits; None of nothing."""
    return round(100 * float(part) / float(whole), 2) if whole else None

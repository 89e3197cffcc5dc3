"""Define the record of a method, and the types that it consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, Literal

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.guarantees.base import Guarantee
from crowdveil.model.arrays import Ints
from crowdveil.model.canonical import digest
from crowdveil.model.flows import Flows
from crowdveil.model.release import Release, TrajectoryRelease
from crowdveil.model.trajectories import Outline, Trajectories
from crowdveil.params import Described, Params

Status = Literal["proven", "argued", "heuristic"]
"""proven: the guarantee follows from the text of the method; argued: from an argument with stated assumptions;
heuristic: no guarantee of anonymity, only measured risk."""


RowSemantics = Literal["exact", "overlapping", "noisy"]
"""The meaning of a row of released flows. exact: the volume of all flows in it; overlapping: that of some of them, since rows
overlap; noisy: a volume with noise, and no exact figure may be published next to it."""

Run = Callable[[Any, Any, np.random.Generator, Progress], Release]
Partitioning = Callable[[Any], str | None]
"""From the parameters, why the data cannot be solved in partitions, in words that follow "since"; None where it can."""


def _independent(params: Any) -> None:
    """Return no reason: every partition can be solved on its own."""


INDEPENDENT: Partitioning = _independent
"""The partitioning of methods that can solve every partition on its own, whatever the parameters."""


@dataclass(frozen=True)
class Facts:
    """What guarantees depend on besides the parameters of the method.

    Attributes
    ----------
    k_unit
        What k counts: people, trips or trajectories.
    weighted
        Whether trips have weights.
    tiles
        Number of tiles of the map.
    step_s, tz
        Seconds of a time step, None without one; and the time zone.
    counted_tiles
        The tiles that count where areas need a number of them: a column of the zones, or "visited"; None for all.
    center
        Longitude and latitude of the center of the plane that trajectories are projected to.
    """

    k_unit: Any
    weighted: bool = False
    tiles: int = 1
    step_s: int | None = None
    tz: str = "UTC"
    counted_tiles: str | None = None
    center: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, data: Flows | Trajectories) -> Facts:
        """Return the facts of data."""
        if isinstance(data, Flows):
            counted = None if data.counted is None else data.counted.of
            return cls(data.k_unit, data.weight is not None, len(data.zones), data.step_s, data.tz, counted)
        return cls(data.k_unit, center=(data.projection.lon0, data.projection.lat0))


def _run_and_mark(run: Run, data: Any, *rest: Any) -> Release:
    """Run a method, and mark a release of trajectories with the input that its `source` refers to."""
    release = run(data, *rest)
    if isinstance(release, TrajectoryRelease) and release.source is not None:
        return replace(release, original=digest(data))
    return release


@dataclass(frozen=True)
class Method(Described):
    """The record of a method. The command line, the docs, the service and the web page are generated from it.

    Attributes
    ----------
    name
        The subject of the method, in lower case with hyphens.
    takes
        The model that it takes: `Flows` or `Trajectories`.
    params
        Its parameters.
    run
        (data, params, rng, progress) → release. Reads no file, changes no input, draws from `rng` alone.
    guarantees
        (parameters, facts of the data) → the guarantees of a release. Checkers share no code with the method.
    status
        How certain the guarantee of anonymity is.
    needs_person_ids
        Whether it merges flows, and so needs the person ids of each flow where k counts people.
    needs_zones
        Whether zones must be given, since those that are found in the data would show something of it.
    row_semantics
        The meaning of the rows of its releases, if they are flows.
    summarize_diagnostics
        (parameters, figures of all time steps that have any, a row each) → facts for the manifest; None where there are none.
    figure_names
        Names of the figures of a time step, in their order: `figures` of its releases.
    partitioning
        parameters → why the data cannot be partitioned (as it follows "since"), or None if it can. Then any set of whole
        partitions gives the rows that all partitions give. Partitions of flows are time steps; those of trajectories are
        given by `partitions`, and nothing is then drawn from `rng`.
    partitions
        (outline of trajectories, parameters) → lists of trajectories that must be in one partition; None where each can be
        alone.
    time_groups
        (parameters, starts of time steps, time zone) → a number for each step; steps of one number are in one partition.
    in_partition
        parameters → what runs in place of `run` in a partition, None for `run` itself: rows then have intervals of time even
        where each is one time step, since other partitions may have longer ones.
    check_data
        (data, parameters) → None; raises where the data lacks what the method needs, such as positions of zones. Called before
        anything is solved, and by previews.
    aliases
        Names of the method in papers.
    example
        Input of its example on the command line, where it needs more than data and zones.
    """

    name: str
    takes: type
    params: type[Params]
    run: Run
    guarantees: Callable[[Any, Facts], tuple[Guarantee, ...]]
    status: Status
    needs_person_ids: bool = False
    needs_zones: bool = False
    row_semantics: RowSemantics = "exact"
    summarize_diagnostics: Callable[[Any, Any], dict[str, Any]] | None = None
    figure_names: tuple[str, ...] = ()
    partitioning: Partitioning = lambda params: "it needs all of the data at once"
    partitions: Callable[[Outline, Any], list[Ints]] | None = None
    time_groups: Callable[[Any, Ints, str], Ints] = lambda params, starts, tz: starts
    in_partition: Callable[[Any], Run | None] = lambda params: None
    check_data: Callable[[Any, Any], None] = lambda data, params: None
    aliases: tuple[str, ...] = ()
    example: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "run", update_wrapper(partial(_run_and_mark, self.run), self.run))

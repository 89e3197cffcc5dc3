"""What a method is: its record, and the few types that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Any, Literal

import numpy as np

from crowdveil.guarantees.base import Guarantee
from crowdveil.model.arrays import Ints
from crowdveil.model.canonical import digest
from crowdveil.model.flows import trips_within as trips_within
from crowdveil.model.release import Release, TrajectoryRelease
from crowdveil.model.trajectories import Outline
from crowdveil.params import Params
from crowdveil.progress import Progress

Status = Literal["proven", "argued", "heuristic"]
"""proven: the guarantee follows from the text of the method; argued: from an argument with stated assumptions;
heuristic: no guarantee of anonymity, only measured risk."""


Rows = Literal["exact", "overlapping", "noisy"]
"""What a row of released flows says. exact: the volume of all flows in it; overlapping: that of some of them, since rows
overlap; noisy: a volume with noise, so that nothing exact may be told beside it."""

Run = Callable[[Any, Any, np.random.Generator, Progress], Release]


def apart(params: Any) -> None:
    """Nothing stands against doing each part of the data on its own: for `Method.together`."""


def _run_and_mark(run: Run, data: Any, *rest: Any) -> Release:
    """Run a method, and mark a release of trajectories with those whose places its `source` names."""
    release = run(data, *rest)
    if isinstance(release, TrajectoryRelease) and release.source is not None:
        return replace(release, original=digest(data))
    return release


@dataclass(frozen=True)
class Method:
    """The record of a method: what the command line, the docs and every other door are drawn from.

    Attributes
    ----------
    name
        What it does, in lower case with hyphens.
    takes
        The model that it works on: `Flows` or `Trajectories`.
    params
        Its parameters.
    run
        (data, params, rng, progress) → release. Reads no file, changes no input, draws from `rng` alone.
    guarantees
        What a release made with these parameters guarantees. The checkers know nothing of the method.
    status
        How sure the guarantee of anonymity is.
    needs_members
        Whether it puts flows together, and so must know who is behind each where k counts people.
    rows
        What the rows of its releases say, if they are flows.
    tell
        From the parameters and the figures of all time steps that have any, a row each, what the manifest says of them;
        None where the method says nothing, or has no such figures.
    together
        From the parameters, why the data cannot be done in parts (as it is written behind "since"), or None if it can: then
        any set of whole parts gives the rows that it gives among all others. The parts of flows are time steps; those of
        trajectories are told by `parts`, and nothing is then drawn from `rng`.
    parts
        From the outline of trajectories and the parameters, lists of those that must be done together; None where each can be
        done by itself.
    aliases
        Names of the method in papers.
    """

    name: str
    takes: type
    params: type[Params]
    run: Run
    guarantees: Callable[[Any, Any], tuple[Guarantee, ...]]
    status: Status
    doc: str
    needs_members: bool = False
    rows: Rows = "exact"
    tell: Callable[[Any, Any], dict[str, Any]] | None = None
    together: Callable[[Any], str | None] = lambda params: "it looks at all of the data at once"
    parts: Callable[[Outline, Any], list[Ints]] | None = None
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "run", update_wrapper(partial(_run_and_mark, self.run), self.run))

    @property
    def summary(self) -> str:
        """The first line of the method's docstring."""
        return self.doc.strip().splitlines()[0]

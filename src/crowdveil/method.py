"""The record of a method, and its types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdveil.guarantees.base import Guarantee
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import trips_within as trips_within
from crowdveil.model.release import Release
from crowdveil.model.trajectories import Outline
from crowdveil.params import Params
from crowdveil.progress import Progress

Status = Literal["proven", "argued", "heuristic"]
"""proven: the guarantee follows from the text of the method; argued: from an argument with stated assumptions;
heuristic: no guarantee of anonymity, only measured risk."""


RowSemantics = Literal["exact", "overlapping", "noisy"]
"""What the volume of a released row is. exact: that of all its flows; overlapping: that of some of them, since rows overlap;
noisy: with noise, so that no exact figure may be published with it."""

Partitioning = Callable[[Any], str | None]
"""From the parameters, why the data cannot be solved in partitions, as it follows "since"; None where it can."""


def _independent(params: Any) -> None:
    """Return no reason: every partition can be solved on its own."""


INDEPENDENT: Partitioning = _independent
"""The partitioning of methods that can solve every partition on its own, whatever the parameters."""


@dataclass(frozen=True)
class Method:
    """The record of a method: the command line, the docs, the service and all else are drawn from it.

    Attributes
    ----------
    name
        Its name, in lower case with hyphens.
    takes
        The data that it takes: `Flows` or `Trajectories`.
    params
        Its parameters.
    run
        (data, params, rng, progress) → release. Reads no file, changes no input, draws from `rng` alone.
    guarantees
        What a release made with these parameters guarantees. The checkers share no code with the method.
    status
        How certain the guarantee of anonymity is.
    needs_person_ids
        Whether it merges flows, and so needs the person ids of each where k counts people.
    row_semantics
        What the volumes of its releases are, if they are flows.
    summarize_diagnostics
        From the parameters and the diagnostics of all time steps that have any, a row each, what the manifest says of them;
        None where there are none.
    partitioning
        Whether the data can be solved in partitions: any set of whole partitions then gives the rows that it gives among all
        others. Partitions of flows are time steps; those of trajectories are listed by `partitions`, and nothing is then
        drawn from `rng`.
    partitions
        From the outline of trajectories and the parameters, lists of those that must be solved together; None where each can
        be solved by itself.
    aliases, parameter_aliases
        Other names of the method and of its parameters, of mdl-anonymizer and the papers.
    alias_factors
        Factors for values under such a name that are in another unit.
    """

    name: str
    takes: type
    params: type[Params]
    run: Callable[[Any, Any, np.random.Generator, Progress], Release]
    guarantees: Callable[[Any, Any], tuple[Guarantee, ...]]
    status: Status
    doc: str
    needs_person_ids: bool = False
    row_semantics: RowSemantics = "exact"
    summarize_diagnostics: Callable[[Any, Any], dict[str, Any]] | None = None
    partitioning: Partitioning = lambda params: "it needs all of the data at once"
    partitions: Callable[[Outline, Any], list[Ints]] | None = None
    aliases: tuple[str, ...] = ()
    parameter_aliases: tuple[tuple[str, str], ...] = ()
    alias_factors: tuple[tuple[str, float], ...] = ()

    @property
    def summary(self) -> str:
        """Return the first line of the method's docstring."""
        return self.doc.strip().splitlines()[0]

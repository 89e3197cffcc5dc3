"""Publish the largest flows of each time step, if they are made by at least k people.

Guarantee
---------
FlowKAnonymity(k) and DisjointFlows, checked by Crowdveil on the written file.

Assumptions
-----------
Owed by the caller: the column of users names people.

Notes
-----
An example of a method in a package of its own; nobody needs it.

References
----------
None.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.guarantees import DisjointFlows, FlowKAnonymity, Guarantee
from crowdveil.methods.base import Facts, Method
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.params import Params


class TopFlowsParams(Params):
    """Parameters of top-flows."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    most: int = Field(100, ge=1)
    """At most so many flows in a time step."""


def run(data: Flows, params: TopFlowsParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Keep the largest rows of each step that have a crowd."""
    rank = np.empty(len(data), np.int64)
    rank[np.lexsort((-data.volume, data.step))] = np.arange(len(data))
    keep = (data.people >= params.k) & (rank - data.offsets[data.step] < params.most)
    kept = data.where(keep)
    tiles = np.unique(np.concatenate([kept.origin, kept.destination]))
    return FlowRelease(
        Areas.of_tiles(data.zones, tiles),
        kept.t,
        kept.offsets,
        np.searchsorted(tiles, kept.origin),
        np.searchsorted(tiles, kept.destination),
        kept.volume,
        kept.people,
        np.full(len(kept), PUBLISHED),
        np.full(data.steps, NOT_GIVEN),
        data.k_unit,
        data.step_s,
        data.tz,
    )


def guarantees(params: TopFlowsParams, facts: Facts) -> tuple[Guarantee, ...]:
    """What the release guarantees."""
    return (FlowKAnonymity(k=params.k, k_unit=facts.k_unit), DisjointFlows())


METHOD = Method("top-flows", Flows, TopFlowsParams, run, guarantees, status="proven")

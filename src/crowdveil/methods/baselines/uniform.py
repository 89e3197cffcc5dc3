"""Merge the cells of a grid into equal blocks, and publish the flows between blocks that are made by at least k people.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step. The suppressed volume is not bounded.

Assumptions
-----------
The column of users names people. Without it k counts trips. Zones are cells of a grid.

Notes
-----
The naive baseline: all areas have the same size, whatever the density of people. Blocks are counted from the lowest column and
row of the grid; those at its edges may have fewer cells. With `aggregate_small`, the small flows of an origin are published as
one row, as in the table of the paper.

References
----------
Matet et al., A lightweight approach for origin-destination matrix anonymization (Table 1, "naive N*N agg").
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, Text
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.params import FlowParams
from crowdveil.solve.od.fixed_boxes import release_merged_flows
from crowdveil.solve.od.step_solver import check_person_ids


class UniformParams(FlowParams):
    """Parameters of uniform aggregation."""

    block: int = Field(4, ge=1)
    """Cells on each side of a block."""


def run(data: Flows, params: UniformParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Merge the cells of each block, and keep the flows between blocks that reach k."""
    check_person_ids(data)
    block = blocks(data.zones, params.block) if len(data) else np.zeros(len(data.zones), np.int64)
    release = release_merged_flows(data, Areas.of_parts(data.zones, block), block, params.k, params.reporting)
    progress(data.steps, data.steps)
    return release


def _cells(zones: Zones) -> tuple[Ints, Ints]:
    """Return column and row of each cell, from 0 on; raises where the zones are no grid."""
    if zones.column is None or zones.row is None:
        raise InputError(
            Text(
                "uniform needs cells of a grid, but the zones are not a grid. Make one with {zones}, such as {example_zones}.",
                example_zones=Option("zones", "grid:200m"),
            )
        )
    column, row = (np.asarray(c, np.int64) - int(c.min()) for c in (zones.column, zones.row))
    return column, row


def check_data(data: Flows, _params: UniformParams) -> None:
    """Raise unless the zones of the trips are cells of a grid."""
    if len(data):
        _cells(data.zones)


def blocks(zones: Zones, side: int) -> Ints:
    """Return the block of each cell."""
    column, row = _cells(zones)
    wide = int(column.max()) // side + 1
    _, number = np.unique((row // side) * wide + column // side, return_inverse=True)
    block: Ints = number.astype(np.int64)
    return block


METHOD = Method(
    "uniform",
    takes=Flows,
    params=UniformParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_data,
    example="taxi.parquet --zones grid:500m",
)

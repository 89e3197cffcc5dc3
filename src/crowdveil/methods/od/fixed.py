"""Publish flows between areas that were made before, where they are made by at least k people: the same areas every day.

Guarantee
---------
FlowKAnonymity(k): every published flow is made by at least k people (trips, where people are not known).
DisjointFlows: no pair of tiles is in two published flows of a time step. The suppressed volume is not bounded.

Assumptions
-----------
The column of users names people. Without it k counts trips. The partition is that of a release, or does not depend on the trips,
such as a table of districts. Areas chosen by looking at unpublished trips of the new data would reveal something about them.

Notes
-----
`partition` names the folder of an earlier release, or a table with the columns zone and group. The boxes of a release are the
pairs of areas of its rows, over all of its time steps; they must be disjoint, as those of a release with `time_partition =
stable` are. Where a release has a partition for each class of time steps (`stable_by`), every new time step has that of its
class. Groups of a table are areas of origins and of destinations.

A box is published in the time steps in which it reaches k. Trips outside all boxes are suppressed. The share of suppressed trips
is compared with that of the release that the areas come from: the run warns if it is far larger, since the areas are then out of
date and a new partition would lose less.

References
----------
Every publisher of OD data has one set of zones for all days; finding the best one is our own (`joint` with `time_partition =
stable`).
"""

from __future__ import annotations

import numpy as np

from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.methods.base import INDEPENDENT, Method
from crowdveil.methods.guarantee_sets import flow_guarantees
from crowdveil.model.flows import Flows
from crowdveil.model.partition import Partition, ZoneGroups
from crowdveil.model.release import FlowRelease
from crowdveil.model.time_axis import step_classes
from crowdveil.params import FlowParams
from crowdveil.solve.od.fixed_boxes import release_fixed_boxes, release_merged_flows
from crowdveil.solve.od.step_solver import check_person_ids


class FixedParams(FlowParams):
    """Parameters of fixed areas."""


def run(data: Flows, params: FixedParams, rng: np.random.Generator, progress: Progress) -> FlowRelease:
    """Add up the flows of each box, and keep the boxes that reach k."""
    check_person_ids(data)
    partition = _given_partition(data)
    if isinstance(partition, ZoneGroups):
        release = release_merged_flows(data, partition.areas, partition.part, params.k, params.reporting)
    else:
        classes = step_classes(data.t, data.tz, partition.by)
        release = release_fixed_boxes(data, partition, classes, params.k, params.reporting)
    progress(data.steps, data.steps)
    return release


def _given_partition(data: Flows) -> Partition:
    if data.partition is None:
        raise InputError(
            Text(
                "fixed needs areas that were made before. Name a release or a table of zones and groups with {partition}."
            )
        )
    return data.partition


def check_data(data: Flows, params: FixedParams) -> None:
    """Raise unless there is a partition that was made before, and no small flows are to be aggregated."""
    if params.aggregate_small:
        raise ParameterError(
            Option("aggregate_small"), "Expected the areas of the partition alone, got small flows too. Leave it out."
        )
    _given_partition(data)


METHOD = Method(
    "fixed",
    takes=Flows,
    params=FixedParams,
    run=run,
    guarantees=flow_guarantees,
    status="proven",
    partitioning=INDEPENDENT,
    needs_person_ids=True,
    check_data=check_data,
    example="trips.parquet --zones zones.geojson --partition earlier",
)

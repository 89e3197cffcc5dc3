"""Fold time: flows of time steps that are whole periods apart, such as two weeks, become flows of one time step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.model.arrays import Ints, group_sums, row_slices
from crowdveil.model.flows import WEIGHT_UNITS, Flows, rounded
from crowdveil.model.time_axis import TimeAxis, period_seconds


def fold_steps(flows: Flows, period: str) -> Flows:
    """Return flows with times modulo a period, in the first period of the data; periods of whole weeks begin on Monday.

    Trips are added up. People who are in several periods count once; where only their numbers are known, the largest number of
    the flows that are added up counts, since the people may be the same ones.
    """
    seconds = period_seconds(period)
    if flows.step_s is None:
        raise InputError(Option("fold"), "the data have no times, or one time step for all of them. Leave it out.")
    if seconds % flows.step_s:
        raise ParameterError(
            Option("fold"),
            Text(
                "a period must be whole time steps, of {step_s:,} seconds. Choose another {step}.", step_s=flows.step_s
            ),
        )
    if flows.steps == 0:
        return flows
    periods = TimeAxis(seconds, flows.tz)
    wall = periods.clock.to_wall(flows.t)
    t, step = np.unique(periods.folded(wall, wall), return_inverse=True)
    return _added_up(flows, t, step.reshape(-1))


def _added_up(flows: Flows, t: Ints, step: Ints) -> Flows:
    """Return flows whose time step i becomes step[i] of the times `t`."""
    n = len(flows.zones)
    key = (step[flows.step] * n + flows.origin) * n + flows.destination
    keys, row = np.unique(key, return_inverse=True)
    row = row.reshape(-1)
    offsets = np.searchsorted(keys // (n * n), np.arange(len(t) + 1))
    volume, people = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    np.add.at(volume, row, flows.volume)
    weight, person_offsets, person_ids = None, None, None
    if flows.weight is not None:
        weight = group_sums(row, flows.weight, len(keys))
        volume = rounded(*np.divmod(weight, WEIGHT_UNITS), offsets)
    if flows.person_ids is not None and flows.person_offsets is not None:
        span = int(flows.person_ids.max(initial=0)) + 1
        pairs = np.unique(row[row_slices(flows.person_offsets)] * span + flows.person_ids)
        person_ids, person_offsets = pairs % span, np.searchsorted(pairs // span, np.arange(len(keys) + 1))
        people = np.diff(person_offsets)
    else:
        (np.add if flows.k_unit == "trips" else np.maximum).at(people, row, flows.people)
    return replace(
        flows, t=t, offsets=offsets, origin=(keys // n % n).astype(np.int32), destination=(keys % n).astype(np.int32),
        volume=volume, people=people, weight=weight, person_offsets=person_offsets, person_ids=person_ids,
    )  # fmt: skip

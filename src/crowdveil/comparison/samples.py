"""Draw the matrices or trajectories of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from crowdveil.comparison.candidates import Candidate
from crowdveil.comparison.requested_measures import Names
from crowdveil.errors import InputError, Option
from crowdveil.io.flows import with_tree
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params

Data = Flows | Trajectories
MAX_MATRICES, MAX_FLOWS = 10, 2_000_000
"""Default number of matrices, and of their flows together; a sample has at least one matrix."""
MAX_CONSECUTIVE = 48
"""Default number of matrices if a method joins time steps."""
MAX_TRAJECTORIES = 5_000
"""Default number of trajectories."""
WARM_UP = 200
"""Number of trajectories that is enough to compile the kernels of a method."""


class ComparisonParams(Params):
    """The sample and the measures of a comparison."""

    sample: int | None = Field(None, ge=1)
    """Number of matrices (default: at most 10, with 2 million flows) or of trajectories (default: at most 5,000)."""
    sampling: Literal["spread", "random"] = "spread"
    """Choose matrices evenly spread over time, or at random."""
    min_trips: int = Field(0, ge=0)
    """Use only matrices with at least this number of trips."""
    measures: Names = Field(None, json_schema_extra={"metavar": "NAMES"})
    """Measures separated by commas, as in MAO,MAD,generalization-cost:delta=1,multiplier or rmse,sid:queries=1000; or all.
    Default: Ḡ, E, D and S, or SID, AID and the share of removed trajectories."""
    seed: int = Field(0, ge=0)
    """Seed of methods and samples."""


def sampled(data: Data, k: int, chosen: Sequence[Candidate], shared: ComparisonParams) -> Data:
    """Return the matrices or trajectories for candidates with k of at most this."""
    if isinstance(data, Trajectories):
        return sample_trajectories(data, shared.sample, shared.seed)
    return sample_matrices(data, k, chosen, shared)


def sample_matrices(flows: Flows, k: int, chosen: Sequence[Candidate], shared: ComparisonParams) -> Flows:
    """Return the matrices to compare on, with the default tree of methods, which is built once.

    Time steps of fewer than k people are left out, since methods that publish each time step suppress all of them. If a method
    joins time steps, the sample is the consecutive matrices with the most trips.
    """
    if len(flows) == 0:
        raise InputError("input", "Expected at least one flow, got none. Check the input.")
    enough = flows.trips_by_step >= shared.min_trips
    if not enough.any():
        raise InputError(
            Option("min_trips"),
            "Expected matrices with this number of trips, got only smaller ones. Choose a smaller number.",
        )
    usable = np.flatnonzero(enough & (flows.people_by_step >= k))
    if any(getattr(candidate.params, "time_partition", None) == "adaptive" for candidate in chosen):
        steps = _consecutive(flows, MAX_CONSECUTIVE if shared.sample is None else shared.sample)
    elif len(usable) == 0:
        steps = np.flatnonzero(enough)
    else:
        steps = usable[spread_evenly(len(usable), shared.sample, len(flows))]
        if shared.sampling == "random":
            steps = np.sort(np.random.default_rng(shared.seed).choice(usable, len(steps), replace=False))
    taken = flows if len(steps) == flows.steps else flows.at_steps(steps)
    plain = taken.origin_tree is None and taken.destination_tree is None
    return with_tree(taken, "ward") if plain and taken.zones.located else taken


def spread_evenly(steps: int, wanted: int | None, flows: int = 0) -> Ints:
    """Return the numbers of time steps evenly spread from the first to the last; `flows` is the number of all flows."""
    usual = max(min(MAX_MATRICES, MAX_FLOWS * steps // max(flows, 1)), 1)
    number = min(steps, usual if wanted is None else wanted)
    return np.linspace(0, steps - 1, number).round().astype(np.int64)


def _consecutive(flows: Flows, wanted: int) -> Ints:
    """Return the numbers of the consecutive time steps with the most trips."""
    number = min(flows.steps, wanted)
    trips = np.concatenate([np.zeros(1, np.int64), np.cumsum(flows.trips_by_step)])
    first = int(np.argmax(trips[number:] - trips[: flows.steps - number + 1]))
    return np.arange(first, first + number)


def sample_trajectories(data: Trajectories, wanted: int | None, seed: int) -> Trajectories:
    """Return a random sample of trajectories, or all of them if there are not more."""
    if len(data) == 0:
        raise InputError("input", "Expected at least one trajectory, got none. Check the input.")
    number = MAX_TRAJECTORIES if wanted is None else wanted
    if number >= len(data):
        return data
    keep = np.zeros(len(data), np.bool_)
    keep[np.random.default_rng(seed).permutation(len(data))[:number]] = True
    return data.where(keep)


def few_of(data: Data) -> Data:
    """Return a little data to compile the kernels of a method before timing: the largest matrix, or some trajectories."""
    if isinstance(data, Trajectories):
        return sample_trajectories(data, WARM_UP, 0)
    return data.at_steps(np.argmax(data.trips_by_step, keepdims=True))

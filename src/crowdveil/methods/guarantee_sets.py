"""Return the guarantees that several methods share."""

from __future__ import annotations

from typing import Any

from crowdveil import guarantees as library
from crowdveil.guarantees import Guarantee
from crowdveil.methods.base import Facts
from crowdveil.params import AdaptiveInTime, Budgeted, FlowParams, SizedAreas, TimePartitioned
from crowdveil.solve.od.time_tree import longest_interval


def overlapping_flow_guarantees(params: FlowParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of flows, and the suppression budget of a method that has one."""
    anonymity = library.FlowKAnonymity(k=params.k, k_unit=facts.k_unit)
    if not isinstance(params, Budgeted):
        return (anonymity,)
    limit: dict[str, Any] = {"suppress": params.suppress, "k": params.k, "weighted": facts.weighted}
    if isinstance(params, AdaptiveInTime) and params.time_partition == "adaptive":
        longest = longest_interval(facts.step_s, params.longest_s)
        return (anonymity, library.PeriodBudget(**limit, period="day", tz=facts.tz, interval_s=longest))
    if isinstance(params, TimePartitioned) and params.time_partition == "stable":
        return (anonymity, library.PeriodBudget(**limit, period=params.stable_by, tz=facts.tz))
    return (anonymity, library.SuppressionBudget(**limit))


def flow_guarantees(params: FlowParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of disjoint flows, and the suppression budget of a method that has one."""
    anonymity, *budget = overlapping_flow_guarantees(params, facts)
    return (anonymity, library.DisjointFlows(), *budget, *size_guarantees(params, facts))


def size_guarantees(params: FlowParams, facts: Facts) -> tuple[Guarantee, ...]:
    """Return the guarantee of the smallest areas of a method that has one, where it is asked for."""
    if not isinstance(params, SizedAreas) or (params.min_tiles == 1 and facts.counted_tiles is None):
        return ()
    return (library.MinTiles(tiles=params.min_tiles, of=facts.counted_tiles),)


def suppressing_guarantees(params: Any, facts: Facts) -> tuple[Guarantee, ...]:
    """Return k-anonymity of trajectories, counted as `count_trajectories` says, and the budget where suppression is asked for.

    There is no budget where a method also leaves out trajectories for other reasons.
    """
    unit = "trajectories" if params.count_trajectories else facts.k_unit
    anonymity = library.TrajectoryKAnonymity(k=params.k, k_unit=unit)
    otherwise = (
        getattr(params, "distance", None) == "graph"
        or getattr(params, "left_over", "join") == "drop"
        or getattr(params, "suppression_cost", 1.0) < 1
    )
    made: list[Guarantee] = [anonymity]
    if params.suppress and not otherwise:
        made.append(library.SuppressedTrajectories(suppress=params.suppress, k=params.k, k_unit=unit))
    return tuple(made)

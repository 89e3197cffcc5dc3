"""Advise what to change when nothing could be published: parameters of the method, and options of its data."""

from __future__ import annotations

from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params

_CHANGES = {
    "k": "a smaller k",
    "min_volume": "a smaller min_volume",
    "epsilon": "a larger epsilon",
    "block": "a larger block",
    "min_tiles": "a smaller min_tiles",
    "max_area_km2": "a larger max_area_km2",
    "knowledge": "a smaller knowledge",
    "time_interval_s": "a longer time_interval_s",
    "tile_size_m": "a larger tile_size_m",
    "min_pair_people": "a smaller min_pair_people",
    "max_radius_m": "a larger max_radius_m",
    "max_distance_m": "a larger max_distance_m",
    "max_time_s": "a longer max_time_s",
    "space_threshold_m": "a larger space_threshold_m",
    "time_threshold_s": "a longer time_threshold_s",
    "min_n_swaps": "a smaller min_n_swaps",
}
"""The change to each parameter, by its name, that leaves more to publish."""


def what_to_change(data: Flows | Trajectories, params: Params) -> str:
    """Return the changes that may help, as they follow "choose"; "" where there are none."""
    changes = [text for name, text in _CHANGES.items() if _can_change(params, name)]
    if isinstance(data, Flows):
        changes.append("larger zones")
        if data.step_s is not None:
            changes.append("longer time steps")
    return " or ".join(part for part in (", ".join(changes[:-1]), *changes[-1:]) if part)


def _can_change(params: Params, name: str) -> bool:
    """Return whether a parameter exists, has a value, and is not yet at its limit."""
    field = type(params).model_fields.get(name)
    value = getattr(params, name, None)
    if field is None or value is None:
        return False
    limits = [getattr(bound, sign) for bound in field.metadata for sign in ("ge", "le") if hasattr(bound, sign)]
    if name.startswith(("l_", "least_", "min_")) or name in ("k", "knowledge"):
        return value not in limits
    return True

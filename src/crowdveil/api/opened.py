"""Helpers that several functions of the Python API share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.errors import CrowdveilError
from crowdveil.model.release import TrajectoryRelease
from crowdveil.registry import find_method

if TYPE_CHECKING:
    from crowdveil.method import RowSemantics
    from crowdveil.params import Params


def split_options(options: dict[str, Any], model: type[Params]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into those of a model and the rest."""
    own = {name: value for name, value in options.items() if name in model.model_fields}
    return own, {name: value for name, value in options.items() if name not in own}


def published_numbers(release: TrajectoryRelease) -> list[str]:
    """Return the ids of published trajectories."""
    return [str(number) for number in range(1, len(release) + 1)]


def row_semantics_of(manifest: dict[str, Any]) -> RowSemantics:
    """Return what the volumes of a release are; exact where its method is not installed."""
    try:
        return find_method(manifest["method"]["name"]).row_semantics
    except CrowdveilError:
        return "exact"

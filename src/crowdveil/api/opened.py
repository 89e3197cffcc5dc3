"""Questions about a written release that several functions have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.errors import CrowdveilError
from crowdveil.model.release import TrajectoryRelease
from crowdveil.registry import find_method

if TYPE_CHECKING:
    from crowdveil.method import RowSemantics


def published_numbers(release: TrajectoryRelease) -> list[str]:
    """Return the ids of published trajectories."""
    return [str(number) for number in range(1, len(release) + 1)]


def row_semantics_of(manifest: dict[str, Any]) -> RowSemantics:
    """Return what the volumes of a release are; exact where its method is not installed."""
    try:
        return find_method(manifest["method"]["name"]).row_semantics
    except CrowdveilError:
        return "exact"

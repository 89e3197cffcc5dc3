"""What several doors ask of a release that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crowdveil.errors import CrowdveilError
from crowdveil.model.release import TrajectoryRelease
from crowdveil.registry import find_method

if TYPE_CHECKING:
    from crowdveil.method import RowSemantics


def published_numbers(release: TrajectoryRelease) -> list[str]:
    """What published trajectories are called."""
    return [str(number) for number in range(1, len(release) + 1)]


def rows_of(manifest: dict[str, Any]) -> RowSemantics:
    """What the rows of a release say; those of a method that is not installed here are taken as exact."""
    try:
        return find_method(manifest["method"]["name"]).row_semantics
    except CrowdveilError:
        return "exact"

"""Rows of a release that two releases are compared by."""

from __future__ import annotations

from typing import Any

from crowdveil.model.release import FlowRelease


def sorted_rows(release: FlowRelease) -> list[tuple[Any, ...]]:
    """Return time, areas, volume, people and state of each row, sorted."""
    names = release.areas.names
    columns = (
        release.t[release.step], names[release.origin], names[release.destination], release.volume, release.people,
        release.state,
    )  # fmt: skip
    return sorted(zip(*(c.tolist() for c in columns), strict=True))

"""The checker of steps between tiles on files made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.guarantees import SharedTilePairs
from crowdveil.io.written_release import WrittenRelease

METER = 1 / 111_319.49


def _written(*walks: list[int]) -> WrittenRelease:
    """Walks along the equator, by the meters east of the corner."""
    flat = [meters for walk in walks for meters in walk]
    table = {
        "lat": [0.001] * len(flat),
        "lon": [meters * METER for meters in flat],
        "timestamp": pa.array([1000 * i for walk in walks for i in range(len(walk))], pa.timestamp("ms", tz="UTC")),
        "published_id": [i + 1 for i, walk in enumerate(walks) for _ in walk],
    }
    return WrittenRelease(Path("out"), pa.table(table), None, [])


def _guarantee(least: int, k_unit: str = "people") -> SharedTilePairs:
    return SharedTilePairs.model_validate(
        {"min_group_size": least, "tile_size_m": 1000.0, "lon0": 0.0, "lat0": 0.0, "k_unit": k_unit}
    )


@pytest.mark.parametrize(
    ("walks", "least", "holds"),
    [
        ([[100, 1200], [900, 1900]], 2, True),
        ([[100, 1200], [900, 1900]], 3, False),
        ([[100, 300, 1200], [900, 1900]], 2, True),  # two points in a tile are one visit
        ([[100, 1200], [1200, 100]], 2, False),  # the way back is another step
        ([[100, 1200], [100, 2200]], 2, False),
        ([[100, 1200], [100, 2200, 1200]], 2, False),  # by way of another tile
        ([[100, 900], [1100, 1900]], 2, True),  # no step at all
        ([[100], [1200]], 2, True),  # two trajectories make no step
        ([[100, 1200, 100, 1200]], 2, False),  # twice by the same one is once
    ],
)
def test_steps(walks: list[list[int]], least: int, holds: bool) -> None:
    assert _guarantee(least, "trajectories").check(_written(*walks)).holds is holds
    behind = np.arange(len(walks))
    assert _guarantee(least).check_with_people(_written(*walks), behind).holds is holds


def test_two_trajectories_of_one_person_are_one() -> None:
    written = _written([100, 1200], [900, 1900])
    assert _guarantee(2).check(written).outcome == "not checked"
    finding = _guarantee(2).check_with_people(written, np.array([4, 4]))
    assert finding.violated and finding.with_original
    assert _guarantee(2, "trajectories").check_with_people(written, np.array([4, 4])).holds
    assert not _guarantee(2).check_with_people(written, np.array([4])).holds

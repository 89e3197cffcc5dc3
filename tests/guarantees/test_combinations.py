"""The checker of combinations on files made by hand, and against itertools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_combinations import all_shared

from crowdveil.guarantees import CombinationKAnonymity, combinations
from crowdveil.io.written_release import WrittenRelease


def _written(walks: list[list[tuple[int, int]]]) -> WrittenRelease:
    """Walks as (degrees east, seconds)."""
    flat = [point for walk in walks for point in walk]
    table = {
        "lat": [0.0] * len(flat),
        "lon": [float(x) for x, _ in flat],
        "timestamp": pa.array([1000 * t for _, t in flat], pa.timestamp("ms", tz="UTC")),
        "published_id": [i + 1 for i, walk in enumerate(walks) for _ in walk],
    }
    return WrittenRelease(Path("out"), pa.table(table), None, [])


def _guarantee(k: int, knowledge: int, interval_s: int | None = None, k_unit: str = "people") -> CombinationKAnonymity:
    return CombinationKAnonymity.model_validate(
        {"k": k, "knowledge": knowledge, "interval_s": interval_s, "k_unit": k_unit}
    )


AB = [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("walks", "knowledge", "holds"),
    [
        ([AB, AB], 2, True),
        ([AB, AB, [(1, 0)]], 2, True),
        ([AB, AB, [(3, 0)]], 2, False),  # shorter than what may be known, and alone
        ([AB, AB[::-1]], 1, True),
        ([AB, AB[::-1]], 2, False),  # another order
        ([AB, [(1, 0), (9, 0), (2, 0)], [(9, 0)]], 2, False),
        ([AB, [(1, 0), (2, 60)]], 2, False),  # another time
        ([[(1, 0), (1, 0), (2, 0)], AB], 2, True),  # a visit of two rows
        ([[(1, 0), (2, 0), (1, 0)], [(1, 0), (2, 0), (1, 0)]], 3, True),
        ([[(1, 0), (2, 0), (3, 0)], AB, [(2, 0), (3, 0)], [(1, 0), (3, 0)]], 2, True),
        ([[(1, 0), (2, 0), (3, 0)], AB, [(2, 0), (3, 0)], [(1, 0), (3, 0)]], 3, False),
    ],
)
def test_combinations(walks: list[list[tuple[int, int]]], knowledge: int, holds: bool) -> None:
    written = _written(walks)
    assert _guarantee(2, knowledge).check(written).outcome == ("not checked" if holds else "violated")
    assert _guarantee(2, knowledge, k_unit="trajectories").check(written).holds is holds
    finding = _guarantee(2, knowledge).check_with_people(written, np.arange(len(walks)))
    assert finding.holds is holds and finding.with_original


def test_people_are_counted_where_they_are_known() -> None:
    written = _written([AB, AB])
    assert not _guarantee(2, 2).check_with_people(written, np.array([7, 7])).holds
    assert _guarantee(2, 2, k_unit="trajectories").check_with_people(written, np.array([7, 7])).holds
    assert not _guarantee(2, 2).check_with_people(written, np.array([7])).holds


@pytest.mark.parametrize(("interval_s", "holds"), [(None, False), (60, False), (120, True), (0, True)])
def test_times_as_finely_as_they_may_be_known(interval_s: int | None, holds: bool) -> None:
    assert _guarantee(2, 2, interval_s).check(_written([[(1, 0), (2, 70)], [(1, 61), (2, 119)]])).violated is not holds


@given(
    walks=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=12),
    k=st.integers(2, 4),
    knowledge=st.integers(1, 4),
    block=st.integers(1, 50),
)
def test_is_what_itertools_counts(walks: list[list[int]], k: int, knowledge: int, block: int) -> None:
    owner = [i // 2 for i in range(len(walks))]
    short = [[s for i, s in enumerate(walk) if i == 0 or s != walk[i - 1]] for walk in walks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combinations, "_BLOCK", block)
        finding = _guarantee(k, knowledge).check_with_people(
            _written([[(s, 0) for s in w] for w in walks]), np.array(owner)
        )
    assert finding.holds is all_shared(short, owner, k, knowledge)

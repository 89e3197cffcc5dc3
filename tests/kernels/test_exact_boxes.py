"""States of the exact search for boxes: of those that another beats, none is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crowdveil.kernels.od import exact_boxes


@pytest.mark.parametrize("seed", range(20))
def test_states_that_another_beats_are_dropped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, count = 3, int(rng.integers(1, 40))
    states = rng.integers(0, 12, (before + count, 4))
    states[:, 2] = np.arange(len(states))  # which state it was
    kept = states.ravel().copy()
    undominated: Any = exact_boxes._undominated
    end = getattr(undominated, "py_func", undominated)(kept, before, before + count)
    given = states[before:].tolist()
    # Of equal ones the first stays; by rising volume costs fall.
    expected = []
    for cost, volume, which, more in sorted(given, key=lambda row: (row[1], row[0], row[2])):
        if not expected or cost < expected[-1][0]:
            expected.append([cost, volume, which, more])
    assert kept[: 4 * end].reshape(-1, 4).tolist() == states[:before].tolist() + expected

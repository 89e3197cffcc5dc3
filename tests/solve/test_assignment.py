from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_measures import releases, row_by_search

from crowdveil.errors import InputError
from crowdveil.methods.od.suppression import SuppressionParams, run
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.progress import no_progress
from crowdveil.solve.od.assignment import row_of_flows
from crowdveil.testing import flows


@given(st.data())
def test_is_the_plain_twin(draw: st.DataObject) -> None:
    data = draw.draw(flows(empty=True))
    release = draw.draw(releases(data))
    assert row_of_flows(data, release).tolist() == row_by_search(data, release)


@given(st.data())
def test_rows_hold_the_volume_that_they_publish(draw: st.DataObject) -> None:
    data = draw.draw(flows())
    release = draw.draw(releases(data))
    row = row_of_flows(data, release)
    held = np.bincount(row[row >= 0], data.volume[row >= 0], len(release))
    assert held.tolist() == release.volume.tolist()


def _example() -> tuple[Flows, object]:
    zones = Zones.from_ids(["a", "b"])
    column = np.array([0, 1], np.int32)
    data = Flows.from_rows(zones, np.zeros(2, np.int64), column, column, np.array([30, 20], np.int64))
    return data, run(data, SuppressionParams(k=10), np.random.default_rng(0), no_progress)


def test_flows_in_two_rows_are_refused() -> None:
    data, release = _example()
    areas = Areas(data.zones, np.array(["a", "ab"], dtype=object), np.array([0, 1, 3]), np.array([0, 0, 1], np.int32))
    for destination in ([0, 1], [1, 1]):  # of one origin area, and of two
        broken = replace(release, areas=areas, destination=np.array(destination, np.int32))
        for origin in ([1, 1], [0, 1]):
            with pytest.raises(InputError, match="lie in more"):
                row_of_flows(data, replace(broken, origin=np.array(origin, np.int32)))


def test_other_zones_and_other_steps_are_refused() -> None:
    data, release = _example()
    other = replace(release, areas=Areas.of_tiles(Zones.from_ids(["b", "a"]), np.array([0, 1], np.int32)))
    with pytest.raises(InputError, match="zones"):
        row_of_flows(data, other)
    with pytest.raises(InputError, match="1 time step of it is not in the original"):
        row_of_flows(data, replace(release, t=np.array([3600])))

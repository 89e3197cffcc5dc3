from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_boxes import TILES, problems

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.model.flows import Flows
from crowdveil.model.release import PUBLISHED, REPORTED, FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.params import FlowParams
from crowdveil.registry import find_method

DYADIC = "joint with dyadic splits"
ONE_PARTITION = ("suppression", "atg-dual", "atg-exact", "atg-soft", "atg-coupled")
"""Each origin has one partition of destinations."""
METHODS = (DYADIC, "joint", "atg-dual", "atg-soft", "atg-coupled", "atg-exact", "suppression")


def _run(name: str, flows: Flows, **parameters: Any) -> FlowRelease:
    if name == DYADIC:
        name, parameters = "joint", {**parameters, "splits": "dyadic"}
    method = find_method(name)
    if "suppress" in method.params.model_fields:
        parameters = {"suppress": 0.4, **parameters}
    release = method.run(flows, method.params.checked(parameters), np.random.default_rng(0), no_progress)
    assert isinstance(release, FlowRelease)
    return release


_PLACES = Zones([f"z{i}" for i in range(TILES)], np.array([2.0, 2.3, 2.1, 2.2]), np.array([48.3, 48.0, 48.2, 48.1]))


def _tiles(release: FlowRelease, area: int) -> set[int]:
    return set(release.areas.tiles[release.areas.offsets[area] : release.areas.offsets[area + 1]].tolist())


def _rows(release: FlowRelease, state: int) -> list[tuple[frozenset[int], frozenset[int], int, int]]:
    return [
        (frozenset(_tiles(release, o)), frozenset(_tiles(release, d)), v, u)
        for o, d, v, u, s in zip(
            release.origin.tolist(), release.destination.tolist(), release.volume.tolist(), release.people.tolist(),
            release.state.tolist(), strict=True,
        )
        if s == state
    ]  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=tries(60), deadline=None)
@given(problem=problems(), k=st.integers(2, 4), include_empty=st.booleans())
def test_reported_rows_hold_what_was_suppressed(name: str, problem: Any, k: int, include_empty: bool) -> None:
    flows, trips = problem
    flows = replace(flows, zones=_PLACES)
    person = trips.person if trips.person is not None else np.arange(len(trips))
    made = list(zip(trips.origin.tolist(), trips.destination.tolist(), person.tolist(), strict=True))
    try:
        plain = _run(name, flows, k=k)
    except InputError:
        return  # the budget cannot be kept with the origins of this method
    release = _run(name, flows, k=k, aggregate_small=True, include_empty=include_empty)
    assert _rows(release, PUBLISHED) == _rows(plain, PUBLISHED)
    taken = {(i, j) for o, d, _, _ in _rows(release, PUBLISHED) for i in o for j in d}
    origins = []
    for o, d, volume, crowd in _rows(release, REPORTED):
        inside = [who for i, j, who in made if i in o and j in d]
        assert (len(inside), len(set(inside))) == (volume, crowd)
        assert crowd >= k
        pairs = {(i, j) for i in o for j in d}
        assert not pairs & taken
        taken |= pairs
        origins.append(o)
        if include_empty and name in ONE_PARTITION:
            # Nothing more could be taken: each other destination of the origin is in another row, or has a trip.
            for j in set(range(len(flows.zones))) - d:
                assert any((i, j) in taken or any(a == i and b == j for a, b, _ in made) for i in o)
    assert len(set(origins)) == len(origins)
    if name in ONE_PARTITION:
        # What is not reported of an origin that is published is made by fewer than k.
        for o in {o for o, _, _, _ in _rows(release, PUBLISHED)} | set(origins):
            rest = {who for i, j, who in made if i in o and (i, j) not in taken}
            assert len(rest) < k


def test_reported_areas_without_empty_places() -> None:
    """Four tiles, one origin: 12 trips to a, 4 to b, 7 to c, none to d."""
    zones = Zones.from_ids(["a", "b", "c", "d"])
    to = np.array([0, 1, 2], np.int32)
    flows = Flows.from_rows(zones, np.zeros(3, np.int64), np.zeros(3, np.int32), to, np.array([12, 4, 7], np.int64))
    release = _run("suppression", flows, k=10, aggregate_small=True, include_empty=False)
    assert _rows(release, REPORTED) == [(frozenset({0}), frozenset({1, 2}), 11, 11)]
    assert release.suppressed.tolist() == [0]
    release = _run("suppression", flows, k=10, aggregate_small=True)
    assert _rows(release, REPORTED) == [(frozenset({0}), frozenset({1, 2, 3}), 11, 11)]
    assert any(name.startswith("rest-") for name in release.areas.names)


def test_every_method_for_flows_can_report() -> None:
    from crowdveil.registry import all_methods

    od = [m for m in all_methods().values() if m.takes is Flows and m.row_semantics != "noisy"]
    assert len(od) >= 7
    for method in od:
        assert issubclass(method.params, FlowParams), method.name

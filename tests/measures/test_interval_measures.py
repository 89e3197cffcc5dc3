"""Measures, analyses and attacks of rows with intervals of time, against dense twins over origin, destination and time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_measures import tiles
from test_od_measures import DENSE, _by_definition

import crowdveil
from crowdveil import testing
from crowdveil.analysis.estimates import Groups, estimates
from crowdveil.analysis.study import StudySide
from crowdveil.attacks.base import FlowAttackParams
from crowdveil.attacks.od.differencing import run as differencing
from crowdveil.attacks.od.published import Published
from crowdveil.comparison.candidates import Candidate
from crowdveil.comparison.samples import ComparisonParams, sample_matrices
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.io.partition import read_partition
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.measures.od.reconstruction import mark_m
from crowdveil.methods.od.joint import JointParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.registry import find_measure
from crowdveil.run import pipeline, releases
from crowdveil.solve.od.overlaps import in_own_tiles

HOUR = 3600


@st.composite
def interval_releases(draw: st.DrawFn) -> tuple[Flows, FlowRelease]:
    """Flows of a few hours of one or two days, and a release of them with intervals; some hours have no trips."""
    data = draw(testing.flows(max_steps=5))
    gap = draw(st.sampled_from([0, 1, 22]))
    data = replace(
        data, step_s=HOUR, t=HOUR * (2 * np.arange(data.steps) + gap * (np.arange(data.steps) > 2)), tz="UTC"
    )
    params = JointParams(k=draw(st.integers(2, 6)), suppress="20%", time_partition="adaptive", hour_weight=0)
    return data, run(data, params, np.random.default_rng(0), no_progress)


def _dense(data: Flows, release: FlowRelease) -> tuple[Any, Any, Any]:
    """Return the original and the reconstruction in every time step of all windows, and which of these the original has."""
    held = release.intervals
    assert held is not None
    n, t = len(data.zones), np.union1d(held.start, data.t)
    v, w = np.zeros((len(t), n, n)), np.zeros((len(t), n, n))
    np.add.at(v, (np.searchsorted(t, data.t)[data.step], data.origin, data.destination), data.volume)
    for row in range(len(release)):
        o, d = tiles(release, release.origin[row]), tiles(release, release.destination[row])
        spanned = range(held.first[row], held.last[row])
        for slot in spanned:
            at = int(np.searchsorted(t, held.start[slot]))
            w[at][np.ix_(o, d)] += release.volume[row] / (len(o) * len(d) * len(spanned))
    return v, w, np.searchsorted(t, data.t)


@examples(60)
@given(made=interval_releases())
def test_measures_are_the_dense_twin(made: Any) -> None:
    data, release = made
    if release.intervals is None or not len(release):
        return
    compared = OdComparison.between(data, release)
    v, w, listed = _dense(data, release)
    x, y = data.zones.xy
    apart = np.hypot(x[:, None] - x, y[:, None] - y)
    for name in DENSE:
        near = {"abs": mark_m(data) / 1000 if name == "trip-length" else 1e-7, "nan_ok": True}
        measure = find_measure(name)
        assert measure.of(compared.all_steps())[0] == pytest.approx(_by_definition(name, v, w, apart), **near), name
        if name == "suppressed":
            continue  # by step these are of the trips in rows, not of the reconstruction
        wanted = [_by_definition(name, v[step], w[step], apart) for step in listed]
        assert measure.of(compared).tolist() == pytest.approx(wanted, **near), name
    hours = np.average(release.intervals.steps, weights=release.volume)
    assert find_measure("mean-duration").of(compared.all_steps())[0] == pytest.approx(hours)
    by_length = find_measure("generalization-by-duration").of(compared.all_steps())[0]
    one = release.intervals.steps == 1
    sizes = release.areas.size[release.origin] + release.areas.size[release.destination]
    if one.any():
        assert by_length[0] == pytest.approx(np.average(sizes[one], weights=release.volume[one]))


@examples(40)
@given(made=interval_releases(), group_of=st.lists(st.integers(0, 2), min_size=72, max_size=72))
def test_estimates_are_the_dense_twin(made: Any, group_of: list[int]) -> None:
    """An interval is spread over its time steps; it lies in a group wholly only with all of them."""
    data, release = made
    held = release.intervals
    if held is None or not len(release):
        return
    side = StudySide(release, in_own_tiles(release.areas)[0])
    of_slot = np.array(group_of)[: len(held.start)]
    found = estimates(side, Groups(of_slot, 3))
    n = len(data.zones)
    volume, lower, upper = (np.zeros((3, n, n)) for _ in range(3))
    for row in range(len(release)):
        o, d = tiles(release, release.origin[row]), tiles(release, release.destination[row])
        groups = [group_of[slot] for slot in range(held.first[row], held.last[row])]
        for g in set(groups):
            share = groups.count(g) / len(groups)
            volume[g][np.ix_(o, d)] += release.volume[row] * share / (len(o) * len(d))
            upper[g][np.ix_(o, d)] += release.volume[row]
            if share == 1 and len(o) * len(d) == 1:
                lower[g][np.ix_(o, d)] += release.volume[row]
    at = (found.group, found.origin, found.destination)
    assert np.allclose(found.volume, volume[at]) and np.array_equal(found.lower, lower[at])
    assert np.array_equal(found.upper, upper[at]) and len(found) == np.count_nonzero(volume)


def _with_intervals() -> tuple[Flows, FlowRelease]:
    data = _hours()
    release = run(data, JointParams(k=4, time_partition="adaptive"), np.random.default_rng(0), no_progress)
    assert release.intervals is not None
    return data, release


def _hours() -> Flows:
    """Return two people an hour from a to b, others each hour, and many at noon."""
    from crowdveil.io.flows import trips_to_flows
    from crowdveil.model.trips import Trips

    zones = testing.Zones(np.array(["a", "b"], object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids")
    hour = np.concatenate([np.repeat(np.arange(24), 2), np.full(20, 12)])
    n = len(hour)
    trips = Trips(zones, np.zeros(n, int), np.ones(n, int), t=HOUR * hour, person=np.arange(n))
    return trips_to_flows(trips, step="1h", members=True)


def test_an_attacker_subtracts_an_interval_from_a_longer_one() -> None:
    """Rows of disjoint intervals give nothing; a row over all of them, which no method publishes, gives the rest of each."""
    _, release = _with_intervals()
    quiet = differencing(Published(release, 4), FlowAttackParams())
    assert quiet.values["steps_with_overlapping_rows"] == 0 and not quiet.below_k
    held = release.intervals
    assert held is not None
    total = int(release.volume.sum())
    broken = replace(
        release, offsets=np.array([0, len(release) + 1]), origin=np.append(release.origin, release.origin[0]),
        destination=np.append(release.destination, release.destination[0]), volume=np.append(release.volume, total + 2),
        people=np.append(release.people, total + 2), state=np.append(release.state, 0),
        intervals=replace(held, first=np.append(held.first, 0), last=np.append(held.last, len(held.start))),
    )  # fmt: skip
    found = differencing(Published(broken, 4), FlowAttackParams())
    assert found.values["steps_with_overlapping_rows"] == 1 and found.worst == 2 and found.below_k


def test_a_run_from_files_to_report(tmp_path: Path) -> None:
    """The whole sequence: files, guarantees, attacks, report, measures, analyses; what cannot is refused."""
    data, out = _hours(), tmp_path / "out"
    asked = {"k": 4, "time_partition": "adaptive", "hour_weight": 5}
    pipeline.run(pipeline.Request("joint", data, out, asked))
    assert all(finding.holds for _, finding in releases.verify(out, data))
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["cost"]["published_time_steps"] >= 20
    page = (out / "report.html").read_text()
    assert "Length of intervals" in page and "mean length of intervals" in page
    assert "spread evenly over their time steps" in page
    assert crowdveil.measure(data, out, ["mean-duration"])["mean-duration"].pooled > 1
    table = crowdveil.reconstruct(out).table()
    assert sum(table["volume"].to_pylist()) == pytest.approx(manifest["cost"]["published_volume"])
    assert set(np.array(table["upper"].to_pylist())[np.array(table["volume"].to_pylist()) == 2.0]) == {4}
    with pytest.raises(InputError, match="intervals of time"):
        read_partition(out, data.zones)


def test_methods_are_compared_on_time_steps_that_follow_one_another() -> None:
    methods = [Candidate.named(name, {"k": 4}) for name in ("joint", "joint:time_partition=adaptive")]
    assert np.all(np.diff(sample_matrices(_hours(), 4, methods, ComparisonParams(sample=6)).t) == HOUR)
    assert len(crowdveil.compare(_hours(), [c.label for c in methods], k=4, sample=6).runs) == 2

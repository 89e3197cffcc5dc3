"""Cuts of boxes at any place, against a plain twin that tries all cuts, and what a release of them keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import ALL, examples, tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_cuts import Box, PlainCuts
from plain_rivals import boxes as boxes_of
from plain_rivals import crowd, rows_of, taxis, volume

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.kernels.od.best_cut import ENDS, LEFTS, BoxContents, CutFlows, CutRules, TilePlaces
from crowdveil.methods.od.joint import JointParams, run
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import REPORTED, FlowRelease
from crowdveil.model.zones import Zones
from crowdveil.run import pipeline, releases

FLOWS = testing.flows(max_tiles=7, max_steps=1)


def _ints(values: Any) -> Any:
    return frozen(np.array(values), np.int64)


def _flat(sets: list[Any]) -> tuple[Any, Any]:
    return _ints(np.cumsum([0, *map(len, sets)])), _ints([v for s in sets for v in sorted(s)])


def _members(rows: list[Any], *, by_step: bool) -> tuple[Any, Any]:
    known = [sorted((r.step if by_step else 0, p) for p in r.people or ()) for r in rows]
    number = {p: i for i, p in enumerate(sorted({p for people in known for p in people}))}
    offsets = np.cumsum([0, *map(len, known)]) if number else np.zeros(0)
    return _ints(offsets), _ints([number[p] for people in known for p in people])


@examples(300)
@given(
    data=testing.flows(max_tiles=7, max_steps=3), kind=st.sampled_from(["step", "window", "by_step"]), draw=st.data()
)
def test_cuts_are_those_of_the_plain_twin(data: Flows, kind: str, draw: st.DataObject) -> None:
    """Positions and costs of tiles are drawn; boxes are the map, or two parts of it, in one time step or in several.

    With `window` k people are needed in all time steps together, which also cost something; with `by_step` in each.
    """
    from crowdveil.kernels.od.refine_boxes import refine_boxes

    n, steps = len(data.zones), 1 if kind == "step" else data.steps
    rows = sorted((r for step in range(steps) for r in rows_of(data, step)), key=lambda r: (r.origin, r.step))
    x, y, cost = (draw.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(3))
    counts = draw.draw(
        st.sampled_from([{*range(n)}, {t for r in rows for t in (r.origin, r.destination)}, {*range(0, n, 2)}])
    )
    plain = PlainCuts(
        x, y, cost, counts,
        k=draw.draw(st.integers(2, 12)), least=draw.draw(st.integers(0, 2)),
        scale=draw.draw(st.sampled_from([0, 1000])),
        by_step=kind == "by_step", trip_cost=draw.draw(st.integers(0, 5)) if kind == "window" else 0,
        steps=steps if kind == "window" else 1,
    )  # fmt: skip
    plain.lost_cost = plain.scale
    multiplier, rest = draw.draw(st.sampled_from([0.0, 1.5])), draw.draw(st.integers(0, 30))
    everything, half = frozenset(range(n)), frozenset(range(n // 2))
    sides = draw.draw(st.sampled_from([[everything], [half, everything - half]] if half else [[everything]]))
    listed = [Box(o, everything, tuple(r for r in rows if r.origin in o)) for o in sides]
    listed = [b for b in listed if plain.publishable(b) and plain.trimmed(b)]
    if not listed:
        return
    number = {(r.origin, r.destination, r.step): i for i, r in enumerate(rows)}
    held = [[number[r.origin, r.destination, r.step] for r in b.rows] for b in listed]
    sides_of = (*_flat([b.origins for b in listed]), *_flat([b.destinations for b in listed]))
    times = _ints([plain.trip_cost] * len(listed)), _ints([plain.steps] * len(listed))
    contents = BoxContents(*sides_of, *_flat(held), *times)
    columns = [[getattr(r, name) for r in rows] for name in ("origin", "destination", "volume", "crowd")]
    columns.append([r.step if plain.by_step else 0 for r in rows])
    flows = CutFlows(*map(_ints, columns), *_members(rows, by_step=plain.by_step))
    rules = CutRules(
        plain.k, plain.least, plain.scale, plain.lost_cost, multiplier
    )  # fmt: skip
    tiles = TilePlaces(*map(_ints, (x, y, cost, [t in counts for t in range(n)])))
    pieces = refine_boxes(contents, flows, tiles, rules, rest, True)
    expected = plain.refine(listed, multiplier, rest)
    found = [
        (tuple(frozenset(pieces.pool[e[i] : e[i + 1]].tolist()) for i in (0, 2, 4)), v, u, c)
        for e, v, u, c, shown in zip(
            pieces.ends.reshape(-1, ENDS).tolist(),
            pieces.volume,
            pieces.crowd,
            pieces.cost,
            pieces.published,
            strict=True,
        )
        if shown
    ]
    wanted = [
        (
            (b.origins, b.destinations, frozenset(number[r.origin, r.destination, r.step] for r in b.rows)),
            volume(list(b.rows)), plain.crowd(b.rows), plain.cost(b),
        )
        for b in expected
    ]  # fmt: skip
    assert found == wanted
    # Published and cut off together are the boxes, each pair of tiles once.
    left = pieces.left[: ENDS * pieces.counts[LEFTS]].reshape(-1, ENDS).tolist()
    parts = [(b.origins, b.destinations) for b in expected]
    parts += [tuple(frozenset(pieces.pool[e[i] : e[i + 1]].tolist()) for i in (0, 2)) for e in left]
    pairs = [(o, d) for origins, destinations in parts for o in origins for d in destinations]
    assert sorted(pairs) == sorted((o, d) for b in listed for o in b.origins for d in b.destinations)


def _cost(release: FlowRelease) -> int:
    size = release.areas.size
    return int(((size[release.origin] + size[release.destination]) * release.volume).sum())


def _pairs(release: FlowRelease, step: int) -> list[tuple[int, int]]:
    return sorted(
        (o, d) for origins, destinations, _, _ in boxes_of(release, step) for o in origins for d in destinations
    )


@examples(150)
@given(
    data=FLOWS,
    k=st.integers(2, 12),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.6]),
    tiles=st.integers(1, 2),
    small=st.booleans(),
)
def test_a_refined_release(data: Flows, k: int, share: float, tiles: int, small: bool) -> None:
    """Rows are true, disjoint, of k people and large enough; and cost no more than without cuts."""
    tiles = min(tiles, len(data.zones))
    given = {"k": k, "splits": "dyadic", "suppress": share, "min_tiles": tiles}
    rng = np.random.default_rng(0)
    plain = run(data, JointParams(**given), rng, no_progress)
    rows, budget = rows_of(data, 0), int(share * data.total + 1e-9)
    release = run(data, JointParams(**given | {"splits": "free"}), rng, no_progress)
    assert _cost(release) <= _cost(plain)
    if len(plain) == 0:
        assert len(release) == 0
        return
    assert data.total - int(release.volume.sum()) <= budget
    listed = _pairs(release, 0)
    assert len(set(listed)) == len(listed)
    facts = release.facts
    assert facts["certified_gap_percent_largest"] <= facts["certified_gap_percent_of_multiplier"] + 0.001
    if small:
        release = run(data, JointParams(**given | {"splits": "free"}, aggregate_small=True), rng, no_progress)
        listed = _pairs(release, 0)
        assert len(set(listed)) == len(listed)
    for origins, destinations, trips, people in boxes_of(release, 0):
        inside = [r for r in rows if r.origin in origins and r.destination in destinations]
        assert (volume(inside), crowd(inside)) == (trips, people)
        assert people >= k and min(len(origins), len(destinations)) >= tiles


@settings(max_examples=tries(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=testing.flows())
def test_guarantees_of_written_files(data: Flows, tmp_path_factory: pytest.TempPathFactory) -> None:
    if data.total_people < 2:
        return
    out = tmp_path_factory.mktemp("refined") / "out"
    parameters = {"k": 2, "splits": "free"}
    options = {"attack": False, "report": False}
    pipeline.run(pipeline.Request("joint", data, out, parameters, options=options))
    checked = releases.verify(out)
    assert checked and not any(finding.violated for _, finding in checked)


@examples(60)
@given(
    data=testing.flows(max_tiles=6, max_steps=4),
    k=st.integers(2, 8),
    objective=st.sampled_from(["generalization", "reconstruction"]),
    small=st.booleans(),
    time=st.sampled_from(["adaptive", "stable"]),
)
def test_a_refined_release_of_several_time_steps(
    tmp_path_factory: pytest.TempPathFactory,
    data: Flows,
    k: int,
    objective: str,
    small: bool,
    time: str,
) -> None:
    """The checkers, which know nothing of cuts, find all guarantees kept; and rows cost no more than without cuts."""
    data = replace(data, step_s=3600, t=3600 * np.arange(data.steps), tz="UTC")
    if data.total_people < k:
        return
    given = {"k": k, "splits": "dyadic", "objective": objective, "suppress": "30%", "time_partition": time}
    refined = {**given, "splits": "free"}
    out = tmp_path_factory.mktemp("refined") / "out"
    options = {"attack": False, "report": False}
    pipeline.run(pipeline.Request("joint", data, out, {**refined, "aggregate_small": small}, options=options))
    assert all(finding.holds for _, finding in releases.verify(out, data))
    plain, cut = (run(data, JointParams(**asked), np.random.default_rng(0), no_progress) for asked in (given, refined))
    if objective == "generalization":
        hours = [5 * (r.hours - 1) * r.volume if time == "adaptive" else np.zeros(1) for r in (plain, cut)]
        assert _cost(cut) + hours[1].sum() <= _cost(plain) + hours[0].sum() + 1e-6
    if len(plain):
        facts = cut.facts
        assert facts["certified_gap_percent_largest"] <= facts["certified_gap_percent_of_multiplier"] + 0.001


def _hours(volumes: list[list[int]]) -> Flows:
    """Trips of several hours from tiles in a line to the first of them."""
    lines = [_line(v) for v in volumes]
    columns = [np.concatenate([getattr(line, name) for line in lines]) for name in ("origin", "destination", "volume")]
    t = np.repeat(3600 * np.arange(len(lines)), [len(line) for line in lines])
    return replace(Flows.from_rows(lines[0].zones, t, *columns, step_s=3600), tz="UTC")


def test_trips_below_k_in_an_hour_influence_no_area() -> None:
    """The adversary compares hours with the same areas: a few trips of an hour, which are suppressed, change no row of any."""
    shown = []
    for few in (0, 3):
        data = _hours([[90, 0, 0, 0, 0, 20, 30, 30], [90, 0, 0, 0, few, 0, 0, 0], [90, 0, 0, 0, 0, 30, 10, 20]])
        more = {"suppress": "5trips", "time_partition": "stable"}
        release = run(data, JointParams(k=10, splits="free", **more), np.random.default_rng(0), no_progress)
        shown.append([sorted((sorted(o), v) for o, _, v, _ in boxes_of(release, step)) for step in range(3)])
        assert len(release) > 4 and release.people.min() >= 10
    assert shown[0] == shown[1]


def test_cuts_of_areas_that_are_the_same_in_all_hours() -> None:
    """Halves end between tiles 3 and 4; the cut that gains most in all hours lies elsewhere, and is the same in each."""
    data = _hours([[10, 0, 0, 0, 0, 4, 6, 0], [12, 0, 0, 0, 0, 9, 9, 0]])
    costs = []
    for splits in ("dyadic", "free"):
        params = JointParams(k=10, splits=splits, suppress=0, time_partition="stable")
        release = run(data, params, np.random.default_rng(0), no_progress)
        costs.append(_cost(release))
    assert costs[1] < costs[0]
    found = [sorted(sorted(o) for o, *_ in boxes_of(release, step)) for step in (0, 1)]
    assert found == [[[0], [5, 6]]] * 2


def _line(volumes: list[int], destination: int = 0) -> Flows:
    """Trips from tiles in a line to one of them."""
    n = len(volumes)
    zones = Zones(np.array([f"z{i}" for i in range(n)]), 2 + np.arange(n) / 100, np.full(n, 48.0), kind="centroids")
    origin = np.flatnonzero(volumes)
    columns = (np.zeros(len(origin)), origin, np.full(len(origin), destination), np.array(volumes)[origin])
    return Flows.from_rows(
        zones, *(c.astype(t) for c, t in zip(columns, (np.int64, np.int32, np.int32, np.int64), strict=True))
    )


def test_an_adversary_cannot_distinguish_empty_strips_from_suppressed_ones() -> None:
    """The adversary sees that the outer tiles are in no row, with a trip in them and without: the rows are the same."""
    shown = []
    for outer in (0, 1):
        data = _line([30, 30, 12, 0, 30, outer, 30, 30])
        params = JointParams(k=10, splits="free", suppress=0.1)
        release = run(data, params, np.random.default_rng(0), no_progress)
        shown.append(sorted((sorted(o), sorted(d), v, u) for o, d, v, u in boxes_of(release, 0)))
    assert shown[0] == shown[1]
    assert not any(3 in o or 5 in o for o, *_ in shown[0])


def test_cuts_at_any_place() -> None:
    """Halves end between tiles 3 and 4; the cut that gains most lies elsewhere."""
    data = _line([10, 0, 0, 0, 0, 4, 6, 0])
    sizes = []
    for splits in ("dyadic", "free"):
        params = JointParams(k=10, splits=splits, suppress=0)
        sizes.append(_cost(run(data, params, np.random.default_rng(0), no_progress)))
    assert sizes[1] < sizes[0]
    params = JointParams(k=10, splits="free", suppress=0)
    release = run(data, params, np.random.default_rng(0), no_progress)
    assert sorted(sorted(o) for o, *_ in boxes_of(release, 0)) == [[0], [5, 6]]


def test_small_flows_of_pieces_that_are_cut_off() -> None:
    """Twelve trips of four origins are cut off one by one; those of one origin area with k people are aggregated."""
    data = _line([300, 300, 2, 0, 0, 0, 0, 12], destination=1)
    params = JointParams(k=10, suppress=0.1, splits="free", aggregate_small=True)
    release = run(data, params, np.random.default_rng(0), no_progress)
    assert data.total - int(release.volume.sum()) <= 2
    assert release.people.min() >= 10 and set(release.state.tolist()) <= {0, REPORTED}


def test_zones_without_positions_are_refused() -> None:
    tree = Hierarchy.from_parents([2, 2, -1], [0, 1, -1])
    one = np.ones(1, np.int64)
    flows = Flows.from_rows(
        Zones.from_ids(["a", "b"]), 0 * one, (0 * one).astype(np.int32), np.zeros(1, np.int32), 20 * one
    )
    with pytest.raises(InputError, match="need the positions of the zones"):
        run(replace(flows, origin_tree=tree), JointParams(splits="free"), np.random.default_rng(0), no_progress)


@pytest.mark.realdata
@pytest.mark.slow
def test_taxis_by_hour(realdata: Path, tmp_path: Path) -> None:
    """Hours of a night: all guarantees hold on the files, and areas are at least 7 % finer within the same budget."""
    data = taxis(realdata)
    data = data.at_steps(np.arange(3, 6 if ALL else 4))
    given = {"splits": "dyadic", "k": 10}
    plain = run(data, JointParams(**given), np.random.default_rng(0), no_progress)
    more = {"splits": "free"}
    result = pipeline.run(
        pipeline.Request("joint", data, tmp_path / "out", {**given, **more}, options={"attack": False, "report": False})
    )
    assert all(g["outcome"] == "holds" for g in result.manifest["guarantees"])
    release = result.release
    assert _cost(release) / release.volume.sum() < 0.93 * _cost(plain) / plain.volume.sum()
    for step in range(data.steps):
        rows = slice(release.offsets[step], release.offsets[step + 1])
        total = int(data.volume[data.offsets[step] : data.offsets[step + 1]].sum())
        assert total - int(release.volume[rows].sum()) <= total // 10

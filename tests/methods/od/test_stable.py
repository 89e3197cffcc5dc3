"""One partition for all time steps, against brute force over all partitions, and against what is known of one time step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_boxes import Plain, PlainOriginsFirst, on_hull, problems, pruning, sums, with_trees
from plain_rivals import taxis
from release_rows import sorted_rows

from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError, ParameterError
from crowdveil.guarantees import PeriodBudget
from crowdveil.io.flows import trips_to_flows
from crowdveil.io.release_writer import write_release
from crowdveil.io.written_release import read_release
from crowdveil.methods.od.atg_dual import AtgDualParams
from crowdveil.methods.od.atg_dual import run as run_atg_dual
from crowdveil.methods.od.joint import JointParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.trips import Trips
from crowdveil.registry import find_method
from crowdveil.run import pipeline, releases
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.stable import StableProblem

HOUR = 3600
SPLITS = st.sampled_from(["tree", "dyadic"])
OBJECTIVES = st.sampled_from(["generalization", "reconstruction"])


@st.composite
def problems_in_time(draw: st.DrawFn) -> tuple[Flows, Trips]:
    """Trips of a few people in three hours."""
    flows, trips = draw(problems())
    hours = draw(st.lists(st.integers(0, 2), min_size=len(trips), max_size=len(trips)))
    timed = replace(trips, t=HOUR * np.array(hours))
    trees = flows.origin_tree, flows.destination_tree
    assert trees[0] is not None and trees[1] is not None
    return with_trees(trips_to_flows(timed, step="1h", members=True), *trees), timed


class PlainStable(Plain):
    """A box is published in the time steps in which it reaches k; partitions are all written out."""

    def __init__(self, flows: Flows, trips: Trips, k: int) -> None:
        super().__init__(flows, trips, k)
        assert trips.t is not None
        self.timed = [(o, d, who, t) for (o, d, who), t in zip(self.rows, trips.t.tolist(), strict=True)]

    def by_step(self, a: int, b: int) -> list[list[int]]:
        """Who made the trips of a box, by time step."""
        froms, tos = set(self.origins.node_tiles(a).tolist()), set(self.destinations.node_tiles(b).tolist())
        inside = [(t, who) for o, d, who, t in self.timed if o in froms and d in tos]
        return [[who for at, who in inside if at == t] for t in sorted({at for at, _ in inside})]

    def publishable(self, a: int, b: int) -> bool:
        return any(len(set(step)) >= self.k for step in self.by_step(a, b))

    def whole(self, a: int, b: int) -> set[tuple[int, int]]:
        size = len(self.origins.node_tiles(a)) + len(self.destinations.node_tiles(b))
        steps = [(len(step), len(set(step)) >= self.k) for step in self.by_step(a, b)]
        return {(sum(size * v for v, ok in steps if ok), sum(v for v, ok in steps if not ok))}

    def all(self) -> frozenset[tuple[int, int]]:
        """Every cost and suppressed volume, without the time steps of fewer than k people."""
        root = self.origins.root, self.destinations.root
        exempt = sum(len(step) for step in self.by_step(*root) if len(set(step)) < self.k)
        return frozenset((a, s - exempt) for a, s in super().all())


@examples(150)
@given(problem=problems_in_time(), k=st.integers(2, 4), p=st.integers(0, 30), q=st.integers(0, 5))
def test_an_evaluation_is_the_best_of_all_partitions(problem: Any, k: int, p: int, q: int) -> None:
    flows, trips = problem
    everything = PlainStable(flows, trips, k).all()
    asked = StableProblem(flows, RegionSpace.trees(flows), k, "generalization", lambda volume: 0)
    base = asked.base()
    if not everything:
        return
    got = asked.space(base, asked.add_up(base, np.arange(flows.steps))).solve_at(Fraction(p, q) if q else None)[:2]
    if q == 0:
        assert tuple(got[::-1]) == min((s, a) for a, s in everything)
    else:
        assert (q * got[0] + p * got[1], got[1]) == min((q * a + p * s, s) for a, s in everything)


@examples(150)
@given(problem=problems_in_time(), k=st.integers(2, 4), share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_the_budget_is_kept_over_all_steps(problem: Any, k: int, share: float) -> None:
    flows, trips = problem
    plain = PlainStable(flows, trips, k)
    everything = plain.all()
    params = JointParams(k=k, suppress=f"{100 * share}%", time_partition="stable")
    release = run(flows, params, np.random.default_rng(0), no_progress)
    if not everything:
        assert len(release) == 0
        return
    steps = plain.by_step(plain.origins.root, plain.destinations.root)
    volume = sum(len(step) for step in steps if len(set(step)) >= k)
    size = release.areas.size
    cost = int(((size[release.origin] + size[release.destination]) * release.volume).sum())
    suppressed, budget = volume - int(release.volume.sum()), int(share * volume + 1e-9)
    assert suppressed <= budget and (cost, suppressed) in everything
    assert cost == min(a for a, s in everything if s <= budget)


@examples(60)
@given(data=testing.flows(max_steps=1), splits=SPLITS, objective=OBJECTIVES, k=st.integers(2, 8), small=st.booleans())
def test_one_time_step_is_as_before(data: Flows, splits: Any, objective: Any, k: int, small: bool) -> None:
    asked: dict[str, Any] = {"k": k, "splits": splits, "objective": objective, "aggregate_small": small}
    both = [
        run(data, JointParams(**asked, time_partition=how), np.random.default_rng(0), no_progress)
        for how in ("steps", "stable")
    ]
    assert sorted_rows(both[0]) == sorted_rows(both[1]) and both[0].suppressed.tolist() == both[1].suppressed.tolist()


@examples(60)
@given(data=testing.flows(), splits=SPLITS, objective=OBJECTIVES, k=st.integers(2, 8))
def test_sums_of_boxes(data: Flows, splits: str, objective: Any, k: int) -> None:
    """What each box publishes over all time steps and what it costs, flow by flow, on trees and on rectangles."""
    make = RegionSpace.rectangles if splits == "dyadic" else RegionSpace.trees
    asked = StableProblem(data, make(data, objective), k, objective, lambda volume: 0)
    base = asked.base()
    sums = asked.add_up(base, np.arange(data.steps))
    for box in range(len(base)):
        sides = [
            set(side.regions.node_tiles(int(region)).tolist())
            for side, region in (
                (asked.system.origins, base.origin[box]),
                (asked.system.destinations, base.destination[box]),
            )
        ]
        volume, cost = _plain_sums(data, sides[0], sides[1], k, objective)
        assert (sums.volume[box], sums.cost[box]) == (volume, cost)


def _plain_sums(data: Flows, froms: set[int], tos: set[int], k: int, objective: str) -> tuple[int, int]:
    total = cost = 0
    for step in range(data.steps):
        cells = {(o, d): 0 for o in froms for d in tos}
        people: set[Any] = set()
        for i, (at, o, d, v, crowd) in enumerate(testing.flow_rows(data)):
            if at == step and (o, d) in cells:
                cells[o, d] += v
                ids = range(crowd) if data.person_ids is None or data.person_offsets is None else data.person_ids[
                    data.person_offsets[i] : data.person_offsets[i + 1]].tolist()  # fmt: skip
                people |= {(i, who) if data.person_ids is None else who for who in ids}
        if len(people) < k:
            continue
        volume = sum(cells.values())
        total += volume
        if objective == "reconstruction":
            error = sum(abs(Fraction(v) - Fraction(volume, len(cells))) for v in cells.values())
            cost += int(1000 * error + Fraction(1, 2))
        else:
            cost += volume * (len(froms) + len(tos))
    return total, cost


@examples(30)
@given(data=testing.flows(), splits=SPLITS, by=st.sampled_from(["all", "hour-of-day", "day-type"]), small=st.booleans())
def test_guarantees_hold_on_the_files(
    tmp_path_factory: pytest.TempPathFactory, data: Flows, splits: Any, by: Any, small: bool
) -> None:
    out = tmp_path_factory.mktemp("stable") / "out"
    asked = {"k": 3, "splits": splits, "time_partition": "stable", "stable_by": by, "aggregate_small": small}
    if data.total_people < 3:
        return
    pipeline.run(pipeline.Request("joint", data, out, asked, options={"attack": False, "report": False}))
    assert all(finding.holds for _, finding in releases.verify(out, data))


def _taxi_like(hours: int, people: int) -> Flows:
    """Return trips of people between two zones in each of some hours; every second hour has a few from the second zone."""
    zones = testing.Zones(
        np.array(["a", "b"], dtype=object), np.array([2.0, 2.1]), np.array([48.0, 48.0]), kind="centroids"
    )
    rows = [(h, 0, 1, i) for h in range(hours) for i in range(people)]
    rows += [(h, 1, 0, i) for h in range(0, hours, 2) for i in range(3)]
    h, o, d, who = (np.array(c) for c in zip(*rows, strict=True))
    return trips_to_flows(Trips(zones, o, d, t=HOUR * h, person=who), step="1h", members=True)


@pytest.mark.parametrize(("by", "over"), [("all", 1), ("hour-of-day", 4)])
def test_a_budget_that_is_not_kept_is_found(tmp_path: Path, by: Any, over: int) -> None:
    """Rows are taken out of the files: with the original, the checker finds the periods with too little published."""
    data = _taxi_like(4, 20)
    release = run(data, JointParams(k=5, time_partition="stable", stable_by=by), np.random.default_rng(0), no_progress)
    budget = PeriodBudget(suppress=0.1, k=5, period=by)
    files = write_release(release, tmp_path, "parquet", None)
    whole = read_release(tmp_path, files)
    assert budget.check_with_flows(whole, data).holds
    emptied = replace(whole, data=whole.data.slice(0, 0))
    finding = budget.check_with_flows(emptied, data)
    assert finding.violated and finding.counts["over"] == over


def test_classes_need_the_same_areas() -> None:
    with pytest.raises(ParameterError, match="time_partition"):
        JointParams.checked({"stable_by": "hour-of-day"})


def test_classes_of_time_steps_are_in_one_partition() -> None:
    t = np.arange(48) * 3600
    for name in ("joint", "atg-dual"):
        method = find_method(name)
        assert len(np.unique(method.time_groups(method.params(), t, "UTC"))) == 48
        stable = method.params(time_partition="stable", stable_by="hour-of-day")
        assert method.partitioning(stable) is None
        assert len(np.unique(method.time_groups(stable, t, "UTC"))) == 24


@pytest.mark.realdata
def test_taxis_have_the_same_areas_in_all_hours(realdata: Path) -> None:
    """The boxes of all hours are disjoint, at most a third coarser than those of each hour, and within the budget."""
    data = taxis(realdata)
    release = run(data, JointParams(time_partition="stable"), np.random.default_rng(0), no_progress)
    free = run(data, JointParams(), np.random.default_rng(0), no_progress)
    assert data.total - release.volume.sum() <= 0.1 * data.total
    pairs = np.unique(np.column_stack([release.origin, release.destination]), axis=0)
    areas, painted = release.areas, np.zeros((len(data.zones),) * 2, np.int64)
    for o, d in pairs.tolist():
        tiles = [areas.tiles[areas.offsets[a] : areas.offsets[a + 1]] for a in (o, d)]
        painted[np.ix_(*tiles)] += 1
    assert painted.max() == 1
    mean = [
        float(np.average((r.areas.size[r.origin] + r.areas.size[r.destination]), weights=r.volume))
        for r in (release, free)
    ]
    assert mean[0] <= 1.35 * mean[1]


class PlainStableOrigins(PlainStable, PlainOriginsFirst):
    """Given origins: every partition of the destinations of each, published in the time steps in which boxes reach k."""

    def destinations_of(self, a: int, b: int) -> frozenset[tuple[int, int]]:
        if not self.publishable(a, b):
            return frozenset({(0, len(self.inside(a, b)))})
        below = [self.destinations_of(a, c) for c in self.destinations.children(b).tolist()]
        return frozenset(self.whole(a, b)) | (sums(below) if below else frozenset())


@examples(150)
@given(
    problem=problems_in_time(),
    k=st.integers(2, 4),
    share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]),
    target=st.integers(1, 45),
)
def test_atg_dual_is_the_plain_twin(problem: Any, k: int, share: float, target: int) -> None:
    flows, trips = problem
    plain = PlainStableOrigins(flows, trips, k)
    root = plain.origins.root, plain.destinations.root
    if not plain.publishable(*root):
        return
    steps = plain.by_step(*root)
    volume = sum(len(step) for step in steps if len(set(step)) >= k)
    exempt, budget = len(trips) - volume, int(share * volume + 1e-9)
    found = sums([plain.destinations_of(a, root[1]) for a in pruning(plain, target)])
    everything = frozenset((a, s - exempt) for a, s in found)
    params = AtgDualParams(k=k, suppress=share, v_target=target, time_partition="stable")
    if min(s for _, s in everything) > budget:
        with pytest.raises(InputError, match=f"at least {min(s for _, s in everything)} trips must be suppressed here"):
            run_atg_dual(flows, params, np.random.default_rng(0), no_progress)
        return
    release = run_atg_dual(flows, params, np.random.default_rng(0), no_progress)
    size = release.areas.size
    cost = int(((size[release.origin] + size[release.destination]) * release.volume).sum())
    suppressed = volume - int(release.volume.sum())
    assert (cost, suppressed) == min((a, s) for a, s in everything if s <= budget and on_hull((a, s), everything))


@examples(40)
@given(data=testing.flows(max_steps=1), k=st.integers(2, 8), small=st.booleans(), rest=st.booleans())
def test_atg_dual_of_one_time_step_is_as_before(data: Flows, k: int, small: bool, rest: bool) -> None:
    asked: dict[str, Any] = {"k": k, "aggregate_small": small, "spend_rest": rest, "suppress": 0.3}
    both = []
    for how in ("steps", "stable"):
        try:
            release = run_atg_dual(
                data, AtgDualParams(**asked, time_partition=how), np.random.default_rng(0), no_progress
            )
            both.append((sorted_rows(release), release.facts))
        except InputError:  # a budget that no target keeps
            both.append(([], {}))
    assert both[0] == both[1]

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_boxes import TILES, PlainOriginsFirst, problems, pruning, sums

from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.guarantees import MinTiles
from crowdveil.kernels.od.structures import ANY_CHOICE, BY_ORIGIN, Splits
from crowdveil.methods.base import Facts
from crowdveil.methods.od.atg_dual import AtgDualParams
from crowdveil.methods.od.atg_dual import run as run_dual
from crowdveil.methods.od.atg_exact import AtgExactParams, guarantees, run
from crowdveil.model.arrays import frozen
from crowdveil.model.flows import VISITED, CountedTiles
from crowdveil.model.release import FlowRelease
from crowdveil.registry import find_method
from crowdveil.solve.od.boxes import BoxSpace, BudgetError, as_ratio


def _cost(release: FlowRelease) -> int:
    size = release.areas.size
    return int(((size[release.origin] + size[release.destination]) * release.volume).sum())


@examples(300)
@given(
    problem=problems(),
    k=st.integers(2, 5),
    share=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]),
    target=st.integers(1, 45),
    delta=st.sampled_from([0.0, 0.01, 0.2, 0.9, 1.0]),
)
def test_it_is_the_best_of_all_partitions(problem: Any, k: int, share: float, target: int, delta: float) -> None:
    flows, trips = problem
    plain = PlainOriginsFirst(flows, trips, k)
    params, budget = AtgExactParams(k=k, suppress=share, v_target=target, delta=delta), int(share * flows.total + 1e-9)
    if not plain.publishable(plain.origins.root, plain.destinations.root):
        return
    everything = sums([plain.destinations_of(a, plain.destinations.root) for a in pruning(plain, target)])
    within = [(a, s) for a, s in everything if s <= budget]
    if not within:
        with pytest.raises(InputError, match="must be suppressed here"):
            run(flows, params, np.random.default_rng(0), no_progress)
        return
    release = run(flows, params, np.random.default_rng(0), no_progress)
    suppressed = flows.total - int(release.volume.sum())
    each = 2 * Fraction(delta).limit_denominator(100) * TILES
    assert (_cost(release), suppressed) in within
    assert _cost(release) + each * suppressed == min(a + each * s for a, s in within)


@examples(200)
@given(problem=problems(), k=st.integers(2, 5), share=st.sampled_from([0.0, 0.1, 0.3, 0.6]), target=st.integers(1, 45))
def test_each_origin_on_its_own(problem: Any, k: int, share: float, target: int) -> None:
    flows, trips = problem
    plain = PlainOriginsFirst(flows, trips, k)
    params = AtgExactParams(k=k, suppress=share, v_target=target, scope="origin", delta=0)
    release = run(flows, params, np.random.default_rng(0), no_progress)
    if not plain.publishable(plain.origins.root, plain.destinations.root):
        assert len(release) == 0
        return
    best = 0
    for a in pruning(plain, target):
        leaving = plain.inside(a, plain.destinations.root)
        if len(set(leaving)) >= k:
            budget = int(share * len(leaving) + 1e-9)
            best += min(c for c, s in plain.destinations_of(a, plain.destinations.root) if s <= budget)
    assert _cost(release) == best
    assert len(guarantees(params, Facts.of(flows))) == 2


class _Sized(PlainOriginsFirst):
    """Partitions whose areas must have so many tiles that count."""

    def __init__(self, flows: Any, trips: Any, k: int, least: int, counting: set[int]) -> None:
        super().__init__(flows, trips, k)
        self.least, self.counting = least, counting

    def large(self, tiles: Any) -> bool:
        return len({*tiles.tolist()} & self.counting) >= self.least

    def destinations_of(self, a: int, b: int) -> frozenset[tuple[int, int]]:
        if not self.large(self.destinations.node_tiles(b)):
            return frozenset({(0, len(self.inside(a, b)))})
        return super().destinations_of(a, b)

    def origins_near(self, target: float, a: int) -> tuple[float, list[int]]:
        penalty = (target - len(self.inside(a, self.destinations.root))) ** 2
        children = self.origins.children(a).tolist()
        if children and all(self.large(self.origins.node_tiles(c)) for c in children):
            below = [self.origins_near(target, c) for c in children]
            if sum(b[0] for b in below) < penalty:
                return sum(b[0] for b in below), [n for b in below for n in b[1]]
        return penalty, [a]


@examples(200)
@given(
    problem=problems(),
    k=st.integers(2, 4),
    share=st.sampled_from([0.0, 0.2, 0.5]),
    target=st.integers(1, 45),
    tiles=st.integers(1, 3),
    inhabited=st.integers(0, 2),
)
def test_areas_are_as_large_as_wanted(
    problem: Any, k: int, share: float, target: int, tiles: int, inhabited: int
) -> None:
    """l-diversity: the best of all partitions with areas of so many tiles, or of so many visited tiles."""
    flows, trips = problem
    visited = {*trips.origin.tolist(), *trips.destination.tolist()}
    counting, least = (visited, inhabited) if inhabited else ({*range(TILES)}, tiles)
    plain = _Sized(flows, trips, k, least, counting)
    flows = replace(flows, counted=CountedTiles(VISITED, flows.visited) if inhabited else None)
    params = AtgExactParams(k=k, suppress=share, v_target=target, delta=0, min_tiles=least)
    if len(counting) < least or not plain.publishable(plain.origins.root, plain.destinations.root):
        return
    origins = plain.origins_near(target, plain.origins.root)[1]
    within = [
        (a, s)
        for a, s in sums([plain.destinations_of(o, plain.destinations.root) for o in origins])
        if s <= int(share * flows.total + 1e-9)
    ]
    if within:
        release = run(flows, params, np.random.default_rng(0), no_progress)
        assert (_cost(release), flows.total - int(release.volume.sum())) in within
        assert _cost(release) == min(a for a, _ in within)
    for name in ("atg-exact", "atg-dual", "atg-coupled", "atg-soft"):
        method = find_method(name)
        for report in (False, True):
            given = {
                "min_tiles": least,
                "k": k,
                "aggregate_small": report,
                **({} if name == "atg-soft" else {"suppress": 0.9}),
            }
            checked = method.params.checked(given)
            made: Any = method.run(flows, checked, np.random.default_rng(0), no_progress)
            for area in {*made.origin.tolist(), *made.destination.tolist()}:
                held = made.areas.tiles[made.areas.offsets[area] : made.areas.offsets[area + 1]]
                assert plain.large(held), name
            asked = any(isinstance(g, MinTiles) for g in method.guarantees(checked, Facts.of(flows)))
            assert asked == (least > 1 or inhabited > 0)


def test_a_map_with_fewer_tiles_than_wanted_is_refused() -> None:
    from crowdveil.model.flows import Flows
    from crowdveil.model.hierarchy import Hierarchy
    from crowdveil.model.zones import Zones

    one, tree = np.ones(1, np.int64), Hierarchy.from_parents([-1], [0])
    flows = Flows.from_rows(Zones.from_ids(["a"]), 0 * one, np.zeros(1, np.int32), np.zeros(1, np.int32), 20 * one)
    flows = replace(flows, origin_tree=tree, destination_tree=tree)
    for name in ("atg-exact", "atg-dual", "atg-coupled", "atg-soft"):
        method = find_method(name)
        with pytest.raises(InputError, match="whole map"):
            method.run(flows, method.params.checked({"min_tiles": 2}), np.random.default_rng(0), no_progress)


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], int]:
    """Costs, losses and parents of random forests, children before parents; and what is lost in any case."""
    n = draw(st.integers(1, 9))
    above = [draw(st.sampled_from([-1, *range(i + 1, n)])) for i in range(n)]
    lost = [draw(st.integers(0, 6)) for _ in range(n)]
    cost = [draw(st.integers(0, 40)) for _ in range(n)]
    for i in range(n):
        if i not in above and draw(st.booleans()):
            lost[i] = -1
    return cost, lost, above, draw(st.integers(0, 3))


def _everything(cost: list[int], lost: list[int], above: list[int], gone: int) -> frozenset[tuple[int, int]]:
    def of(i: int) -> frozenset[tuple[int, int]]:
        whole = frozenset({(cost[i], 0)})
        if lost[i] < 0:
            return whole
        return whole | sums([frozenset({(0, lost[i])}), *(of(c) for c in range(len(cost)) if above[c] == i)])

    return sums([frozenset({(0, gone)}), *(of(i) for i in range(len(cost)) if above[i] < 0)])


def _space(cost: list[int], lost: list[int], above: list[int], gone: int, lost_cost: int) -> BoxSpace:
    """Return the boxes of a forest, which no matrix is behind, below a box of the whole map that must be split."""
    n = len(cost)
    parts = [[c for c in range(n) if above[c] == i] for i in range(n)] + [[i for i in range(n) if above[i] < 0]]
    split = [i for i in range(n + 1) if i == n or lost[i] >= 0]
    offsets = np.searchsorted(split, np.arange(n + 2))
    link_offsets = np.cumsum([0, *(len(parts[i]) for i in split)])
    given_up, links = [[*lost, gone][i] for i in split], [part for i in split for part in parts[i]]
    splits = Splits(*(frozen(c, np.int64) for c in (offsets, [BY_ORIGIN] * len(split), given_up, link_offsets, links)))
    allowed = frozen([ANY_CHOICE] * n + [BY_ORIGIN], np.int8)
    nothing: Any = None
    columns = frozen([*cost, sum(cost)], np.int64), splits, allowed
    volume = frozen([_trips(i, [*lost, gone], parts) for i in range(n + 1)], np.int64)
    return BoxSpace(nothing, volume, volume, volume, volume, *columns, int(volume[-1]), lost_cost)


def _trips(box: int, lost: list[int], parts: list[list[int]]) -> int:
    """Return the volume of a box: what a split gives up and what its parts have; one trip where it cannot be split."""
    return 1 if lost[box] < 0 else lost[box] + sum(_trips(part, lost, parts) for part in parts[box])


@examples(2500)
@given(forest=forests(), budget=st.integers(0, 25), first=st.fractions(0, 60, max_denominator=16))
def test_random_forests_against_all_partitions(forest: Any, budget: int, first: Fraction) -> None:
    everything = _everything(*forest)
    space = _space(*forest, 0)
    within = [x for x in everything if x[1] <= budget]
    if not within:
        with pytest.raises(BudgetError):
            space.solve_for_budget(budget, first)
        assert space.solve_at(None)[1] == min(x[1] for x in everything)
        return
    found = space.solve_for_budget(budget, first)
    a, s = found.cost, found.suppressed
    assert (a, s) in everything and s <= budget
    p, q = as_ratio(found.multiplier)
    # No partition is better at the price, and of equal ones this suppresses least.
    assert (q * a + p * s, s) == min((q * x + p * y, y) for x, y in everything) or s == budget
    choice, exact = space.solve_exactly(found, found.choice, budget, 10**6)
    best = space.cost_of(choice)
    assert exact and best == min(x for x, _ in within)
    # What is certified: the gap to the best is at most the price of what is left of the budget.
    assert q * (a - best) <= p * (budget - s)


@examples(800)
@given(forest=forests(), budget=st.integers(0, 25), lost_cost=st.integers(0, 4))
def test_the_rest_is_spent_within_the_budget(forest: Any, budget: int, lost_cost: int) -> None:
    everything = {(a + lost_cost * s, s) for a, s in _everything(*forest)}
    within = [a for a, s in everything if s <= budget]
    assume(within)
    space, (cost, lost, above, _) = _space(*forest, lost_cost), forest
    found = space.solve_for_budget(budget)
    slack = space.spend_slack(found, budget - found.suppressed)
    published = set(slack.published.tolist())
    gone = [i for i in range(len(cost)) if _is_split(i, published, above)]
    suppressed = forest[3] + sum(lost[i] for i in gone)
    spent = sum(cost[i] for i in published) + lost_cost * suppressed
    assert (spent, suppressed) in everything
    assert suppressed <= budget and spent <= found.full_cost
    assert found.lower_bound(budget) <= min(within) <= spent
    # Nothing that saves anything is left that would fit: no published box can be split into its children with what is left.
    for box in published:
        children = [c for c in range(len(cost)) if above[c] == box]
        saves = cost[box] - sum(cost[c] for c in children) - lost_cost * lost[box]
        if lost[box] >= 0 and saves > 0 and not any(lost[c] >= 0 for c in children):
            assert suppressed + lost[box] > budget
    choice, exact = space.solve_exactly(found, found.choice, budget, 10**6)
    assert exact and space.cost_of(choice) == min(within)


def _is_split(box: int, published: set[int], above: list[int]) -> bool:
    """Return whether neither a box nor one above it is published."""
    while box >= 0:
        if box in published:
            return False
        box = above[box]
    return True


def test_equal_boxes_share_the_budget() -> None:
    space = _space([10, 10, 10, 7], [2, 2, 2, 3], [-1, -1, -1, -1], 0, 0)
    found = space.solve_for_budget(5)
    assert (found.cost, found.suppressed) == (37, 0)
    assert space.spend_slack(found, 5).published.tolist() == [2, 3]
    assert space.cost_of(found.choice) == 17


def test_too_many_states_are_refused() -> None:
    space = _space([9, 7, 8], [3, 2, 5], [-1, -1, -1], 0, 0)
    found = space.solve_for_budget(6)
    assert not space.solve_exactly(found, found.choice, 6, 2)[1]


def test_the_gap_of_the_multiplier_is_published() -> None:
    from crowdveil.experiments.profiles import make_profile
    from crowdveil.io.flows import with_tree

    flows = with_tree(make_profile("nyc", np.random.default_rng(5), 2), "ward")
    exact = run(flows, AtgExactParams(v_target=200), np.random.default_rng(0), no_progress)
    dual = run_dual(flows, AtgDualParams(v_target=200), np.random.default_rng(0), no_progress)
    gap = exact.facts["gap_of_atg_dual_percent_largest"]
    assert 0 <= gap <= dual.facts["certified_gap_percent_largest"] + 1e-3
    assert _cost(exact) <= _cost(dual) <= _cost(exact) * (1 + gap / 100 + 1e-6)


def test_a_quadtree_has_its_own_cost_of_a_suppressed_trip() -> None:
    from plain_boxes import with_trees as both

    from crowdveil.model.flows import Flows
    from crowdveil.model.hierarchy import Hierarchy
    from crowdveil.model.zones import Zones
    from crowdveil.solve.od.region_space import RegionSpace

    one = np.ones(1, np.int64)
    flows = Flows.from_rows(Zones.from_ids(["a", "b"]), 0 * one, 0 * one, 0 * one, 20 * one)
    tree = Hierarchy.from_parents([2, 2, -1], [0, 1, -1], kind="quadtree")
    assert AtgExactParams().lost_cost(RegionSpace.trees(both(flows, tree, tree))) == Fraction(4, 100)
    other = Hierarchy.from_parents([2, 2, -1], [0, 1, -1])
    assert AtgExactParams().lost_cost(RegionSpace.trees(both(flows, other, other))) == 0

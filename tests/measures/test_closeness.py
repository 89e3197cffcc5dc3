"""t-closeness: the distance on a tree against a linear program, and releases in which origins reveal nothing or everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from scipy.optimize import linprog

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import CrowdveilError
from crowdveil.measures.od.class_closeness import class_distances
from crowdveil.measures.od.closeness import closeness, mean_variation, tree_distances
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.release import FlowRelease
from crowdveil.model.zones import Zones


def random_tree(rng: np.random.Generator, tiles: int) -> Hierarchy:
    """Return a tree in which random nodes were joined, two or three at a time."""
    parent, roots = [-1] * tiles, list(range(tiles))
    while len(roots) > 1:
        joined = rng.choice(roots, min(len(roots), int(rng.integers(2, 4))), replace=False).tolist()
        for node in joined:
            parent[node] = len(parent)
        roots = [node for node in roots if node not in joined] + [len(parent)]
        parent.append(-1)
    return Hierarchy.from_parents(np.array(parent), np.array([*range(tiles), *[-1] * (len(parent) - tiles)]))


def plain_distances(tree: Hierarchy) -> Floats:
    """Return how far tiles are apart: the height of their lowest common node, as a share of the root's."""
    parent = tree.parent.tolist()

    def height(node: int) -> int:
        return max((1 + height(child) for child, above in enumerate(parent) if above == node), default=0)

    def above(node: int) -> list[int]:
        return [node, *(above(parent[node]) if parent[node] >= 0 else [])]

    leaf = {int(tile): int(node) for tile, node in zip(tree.leaf_tile, tree.leaf_node, strict=True)}
    n = len(leaf)
    apart = [[next(a for a in above(leaf[i]) if a in above(leaf[j])) for j in range(n)] for i in range(n)]
    return np.array([[height(node) for node in row] for row in apart]) / height(len(parent) - 1)


def test_distance_on_a_tree_is_the_least_work_of_moving() -> None:
    rng = np.random.default_rng(2)
    for _ in range(tries(40)):
        n = int(rng.integers(2, 7))
        tree = random_tree(rng, n)
        p, q = rng.dirichlet(np.ones(n), 2)
        sums = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
        work = linprog(plain_distances(tree).ravel(), A_eq=sums, b_eq=np.concatenate([p, q])).fun
        assert tree_distances(tree, p[None], q).tolist() == pytest.approx([work], abs=1e-7)


def released(origin: Ints, destination: Ints, volume: Ints) -> OdComparison:
    """Return a release of single tiles of four, compared with itself."""
    zones = Zones(np.array(list("abcd"), dtype=object), 2 + np.arange(4) / 100, np.full(4, 48.0))
    order = np.lexsort((destination, origin))
    origin, destination, volume = origin[order], destination[order], volume[order]
    offsets = np.array([0, len(origin)])
    flows = Flows(zones, np.zeros(1, np.int64), offsets, origin, destination, volume, volume, "trips")
    release = FlowRelease(
        Areas.of_tiles(zones, np.arange(4, dtype=np.int32)), flows.t, offsets, flows.origin, flows.destination, volume,
        volume, np.zeros(len(volume), np.uint8), np.zeros(1, np.int64), "trips",
    )  # fmt: skip
    return OdComparison.between(flows, release)


def test_an_origin_that_reveals_nothing_and_one_that_reveals_all() -> None:
    alike = released(np.repeat([0, 1], 2), np.tile([2, 3], 2), np.array([10, 20, 10, 20]))
    assert closeness(alike).tolist() == [[0, 0]]
    # All of a go to d, all of b to a: two tiles of different halves of the map, of which half of all trips go to each.
    apart = released(np.array([0, 1]), np.array([3, 0]), np.array([10, 10]))
    assert closeness(apart).tolist() == [[0.5, 0]]
    one_of_many = released(np.arange(4), np.array([3, 0, 0, 0]), np.array([10, 30, 30, 30]))
    mean = (0.1 * 0.9 + 0.9 * 0.1) * 1.0
    assert closeness(one_of_many)[0].tolist() == pytest.approx([mean, 0.1])
    assert closeness(one_of_many.all_steps())[0].tolist() == pytest.approx([mean, 0.1])


def test_equal_distances_against_the_definition() -> None:
    rng = np.random.default_rng(4)
    for _ in range(tries(60)):
        steps, origins, tiles = 2, 3, 5
        held = rng.integers(0, 4, (steps, origins, tiles)).astype(float)
        wanted = trips = 0.0
        for step in held:
            for origin in step:
                if origin.sum():
                    difference = np.abs(origin / origin.sum() - step.sum(axis=0) / step.sum()).sum() / 2
                    wanted, trips = wanted + origin.sum() * difference, trips + origin.sum()
        step, origin, tile = np.nonzero(held)
        rows = step, step * origins + origin, tile, held[step, origin, tile].astype(np.int64)
        found = mean_variation(*rows, np.arange(tiles + 1), np.arange(tiles))
        assert found == pytest.approx(wanted / trips if trips else 0.0)


def test_volumes_are_spread_evenly_over_the_tiles_of_areas() -> None:
    """Some areas overlap, and some have no tile."""
    rng = np.random.default_rng(5)
    for _ in range(tries(60)):
        n, areas, tiles = int(rng.integers(0, 40)), 6, 5
        chosen = rng.random((areas, tiles)) < 0.4
        offsets = np.append(0, np.cumsum(chosen.sum(axis=1)))
        group = np.sort(rng.integers(0, 9, n))
        area, volume = rng.integers(0, areas, n), rng.integers(0, 3, n)
        held = np.zeros((3, 3, tiles))
        for g, a, v in zip(group.tolist(), area.tolist(), volume.tolist(), strict=True):
            held[g // 3, g % 3] += v * chosen[a] / max(chosen[a].sum(), 1)
        wanted = sum(
            np.abs(origin - origin.sum() * step.sum(axis=0) / step.sum()).sum() / 2
            for step in held for origin in step if step.sum()
        )  # fmt: skip
        found = mean_variation(group // 3, group, area, volume, offsets, np.nonzero(chosen)[1])
        assert found == pytest.approx(wanted / held.sum() if held.sum() else 0.0, abs=1e-12)


def least_work(p: Floats, q: Floats, apart: Floats) -> float:
    """Return the earth mover's distance by a linear program."""
    n = len(p)
    sums = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    return float(linprog(apart.ravel(), A_eq=sums, b_eq=np.concatenate([p, q])).fun)


@pytest.mark.parametrize("ordered", [False, True])
def test_distance_of_classes_is_the_least_work_of_moving(ordered: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(tries(30)):
        n = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.ones(n), 2)
        places = np.arange(n)
        apart = np.abs(np.subtract.outer(places, places)) / (n - 1) if ordered else 1.0 - np.eye(n)
        found = class_distances(p[None], q, ordered=ordered)
        assert found.tolist() == pytest.approx([least_work(p, q, apart)], abs=1e-7)


@pytest.fixture
def classed(tmp_path: Path) -> Path:
    """Thirty people leave a, all old; sixty leave b, half of them young and half adult; k = 10 suppresses c."""
    people = [("a", "old")] * 30 + [("b", "young")] * 30 + [("b", "adult")] * 30 + [("c", "young")] * 4
    table = pa.table({
        "origin": [origin for origin, _ in people], "destination": ["d"] * len(people),
        "user_id": range(len(people)), "age": [age for _, age in people],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "trips.parquet")
    crowdveil.anonymize(
        tmp_path / "trips.parquet", tmp_path / "out", method="suppression", k=10, attack=False, report=False
    )
    return tmp_path


def test_classes_of_travelers_are_measured(classed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A third of all published trips are of each class: a is 2/3 away from that, b 1/3; in order a is further away."""
    trips, out = classed / "trips.parquet", classed / "out"
    free = crowdveil.measure(trips, out, ["t-closeness"], traveler_class="age")["class-closeness"].pooled
    assert free.tolist() == pytest.approx([(30 * 2 / 3 + 60 / 3) / 90, 30 / 90, 30 / 90])
    order = ["young", "adult", "old"]
    line = crowdveil.measure(trips, out, ["E"], traveler_class="age", class_order=order)["class-closeness"].pooled
    assert line.tolist() == pytest.approx([(30 * (1 / 3 + 2 / 3) / 2 + 60 * (1 / 6 + 1 / 3) / 2) / 90, 0, 30 / 90])
    cli.main(["measure", str(trips), str(out), "-m", "t-closeness", "--traveler-class", "age"], standalone_mode=False)
    said = capsys.readouterr().out
    assert "an origin's traveler classes from all: share with one class" in said and "0.33" in said


def test_classes_of_folded_time_are_those_of_all_periods(classed: Path) -> None:
    """Trips of one class two weeks later, folded, are measured as those of the same weekdays of one week."""
    table = pq.read_table(classed / "trips.parquet")
    day = np.where(np.arange(len(table)) % 2, 4, 5)
    found = []
    for weeks in (0, 2):
        late = np.array([weeks * (age == "old") for age in table["age"].to_pylist()])
        times = pa.array((day + 7 * late) * 86_400_000_000, pa.timestamp("us"))
        data, out = classed / f"{weeks}.parquet", classed / f"{weeks}"
        pq.write_table(table.append_column("time", times), data)
        options = {"step": "1d", "tz": "UTC", "fold": "1w", "k": 10, "attack": False, "report": False}
        crowdveil.anonymize(data, out, method="suppression", **options)
        found.append(crowdveil.measure(data, out, ["E"], traveler_class="age")["class-closeness"].pooled.tolist())
    assert found[0] == pytest.approx(found[1])


def test_classes_that_cannot_be_measured(classed: Path) -> None:
    trips, out = classed / "trips.parquet", classed / "out"
    for given, words in (
        ({"traveler_class": "income"}, "has no column income"),
        ({"traveler_class": "age", "class_order": ["young", "adult"]}, "30 rows is not in it"),
        ({"traveler_class": "age", "class_order": ["old", "old"]}, "listed twice"),
        ({"class_order": ["old"]}, "name the column of classes"),
    ):
        with pytest.raises(CrowdveilError, match=words):
            crowdveil.measure(trips, out, ["E"], **given)

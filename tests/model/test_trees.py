from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import h3 as h3_library
import numpy as np
import pyarrow as pa
import pytest
import scipy.cluster.hierarchy as sch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_rivals import taxi_zones
from plain_trees import nested_of, node_sets, plain_ward, tiles_of, without_chains

from crowdveil.errors import InputError, ParameterError
from crowdveil.kernels.trees import ward_merges
from crowdveil.model import trees
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.projection import LocalProjection
from crowdveil.model.zones import Grid, Zones
from crowdveil.testing import nested_trees

HERE = LocalProjection(2.0, 41.0)
NO_TILES = Zones.from_ids([])
# The first call may compile.
unhurried = settings(deadline=None)


def placed(x: Any, y: Any) -> Zones:
    """Tiles with centroids near meters of a plane; `Zones.xy` lays its own plane, so equal x may come out unequal."""
    lon, lat = HERE.to_globe(np.array(x, np.float64), np.array(y, np.float64))
    return Zones(np.arange(len(lon)), lon, lat, kind="centroids")


def gridded(column: Any, row: Any, size_m: float = 100.0) -> Zones:
    x, y = np.array(column), np.array(row)
    lon, lat = HERE.to_globe(x * size_m, y * size_m)
    side = 1 + int(max(x.max(initial=0), y.max(initial=0)))
    frame = Grid(HERE, 0.0, 0.0, size_m, side, side)
    return Zones(np.arange(len(x)), lon, lat, kind="grid", grid=frame, column=x, row=y)


def named(*ids: str) -> Zones:
    return Zones.from_ids(ids)


def points(max_tiles: int, bound: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.lists(st.tuples(st.integers(0, bound), st.integers(0, bound)), min_size=1, max_size=max_tiles)


def shifted_trees(x: Any, y: Any, times: int) -> int:
    """Number of different trees when each tile is moved by up to 0.2 m at random, some times."""
    rng = np.random.default_rng(0)
    found = set()
    for time in range(times):
        angle, meters = rng.uniform(0, 2 * np.pi, len(x)), 0.2 * np.sqrt(rng.uniform(0, 1, len(x))) * (time > 0)
        tree = trees.ward(placed(x - x.mean() + meters * np.cos(angle), y - y.mean() + meters * np.sin(angle)))
        found.add((tree.parent.tobytes(), tree.leaf_tile.tobytes()))
    return len(found)


class TestWard:
    @unhurried
    @given(st.integers(2, 40), st.integers(0, 10_000))
    def test_is_scipys_tree_where_nothing_is_tied(self, n: int, seed: int) -> None:
        xy = np.random.default_rng(seed).uniform(-5000, 5000, (n, 2))
        merges = ward_merges(xy[:, 0].copy(), xy[:, 1].copy(), 1.0)
        found, wanted = ([frozenset([i]) for i in range(n)] for _ in range(2))
        for clusters, pairs in ((found, merges), (wanted, sch.linkage(xy, "ward").astype(int))):
            for a, b in pairs[:, :2]:
                clusters.append(clusters[a] | clusters[b])
        assert set(found) == set(wanted)

    @unhurried
    @given(st.integers(1, 30), st.integers(0, 10_000), st.booleans())
    def test_is_the_plain_tree_with_near_ties_by_the_order_of_the_tiles(self, n: int, seed: int, regular: bool) -> None:
        rng = np.random.default_rng(seed)
        grid = 400.0 * rng.permutation(np.array([(i % 6, i // 6) for i in range(36)]))[:n]
        x, y = (grid if regular else rng.uniform(-5000, 5000, (n, 2))).T
        zones = placed(x, y)
        assert node_sets(trees.ward(zones)) == plain_ward(list(zip(*zones.xy, strict=True)), trees.TIE)

    @pytest.mark.parametrize("shuffled", [False, True])
    @pytest.mark.parametrize(("columns", "rows", "side"), [(12, 12, 500), (13, 17, 250), (7, 31, 1000), (20, 20, 200)])
    def test_the_tree_of_a_grid_does_not_depend_on_noise(
        self, columns: int, rows: int, side: float, shuffled: bool
    ) -> None:
        row, column = np.divmod(np.arange(columns * rows), columns)
        x, y = column * side + 0.3 * row * side, row * side - 0.3 * column * side
        order = np.random.default_rng(1).permutation(len(x)) if shuffled else np.arange(len(x))
        assert shifted_trees(x[order], y[order], 100) == 1

    @pytest.mark.parametrize(("place", "resolution"), [((48.85, 2.35), 8), ((41.38, 2.17), 7), ((40.7, -74.0), 9)])
    def test_the_tree_of_h3_cells_does_not_depend_on_noise(self, place: tuple[float, float], resolution: int) -> None:
        cells = sorted(h3_library.grid_disk(h3_library.latlng_to_cell(*place, resolution), 8))
        lat, lon = np.array([h3_library.cell_to_latlng(cell) for cell in cells]).T
        assert shifted_trees(*LocalProjection.around(lon, lat).to_plane(lon, lat), 100) == 1

    @pytest.mark.realdata
    def test_the_tree_of_new_york_does_not_depend_on_noise(self, realdata: Path) -> None:
        assert shifted_trees(*taxi_zones(realdata).xy, 100) == 1

    @unhurried
    @given(points(12, 3))
    def test_equal_centroids_are_children_of_one_node(self, cells: list[tuple[int, int]]) -> None:
        tree = trees.ward(gridded(*zip(*cells, strict=True)))
        nodes = node_sets(tree)
        places = Counter(cells)
        for place, tiles in places.items():
            assert frozenset(i for i, cell in enumerate(cells) if cell == place) in nodes
            assert tiles >= 1
        extra = sum(tiles > 1 for tiles in places.values())
        assert len(tree) == len(cells) + extra + len(places) - 1

    def test_noise_of_the_projection_does_not_separate_equal_positions(self) -> None:
        noise = np.array([0, 1e-12, 3e-12])
        lon = np.concatenate([2.0 + noise, 2.01 + 0 * noise, [2.03]])
        lat = np.concatenate([41.0 + 0 * noise, 41.0 + noise, [41.0]])
        tree = trees.ward(Zones(range(7), lon, lat, kind="centroids"))
        assert nested_of(tree) == [[[0, 1, 2], [3, 4, 5]], 6] or nested_of(tree) == [6, [[0, 1, 2], [3, 4, 5]]]

    def test_near_tiles_join_first(self) -> None:
        tree = trees.ward(placed([0, 1000, 10, 1010, 5000], [0, 0, 0, 0, 0]))
        assert node_sets(tree) - {frozenset([i]) for i in range(5)} == {
            frozenset([0, 2]),
            frozenset([1, 3]),
            frozenset([0, 1, 2, 3]),
            frozenset(range(5)),
        }
        assert tree.kind == "ward"


def plain_kd(cells: list[tuple[int, int]], tiles: list[int]) -> Any:
    if len(tiles) == 1:
        return tiles[0]
    width, height = (max(cells[t][a] for t in tiles) - min(cells[t][a] for t in tiles) for a in (0, 1))
    axis = 1 if height > width else 0
    ordered = sorted(tiles, key=lambda t: (cells[t][axis], cells[t][1 - axis], t))
    half = len(tiles) // 2
    return [plain_kd(cells, ordered[:half]), plain_kd(cells, ordered[half:])]


class TestKd:
    @unhurried
    @given(points(20, 6))
    def test_is_the_tree_of_plain_recursion(self, cells: list[tuple[int, int]]) -> None:
        wanted = plain_kd(cells, list(range(len(cells))))
        assert nested_of(trees.kd(gridded(*zip(*cells, strict=True)))) == wanted

    @unhurried
    @given(points(20, 1000))
    @example([(15, 191), (83, 99), (142, 313), (229, 134)])  # as wide as tall to the millimeter, but not as floats
    def test_splits_centroids_in_meters_to_the_millimeter(self, cells: list[tuple[int, int]]) -> None:
        zones = placed(*zip(*cells, strict=True))
        x, y = (np.rint(meters * 1000).astype(int).tolist() for meters in zones.xy)
        wanted = plain_kd(list(zip(x, y, strict=True)), list(range(len(cells))))
        assert nested_of(trees.kd(zones)) == wanted

    @unhurried
    @given(points(40, 100))
    def test_halves_differ_by_at_most_one_tile(self, cells: list[tuple[int, int]]) -> None:
        tree = trees.kd(placed(*zip(*cells, strict=True)))
        assert tree.kind == "kd"
        for node in np.flatnonzero(~tree.is_leaf):
            left, right = tree.size[tree.children(int(node))]
            assert 0 <= right - left <= 1


def plain_quadtree(cells: list[tuple[int, int]], side: int, x0: int, y0: int) -> Any:
    """The quarters of a square as nested lists, by looking at every tile; None where there is none."""
    inside = [i for i, (x, y) in enumerate(cells) if x0 <= x < x0 + side and y0 <= y < y0 + side]
    if not inside:
        return None
    if side == 1:
        return inside
    half = side // 2
    quarters = [plain_quadtree(cells, half, x0 + dx, y0 + dy) for dy in (0, half) for dx in (0, half)]
    return [quarter for quarter in quarters if quarter is not None]


class TestQuadtree:
    @unhurried
    @given(points(20, 20))
    def test_is_the_tree_of_plain_recursion(self, cells: list[tuple[int, int]]) -> None:
        tree = trees.quadtree(gridded(*zip(*cells, strict=True)))
        assert nested_of(tree) == without_chains(plain_quadtree(cells, 32, 0, 0))
        assert tree.kind == "quadtree"

    def test_quarters_come_south_west_south_east_north_west_north_east(self) -> None:
        row, column = np.divmod(np.arange(16), 4)
        assert nested_of(trees.quadtree(gridded(column, row))) == [
            [0, 1, 4, 5],
            [2, 3, 6, 7],
            [8, 9, 12, 13],
            [10, 11, 14, 15],
        ]

    def test_a_grid_as_wide_as_can_be(self) -> None:
        far = 2**31 - 1
        zones = gridded([0, far, far - 1, 0], [0, far, far, 1], size_m=1e-4)
        assert nested_of(trees.quadtree(zones)) == [[0, 3], [2, 1]]

    def test_wants_a_grid(self) -> None:
        with pytest.raises(InputError, match=r"kind centroids. Make one with zones="):
            trees.quadtree(placed([0, 1], [0, 1]))

    def test_wants_columns_from_zero(self) -> None:
        with pytest.raises(InputError, match="count from 0"):
            trees.quadtree(gridded([0, -1], [0, 0]))


def celled(cells: list[str]) -> Zones:
    lat, lon = np.array([h3_library.cell_to_latlng(c) for c in cells]).T
    return Zones(cells, lon, lat, kind="h3", h3_resolution=h3_library.get_resolution(cells[0]))


# A pentagon with all around it, and two cities that share no cell of resolution 0.
PENTAGON = h3_library.get_pentagons(5)[0]
CELLS = {
    "pentagon": sorted(h3_library.grid_disk(PENTAGON, 2)),
    "two cities": [
        *h3_library.grid_disk(h3_library.latlng_to_cell(41.4, 2.17, 8), 4),
        *h3_library.grid_disk(h3_library.latlng_to_cell(-33.87, 151.2, 8), 2),
    ],
    "coarsest": sorted(h3_library.get_res0_cells()),
    "finest": sorted(h3_library.grid_disk(h3_library.latlng_to_cell(41.4, 2.17, 15), 3)),
    "one": [PENTAGON],
}


class TestH3:
    @pytest.mark.parametrize("name", CELLS)
    def test_nodes_are_the_cells_of_one_parent(self, name: str) -> None:
        cells = CELLS[name]
        wanted = {frozenset([i]) for i in range(len(cells))} | {frozenset(range(len(cells)))}
        for resolution in range(h3_library.get_resolution(cells[0])):
            above = [h3_library.cell_to_parent(c, resolution) for c in cells]
            wanted |= {frozenset(i for i, p in enumerate(above) if p == parent) for parent in set(above)}
        tree = trees.h3(celled(cells))
        assert node_sets(tree) == wanted
        assert tree.kind == "h3"

    def test_wants_cells(self) -> None:
        with pytest.raises(InputError, match=r"kind centroids. Make them with zones="):
            trees.h3(placed([0, 1], [0, 1]))
        ids = [PENTAGON, "no cell", PENTAGON[:-1] + "0"]
        with pytest.raises(InputError, match=r"not an H3 cell in 2 rows \(rows 2 and 3\)"):
            trees.h3(Zones(ids, np.zeros(3), np.zeros(3), kind="h3"))

    def test_wants_one_resolution(self) -> None:
        with pytest.raises(InputError, match="one resolution"):
            trees.h3(celled([PENTAGON, h3_library.cell_to_center_child(PENTAGON)]))


class TestLevels:
    ZONES = named("a", "b", "c", "d", "e")
    TABLE = {  # noqa: RUF012
        "tile": ["e", "a", "b", "c", "d"],
        "tract": ["t3", "t1", "t2", "t1", "t2"],
        "city": ["t1", "x", "x", "x", "x"],
    }

    def test_units_come_in_the_order_of_their_first_tile(self) -> None:
        wanted = [[[0, 2], [1, 3]], 4]
        assert nested_of(trees.levels(self.ZONES, pa.table(self.TABLE))) == wanted
        assert nested_of(trees.levels(self.ZONES, pa.table(self.TABLE).take([4, 2, 0, 1, 3]))) == wanted

    @unhurried
    @given(st.data())
    def test_nodes_are_the_tiles_of_one_unit(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(1, 10))
        columns, unit = [], list(range(n))
        for _ in range(data.draw(st.integers(1, 3))):
            coarser = data.draw(st.lists(st.integers(0, 4), min_size=10, max_size=10))
            unit = [coarser[u] for u in unit]
            columns.append(unit)
        wanted = {frozenset([i]) for i in range(n)} | {frozenset(range(n))}
        for column in columns:
            wanted |= {frozenset(i for i in range(n) if column[i] == u) for u in column}
        order = data.draw(st.permutations(range(n)))
        table = {"id": [order[i] for i in range(n)]} | {
            f"level {level}": [column[order[i]] for i in range(n)] for level, column in enumerate(columns)
        }
        tree = trees.levels(named(*map(str, range(n))), pa.table(table))
        assert node_sets(tree) == wanted
        assert tree.kind == "levels"

    def test_takes_numbers_chunks_and_dictionaries(self) -> None:
        ids = pa.chunked_array([[10, 20], [30]])
        units = pa.chunked_array([pa.array(["p", "q", "q"]).dictionary_encode()])
        tree = trees.levels(named("10", "20", "30"), pa.table({"id": ids, "unit": units}))
        assert nested_of(tree) == [0, [1, 2]]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"tile": ["e", "a", "b", "c", "z"]}, r"the zones lack the tile of 1 row \(row 5\)"),
            ({"tile": ["e", "a", "b", "a", "a"]}, r"repeated in 2 rows \(rows 4 and 5\)"),
            ({"tract": ["t3", "t1", None, "t1", "t2"]}, r"column tract has no value in 1 row \(row 3\)"),
            ({"tract": [3.0, 1.0, 2.0, 1.0, float("nan")]}, r"column tract has no value in 1 row \(row 5\)"),
            ({"city": ["x", "", "x", "x", ""]}, r"column city has no value in 2 rows \(rows 2 and 5\)"),
            ({"tile": [None, "a", "b", "c", "d"]}, r"column tile has no value in 1 row \(row 1\)"),
            # Tract t1 has a and c, t2 has b and d; in order of tiles, a and b come first and so are right.
            ({"city": ["x", "x", "x", "y", "x"]}, r"tract lies in two of column city in 1 row \(row 4\)"),
            ({"tract": [["t"]] * 5}, "column tract must be text or whole numbers"),
        ],
    )
    def test_says_which_rows_are_wrong(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            trees.levels(self.ZONES, pa.table(self.TABLE | changes))

    def test_wants_every_tile_and_a_level(self) -> None:
        with pytest.raises(InputError, match="2 tiles had none"):
            trees.levels(self.ZONES, pa.table(self.TABLE).slice(0, 3))
        with pytest.raises(InputError, match="5 tiles had none"):
            trees.levels(self.ZONES, pa.table({"tile": [], "tract": []}))
        with pytest.raises(InputError, match="fewer columns"):
            trees.levels(self.ZONES, pa.table({"tile": self.TABLE["tile"]}))


class TestParents:
    ZONES = named("a", "b", "c")

    def test_children_come_in_order_of_their_names(self) -> None:
        table = {"node": ["c", "b", "a", "q", "p"], "parent": ["p", "q", "p", "top", "top"]}
        assert nested_of(trees.parents(self.ZONES, pa.table(table))) == [[0, 2], 1]
        zones = named("a", "b", "c", "d")
        table = {"node": ["a", "b", "c", "d", "z", "y"], "parent": ["z", "z", "y", "y", "top", "top"]}
        assert nested_of(trees.parents(zones, pa.table(table))) == [[2, 3], [0, 1]]

    @unhurried
    @given(nested_trees(chains=True), st.data())
    def test_is_the_tree_whatever_the_order_of_rows(self, tree: Any, data: st.DataObject) -> None:
        rows: list[tuple[str, str | None]] = []

        def name(node: Any) -> str:
            if isinstance(node, int):
                return f"tile {node}"
            own = f"node {len(rows)}"
            rows.append((own, None))
            place = len(rows) - 1
            for child in node:
                below = name(child)
                at = [i for i, row in enumerate(rows) if row[0] == below]
                if at:
                    rows[at[0]] = (below, own)
                else:
                    rows.append((below, own))
            assert rows[place][0] == own
            return own

        root = name(tree)
        rows = rows or [(root, None)]
        if len(rows) > 1 and data.draw(st.booleans()):
            rows = [row for row in rows if row[0] != root]
        rows = data.draw(st.permutations(rows))
        table = {"node": [r[0] for r in rows], "parent": pa.array([r[1] for r in rows], pa.string())}
        tiles = len(tiles_of(tree))
        got = trees.parents(named(*(f"tile {i}" for i in range(tiles))), pa.table(table))
        assert node_sets(got) == plain_sets(tree)
        assert got.kind == "parents"

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ("a>p b>p c>q p>top", "is not a tree: expected one root, got 2"),
            ("a>p b>p c>p a>q q>p", r"is not a tree: an earlier node gets a second parent in 1 row \(row 4\)"),
            ("a>p b>p c>p p>q q>p", "is not a tree: every node has a parent"),
            ("a>p b>p c>top q>r r>q", "is not a tree: expected one root, got 2"),
            ("a>top b>top c>r q>r r>q", "is not a tree: 3 nodes cannot reach the root"),
            ("a>top b>top", "1 tile had none"),
            ("a>top b>top c>b", "got 1 tile with children"),
            ("a>top b>top c>top d>top", r"neither tile nor parent in 1 row \(row 4\)"),
            ("a>top b>top c>top >top", r"column node has no value in 1 row \(row 4\)"),
            ("", "3 tiles had none"),
        ],
    )
    def test_refuses_what_is_no_tree(self, edges: str, message: str) -> None:
        rows = [edge.split(">") for edge in edges.split(" ")] if edges else []
        with pytest.raises(InputError, match=message):
            trees.parents(self.ZONES, pa.table({"node": [r[0] for r in rows], "parent": [r[1] for r in rows]}))

    def test_a_root_without_parent_is_none_of_a_tile_called_nan(self) -> None:
        table = {"node": ["nan", "b", "7"], "parent": [7.0, 7.0, float("nan")]}
        assert nested_of(trees.parents(named("nan", "b"), pa.table(table))) == [0, 1]

    def test_wants_its_columns(self) -> None:
        with pytest.raises(InputError, match="one column named node and one named parent"):
            trees.parents(self.ZONES, pa.table({"child": ["a"], "above": ["b"]}))


def plain_sets(tree: Any) -> set[frozenset[int]]:
    below = set() if isinstance(tree, int) else set().union(*(plain_sets(child) for child in tree))
    return below | {frozenset(tiles_of(tree))}


class TestBuild:
    def test_finds_every_builder_by_name(self) -> None:
        assert list(trees.BUILDERS) == ["ward", "kd", "quadtree", "h3"]
        grid = gridded([0, 1, 1], [0, 0, 1])
        for name in ("ward", "kd", "quadtree"):
            assert trees.build(grid, name).kind == name
        assert trees.build(celled(CELLS["pentagon"]), "h3").kind == "h3"

    def test_distinguishes_tables_by_their_columns(self) -> None:
        zones = named("a", "b")
        assert trees.build(zones, pa.table({"parent": ["r", "r"], "node": ["a", "b"]})).kind == "parents"
        assert trees.build(zones, pa.table({"node": ["a", "b"], "city": ["r", "r"]})).kind == "levels"
        three = pa.table({"node": ["a", "b"], "parent": ["r", "s"], "city": ["r", "r"]})
        assert trees.build(zones, three).kind == "levels"

    def test_names_the_choices(self) -> None:
        with pytest.raises(ParameterError, match="one of ward, kd, quadtree, h3 or a table of levels, got 'oak'"):
            trees.build(named("a"), "oak")

    @pytest.mark.parametrize("kind", ["ward", "kd"])
    def test_needs_to_know_where_tiles_are(self, kind: str) -> None:
        with pytest.raises(InputError, match="trees need the positions of the zones"):
            trees.build(named("a", "b"), kind)

    @pytest.mark.parametrize("kind", ["ward", "kd", "quadtree"])
    def test_one_tile_is_one_node_and_none_is_refused(self, kind: str) -> None:
        assert nested_of(trees.build(gridded([5], [3]), kind)) == 0
        with pytest.raises(InputError, match="at least one tile"):
            trees.build(gridded(np.zeros(0, int), np.zeros(0, int)), kind)

    def test_no_tile_is_refused_by_all_others(self) -> None:
        none = Zones([], [], [], kind="h3")
        for call in (
            lambda: trees.h3(none),
            lambda: trees.levels(NO_TILES, pa.table({"id": [], "unit": []})),
            lambda: trees.parents(NO_TILES, pa.table({"node": [], "parent": []})),
        ):
            with pytest.raises(InputError, match=r"at least one tile|got no node"):
                call()

    @pytest.mark.parametrize("kind", ["ward", "kd", "quadtree"])
    def test_the_same_tiles_give_the_same_bytes(self, kind: str) -> None:
        row, column = np.divmod(np.random.default_rng(1).permutation(144), 12)
        first, second = (as_bytes(trees.build(gridded(column, row), kind)) for _ in range(2))
        assert first == second


def as_bytes(tree: Hierarchy) -> list[bytes]:
    return [a.tobytes() for a in (tree.parent, tree.first_leaf, tree.last_leaf, tree.leaf_tile)]

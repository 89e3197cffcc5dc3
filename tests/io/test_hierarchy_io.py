"""Trees by name, from tables, and written as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from synthetic import grid_frame

from crowdveil.errors import CrowdveilError, InputError
from crowdveil.io.hierarchy import build_hierarchy, hierarchy_table
from crowdveil.io.tables import write_table
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.tessellation import grid_zones, h3_cells, h3_zones
from crowdveil.model.trees import BUILDERS, NODE_COLUMNS
from crowdveil.model.zones import Zones

ZONES = Zones(
    np.array(["a", "b", "c", "d", "e"], dtype=object),
    np.array([2.0, 2.01, 2.1, 2.11, 2.2]),
    np.full(5, 41.0),
    kind="centroids",
)
LEVELS = "zone,tract\nc,T1\na,T0\nb,T0\nd,T1\ne,T2\n"
PARENTS = "node,parent\na,T0\nb,T0\nc,T1\nd,T1\nT0,top\nT1,top\ne,top\n"


def groups(tree: Hierarchy) -> set[frozenset[str]]:
    """The sets of tiles that the tree's nodes stand for."""
    return {frozenset(ZONES.ids[tree.node_tiles(n)].tolist()) for n in range(len(tree))}


WANTED = {frozenset(x) for x in ("a", "b", "c", "d", "e", "ab", "cd", "abcde")}


@pytest.mark.parametrize("text", [LEVELS, PARENTS])
def test_tables_of_levels_and_of_parents_are_the_same_tree(text: str, tmp_path: Path) -> None:
    (tmp_path / "tree.csv").write_text(text)
    header, *rows = (line.split(",") for line in text.split())
    table = pa.table(dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)))
    for kind in (str(tmp_path / "tree.csv"), tmp_path / "tree.csv", table):
        assert groups(build_hierarchy(ZONES, kind)) == WANTED


@pytest.mark.parametrize("kind", ["ward", "kd"])
def test_trees_are_built_by_name(kind: str) -> None:
    tree = build_hierarchy(ZONES, kind)
    assert tree.tiles == 5
    assert groups(tree) >= {frozenset("abcde"), *map(frozenset, "abcde")}


def test_a_name_that_is_a_builder_is_not_looked_up_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ward").write_text("no tree")
    assert build_hierarchy(ZONES, "ward").tiles == 5


@pytest.mark.parametrize("kind", ["wards", "nowhere.csv"])
def test_what_is_neither_builder_nor_file_is_refused(kind: str) -> None:
    with pytest.raises(CrowdveilError):
        build_hierarchy(ZONES, kind)


def _zones_of(kind: str) -> Zones:
    if kind == "quadtree":
        return grid_zones(grid_frame(np.array([2.0, 2.03]), np.array([41.0, 41.02]), 500.0))
    if kind == "h3":
        return h3_zones(h3_cells(np.array([2.0, 2.03, 2.05]), np.array([41.0, 41.02, 41.01]), 8))
    # Ids that a reader could take for numbers, for nothing, or for a formula.
    ids = np.array(["007", "NA", "a,b", "=d", "nan"], dtype=object)
    return Zones(ids, ZONES.lon, ZONES.lat, kind="centroids")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [*BUILDERS, "levels"])
def test_a_written_tree_is_read_again_as_the_same_tree(kind: str, ending: str, tmp_path: Path) -> None:
    zones = ZONES if kind == "levels" else _zones_of(kind)
    (tmp_path / "levels.csv").write_text(LEVELS)
    tree = build_hierarchy(zones, tmp_path / "levels.csv" if kind == "levels" else kind)
    table = hierarchy_table(tree, zones)
    assert tuple(table.column_names) == NODE_COLUMNS
    assert table["tiles"].to_pylist() == tree.size.tolist()
    write_table(table, tmp_path / f"tree.{ending}", as_input=True)
    again = build_hierarchy(zones, tmp_path / f"tree.{ending}")
    shuffled = build_hierarchy(zones, table.take(np.random.default_rng(3).permutation(len(table))))
    for name in ("parent", "first_leaf", "last_leaf", "leaf_tile"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(tree, name))


def test_a_written_tree_is_an_option_of_a_run(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zones.csv").write_text(
        "id,lon,lat\n" + "".join(f"{n},{x},41\n" for n, x in zip("abcde", ZONES.lon, strict=True))
    )
    Path("flows.csv").write_text("origin,destination,volume\na,b,30\nc,d,4\nd,e,7\n")
    assert command("hierarchy", "zones.csv", "--hierarchy", "kd", "-o", "tree.csv").code == 0
    for name, tree in (("named", "kd"), ("written", "tree.csv")):
        ran = command(
            "anonymize", "joint", "flows.csv", "--zones", "zones.csv", "--hierarchy", tree, "-o", name, "--no-report"
        )
        assert ran.code == 0, ran.err
    assert Path("named/flows.csv").read_bytes() == Path("written/flows.csv").read_bytes()


def test_a_table_of_nodes_that_is_wrong_is_refused() -> None:
    good = {
        "node": [0, 1, 2, 3, 4, 5],
        "parent": [5, 5, 5, 5, 5, None],
        "tiles": [1] * 5 + [5],
        "tile": [*"abcde", None],
    }
    assert build_hierarchy(ZONES, pa.table(good)).tiles == 5
    for changed, sentence in (
        ({"node": [0, 1, 2, 3, 4, 6]}, "from 0 to 5"),
        ({"node": [0, 1, 2, 3, 4, 4]}, "repeated in 1 row .row 6"),
        ({"node": [0, 1, 2, 3, 4, None]}, "no value in 1 row .row 6"),
        ({"node": ["x", "1", "2", "3", "4", "5"]}, "whole numbers"),
        ({"parent": [5, 5, 5, 5, 9, None]}, "no row in 1 row .row 5"),
        ({"tile": ["a", "b", "c", "d", "z", None]}, "the tile of 1 row .row 5"),
        ({"tile": ["a", "b", "c", "d", None, None]}, "1 tile had none"),
        ({"tile": ["a", "b", "c", "d", "d", None]}, "1 tile had none"),
    ):
        with pytest.raises(InputError, match=sentence):
            build_hierarchy(ZONES, pa.table(good | changed))


def test_a_tile_that_is_missing_is_refused() -> None:
    with pytest.raises(InputError, match="1 tile"):
        build_hierarchy(ZONES, pa.table({"zone": ["a", "b", "c", "d"], "tract": ["x"] * 4}))

"""Trees by name, from tables, and written as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.errors import CrowdveilError, InputError
from crowdveil.io.hierarchy import build_hierarchy, hierarchy_table
from crowdveil.model.hierarchy import Hierarchy
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


def test_a_written_tree_is_read_again(tmp_path: Path) -> None:
    tree = build_hierarchy(ZONES, "ward")
    table = hierarchy_table(tree, ZONES)
    assert table.column_names == ["node", "parent", "tiles", "tile"]
    assert table["tiles"].to_pylist() == tree.size.tolist()
    # children before parents, one root, and a tile at each leaf
    parent = table["parent"].to_pylist()
    assert all(p is None or p > n for n, p in enumerate(parent))
    assert parent.count(None) == 1
    assert sorted(t for t in table["tile"].to_pylist() if t is not None) == sorted(ZONES.ids)
    names = [t if t is not None else f"node {n}" for n, t in enumerate(table["tile"].to_pylist())]
    again = pa.table({"node": names, "parent": [None if p is None else names[p] for p in parent]})
    assert groups(build_hierarchy(ZONES, again)) == groups(tree)


def test_a_tile_that_is_missing_is_refused() -> None:
    with pytest.raises(InputError, match="1 tile"):
        build_hierarchy(ZONES, pa.table({"zone": ["a", "b", "c", "d"], "tract": ["x"] * 4}))

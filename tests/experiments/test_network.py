"""Road networks: read from files as they come, refused in one sentence where they are wrong, connected in the end."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from crowdveil.errors import InputError, ParameterError
from crowdveil.experiments.network import RoadNetwork, read_network, street_grid

NODES = "7 0 0\n3 3 4\n5 3 0\n"
ROADS = "0 7 3 5.5\n1 3 5 4\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "nodes.txt", tmp_path / "roads.txt"


def read(files: tuple[Path, Path], nodes: str, roads: str) -> RoadNetwork:
    files[0].write_text(nodes)
    files[1].write_text(roads)
    return read_network(*files)


def test_nodes_are_found_by_their_ids(files: tuple[Path, Path]) -> None:
    network = read(files, NODES, ROADS)
    np.testing.assert_array_equal(network.x, [0, 3, 3])
    np.testing.assert_array_equal(network.y, [0, 4, 0])
    np.testing.assert_array_equal(network.begin, [0, 1])
    np.testing.assert_array_equal(network.end, [1, 2])
    np.testing.assert_array_equal(network.length, [5.5, 4])
    assert network.left_out == 0 and network.nodes == 3
    assert network.extent == (3.0, 4.0) and network.middle == (1.5, 2.0)


@pytest.mark.parametrize(
    ("nodes", "roads"),
    [
        (NODES.replace(" ", ","), ROADS.replace(" ", ", ")),
        ("id;x;y\n" + NODES.replace(" ", ";"), "id;from;to;length\n" + ROADS.replace(" ", ";")),
        ("\ufeffid\tx\ty\r\n" + NODES.replace(" ", "\t").replace("\n", "\r\n") + "\r\n", "\n" + ROADS),
    ],
)
def test_other_marks_and_a_header_make_no_difference(files: tuple[Path, Path], nodes: str, roads: str) -> None:
    network = read(files, nodes, roads)
    assert network.nodes == 3
    np.testing.assert_array_equal(network.length, [5.5, 4])


def test_roads_without_a_length_are_straight(files: tuple[Path, Path]) -> None:
    np.testing.assert_allclose(read(files, NODES, "a 7 3\nb 3 5\n").length, [5, 4])


def test_each_road_leaves_both_of_its_nodes(files: tuple[Path, Path]) -> None:
    first, to, length = read(files, NODES, ROADS).leaving
    assert [(to[a:b].tolist(), length[a:b].tolist()) for a, b in pairwise(first)] == [
        ([1], [5.5]),
        ([2, 0], [4, 5.5]),
        ([1], [4]),
    ]


def test_the_largest_part_is_taken(files: tuple[Path, Path]) -> None:
    network = read(files, "1 9 9\n2 8 8\n" + NODES + "0 6 6\n", "5 1 2 1\n" + ROADS + "6 0 0 3\n")
    assert network.left_out == 3 and network.nodes == 3
    np.testing.assert_array_equal(network.x, [0, 3, 3])
    np.testing.assert_array_equal(network.begin, [0, 1])


@pytest.mark.parametrize(
    ("nodes", "roads", "message"),
    [
        ("", ROADS, "nodes.txt: the file has no rows"),
        ("id x y\n", ROADS, "nodes.txt: the file has no rows"),
        ("7 0\n3 3 4\n", ROADS, r"nodes.txt: Expected .* 1 row \(row 1\) has more or fewer values"),
        ("7 0 0\n3 3 x\n5 3 0\n", ROADS, r"nodes.txt: 1 row \(row 2\) has no number in column 3"),
        ("7 0 0\n3 inf 4\n5 3 0\n", ROADS, r"nodes.txt: 1 row \(row 2\) has no number in column 2"),
        ("7 0 0\n7 3 4\n5 3 0\n", ROADS, r"nodes.txt: 1 row \(row 2\) repeats an id"),
        (NODES, "0 7 3 5\n1 3 4 4\n", r"roads.txt: 1 row \(row 2\) names a node that is not in"),
        (NODES, "0 7 3 -5\n1 3 5 4\n", r"roads.txt: 1 row \(row 1\) has a length below 0"),
        (NODES, "0 7 3 5\n1 3 5 nan\n", r"roads.txt: 1 row \(row 2\) has no number in column 4"),
        (NODES, "0 7 3 5\n1 3 5\n", r"roads.txt: Expected .* 1 row \(row 2\)"),
        (NODES, "0 7 7 5\n", "expected at least two nodes and a road"),
    ],
)
def test_a_wrong_file_raises_one_sentence(files: tuple[Path, Path], nodes: str, roads: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read(files, nodes, roads)
    assert "\n" not in str(raised.value) and str(raised.value).endswith(".")


def test_files_that_are_not_there_or_not_text_are_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="does not exist or cannot be read"):
        read_network(*files)
    files[0].write_bytes(b"\xff\xfe1\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_network(*files)


def test_a_made_up_town_is_connected_and_the_same_for_the_same_seed() -> None:
    town, again, other = (street_grid(seed, side=20) for seed in (1, 1, 2))
    np.testing.assert_array_equal(town.x, again.x)
    np.testing.assert_array_equal(town.begin, again.begin)
    assert len(town.x) != len(other.x) or (town.x != other.x).any()
    assert 350 < town.nodes <= 400 and town.nodes + town.left_out == 400
    assert 0.75 < len(town.begin) / (2 * 20 * 19) < 0.9
    assert town.length.min() > 170 / 3
    assert street_grid(0, side=2).nodes >= 2
    with pytest.raises(ParameterError, match="side"):
        street_grid(0, side=1)


@pytest.mark.realdata
def test_oldenburg_is_read(realdata: Path) -> None:
    network = read_network(realdata / "oldenburg" / "vertices.txt", realdata / "oldenburg" / "edges.txt")
    assert (network.nodes, len(network.begin), network.left_out) == (6105, 7035, 0)

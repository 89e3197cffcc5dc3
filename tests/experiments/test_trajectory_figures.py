"""Figures of trajectories show what the methods did to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import crowdveil
from crowdveil.comparison.candidates import Candidate
from crowdveil.errors import ParameterError
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.experiments.trajectory_figures import METHODS, areas_of, candidates_of, draw_figure, equal_to
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.visits import merged_tiles, tiles_of

SWAP = "swap-locations:k=2:max_radius_m=500:max_time_s=900:min_pair_people=1"


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    return make_movers(street_grid(1, side=6), 40, seed=2)


def test_areas_hold_all_points_and_the_squares_of_their_tiles(movers: Trajectories) -> None:
    zones, tile = tiles_of(movers, 200.0)
    merged = merged_tiles(zones, tile, np.zeros(movers.points, np.int64), least=30)
    (squares, points), (areas, joined) = areas_of(zones, tile, tile), areas_of(zones, tile, merged)
    assert points.sum() == joined.sum() == movers.points
    assert len(areas) < len(squares) == len(np.unique(tile))
    assert shapely.area(areas).sum() == pytest.approx(shapely.area(squares).sum(), rel=1e-3)
    assert {shape.geom_type for shape in areas} == {"Polygon"}, "tiles that are merged have a common side"


def test_members_are_the_people_of_a_group(movers: Trajectories) -> None:
    release = Candidate.named("microaggregation:k=4", {}).run(movers, 0)
    assert release.source is not None
    groups = {tuple(sorted(release.source[equal_to(release, i)].tolist())) for i in range(len(release))}
    assert sorted(i for group in groups for i in group) == list(range(len(movers)))
    assert all(len(set(movers.person[list(group)].tolist())) >= 4 for group in groups)


def test_published_locations_are_among_the_candidates(movers: Trajectories) -> None:
    candidate = Candidate.named(SWAP, {})
    release = candidate.run(movers, 0)
    assert release.source is not None and release.point is not None and len(release)
    x, y = movers.xy
    for i, own in enumerate(release.source.tolist()):
        near = candidates_of(movers, own, candidate.params)
        assert set(release.point[release.offsets[i] : release.offsets[i + 1]].tolist()) <= set(near.tolist())
        far = [
            (np.hypot(x - x[p], y - y[p]) <= 1000) & (np.abs(movers.t - movers.t[p]) <= 1800)
            for p in range(movers.offsets[own], movers.offsets[own + 1])
        ]
        others = movers.person[movers.trajectory] != movers.person[own]
        assert near.tolist() == np.flatnonzero(np.any(far, axis=0) & others).tolist()


@pytest.mark.parametrize(
    ("figure", "method", "panels"),
    [
        ("tessellation", "protected-generalization:tile_size_m=200", 2),
        ("members", "microaggregation:k=4", 1),
        ("candidates", SWAP, 1),
        ("owners", "swapmob:max_time_s=300", 1),
    ],
)
def test_each_figure_is_confidential(
    figure: str, method: str, panels: int, movers: Trajectories, command: Any, tmp_path: Path
) -> None:
    made = draw_figure(figure, movers, method)
    assert made.confidential and len(made.panels) == panels
    crowdveil.write_trajectories(movers, tmp_path / "movers.csv")
    ran = command("experiment", "trajectories", figure, tmp_path / "movers.csv", "--method", method,
                  "-o", tmp_path / "a.png")  # fmt: skip
    assert ran.code == 0, ran.err
    assert (tmp_path / "a.png").stat().st_mode & 0o777 == 0o600 and "confidential" in ran.out


def test_a_line_of_the_members_is_a_trajectory(movers: Trajectories) -> None:
    made = draw_figure("members", movers, "microaggregation:k=4")
    *members, published = made.panels[0].lines
    assert [line.get_label() for line in members] == [f"member {i + 1}" for i in range(len(members))]
    lengths = np.diff(movers.offsets).tolist()
    assert len(members) >= 4 and all(len(line.get_xdata()) in lengths for line in members)
    assert published.get_label() == "published"


@pytest.mark.parametrize("figure", sorted(set(METHODS) - {"members"}))
def test_another_method_is_refused(figure: str, movers: Trajectories) -> None:
    with pytest.raises(ParameterError, match="for this figure"):
        draw_figure(figure, movers, "microaggregation:k=4")

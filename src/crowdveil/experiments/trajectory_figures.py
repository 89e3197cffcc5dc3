"""Draw how methods change trajectories, as in Figs 11, 12, 15, 20 and 23 of MobiDataLab's D4.10. All are confidential.

- `tessellation`: the squares of protected generalization at the time with most points, before and after they are merged.
- `members`: the trajectories of one group of a microaggregation, and the trajectory that is published for all of them.
- `candidates`: the locations with which those of one trajectory may be swapped, and the locations that replace them.
- `owners`: a published trajectory of SwapMob, its points colored by the trajectories that they come from.

The last three show the published trajectory with most points; `owners` the one with most owners, of those with a color for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from scipy.spatial import cKDTree

from crowdveil.comparison.candidates import Candidate
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.methods.trajectory.protected_generalization import ProtectedGeneralizationParams
from crowdveil.methods.trajectory.swap_locations import SwapLocationsParams
from crowdveil.model.arrays import Floats, Indices, Ints
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.report.plots.drawing import (
    COLORS,
    Drawing,
    VolumeScale,
    color_bar,
    draw_rings,
    frame_around,
    new_map,
)
from crowdveil.report.shapes import PictureFrame, Rings
from crowdveil.solve.trajectory.swapping import owners
from crowdveil.solve.trajectory.visits import merged_tiles, tiles_of

METHODS = {
    "tessellation": "protected-generalization",
    "members": "microaggregation",
    "candidates": "swap-locations",
    "owners": "swapmob",
}
"""The method that each figure shows where none is named."""
PUBLISHED, ORIGINAL, CANDIDATE, OTHERS = "#b00020", "#e69f00", "#009e73", COLORS[:-1]


def draw_figure(figure: str, data: Trajectories, method: str | None = None, seed: int = 0) -> Drawing:
    """Draw a figure; the method may have parameters, as in `swapmob:max_time_s=60`."""
    candidate = Candidate.named(method or METHODS[figure], {})
    if figure == "tessellation":
        return _draw_tessellation(data, candidate.params)
    release = candidate.run(data, seed)
    if not len(release) or release.source is None:
        raise InputError("the method published no trajectory that replaces another one. Choose other parameters.")
    if figure == "members":
        return _draw_members(data, release, release.source)
    if figure == "candidates":
        return _draw_candidates(data, release, release.source, candidate.params)
    return _draw_owners(data, release)


def _draw_tessellation(data: Trajectories, params: Any) -> Drawing:
    """Draw the squares with a point, and the areas that small squares are merged into, by their points."""
    if not isinstance(params, ProtectedGeneralizationParams):
        raise ParameterError(Option("method"), "Expected protected-generalization for this figure. Choose that method.")
    zones, tile = tiles_of(data, params.tile_size_m)
    level = data.t // (params.time_interval_s or np.iinfo(np.int64).max)
    area = merged_tiles(zones, tile, level, least=3 * params.k)
    levels, points = np.unique(level, return_counts=True)
    here = level == levels[points.argmax()]
    shapes, counts = zip(*(areas_of(zones, tile[here], part[here]) for part in (tile, area)), strict=True)
    corners = shapely.get_coordinates(list(shapes[0]))
    frame, scale = frame_around(corners[:, 0], corners[:, 1], None), VolumeScale.of(*counts)
    titles = [f"{len(counts[0]):,} squares", f"{len(counts[1]):,} areas, small squares merged"]
    made = new_map(frame, titles, "Tessellation of protected generalization", [], confidential=True)
    for axis, areas, count in zip(made.panels, shapes, counts, strict=True):
        rings = Rings.of(areas)
        draw_rings(axis, rings, frame, scale.colors.to_rgba(count), edgecolors="#ffffff", linewidths=0.8)
    color_bar(made, scale, "points in the area")
    return made


def areas_of(zones: Zones, tile: Indices, area: Ints | Indices) -> tuple[list[Any], Floats]:
    """Return the outline of each area, from the tile and the area of each point, and its number of points."""
    _, number, count = np.unique(area, return_inverse=True, return_counts=True)
    pairs = np.unique(np.column_stack([number, tile]), axis=0)
    squares = zones.outlines(pairs[:, 1].astype(np.int32))
    # A tolerance joins squares whose corners differ in the last digit.
    outlines = [shapely.union_all(squares[pairs[:, 0] == i], grid_size=1e-9) for i in range(len(count))]
    return outlines, count.astype(np.float64)


def _draw_members(data: Trajectories, release: TrajectoryRelease, source: Ints) -> Drawing:
    chosen = int(np.diff(release.offsets).argmax())
    paths = [_path(data, i) for i in source[equal_to(release, chosen)].tolist()]
    published = _path(release, chosen)
    frame = _frame([*paths, published])
    made = new_map(
        frame, [f"{len(paths)} trajectories, and the one that is published"], "A group of a microaggregation", [],
        confidential=True,
    )  # fmt: skip
    for i, path in enumerate(paths):
        _draw_path(made, frame, path, OTHERS[i % len(OTHERS)], f"member {i + 1}")
    _draw_path(made, frame, published, PUBLISHED, "published", linewidth=2.5)
    _legend(made)
    return made


def equal_to(release: TrajectoryRelease, chosen: int) -> list[int]:
    """Return the trajectories of a release that are equal to one of it."""
    wanted = _content(release, chosen)
    return [i for i in range(len(release)) if _content(release, i) == wanted]


def _content(release: TrajectoryRelease, i: int) -> bytes:
    here = slice(release.offsets[i], release.offsets[i + 1])
    return b"".join(np.ascontiguousarray(column[here]).tobytes() for column in (release.lon, release.lat, release.t))


def _draw_candidates(data: Trajectories, release: TrajectoryRelease, source: Ints, params: Any) -> Drawing:
    if not isinstance(params, SwapLocationsParams):
        raise ParameterError(Option("method"), "Expected swap-locations for this figure. Choose that method.")
    chosen = int(np.diff(release.offsets).argmax())
    own = int(source[chosen])
    near = candidates_of(data, own, params)
    groups = [
        ((data.lon[near], data.lat[near]), CANDIDATE, "may be swapped with one of them", 14),
        (_path(data, own), ORIGINAL, "original", 30),
        (_path(release, chosen), PUBLISHED, "published", 12),
    ]
    frame = _frame([points for points, *_ in groups])
    made = new_map(frame, ["Locations of a trajectory"], "Candidates of swapping locations", [], confidential=True)
    for points, color, label, size in groups:
        made.panels[0].scatter(*frame.to_cells(*points), s=size, color=color, label=label, linewidths=0)
    _legend(made)
    return made


def candidates_of(data: Trajectories, trajectory: int, params: SwapLocationsParams) -> Ints:
    """Return the points of other people that may be in a cluster with a point of a trajectory: within twice the largest radii."""
    points = np.column_stack(data.xy)
    own = np.arange(data.offsets[trajectory], data.offsets[trajectory + 1])
    lists = cKDTree(points).query_ball_point(points[own], 2 * params.max_radius_m)
    near = [
        np.array(some)[np.abs(data.t[some] - data.t[i]) <= 2 * params.max_time_s]
        for i, some in zip(own, lists, strict=True)
    ]
    owner = owners(data, params.count_trajectories)
    found = np.unique(np.concatenate(near))
    others: Ints = found[owner[data.trajectory[found]] != owner[trajectory]]
    return others


def _draw_owners(data: Trajectories, release: TrajectoryRelease) -> Drawing:
    if release.point is None:
        raise ParameterError(Option("method"), "Expected swapmob for this figure. Choose that method.")
    owner = data.trajectory[release.point]
    slices = [slice(*pair) for pair in zip(release.offsets[:-1], release.offsets[1:], strict=True)]
    count = np.array([len(np.unique(owner[part])) for part in slices])
    chosen = int(np.where(count <= len(OTHERS), count, 0).argmax())
    here, path = owner[slices[chosen]], _path(release, chosen)
    owned = list(dict.fromkeys(here.tolist()))
    frame = _frame([path])
    made = new_map(
        frame, [f"A published trajectory with parts of {len(owned)}"], "Owners of the parts of a trajectory", [],
        confidential=True,
    )  # fmt: skip
    made.panels[0].plot(*frame.to_cells(*path), color=PUBLISHED, linewidth=1, alpha=0.6, label="published")
    for i, one in enumerate(owned):
        color = OTHERS[i % len(OTHERS)]
        made.panels[0].plot(*frame.to_cells(*_path(data, one)), color=color, linewidth=0.6, alpha=0.5, zorder=1)
        part = here == one
        x, y = frame.to_cells(path[0][part], path[1][part])
        made.panels[0].scatter(x, y, s=22, color=color, label=f"original {i + 1}", linewidths=0, zorder=3)
    _legend(made)
    return made


def _path(data: Trajectories | TrajectoryRelease, i: int) -> tuple[Floats, Floats]:
    """Return longitude and latitude of a trajectory."""
    here = slice(data.offsets[i], data.offsets[i + 1])
    return data.lon[here], data.lat[here]


def _frame(paths: list[tuple[Floats, Floats]]) -> PictureFrame:
    lon, lat = (np.concatenate(column) for column in zip(*paths, strict=True))
    return frame_around(lon, lat, None)


def _draw_path(
    made: Drawing, frame: PictureFrame, path: tuple[Floats, Floats], color: str, label: str, linewidth: float = 1.2
) -> None:
    x, y = frame.to_cells(*path)
    made.panels[0].plot(x, y, color=color, marker=".", markersize=4, linewidth=linewidth, label=label)


def _legend(made: Drawing) -> None:
    made.figure.legend(loc="outside right lower", fontsize=7.5, frameon=False)

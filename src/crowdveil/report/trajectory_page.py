"""The parts of a report that are of trajectories: maps, groups of equal ones, lengths and distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats
from crowdveil.report import figures, trajectory_pictures
from crowdveil.report.page_model import Figure, Parts, PrivateContext
from crowdveil.report.shapes import PictureFrame


def parts(written: WrittenRelease, manifest: dict[str, Any], inside: PrivateContext | None) -> Parts:
    """What is shown of a release of trajectories."""
    after = trajectory_pictures.released(written)
    shown = [("after", "The release", after)]
    if inside is not None:
        shown.append(("before", "The original", trajectory_pictures.original(inside.original)))
    equal = trajectory_pictures.alike(after)
    made: list[Figure] = []
    data: dict[str, Any] = {"kind": "trajectories", "frame": None, "layers": [], "bins": []}
    if any(len(p.lon) for _, _, p in shown):
        frame = PictureFrame.around(
            np.concatenate([p.lon for _, _, p in shown]), np.concatenate([p.lat for _, _, p in shown])
        )
        t0, bin_s, labels = trajectory_pictures.time_bins([p for _, _, p in shown])
        drawn = [p.layer(name, title, frame, t0, bin_s) for name, title, p in shown]
        data |= {"frame": frame.as_json(), "layers": drawn, "bins": labels}
        for _, title, p in shown:
            svg = trajectory_pictures.heat_map(p, frame, f"{title}: heat map")
            text = f"{len(p):,} trajectories with {len(p.lon):,} points; the more of them meet a cell, the more it stands out."
            made.append(Figure(f"{title}: heat map", svg, text, []))
    made += _charts(equal, after)
    if inside is not None and inside.displaced_m is not None and len(inside.displaced_m):
        made.append(_displaced(inside.displaced_m))
    left_out = []
    if after.shown < len(after):
        left_out.append(
            f"The map shows {after.shown:,} of {len(after):,} trajectories, the first by number (a hash of the points)."
        )
    return Parts("trajectories", data, made, [], _tiles(manifest, equal), left_out, equal)


def _charts(equal: Any, after: trajectory_pictures.TrackPicture) -> list[Figure]:
    if not len(equal):
        return []
    lengths = np.diff(after.offsets)
    values, labels = figures.spread(equal)
    groups = np.rint(np.array([np.sum(1 / equal)])).astype(np.int64)[0]
    first = figures.bars(values, labels, "Distribution of cluster sizes", "equal trajectories", "trajectories")
    text = (
        f"{groups:,} different trajectories are published; the smallest group of equal ones has {int(equal.min()):,}."
    )
    counts, names = figures.spread(lengths)
    second = figures.bars(counts, names, "Distribution of lengths", "points of a trajectory", "trajectories")
    return [
        Figure("Cluster sizes", first, text, []),
        Figure("Lengths", second, f"Half of the trajectories have {int(np.median(lengths)):,} points or more.", []),
    ]


def _displaced(meters: Floats) -> Figure:
    values, labels = figures.spread(np.rint(meters).astype(np.int64), 0)
    svg = figures.bars(values, labels, "Distribution of displaced distances", "meters", "points")
    half, far = np.quantile(meters, (0.5, 0.9))
    text = f"Half of the points are {half:,.0f} m or less from where they were; one in ten {far:,.0f} m or more."
    return Figure("Displaced distance", svg, text, [])


def _tiles(manifest: dict[str, Any], equal: Any) -> list[tuple[str, str]]:
    cost = manifest["cost"]
    tiles = [
        ("trajectories published", f"{cost['published_trajectories']:,}"),
        ("points published", f"{cost['published_points']:,}"),
        ("of all trajectories removed", f"{cost['suppressed_trajectories_percent']} %"),
    ]
    if len(equal):
        tiles.append(("smallest group of equal ones", f"{int(equal.min()):,}"))
    return tiles

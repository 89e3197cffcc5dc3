"""The page model of a report of trajectories: maps, equivalence classes, lengths and distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report import svg_figures, trajectory_picture
from crowdveil.report.page_model import Figure, PageModel, Table
from crowdveil.report.shapes import PictureFrame


def build_page_model(written: WrittenRelease, manifest: Manifest) -> PageModel:
    """Return the page model of a release of trajectories."""
    after = trajectory_picture.released(written)
    equal = trajectory_picture.published_class_sizes(written)
    figures: list[Figure] = []
    data: dict[str, Any] = {"kind": "trajectories", "frame": None, "layers": [], "bins": []}
    if len(after.lon):
        frame = PictureFrame.around(after.lon, after.lat)
        t0, bin_s, labels = trajectory_picture.time_bins(after.t)
        data |= {"frame": frame.as_json(), "layers": [after.layer(frame, t0, bin_s)], "bins": labels}
        figures.append(trajectory_picture.heat_figure(after, frame, "Heat map"))
    figures += _charts(equal, after)
    omissions = []
    if after.shown < len(after):
        omissions.append(
            f"The map shows {after.shown:,} of {len(after):,} trajectories, the first by number (a hash of the points)."
        )
    tables = _distortion(manifest)
    return PageModel(data, figures, tables, _key_figures(manifest, equal), omissions)


def _charts(equal: Any, after: trajectory_picture.TrajectoryPicture) -> list[Figure]:
    if not len(equal):
        return []
    lengths = np.diff(after.offsets)
    groups = round(float(np.sum(1 / equal)))
    sizes = "Distribution of equivalence class sizes", "size of the equivalence class", "trajectories"
    text = f"{groups:,} distinct trajectories are published; the smallest equivalence class has {int(equal.min()):,}."
    points = "Distribution of lengths", "points per trajectory", "trajectories"
    half = f"Half of the trajectories have {int(np.median(lengths)):,} points or more."
    return [
        svg_figures.histogram("Equivalence classes", equal, sizes, text, int(equal.min())),
        svg_figures.histogram("Points of a trajectory", lengths, points, half),
        *_walks(after),
    ]


def _walks(after: trajectory_picture.TrajectoryPicture) -> list[Figure]:
    """Return the distributions of length and mean speed of the published trajectories."""
    km, kmh = after.lengths_km, after.speeds_kmh()
    figures = []
    for values, title, unit in ((km, "Lengths in kilometers", "km"), (kmh, "Mean speeds", "km/h")):
        if len(values):
            text = f"Half of the published trajectories have {float(np.median(values)):,.3g} {unit} or more."
            rounded = np.rint(values).astype(np.int64)
            figures.append(svg_figures.histogram(title, rounded, (title, unit, "trajectories"), text, 0))
    return figures


def _distortion(manifest: Manifest) -> list[Table]:
    """Return the table of the loss, which was measured before publication."""
    measured = manifest.distortion
    if measured is None:
        return []
    rows = [["points moved by, m", "original and release", *_quantiles(measured.get("moved_m"))]]
    for name, title in (("length_km", "length of a trajectory, km"), ("speed_kmh", "mean speed, km/h")):
        for side, quantiles in (measured.get(name) or {}).items():
            rows.append([title, side, *_quantiles(quantiles)])
    title = (
        "What was lost, measured before publication. Figures of the original are rounded to two digits, and given (else –) "
        "only if at least k people are on either side"
    )
    return [
        Table(
            title,
            ["measure", "of", "10 % have at most", "50 % have at most", "90 % have at most"],
            rows,
            [False, False, True, True, True],
        )
    ]


def _quantiles(quantiles: dict[str, Any] | None) -> list[str]:
    values = [(quantiles or {}).get(name) for name in ("low", "middle", "high")]
    return ["–" if value is None else f"{value:,.6g}" for value in values]


def _key_figures(manifest: Manifest, equal: Any) -> list[tuple[str, str]]:
    cost = manifest.cost
    figures = [
        ("trajectories published", f"{cost['published_trajectories']:,}"),
        ("points published", f"{cost['published_points']:,}"),
        ("of all trajectories suppressed", f"{cost['suppressed_trajectories_percent']} %"),
    ]
    if len(equal):
        figures.append(("smallest equivalence class", f"{int(equal.min()):,}"))
    return figures

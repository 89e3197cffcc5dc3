"""Draw the trips that leave and reach areas of a release by time step, with gaps for unpublished values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdveil.analysis.calendar import GAPS
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.manifest import Manifest
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.area_labels import explained
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report import flow_picture
from crowdveil.report.plots.drawing import Drawing, line_with_gaps
from crowdveil.report.plots.flow_panels import release_title

MAX_PROFILES, MAX_TICKS = 6, 7


def draw_profiles(written: WrittenRelease, manifest: Manifest, zones: Sequence[str]) -> Drawing:
    """Draw trips that leave and reach areas by time step, for the named areas or those with most trips."""
    shown, _ = flow_picture.released(written, manifest)
    if not len(shown.volume):
        raise InputError("profiles", "nothing was published, so there is nothing to draw.")
    if len(shown.labels) < 2:
        raise InputError(
            "profiles", "the release has one time step, and a profile is over several. Use shorter time steps."
        )
    missing = [name for name in zones if shown.find(name) < 0]
    if missing:
        raise ParameterError(Option("zone"), "there is no area of this name in the release. Name one of areas.geojson.")
    busiest = np.argsort(-shown.trips, kind="stable")[:MAX_PROFILES].tolist()
    areas = [shown.find(name) for name in zones] or busiest
    steps = len(shown.labels)
    figure = new_figure(9, 0.6 + 1.4 * len(areas))
    axes = np.atleast_1d(figure.subplots(len(areas), 1, sharex=True))
    for axis, area in zip(axes, areas, strict=True):
        for column, name, line, color in (
            (shown.origin, "leaving", "-", "#0b5cad"),
            (shown.destination, "reaching", "--", "#a33b00"),
        ):
            rows = column == area
            values = trips_by_step(shown.step[rows], shown.volume[rows], steps)
            line_with_gaps(axis, np.arange(steps), values, color=color, linestyle=line, linewidth=1.2, label=name)
        axis.set_title(shown.names[area], fontsize=9, loc="left")
        axis.set_ylim(0, 1.08 * axis.get_ylim()[1])
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.grid(alpha=0.3)
    ticks = time_ticks(shown.labels)
    axes[-1].set_xticks(ticks, [shown.labels[i].removesuffix(" 00:00") for i in ticks], fontsize=8)
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=2, fontsize=8, frameon=False, loc="outside upper right")
    figure.supylabel("trips", fontsize=9)
    note = explained(shown.names[area] for area in areas)
    figure.supxlabel(f"gaps: {GAPS}, or published as part of another area\n{note}".strip(), fontsize=8)
    heading = f"{release_title(manifest)}: trips of areas by time step"
    figure.suptitle(heading, fontsize=11, x=0.01, ha="left")
    return Drawing(figure, list(axes), heading, False)


def time_ticks(labels: Sequence[str]) -> list[int]:
    """Return the time steps to label: midnights where there are two or more of them, else any."""
    midnights = [i for i, label in enumerate(labels) if label.endswith(" 00:00")]
    chosen = midnights if len(midnights) > 1 else list(range(len(labels)))
    return chosen[:: -(-len(chosen) // MAX_TICKS)]


def trips_by_step(step: Ints, volume: Ints, steps: int) -> Floats:
    """Return trips by step; NaN where nothing was published, which does not mean 0."""
    sums = np.bincount(step, volume, steps).astype(np.float64)
    sums[np.bincount(step, minlength=steps) == 0] = np.nan
    return sums

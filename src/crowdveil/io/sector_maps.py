"""Draw written sectors: a PNG, and a self-contained HTML page."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.errors import counted
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.io.sectors import WrittenSectors
from crowdveil.model.arrays import Floats

_TEMPLATE = Path(__file__).with_name("sector_map.html")
_EMPTY = "#e9e9ec"
_COLORS = "viridis_r"


def draw_sectors(written: WrittenSectors, file: Path) -> None:
    """Draw sectors by density as a PNG. Needs matplotlib."""
    west, south, east, north = written.shown / 1000
    height = float(np.clip(8 * (north - south) / (east - west), 3.5, 11))
    figure = new_figure(9.4, height + 0.9)
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Patch

    axis = figure.subplots()
    density = written.locations_per_km2
    scale = LogNorm(float(density.min()) / 1.05, float(density.max()) * 1.05)
    # Thicker lines would hide the colors of small sectors.
    filled = PolyCollection(
        list(_corners(written) / 1000), array=density, cmap=_COLORS, norm=scale, edgecolors="#ffffff", linewidths=0.15
    )
    axis.add_collection(filled)
    axis.set(xlim=(west, east), ylim=(south, north), aspect="equal", xticks=[], yticks=[], facecolor=_EMPTY)
    for spine in axis.spines.values():
        spine.set_color("#bbbbbb")
    bar = figure.colorbar(filled, ax=axis, shrink=0.8, pad=0.015)
    bar.set_label("locations per km²")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    _scale_bar(axis, east - west)
    patch = Patch(facecolor=_EMPTY, edgecolor="#999999", linewidth=0.6, label=_blank(written))
    figure.legend(handles=[patch], loc="outside lower left", fontsize=8.5, frameon=False)
    axis.set_title(_title(written), fontsize=11, loc="left")
    figure.savefig(file)


def write_page(written: WrittenSectors, file: Path) -> None:
    """Write an HTML page with an interactive map. It is one file and makes no requests."""
    bounds = [[_shorten(value) for value in row] for row in written.bounds.tolist()]
    counts = np.column_stack([written.locations, written.people]).tolist()
    data = {
        "counts": written.counts,
        "shown": [_shorten(value) for value in written.shown.tolist()],
        "sectors": [[*box, *count] for box, count in zip(bounds, counts, strict=True)],
    }
    words = {
        "TITLE": f"Heat map of {counted(int(written.locations.sum()), 'location')}",
        "WORDS": _title(written),
        "BLANK": _blank(written),
        "NOTE": "Verified on the written file before publication.",
    }
    page = _TEMPLATE.read_text(encoding="utf-8")
    for name, text in words.items():
        page = page.replace(f"[[{name}]]", html.escape(text))
    # Only "<" is escaped, since it could end the script element.
    file.write_text(
        page.replace("[[DATA]]", json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")), encoding="utf-8"
    )


def _title(written: WrittenSectors) -> str:
    return (
        f"{counted(int(written.locations.sum()), 'location')} in {counted(len(written), 'sector')}, "
        f"each with locations of at least {written.k:,} {written.counts}"
    )


def _blank(written: WrittenSectors) -> str:
    return f"no sector: fewer than {written.k:,} {written.counts}, possibly none"


def _corners(written: WrittenSectors) -> Floats:
    west, south, east, north = written.bounds.T
    return np.stack(
        [np.column_stack(corner) for corner in ((west, south), (east, south), (east, north), (west, north))], 1
    )


def _scale_bar(axis: Any, wide_km: float) -> None:
    """Draw a scale bar of a round length, about a fifth of the map."""
    length = max(
        step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5) if step * 10.0**power <= wide_km / 4
    )
    start, share = 0.03, length / wide_km
    style: dict[str, Any] = {"transform": axis.transAxes, "zorder": 5}
    axis.plot([start, start + share], [0.035, 0.035], color="#222222", linewidth=2.5, solid_capstyle="butt", **style)
    label = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    box = {"facecolor": "#ffffff", "edgecolor": "none", "alpha": 0.7, "pad": 1.5}
    axis.text(start + share / 2, 0.048, label, ha="center", va="bottom", fontsize=8.5, bbox=box, **style)


def _shorten(value: float) -> float | int:
    """Round to 0.1 m; return a whole number as int."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded

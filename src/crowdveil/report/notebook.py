"""What a notebook shows of a release: guarantees, loss and a small map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.derived_files import with_area_names
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.tabular import Table, html_rows
from crowdveil.report import flow_picture, svg_figures
from crowdveil.report.flow_page import map_frame, time_zone

_FEW, _MANY, _LINE = (222, 235, 238, 220), (8, 62, 96, 220), (255, 255, 255, 255)
"""Colors of areas with few and many trips, and of their outlines: red, green, blue, opacity."""
_HEIGHT = 500
"""Height of an interactive map in pixels."""
_STYLE = (
    "<style>svg.map{max-width:420px;max-height:420px}svg.map .a{fill:#e3e7ea;stroke:#fff}"
    "svg.map .f{fill:none}svg.map .f0{stroke:#e5a473}svg.map .f1{stroke:#d27f45}svg.map .f2{stroke:#b4571b}"
    "svg.map .f3{stroke:#8c3506}svg.map .f4{stroke:#5f1c00}</style>"
)


def result_html(manifest: Mapping[str, Any], cost: Sequence[str], notes: Sequence[str], written: WrittenRelease) -> str:
    """Return the summary of a release as HTML."""
    rows = "".join(
        f"<tr><td>{escape(entry['outcome'])}</td><td style='text-align:left'>{escape(entry['statement'])}</td></tr>"
        for entry in manifest["guarantees"]
    )
    lost = "".join(f"<li>{escape(line)}</li>" for line in cost)
    noted = "".join(f"<li>{escape(line)}</li>" for line in notes)
    k = manifest["method"]["parameters"].get("k")
    groups = "" if k is None else f", k = {k:,} {manifest['k_unit']}"
    title = f"Release of {manifest['method']['name']}{groups}"
    return (
        f"<p><b>{escape(title)}</b></p><table><thead><tr><th>outcome</th><th>guarantee</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><ul>{lost}</ul>{small_map(written, dict(manifest))}{html_rows(_rows(written))}"
        f"<details><summary>{len(notes)} notes</summary><ul>{noted}</ul></details>"
    )


def _rows(written: WrittenRelease) -> pa.Table:
    """Return the rows, flows with the readable names of their areas."""
    return with_area_names(written) if written.is_flows and written.features else written.data


def small_map(written: WrittenRelease, manifest: dict[str, Any]) -> str:
    """Return a still map of the largest flows; nothing where there are none, or no positions."""
    if not written.is_flows or not len(written.data):
        return ""
    shown, _ = flow_picture.released(written, time_zone(written, manifest))
    if not shown.located:
        return ""
    frame = map_frame([shown])
    paths = svg_figures.map_outlines(shown, svg_figures.still_frame(frame)[0])
    return _STYLE + svg_figures.still_map(shown, frame, paths, "Largest flows", flows=True)


def departures(written: WrittenRelease) -> Ints:
    """Return the published trips that begin in each area, over all time steps."""
    area, volume = written.area_numbers("origin_area"), np.maximum(written.column("volume"), 0)
    listed = area >= 0
    made: Ints = np.bincount(area[listed], volume[listed], len(written.features)).astype(np.int64)
    return made


def interactive_map(areas: Table, trips: Ints) -> Any:
    """Return an interactive map of areas, colored by the published `trips` that begin in each.

    Return None where neither lonboard nor pydeck is installed, or areas have no outlines. There is no background map: its server
    would be asked for the place of data that may not be published yet.
    """
    tools = [tool for tool in ("lonboard", "pydeck") if find_spec(tool) is not None]
    if not tools or any(shape is None for shape in areas.shapes()) or find_spec("geopandas") is None:
        return None
    frame = areas.to_geopandas().assign(trips=trips)
    color = _colors(trips)
    order = np.argsort(-frame["area_km2"].to_numpy(), kind="stable")  # small areas on top of large ones
    frame, color = frame.iloc[order][["area", "name", "trips", "geometry"]], color[order]
    return _DRAWN[tools[0]](frame, color)


def _lonboard(frame: Any, color: Any) -> Any:
    from lonboard import Map, PolygonLayer

    layer = PolygonLayer.from_geopandas(
        frame, get_fill_color=color, get_line_color=_LINE, line_width_min_pixels=1, auto_highlight=True, pickable=True
    )
    return Map(layer, basemap=None)


def _pydeck(frame: Any, color: Any) -> Any:
    import pydeck

    west, south, east, north = frame.total_bounds
    layer = pydeck.Layer(
        "GeoJsonLayer", frame.assign(fill=color.tolist()).__geo_interface__, pickable=True, auto_highlight=True,
        get_fill_color="properties.fill", get_line_color=_LINE, line_width_min_pixels=1,
    )  # fmt: skip
    shown = {"text": "{name} ({area}): {trips} trips begin here"}
    return pydeck.Deck([layer], initial_view_state=pydeck.ViewState(
        longitude=(west + east) / 2, latitude=(south + north) / 2, zoom=_zoom(east - west, north - south)
    ), map_provider=None, tooltip=shown, height=_HEIGHT)  # fmt: skip


def _zoom(width: float, height: float) -> float:
    """Return the zoom at which a box of degrees fills most of a map that is as wide as high."""
    return float(np.log2(360 * _HEIGHT / 512 / max(width, 1.4 * height, 1e-4)))


def _colors(trips: Ints) -> Any:
    """Return a color for each number of trips, darker for more, on a scale of square roots."""
    share = np.sqrt(trips / max(int(trips.max(initial=1)), 1))[:, None]
    few, many = np.array(_FEW, np.float64), np.array(_MANY, np.float64)
    return np.round(few + (many - few) * share).astype(np.uint8)


_DRAWN = {"lonboard": _lonboard, "pydeck": _pydeck}

"""The summary of a release in a notebook: guarantees, loss and a small map."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from crowdveil.errors import counted
from crowdveil.io.derived_files import with_area_names
from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.tabular import html_rows
from crowdveil.report import flow_picture, svg_figures
from crowdveil.report.flow_page import map_frame

_STYLE = (
    "<style>svg.map{max-width:420px;max-height:420px}svg.map .a{fill:#e3e7ea;stroke:#fff}"
    "svg.map .f{fill:none}svg.map .f0{stroke:#e5a473}svg.map .f1{stroke:#d27f45}svg.map .f2{stroke:#b4571b}"
    "svg.map .f3{stroke:#8c3506}svg.map .f4{stroke:#5f1c00}</style>"
)


def result_html(manifest: Manifest, cost: Sequence[str], notes: Sequence[str], written: WrittenRelease) -> str:
    """Return the summary of a release as HTML."""
    rows = "".join(
        f"<tr><td>{escape(entry.outcome)}</td><td style='text-align:left'>{escape(entry.statement)}</td></tr>"
        for entry in manifest.guarantees
    )
    lost = "".join(f"<li>{escape(line)}</li>" for line in cost)
    noted = "".join(f"<li>{escape(line)}</li>" for line in notes)
    k = manifest.k
    groups = "" if k is None else f", k = {k:,} {manifest.k_unit}"
    title = f"Release of {manifest.method.name}{groups}"
    return (
        f"<p><b>{escape(title)}</b></p><table><thead><tr><th>outcome</th><th>guarantee</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><ul>{lost}</ul>{small_map(written, manifest)}{html_rows(_rows(written))}"
        f"<details><summary>{counted(len(notes), 'note')}</summary><ul>{noted}</ul></details>"
    )


def _rows(written: WrittenRelease) -> pa.Table:
    """Return the rows, flows with the readable names of their areas."""
    return with_area_names(written) if written.is_flows and written.features else written.data


def small_map(written: WrittenRelease, manifest: Manifest) -> str:
    """Return a still map of the largest flows; nothing where there are none, or no positions."""
    if not written.is_flows or not len(written.data):
        return ""
    shown, _ = flow_picture.released(written, manifest)
    if not shown.located:
        return ""
    frame = map_frame(shown)
    paths = svg_figures.map_outlines(shown, svg_figures.still_frame(frame))
    return _STYLE + svg_figures.still_map(shown, frame, paths, "Largest flows", flows=True)

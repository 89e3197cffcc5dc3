"""A reader: the tracks of GPX files, a trajectory each."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa

NAMES = {"gpx": "http://www.topografix.com/GPX/1/1"}


def read_gpx(path: Path) -> pa.Table:
    """Return the points of all tracks."""
    tracks = ElementTree.parse(path).getroot().findall("gpx:trk", NAMES)
    rows = [
        (f"track {i}", float(point.attrib["lat"]), float(point.attrib["lon"]), point.findtext("gpx:time", "", NAMES))
        for i, track in enumerate(tracks)
        for point in track.iterfind(".//gpx:trkpt", NAMES)
    ]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("trajectory_id", "lat", "lon", "timestamp"), map(list, columns), strict=True)))

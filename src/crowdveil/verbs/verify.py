"""Verify a release or a heat map from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.run import releases
from crowdveil.run.result import Result, Verification
from crowdveil.verbs.opened import folder_of


def verify(folder: str | Path | Result, original: Any = None, *, pairing: Any = None, **options: Any) -> Verification:
    """Check a release or a heat map from its files: `.ok`, and a table with a row for each guarantee.

    `folder` is that of a release or of a heat map, the GeoJSON of a heat map, or a result of `anonymize`.
    `original` is what the release was made from: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read as
    the manifest says (for a heat map as `options` say). `pairing`, the file that was kept, says which published trajectory is
    whose: without it the people of trajectories are not counted. Files that were needed for the release, such as zones, are
    given as `options`.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson").ok  # doctest: +SKIP
    """
    with folder_of(folder) as opened:
        return Verification(tuple(releases.verify(Path(opened), original, options, pairing)))

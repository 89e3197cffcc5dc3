"""Anonymize data, and verify a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.api.opened import split_options
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS
from crowdveil.registry import find_method
from crowdveil.run import pipeline, releases
from crowdveil.run.options import RunOptions


def anonymize(
    method: str,
    data: Any,
    output: str | Path,
    *,
    spark: Any = None,
    progress: Progress = no_progress,
    **options: Any,
) -> pipeline.Result:
    """Anonymize data with a method, and write a verified release to the folder `output`.

    `data` is a path, an Arrow table, a data frame, or `Flows` or `Trajectories`. `options` are the method's parameters, the
    input options and the options of the run (see `crowdveil anonymize METHOD --help`), such as `k=10, zones="zones.geojson"`.
    Options of every run are `seed`, `format`, `overwrite`, `resume`, `pairing`, `attack`, `report`, `private_report`, `engine`
    and `master`. Random choices are drawn from entropy of the operating system; with a `seed` a run is reproducible. Keep the
    seed secret, for it repeats every random choice, and the file of a `pairing`, for it undoes the new ids.
    With a session of Spark in `spark` the run is done there: `data` is then a path as Spark takes it, or a data frame of it.

    >>> crowdveil.anonymize("suppression", "trips.parquet", "out", zones="zones.geojson", k=10)  # doctest: +SKIP
    """
    run_options, options = split_options(options, RunOptions)
    reading, parameters = split_options(options, READINGS[find_method(method).takes])
    request = pipeline.Request(method, data, output, parameters, reading, run_options, spark=spark)
    return pipeline.run(request, progress)


def verify(
    folder: str | Path, original: Any = None, *, spark: Any = None, **options: Any
) -> list[tuple[Guarantee, Finding]]:
    """Check a release or a heat map from its files; returns each guarantee with its finding.

    `folder` is that of a release or of a heat map, or the GeoJSON of a heat map. A finding's `outcome` is `Outcome.HOLDS`,
    `VIOLATED` or `NOT_CHECKED`, where files alone are not enough. `original` is what the release was made
    from: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read as the manifest says (for a heat map
    as `options` say). Files that were needed for it, such as zones, are given as `options`. With a session of Spark in
    `spark` the files, and the original of flows, are read and checked there.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson")  # doctest: +SKIP
    """
    if spark is None:
        return releases.verify(Path(folder), original, options)
    return releases.verify_on_spark(str(folder), original, options, spark=spark)[0]

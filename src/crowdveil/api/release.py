"""Anonymize data, and verify a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.release_writer import TableFormat
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS
from crowdveil.registry import find_method
from crowdveil.run import pipeline


def anonymize(
    method: str,
    data: Any,
    output: str | Path,
    *,
    seed: int | None = None,
    table_format: TableFormat = "parquet",
    overwrite: bool = False,
    resume: str | Path | None = None,
    pairing: str | Path | None = None,
    attack: bool = True,
    report: bool = True,
    private_report: str | Path | None = None,
    spark: Any = None,
    progress: Progress = no_progress,
    **options: Any,
) -> pipeline.Result:
    """Anonymize data with a method, and write a verified release to the folder `output`.

    `data` is a path, an Arrow table, a data frame, or `Flows` or `Trajectories`. `options` are the method's parameters
    and the options of reading (see `crowdveil anonymize METHOD --help`), such as `k=10, zones="zones.geojson"`.
    Random choices are drawn from entropy of the operating system. With a `seed` a run is reproducible. A seed is a secret: who
    knows it can repeat every random choice.
    `resume` names a folder that keeps finished time steps, to go on from them after an interruption. `pairing` names a file
    outside the release that is told which trajectory came of which, for measuring: it undoes the new ids, so keep it secret.
    Without `attack` the release is not attacked before it is published, which takes a fraction of a second. `report=False` writes
    no report.html; `private_report` names a file outside the release for a report with the original, which is not for release.
    With a session of Spark in `spark` the run is done there: `data` is then a path as Spark takes it, or a data frame of it.

    >>> crowdveil.anonymize("suppression", "trips.parquet", "out", zones="zones.geojson", k=10)  # doctest: +SKIP
    """
    reading = READINGS[find_method(method).takes].model_fields
    return pipeline.run(
        pipeline.Request(
            method,
            data,
            Path(output) if spark is None else str(output),
            {name: value for name, value in options.items() if name not in reading},
            {name: value for name, value in options.items() if name in reading},
            seed=seed,
            table_format=table_format,
            overwrite=overwrite,
            resume=None if resume is None else Path(resume) if spark is None else str(resume),
            pairing=None if pairing is None else Path(pairing),
            attack=attack,
            report=report,
            private_report=None if private_report is None else Path(private_report),
            spark=spark,
        ),
        progress,
    )


def verify(
    folder: str | Path, original: Any = None, *, spark: Any = None, **options: Any
) -> list[tuple[Guarantee, Finding]]:
    """Check a release or a heat map from its files; returns each guarantee with its finding.

    `folder` is that of a release or of a heat map, or the GeoJSON of a heat map. A finding's `outcome` is `Outcome.HOLDS`,
    `VIOLATED` or `NOT_CHECKED`: what files alone do not show is not checked, and does not hold. `original` is what the release
    was made from: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read as the manifest says (for a heat map
    as `options` say). Files that were needed for it, such as zones, are given again as `options`. With a session of Spark in
    `spark` the files, and the original of flows, are read and checked there.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson")  # doctest: +SKIP
    """
    if spark is None:
        return pipeline.verify(Path(folder), original, options)
    return pipeline.verify_there(str(folder), original, options, spark=spark)[0]

"""The door for Python: the same names as on the command line, with underscores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crowdveil import pipeline
from crowdveil.errors import InputError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.notes import ReadNotes
from crowdveil.io.read_back import flow_release_from
from crowdveil.io.release import TableFormat
from crowdveil.manifest import reading_again
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS, FlowReading, read
from crowdveil.registry import find_method
from crowdveil.report.measures import Measurement, measured, named_measures


def anonymize(
    method: str,
    data: Any,
    output: str | Path,
    *,
    seed: int = 0,
    table_format: TableFormat = "parquet",
    overwrite: bool = False,
    resume: str | Path | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> pipeline.Result:
    """Anonymise data with a method, and write a verified release to the folder `output`.

    `data` is a path, an Arrow table, a data frame, or `Flows` or `Trajectories`. `options` are the method's parameters
    and the options of reading (see `crowdveil anonymize METHOD --help`), such as `k=10, zones="zones.geojson"`.
    `resume` names a folder that keeps finished time steps, to go on from them after an interruption.

    >>> crowdveil.anonymize("suppression", "trips.parquet", "out", zones="zones.geojson", k=10)  # doctest: +SKIP
    """
    reading = READINGS[find_method(method).takes].model_fields
    return pipeline.run(
        pipeline.Request(
            method,
            data,
            Path(output),
            {name: value for name, value in options.items() if name not in reading},
            {name: value for name, value in options.items() if name in reading},
            seed=seed,
            table_format=table_format,
            overwrite=overwrite,
            resume=None if resume is None else Path(resume),
        ),
        progress,
    )


def verify(folder: str | Path, original: Any = None, **options: Any) -> list[tuple[Guarantee, Finding]]:
    """Check a release from its files; returns each promise with what came of it.

    `original` is what the release of flows was made from: `Flows`, or a path, a table or a data frame, which is read as
    the manifest says. Files that were needed for it, such as zones, are given again as `options`. With it, promises are
    checked that files alone cannot tell of; without it, the findings of these have `looked` false.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson")  # doctest: +SKIP
    """
    return pipeline.verify(Path(folder), original, options)


def measure(
    original: Any,
    release: str | Path | FlowRelease,
    measures: Sequence[str] | None = None,
    *,
    notes: ReadNotes | None = None,
    **options: Any,
) -> Measurement:
    """Measure what a release lost of the original trips or flows. The numbers are exact: they stay in the house.

    `original` is a path, an Arrow table, a data frame, or `Flows`; `release` the folder of a release, or a `FlowRelease`
    over the zones and time steps of the flows. `measures` are names or symbols, all of them where none are given.
    `options` of reading are those of the release unless given; files, such as zones, must be given again.

    >>> crowdveil.measure("trips.parquet", "out", ["E", "D"], zones="zones.geojson")["E"].mean  # doctest: +SKIP
    """
    wanted, said = named_measures(measures), notes if notes is not None else ReadNotes()
    if isinstance(release, FlowRelease):
        return measured(read(Flows, original, FlowReading.checked(options), said), release, wanted)
    manifest, written = pipeline.open_release(Path(release))
    if not written.is_flows:
        raise InputError(f"{release}: it holds trajectories, and there are measures of flows only so far.")
    if not isinstance(original, Flows):
        options = reading_again(manifest, original, options)
    flows = read(Flows, original, FlowReading.checked(options), said)
    return measured(flows, flow_release_from(written, flows), wanted)

"""Measure the information loss of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from crowdveil.api.opened import published_numbers, visible
from crowdveil.errors import Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import pairing_by_ids, read_pairing
from crowdveil.io.release_reader import load_flow_release, load_trajectory_release, wrap_trajectories
from crowdveil.measures.base import MeasureRequest
from crowdveil.model.canonical import with_canonical_source
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, Stage, no_progress
from crowdveil.reading import READINGS, TrajectoryReading, read
from crowdveil.report.measurement import Measurement, measured, named_measures, parsed
from crowdveil.run import releases
from crowdveil.run.manifest import original_input_options
from crowdveil.solve.od.assignment import steps_of_release


@visible
def measure(
    original: Any,
    release: Any,
    measures: Sequence[str | MeasureRequest] | None = None,
    *,
    pairing: str | Path | None = None,
    spark: Any = None,
    engine: Literal["local", "spark"] = "local",
    master: str | None = None,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Measurement:
    """Measure the information loss of a release of flows or trajectories. The numbers are exact, and so confidential.

    `original` is a path, an Arrow table, a data frame, `Flows` or `Trajectories`; `release` the folder of a release, a
    `FlowRelease` over the zones and time steps of the flows, or a `TrajectoryRelease`. Trajectories that others published are
    given as a file or a table; equal ids then pair them with the original. `measures` are names or symbols,
    with parameters as in `rmse:distance=dtw`; all of them where none are given. `pairing` is the file that was kept when a
    release of trajectories was made. Input `options` are those of the release unless given; files, such as zones, must be
    given. With a session of Spark in `spark`, or with `engine="spark"`, which starts one on `master`, flows and their
    release are read and measured there: the original is then a path as Spark takes it, or a data frame of it.

    >>> crowdveil.measure("trips.parquet", "out", ["E", "D"], zones="zones.geojson")["E"].mean  # doctest: +SKIP
    >>> crowdveil.measure("cabs.csv", "out", ["rmse", "RL"], pairing="cabs-pairing.csv")["RL"].pooled  # doctest: +SKIP
    """
    said = notes if notes is not None else ReadNotes()
    wanted: list[MeasureRequest] | None = None
    if measures is not None:  # a misspelled one is refused before anything is read
        wanted = [asked for name in measures for asked in (parsed(name) if isinstance(name, str) else [name])]
    if spark is not None or engine == "spark":
        return _measure_on_spark(original, release, wanted, pairing, spark, master, said, progress, stage, options)
    stage("reading")
    data, made, takes = _read_both(original, release, pairing, options, said)
    listed = named_measures(wanted, takes)
    found = measured(data, made, listed, all_of_them=measures is None, progress=progress, stage=stage)
    for sentence in found.notes:
        said.add(sentence)
    return found


def _measure_on_spark(
    original: Any, release: Any, measures: Sequence[MeasureRequest] | None, pairing: str | Path | None, spark: Any,
    master: str | None, notes: ReadNotes, progress: Progress, stage: Stage, options: dict[str, Any],
) -> Measurement:  # fmt: skip
    from crowdveil.engine.spark import spark_engine
    from crowdveil.run.spark.release_measures import measure_on_spark

    if pairing is not None:
        raise ParameterError(
            Option("pairing"), f"trajectories are measured without Spark; leave it, or {Option('engine')}, out."
        )
    if not isinstance(release, str | Path):
        raise ParameterError(
            "release", f"wanted the folder of one, but got {type(release).__name__}; give it, or measure without Spark."
        )
    stage("starting Spark")
    with spark_engine(spark, master) as engine:
        stage("measuring")
        return measure_on_spark(engine, original, str(release), measures, options, notes, progress)


def _read_both(
    original: Any, release: Any, pairing: str | Path | None, options: dict[str, Any], notes: ReadNotes
) -> tuple[Flows | Trajectories, Release, type]:
    """Return the original and the release as models, and the type of data."""
    folder = isinstance(release, str | Path) and not Path(release).is_file()
    manifest, written = releases.open_release(Path(release)) if folder else ({}, None)
    of_flows = written.is_flows if written is not None else isinstance(release, FlowRelease)
    takes: type = Flows if of_flows else Trajectories
    if pairing is not None and of_flows:
        raise ParameterError(Option("pairing"), "the release holds flows, which have none; leave it out.")
    if written is not None and not isinstance(original, takes):
        options = original_input_options(manifest, options)
    data = read(takes, original, READINGS[takes].checked(options), notes)
    if written is None:
        made = release if isinstance(release, Release) else _published(data, release, pairing, options, notes)
    else:
        made = load_flow_release(written, data) if of_flows else load_trajectory_release(written)
        if isinstance(data, Flows) and isinstance(made, FlowRelease):
            steps_of_release(data, made)  # raises where time steps differ
            releases.refuse_other_original(manifest, written, data)
    if isinstance(data, Trajectories) and isinstance(made, TrajectoryRelease):
        made = with_canonical_source(made, original, data)
    if pairing is not None and isinstance(made, TrajectoryRelease) and made.source is None:
        made = replace(made, source=read_pairing(pairing, data, published_numbers(made)))
    return data, made, takes


def _published(
    original: Trajectories, release: Any, pairing: str | Path | None, options: dict[str, Any], notes: ReadNotes
) -> TrajectoryRelease:
    """Return trajectories that others published, paired with their originals."""
    reading = {name: value for name, value in options.items() if name not in ("zones", "zone_id")}
    published = read(Trajectories, release, TrajectoryReading.checked(reading), notes)
    if pairing is not None:
        return wrap_trajectories(published, read_pairing(pairing, original, [str(i) for i in published.ids.tolist()]))
    source = pairing_by_ids(original, published)
    notes.add(
        "some published ids are not in the original, so that trajectories are not paired with their originals."
        if source is None
        else "published ids are the original's: trajectories are paired with their originals by them."
    )
    return wrap_trajectories(published, source)

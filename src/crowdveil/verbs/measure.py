"""Measure the information loss of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from crowdveil.comparison.requested_measures import ALL, named_measures, parsed, requested
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import Option, ParameterError, Text, as_command_line, render
from crowdveil.io.atomic import new_files
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import PUBLISHED, pairing_by_ids, read_pairing
from crowdveil.io.release_reader import load_flow_release, load_trajectory_release, wrap_trajectories
from crowdveil.io.source import open_source
from crowdveil.measures.base import MeasureRequest
from crowdveil.model.canonical import with_canonical_source
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, TextList
from crowdveil.reading import READINGS, EitherReading, TrajectoryReading, read
from crowdveil.registry import MEASURES, all_measures, find_measure
from crowdveil.report.measurement import Measurement, measured
from crowdveil.run import releases
from crowdveil.run.manifest import original_input_options
from crowdveil.solve.od.assignment import check_windows, windows_of_steps
from crowdveil.verbs.base import (
    FLOWS,
    RELEASE,
    TABLES,
    DrawnForm,
    InputFile,
    Outcome,
    Output,
    Task,
    Verb,
    values_of,
    with_examples,
)
from crowdveil.verbs.opened import check_outputs, visible

OWN_IDS = Text("ids in a release of Crowdveil are new and match no original. Give the {pairing} that was kept with it.")


@visible
def measure(
    original: Any,
    release: Any,
    measures: str | Sequence[str | MeasureRequest] | None = None,
    output: str | Path | None = None,
    *,
    plot: str | Path | None = None,
    overwrite: bool = False,
    pairing: str | Path | None = None,
    paired_by_id: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Measurement:
    """Measure the information loss of a release of flows or trajectories. The numbers are exact and confidential.

    `original` is a path, an Arrow table, a data frame, `Flows` or `Trajectories`. `release` is the folder of a release, a
    `FlowRelease` over the zones and time steps of the flows, a `TrajectoryRelease`, or a file or table of trajectories from
    others. `measures` are names or symbols, with parameters as in `rmse:distance=dtw`, or "all"; the default are the five most
    informative ones. Measures that compare each trajectory with its original need `pairing`, the file that was kept with the
    release, or `paired_by_id=True` if others published the trajectories under the original ids. Input `options` come from the
    release; only files, such as zones, must be named again. `output` writes the result as CSV, Parquet or JSON, and `plot` draws
    it as PNG.

    >>> crowdveil.measure("trips.parquet", "out", ["E", "D"], zones="zones.geojson")["E"].mean  # doctest: +SKIP
    >>> crowdveil.measure("cabs.csv", "out", ["rmse", "RL"], pairing="cabs-pairing.csv")["RL"].pooled  # doctest: +SKIP
    """
    notes = ReadNotes() if notes is None else notes
    measures = [measures] if isinstance(measures, str) else measures
    wanted: list[str | MeasureRequest] | None = None if measures is None else [ALL]
    if measures is not None and list(measures) != [ALL]:  # reject a misspelled one before anything is read
        wanted = [asked for name in measures for asked in (parsed(name) if isinstance(name, str) else [name])]
    if pairing is not None and paired_by_id:
        raise ParameterError(
            Text("Expected one pairing of trajectories, got {pairing} and {paired_by_id}. Leave one out.")
        )
    check_outputs(output, plot)
    with new_files(output, plot, overwrite=overwrite) as (table, picture):
        stage("reading")
        data, made, how, _ = read_both(original, release, pairing, paired_by_id, options, notes)
        listed = requested(wanted, Flows if isinstance(data, Flows) else Trajectories)
        found = measured(data, made, listed, progress=progress, stage=stage)
        for sentence in found.notes:
            notes.add(sentence)
        found = replace(found, notes=(*how, *found.notes))
        if table is not None:
            found.write(table)
        if picture is not None:
            stage("drawing")
            found.plot(picture)
    return found


def read_both(
    original: Any, release: Any, pairing: str | Path | None, by_id: bool, options: dict[str, Any], notes: ReadNotes
) -> tuple[Flows | Trajectories, Release, tuple[str, ...], str]:
    """Return the original and the release as models, a sentence on the pairing of trajectories, and the time zone."""
    if isinstance(release, str | Path):
        release = releases.release_of_file(Path(release))
    folder = isinstance(release, Path) and not release.is_file()
    opened = releases.open_release(release) if folder else None
    written = None if opened is None else opened[1]
    of_flows = written.is_flows if written is not None else isinstance(release, FlowRelease)
    takes: type = Flows if of_flows else Trajectories
    if of_flows and (pairing is not None or by_id):
        option = Option("pairing" if pairing is not None else "paired_by_id")
        raise ParameterError(option, "releases of flows have no pairing. Leave it out.")
    tz = str(options.get("tz") or ("UTC" if opened is None else opened[0].time_zone))
    if opened is not None and not isinstance(original, takes):
        options = original_input_options(opened[0], options)
    data = read(takes, original, READINGS[takes].checked(options), notes)
    ids: list[str] | None = None
    if opened is not None and written is not None:
        made: Release = load_flow_release(written, data) if of_flows else load_trajectory_release(written)
        if isinstance(data, Flows) and isinstance(made, FlowRelease):
            # Raise if time steps differ.
            windows_of_steps(data, made) if made.intervals is None else check_windows(data, made)
            releases.refuse_other_original(opened[0], written, data)
    elif isinstance(release, Release):
        made = release
    else:
        made, ids = _published(data, release, by_id, options, notes)
    if not isinstance(data, Trajectories) or not isinstance(made, TrajectoryRelease):
        return data, made, (), tz
    if by_id and ids is None:
        raise ParameterError(Option("paired_by_id"), OWN_IDS)
    made = with_canonical_source(made, original, data)
    if pairing is not None:
        published = releases.published_ids(len(made)) if ids is None else ids
        made = replace(made, source=read_pairing(pairing, data, published))
    sentence = _describe_pairing(pairing, by_id, made)
    notes.add(sentence)
    return data, made, (render(sentence, as_command_line),), tz


def _published(
    original: Trajectories, release: Any, by_id: bool, options: dict[str, Any], notes: ReadNotes
) -> tuple[TrajectoryRelease, list[str]]:
    """Return trajectories that others published, with their ids; with `by_id`, paired with originals by equal ids."""
    reading = {name: value for name, value in options.items() if name not in ("zones", "zone_id")}
    if by_id and PUBLISHED in open_source(release).columns:
        raise ParameterError(Option("paired_by_id"), OWN_IDS)
    published = read(Trajectories, release, TrajectoryReading.checked(reading), notes)
    ids = [str(i) for i in published.ids.tolist()]
    return wrap_trajectories(published, pairing_by_ids(original, published) if by_id else None), ids


def _describe_pairing(pairing: str | Path | None, by_id: bool, made: TrajectoryRelease) -> str | Text:
    if made.source is None:
        return Text(
            "trajectories are not paired with their originals. Give the kept {pairing}, or {paired_by_id} if they "
            "were published under the original ids."
        )
    how = (
        "by the given pairing"
        if pairing is not None
        else "by equal ids, as requested"
        if by_id
        else "as they were made"
    )
    return f"trajectories are paired with their originals {how}."


IF_POSSIBLE = "if-possible"


class MeasureOptions(Params):
    """Parameters of a measurement."""

    measures: TextList = Field(None, json_schema_extra={"metavar": "NAMES", "short": "-m"})
    """Names or symbols separated by commas, with parameters as in rmse:distance=dtw; or all. [five informative ones]"""
    paired_by_id: bool | Literal["if-possible"] = False
    """Pair published and original trajectories by equal ids, if others published them. With if-possible, a release of
    Crowdveil, which has new ids, is not paired."""


def _options(name: str) -> tuple[type[Params], ...]:
    own = None if name == ALL else find_measure(name).params
    return (MeasureOptions, EitherReading) if own is None else (own, MeasureOptions, EitherReading)


def _requested(name: str, values: dict[str, Any]) -> Sequence[str | MeasureRequest] | None:
    """Return the requested measures, None if none are named."""
    if name != ALL:
        measure = find_measure(name)
        return [MeasureRequest.of(measure, {} if measure.params is None else values_of(values, measure.params))]
    names: list[str] | None = MeasureOptions.checked(values_of(values, MeasureOptions)).measures
    return names if names in (None, [ALL]) else [asked for text in names for asked in parsed(text)]


def _check(name: str, values: dict[str, Any]) -> None:
    if name != ALL and values.get("measures") is not None:
        raise ParameterError(Option("measures"), "the address already names a measure. Leave this out, or request all.")
    if _requested(name, values) == []:
        named_measures([])  # raises


def _run(task: Task) -> Outcome:
    by_id = task.values.get("paired_by_id", False)
    found = measure(
        task.files["original"], task.files["release"], _requested(task.name, task.values), task.output, plot=task.plot,
        overwrite=task.overwrite, pairing=task.files.get("pairing"),
        paired_by_id=not _has_new_ids(task.files["release"]) if by_id == IF_POSSIBLE else by_id,
        **task.reporting, **task.of(EitherReading),
    )  # fmt: skip
    for sentence in found.sentences(as_command_line):
        task.notes.add(sentence)
    return Outcome(task.notes, found.lines(), found.as_json)


def _has_new_ids(release: str) -> bool:
    """Return whether a release has ids of Crowdveil: it is a folder, or its table has their column."""
    return Path(release).is_dir() or PUBLISHED in open_source(Path(release)).columns


def _about(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": "Run all measures of a release, or those in `measures`."}
    measure = find_measure(name)
    return {
        "summary": measure.title,
        "takes": "flows" if measure.takes is Flows else "trajectories",
        "symbol": measure.symbol or None,
        "better": measure.better,
        "unit": measure.unit or None,
    }


HELP = """Measure the information loss of a release of flows or trajectories. The numbers are exact and confidential: do not
publish them.

RELEASE is the folder of a release, or a CSV or Parquet file of trajectories that others published; add --paired-by-id if they
kept the original ids. The original is read with the options of the release; only files, such as zones, must be named again.
↓ lower is better, ↑ higher is better, – undefined."""
VERB = Verb(
    verb="measure",
    collection="measures",
    summary="Measure the information loss of a release. The numbers are exact and confidential: do not publish them.",
    names=lambda: [ALL, *all_measures()],
    find=lambda name: name if name == ALL else find_measure(name).name,
    run=_run,
    options=_options,
    files=lambda name: (
        InputFile("original", FLOWS, "ORIGINAL"),
        InputFile("release", RELEASE, "RELEASE"),
        InputFile("pairing", TABLES, help="The file from anonymize --pairing.", required=False),
    ),
    output=lambda name: Output(
        "Also write the measures as .csv, .parquet or .json; for flows with the values of each time step.",
        form=DrawnForm, plot=True, json=True, stem="measures",
    ),
    hidden=lambda name: frozenset(EitherReading.model_fields) - {"zones"},
    check=_check,
    about=_about,
    help=lambda name: with_examples(
        f"{HELP}\n\nMeasures: {', '.join(MEASURES)}.",
        "measure",
        "trips.parquet out/ --zones zones.geojson",
        "trips.parquet out/ --zones zones.geojson -m generalization,E,D -o lost.csv",
        "cabs.csv out/ --pairing cabs-pairing.csv -m rmse,record-linkage:time_weight=0.005 --plot lost.png",
        "cabs.csv published-by-others.csv --paired-by-id -m rmse",
    ),
    example={"measures": ["E", "D"]},
)  # fmt: skip

"""Learn from a release of flows, or from trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from crowdveil.analysis.base import CONFIDENTIAL, Analysis
from crowdveil.analysis.heatmap_manifest import GEOJSON
from crowdveil.analysis.land_use import LandUse
from crowdveil.analysis.profiles import Profiles
from crowdveil.analysis.quadtree_heatmap import HeatMap
from crowdveil.analysis.reconstruction import Reconstruction
from crowdveil.analysis.study import OpenedRelease, Study, StudyReading, build_study, open_for_study
from crowdveil.analysis.topics import Topics
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.atomic import new_files
from crowdveil.io.manifest import INPUT_FILES
from crowdveil.io.notes import ReadNotes
from crowdveil.ledger.records import input_files
from crowdveil.ledger.store import open_ledger
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.reading import FlowReading, TrajectoryReading, read
from crowdveil.registry import all_analyses, find_analysis
from crowdveil.report.plots.analyses import draw
from crowdveil.run import releases
from crowdveil.run.ledgers import record_map, refuse_inside
from crowdveil.run.manifest import original_input_options
from crowdveil.run.options import LedgerOptions
from crowdveil.verbs.base import (
    ALL_FILES,
    FLOWS,
    RELEASE,
    TABLES,
    DrawnForm,
    InputFile,
    Outcome,
    Output,
    PlainReading,
    ResultName,
    SourceOptions,
    Task,
    Verb,
    with_examples,
)
from crowdveil.verbs.opened import check_outputs, row_semantics_of, split_options, visible


def reconstruct(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Reconstruction:
    """Estimate the flows between any zones from a release, each with a lower and an upper bound of the published trips.

    Zones are the tiles of the release, or others with `to_zones`. `over` adds up time steps, `margins` leaves out one end, and
    `weight` sets the share of an area in each of its tiles. See `analyze` for options of all analyses.

    >>> crowdveil.reconstruct("out", to_zones="districts.geojson", over="week").table()  # doctest: +SKIP
    """
    return analyze("reconstruct", release, output, **options)  # type: ignore[no-any-return]


def profiles(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Profiles:
    """Compute mean trips that leave and reach each zone, and between pairs of zones, by hour of the week or of the day.

    With `original`, its profiles are compared with those of the release by correlation and error. See `analyze`.

    >>> crowdveil.profiles("out", original="trips.parquet", zones="zones.geojson").correlation  # doctest: +SKIP
    """
    return analyze("profiles", release, output, **options)  # type: ignore[no-any-return]


def land_use(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> LandUse:
    """Group zones by the shape of their profiles. Needs scikit-learn (extra `analysis`).

    With `original`, its zones are grouped, too, and `.agreement` is the adjusted Rand index of the two. See `analyze`.

    >>> crowdveil.land_use("out", zones="zones.geojson", plot="map.png").clusters  # doctest: +SKIP
    """
    return analyze("land-use", release, output, **options)  # type: ignore[no-any-return]


def topics(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Topics:
    """Find flows that occur together at the same hours. Needs scikit-learn (extra `analysis`). See `analyze`.

    With `original`, its topics are found, too, and `.match` has the distance of each topic to an original one. With a range
    such as `topics="2-8"`, held-out perplexity chooses the number of topics, and `.choice` has the values.

    >>> crowdveil.topics("out", topics=5).hours  # doctest: +SKIP
    """
    return analyze("topics", release, output, **options)  # type: ignore[no-any-return]


def quadtree_heatmap(data: Any, output: str | Path | None = None, **options: Any) -> HeatMap:
    """Show where people are on a map of sectors, each with the locations of at least `min_k` (5) people.

    `data` is a path, an Arrow table, a data frame, or `Trajectories`. `output` is a file that ends in .geojson, .png or .html, or
    a folder for all three; the map is verified before it is written there. `options` are `min_k`, `min_sector_length_m`,
    `merge_sectors`, `split_n_locations`, `halve_long`, `suppress`, and input options. `.sectors` is an Arrow table.

    >>> crowdveil.quadtree_heatmap("cabs.csv", "map.geojson", min_k=10).sectors  # doctest: +SKIP
    """
    return analyze("quadtree-heatmap", data, output, **options)  # type: ignore[no-any-return]


@visible
def analyze(
    name: str,
    data: Any,
    output: str | Path | None = None,
    *,
    original: Any = None,
    plot: str | Path | None = None,
    overwrite: bool = False,
    ledger: str | Path | None = None,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Any:
    """Run an analysis on a release of flows (its folder, or a `FlowRelease`), or on trajectories.

    `options` are the parameters of the analysis and those of `StudyReading`, such as `to_zones`, or of reading trajectories.
    `output` writes the result as CSV, Parquet or JSON, and `plot` draws it as PNG. `original` is the data behind the release,
    read with the options in its manifest; only files, such as zones, must be named again. Results with an original are exact and
    confidential. Heat maps of trajectories are anonymous and may be published; with `ledger`, a folder of `ledger_init`, they
    are first audited against earlier ones.
    """
    analysis, notes = find_analysis(name), ReadNotes() if notes is None else notes
    if analysis.takes is Trajectories:
        if original is not None or plot is not None:
            raise ParameterError(f"{name} takes neither an original nor a plot. Leave them out.")
        return _of_trajectories(analysis, data, output, options, overwrite, ledger, notes, progress, stage)
    if ledger is not None:
        raise ParameterError(
            Option("ledger"), f"a ledger audits publications, and {name} publishes nothing. Leave it out."
        )
    of_reading, parameters = split_options(options, StudyReading)
    params, reading = analysis.params.checked(parameters), StudyReading.checked(of_reading)
    if original is not None and not analysis.compares:
        raise ParameterError("original", f"{name} reads the release alone. Leave it out.")
    if reading.reference is not None and analysis.name != "land-use":
        raise ParameterError(Option("reference"), f"only land-use compares classes. Leave it out of {name}.")
    check_outputs(output, plot)
    with new_files(output, plot, overwrite=overwrite) as (table, picture):
        stage("reading")
        study = _study(data, original, reading, notes)
        stage(name)
        found = analysis.run(study, params, progress)
        if table is not None:
            stage("writing")
            found.write(table, progress)
        if picture is not None:
            stage("drawing")
            draw(found, picture)
    return found


def _of_trajectories(
    analysis: Analysis,
    data: Any,
    output: str | Path | None,
    options: dict[str, Any],
    overwrite: bool,
    ledger: str | Path | None,
    notes: ReadNotes,
    progress: Progress,
    stage: Stage,
) -> Any:
    """Run an analysis of trajectories that writes and verifies its own files."""
    recording: dict[str, Any] = {}
    if ledger is not None:
        if output is None:
            raise ParameterError(
                Option("ledger"), Text("Expected a folder to audit, got none. Name one with {output}.")
            )
        refuse_inside(ledger, Path(output))
        recording["recorded"] = record_map(open_ledger(ledger), Path(output), input_files(data))
    of_reading, parameters = split_options(options, TrajectoryReading)
    params, reading = analysis.params.checked(parameters), TrajectoryReading.checked(of_reading)
    if output is not None and analysis.check_output is not None:
        analysis.check_output(Path(output), overwrite=overwrite)
    stage("reading")
    trajectories: Trajectories = read(Trajectories, data, reading, notes)
    if trajectories.k_unit != "people":
        notes.add(Text("people are not known, so trajectories are counted (name the column of people with {user})."))
    stage(analysis.name)
    found: Any = analysis.run(trajectories, params, progress)
    if output is not None:
        stage("writing")
        input_options = reading.model_dump(mode="json", exclude_defaults=True, exclude={*INPUT_FILES})
        found.write(output, progress, overwrite=overwrite, input_options=input_options, **recording)
    return found


def _study(release: str | Path | FlowRelease, original: Any, reading: StudyReading, notes: ReadNotes) -> Study:
    """Read the release, the target zones, and the original, if there is one."""
    if isinstance(release, FlowRelease):
        flows = None if original is None else read(Flows, original, FlowReading.checked({}), notes)
        return build_study(OpenedRelease(release), reading, flows, notes)
    manifest, written = releases.sound_release(Path(release))
    if not written.is_flows:
        raise InputError(release, "Expected a release of flows, got one of trajectories. Name another.")
    own = {n: getattr(reading, n) for n in ("zones", "zone_id") if getattr(reading, n) is not None}
    options, in_memory = dict[str, Any](), isinstance(original, Flows)
    if own or (original is not None and not in_memory):
        options = original_input_options(manifest, own)
    flows = (
        None if original is None else read(Flows, original, FlowReading.checked({} if in_memory else options), notes)
    )
    reading = reading.model_copy(update={"zone_id": options.get("zone_id")})
    opened = open_for_study(written, manifest, row_semantics_of(manifest), reading, flows, notes)
    return build_study(opened, reading, flows, notes)


class MapForm(ResultName):
    """Parameters of a job that draws a map."""

    format: Literal["all", "geojson", "png", "html"] = "all"
    """Format of the result: one of these files, or all three in a zip file."""


def _of_release(name: str) -> bool:
    return find_analysis(name).takes is Study


def _options(name: str) -> tuple[type[Params], ...]:
    return (find_analysis(name).params, StudyReading if _of_release(name) else PlainReading)


def _files(name: str) -> tuple[InputFile, ...]:
    if not _of_release(name):
        return (InputFile("data", TABLES, "TRAJECTORIES"),)
    original = InputFile(
        "original", FLOWS, "TRIPS_OR_FLOWS", "The data behind the release, to compare with it. Results are then exact and "
        "confidential: do not publish them.", required=False,
    )  # fmt: skip
    return (InputFile("release", RELEASE, "RELEASE_FOLDER"), *([original] if find_analysis(name).compares else []))


def _output(name: str) -> Output:
    if _of_release(name):
        return Output("File to write: .csv, .parquet or .json.", form=DrawnForm, plot=True, stem=name)
    return Output(
        "Folder for all files, or a single file: .geojson, .png or .html.", "FOLDER_OR_FILE", MapForm, stem=name, mark=GEOJSON,
        check=find_analysis(name).check_output,
    )  # fmt: skip


def _run(task: Task) -> Outcome:
    data = task.files["release" if _of_release(task.name) else "data"]
    found = analyze(
        task.name, data, task.output, original=task.files.get("original"), plot=task.plot, overwrite=task.overwrite,
        ledger=task.values.get("ledger"), **task.reporting, **task.of(*_options(task.name)),
    )  # fmt: skip
    return Outcome(task.notes, [*found.lines(), *([CONFIDENTIAL] if "original" in task.files else [])])


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise if a map to be audited has no manifest, which only a folder has."""
    if values.get("source") is not None and values.get("format", ALL_FILES) != ALL_FILES:
        raise ParameterError(
            Option("format"),
            Text("Expected all files of a map of a {source}, since the ledger needs its manifest. Leave this out."),
        )


def _about(name: str) -> dict[str, Any]:
    analysis = find_analysis(name)
    takes = "release" if _of_release(name) else "trajectories"
    return {"summary": analysis.summary, "takes": takes, "compares": analysis.compares, "extra": analysis.extra or None}


def _help(name: str) -> str:
    """Return the summary of an analysis, its extra, and examples."""
    analysis = find_analysis(name)
    extra = f" Needs the extra {analysis.extra}." if analysis.extra else ""
    return with_examples(f"{analysis.summary}{extra}\n\n{analysis.help}", f"analyze {name}", *analysis.examples)


VERB = Verb(
    verb="analyze",
    collection="analyses",
    summary="Analyze a release of flows, or draw a heat map of trajectories for publication.",
    names=lambda: list(all_analyses()),
    group=with_examples(
        "Analyze a release of flows, or draw a heat map of trajectories for publication.",
        "analyze",
        "quadtree-heatmap cabs.csv --min-k 10 -o map/",
        "land-use out/ --zones zones.geojson --plot map.png",
        "-f run.json",
    ),
    find=lambda name: find_analysis(name).name,
    run=_run,
    options=_options,
    local=lambda name: () if _of_release(name) else (LedgerOptions,),
    remote=lambda name: () if _of_release(name) else (SourceOptions,),
    files=_files,
    output=_output,
    hidden=lambda name: frozenset() if _of_release(name) else frozenset(("zones", "zone_id")),
    check=_check,
    about=_about,
    help=_help,
    example={"format": "csv"},
)

"""The door for Python: the same names as on the command line, with underscores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil import pipeline
from crowdveil.analysis.study import Opened, StudyReading, opened, study_of
from crowdveil.errors import CrowdveilError, InputError, OutputError, ParameterError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.atomic import new_file
from crowdveil.io.flows import DEFAULT_STEP
from crowdveil.io.notes import ReadNotes
from crowdveil.io.read_back import flow_release_from
from crowdveil.io.release import TableFormat
from crowdveil.io.tables import check_ending
from crowdveil.manifest import reading_again
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS, FlowReading, read
from crowdveil.registry import find_analysis, find_method
from crowdveil.report.compare import (
    SUMMARY_FILE,
    Comparison,
    SideBySide,
    candidates,
    check_folder,
    check_names,
    matrices,
    side_by_side,
)
from crowdveil.report.measures import Measurement, measured, named_measures
from crowdveil.report.sweep import SWEEP_FILE, K, Sweep, swept, trials_of

if TYPE_CHECKING:
    from crowdveil.analysis.land_use import LandUse
    from crowdveil.analysis.profiles import Profiles
    from crowdveil.analysis.reconstruction import Reconstruction
    from crowdveil.analysis.topics import Topics
    from crowdveil.method import Rows


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


def compare(
    data: Any,
    methods: Sequence[str] | None = None,
    output: str | Path | None = None,
    *,
    k: int = 10,
    suppress: float | str = 0.1,
    sample: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: pipeline.Stage = lambda name: None,
    **options: Any,
) -> Comparison:
    """Run methods for flows with the same k and budget on the same matrices. Nothing is published.

    `methods` are names, with parameters where wanted, as in `joint:splits=dyadic` or `joint:k=5`; all of them where none are
    given. `sample` matrices are taken, evenly spread; at most 100 where it is not given. The table (`.table`, Arrow) has the
    means of generalisation Ḡ, reconstruction error E, distribution distance D and suppression S, and processor seconds a
    matrix. With `output` tables and plots are written to that folder. The numbers are exact: they stay in the house.

    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    """
    shared: SideBySide = SideBySide.checked({"k": k, "suppress": suppress, "sample": sample, "seed": seed})
    check_names(methods)
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    same = {"k": shared.k, "suppress": shared.suppress}
    stage("reading")
    flows = matrices(_flows(data, options, notes), shared.sample, shared.k)
    chosen = candidates(methods, same, flows)
    for candidate in chosen:
        pipeline.need_a_crowd(flows, candidate.params)
    found = side_by_side(flows, chosen, shared, all_of_them=methods is None, progress=progress, stage=stage)
    if output is not None:
        found.write(output, overwrite=overwrite)
    return found


def sweep(
    method: str,
    data: Any,
    output: str | Path | None = None,
    *,
    k: Sequence[int | str] = K,
    suppress: Sequence[float | str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: pipeline.Stage = lambda name: None,
    **options: Any,
) -> Sweep:
    """Run one method with several k and budgets on the same matrices, and say which to take. Nothing is published.

    Budgets are 5 %, 10 % and 20 % where none are given and the method has one. `.table` (Arrow) has a row for each k and
    budget, `.recommendation()` a sentence. The other parameters are those of `compare`.

    >>> crowdveil.sweep("joint", "trips.parquet", k=[5, 10, 20], zones="zones.geojson").table  # doctest: +SKIP
    """
    shared: SideBySide = SideBySide.checked({"sample": sample, "seed": seed})
    chosen = trials_of(method, k, suppress)
    check_folder(output, SWEEP_FILE, overwrite=overwrite)
    stage("reading")
    flows = matrices(_flows(data, options, notes), shared.sample, max(getattr(c.params, "k", 1) for c in chosen))
    for candidate in chosen:
        pipeline.need_a_crowd(flows, candidate.params)
    found = swept(flows, chosen, shared.seed, progress, stage)
    if output is not None:
        found.write(output, overwrite=overwrite)
    return found


def _flows(data: Any, options: dict[str, Any], notes: ReadNotes | None) -> Flows:
    """Flows with all that any method asks for."""
    said = notes if notes is not None else ReadNotes()
    flows: Flows = read(Flows, data, FlowReading.checked(options), said, members=True)
    return flows


def reconstruct(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Reconstruction:
    """Estimate the flows between any zones from a release, each with a lower and an upper bound of what was published.

    Zones are the release's own tiles; others with `to_zones`, `to_grid` or `to_h3`. `over` adds time steps up, `margins` leaves
    out one end, `weight` says how much of an area each of its tiles gets. See `analyse` for what is the same for all analyses.

    >>> crowdveil.reconstruct("out", to_zones="districts.geojson", over="week").table()  # doctest: +SKIP
    """
    return analyse("reconstruct", release, output, **options)  # type: ignore[no-any-return]


def profiles(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Profiles:
    """Mean trips by hour of the week (or of the day) that leave and reach each zone, and between pairs of them.

    With `original` its profiles stand beside those of the release, with correlation and error. See `analyse`.

    >>> crowdveil.profiles("out", original="trips.parquet", zones="zones.geojson").correlation  # doctest: +SKIP
    """
    return analyse("profiles", release, output, **options)  # type: ignore[no-any-return]


def land_use(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> LandUse:
    """Group zones by the shape of their profiles. Needs scikit-learn (extra `analysis`).

    With `original` its zones are grouped too, and `.agreement` is the adjusted Rand index between the two. See `analyse`.

    >>> crowdveil.land_use("out", zones="zones.geojson", plot="map.png").clusters  # doctest: +SKIP
    """
    return analyse("land-use", release, output, **options)  # type: ignore[no-any-return]


def topics(release: str | Path | FlowRelease, output: str | Path | None = None, **options: Any) -> Topics:
    """Find flows that come up together at the same hours. Needs scikit-learn (extra `analysis`). See `analyse`.

    >>> crowdveil.topics("out", topics=5).hours  # doctest: +SKIP
    """
    return analyse("topics", release, output, **options)  # type: ignore[no-any-return]


def analyse(
    name: str,
    release: str | Path | FlowRelease,
    output: str | Path | None = None,
    *,
    original: Any = None,
    plot: str | Path | None = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: pipeline.Stage = lambda name: None,
    **options: Any,
) -> Any:
    """Run an analysis on a release: its folder, or a `FlowRelease`.

    `options` are the parameters of the analysis and those of `StudyReading`, such as `to_zones`. With `output` all of it is
    written as CSV, Parquet or JSON, with `plot` it is drawn as PNG. `original` is what the release was made from, read as its
    manifest says; files that were needed for it, such as zones, are given again. What comes of it is exact and stays in the
    house.
    """
    analysis, said = find_analysis(name), notes if notes is not None else ReadNotes()
    params = analysis.params.checked({n: v for n, v in options.items() if n not in StudyReading.model_fields})
    reading = StudyReading.checked({n: v for n, v in options.items() if n in StudyReading.model_fields})
    if original is not None and not analysis.compares:
        raise ParameterError(f"original: {name} reads the release alone; leave it out.")
    with ExitStack() as files:
        check_outputs(output, plot)
        table, picture = (
            None if path is None else files.enter_context(new_file(Path(path), overwrite=overwrite))
            for path in (output, plot)
        )
        stage("reading")
        study = _study(release, original, reading, said)
        stage(name)
        found = analysis.run(study, params, progress)
        if table is not None:
            stage("writing")
            found.write(table, progress)
        if picture is not None:
            from crowdveil.report.analysis_plots import draw

            stage("drawing")
            draw(found, picture)
    return found


def check_outputs(output: str | Path | None, plot: str | Path | None) -> None:
    """Raise unless the names of files say how an analysis is to be written and drawn."""
    if output is not None:
        check_ending(Path(output), ".json")
    if plot is not None and Path(plot).suffix.lower() != ".png":
        raise OutputError(f"{plot}: wanted a name that ends in .png; name another with --plot.")


def _study(release: str | Path | FlowRelease, original: Any, reading: StudyReading, notes: ReadNotes) -> Any:
    """The release, the zones that are asked about, and the original where it is given."""
    if isinstance(release, FlowRelease):
        flows = None if original is None else read(Flows, original, FlowReading.checked({}), notes)
        return study_of(Opened(release), reading, flows, notes)
    manifest, written = pipeline.open_release(Path(release))
    if not written.is_flows:
        raise InputError(f"{release}: it holds trajectories, and analyses are of flows.")
    given = {n: getattr(reading, n) for n in ("zones", "zone_id", "voronoi") if getattr(reading, n) is not None}
    again, known = dict[str, Any](), isinstance(original, Flows)
    if given or (original is not None and not known):
        again = reading_again(manifest, None if known else original, given)
    flows = None if original is None else read(Flows, original, FlowReading.checked({} if known else again), notes)
    reading = reading.model_copy(update={"zone_id": again.get("zone_id")})
    options, data = manifest["input"]["options"], manifest["input"]["data"]
    if "name" in data and not data["name"].endswith(".omx"):
        options = {"step": DEFAULT_STEP, **options}  # what a file is read with where nothing was said
    return study_of(opened(written, options, _rows(manifest), reading, flows, notes), reading, flows, notes)


def _rows(manifest: dict[str, Any]) -> Rows:
    """What the rows of a release say; those of a method that is not installed here are taken as exact."""
    try:
        return find_method(manifest["method"]["name"]).rows
    except CrowdveilError:
        return "exact"

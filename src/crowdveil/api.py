"""The door for Python: the same names as on the command line, with underscores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil import pipeline
from crowdveil.analysis.study import Opened, StudyReading, opened, study_of
from crowdveil.errors import CrowdveilError, InputError, ParameterError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.atomic import new_file
from crowdveil.io.flows import DEFAULT_STEP
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import pairing_by_ids, read_pairing
from crowdveil.io.read_back import flow_release_from, trajectory_release_from, trajectory_release_of
from crowdveil.io.release import TableFormat
from crowdveil.io.tables import check_ending, check_picture
from crowdveil.manifest import reading_again
from crowdveil.measures.base import Asked
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS, FlowReading, TrajectoryReading, read
from crowdveil.registry import find_analysis, find_method
from crowdveil.report.candidates import KINDS, SUMMARY_FILE, check_folder, kind_of, with_each_k
from crowdveil.report.compare import Comparison, SideBySide, candidates, matrices, side_by_side
from crowdveil.report.compare_trajectories import K as K_OF_TRAJECTORIES
from crowdveil.report.compare_trajectories import (
    TrajectoriesSideBySide,
    TrajectoryMethods,
    sampled,
    trajectory_candidates,
    trajectory_methods,
)
from crowdveil.report.measures import Measurement, measured, named_measures, parsed
from crowdveil.report.sweep import SWEEP_FILE, K, Sweep, swept, trials_of

if TYPE_CHECKING:
    from crowdveil.analysis.base import Analysis
    from crowdveil.analysis.land_use import LandUse
    from crowdveil.analysis.profiles import Profiles
    from crowdveil.analysis.quadtree_heatmap import HeatMap
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
    pairing: str | Path | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> pipeline.Result:
    """Anonymise data with a method, and write a verified release to the folder `output`.

    `data` is a path, an Arrow table, a data frame, or `Flows` or `Trajectories`. `options` are the method's parameters
    and the options of reading (see `crowdveil anonymize METHOD --help`), such as `k=10, zones="zones.geojson"`.
    `resume` names a folder that keeps finished time steps, to go on from them after an interruption. `pairing` names a file
    outside the release that is told which trajectory came of which, for measuring: it undoes the new ids, so keep it secret.

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
            pairing=None if pairing is None else Path(pairing),
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
    release: Any,
    measures: Sequence[str | Asked] | None = None,
    *,
    pairing: str | Path | None = None,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: pipeline.Stage = lambda name: None,
    **options: Any,
) -> Measurement:
    """Measure what a release lost of the original flows or trajectories. The numbers are exact: they stay in the house.

    `original` is a path, an Arrow table, a data frame, `Flows` or `Trajectories`; `release` the folder of a release, a
    `FlowRelease` over the zones and time steps of the flows, or a `TrajectoryRelease`. Trajectories that others published are
    given as a file or a table; ids that are the original's say then which came of which. `measures` are names or symbols,
    with parameters as in `rmse:distance=dtw`; all of them where none are given. `pairing` is the file that was kept when a
    release of trajectories was made. `options` of reading are those of the release unless given; files, such as zones, must be
    given again.

    >>> crowdveil.measure("trips.parquet", "out", ["E", "D"], zones="zones.geojson")["E"].mean  # doctest: +SKIP
    >>> crowdveil.measure("cabs.csv", "out", ["rmse", "RL"], pairing="cabs-pairing.csv")["RL"].pooled  # doctest: +SKIP
    """
    said = notes if notes is not None else ReadNotes()
    if measures is not None:  # a slip of the pen is told before anything is read
        measures = [asked for name in measures for asked in (parsed(name) if isinstance(name, str) else [name])]
    stage("reading")
    data, made, takes = _beside(original, release, pairing, options, said)
    wanted = named_measures(measures, takes)
    found = measured(data, made, wanted, all_of_them=measures is None, progress=progress, stage=stage)
    for sentence in found.notes:
        said.say(sentence)
    return found


def _beside(
    original: Any, release: Any, pairing: str | Path | None, options: dict[str, Any], notes: ReadNotes
) -> tuple[Flows | Trajectories, Release, type]:
    """An original and what was published of it, as models, and which kind they are."""
    folder = isinstance(release, str | Path) and not Path(release).is_file()
    manifest, written = pipeline.open_release(Path(release)) if folder else ({}, None)
    of_flows = written.is_flows if written is not None else isinstance(release, FlowRelease)
    takes: type = Flows if of_flows else Trajectories
    if pairing is not None and of_flows:
        raise ParameterError("pairing: the release holds flows, which have none; leave it out.")
    if written is not None and not isinstance(original, takes):
        options = reading_again(manifest, original, options)
    data = read(takes, original, READINGS[takes].checked(options), notes)
    if written is None:
        made = release if isinstance(release, Release) else _published(data, release, pairing, options, notes)
    else:
        made = flow_release_from(written, data) if of_flows else trajectory_release_from(written)
    if pairing is not None and isinstance(made, TrajectoryRelease) and made.source is None:
        made = replace(made, source=read_pairing(pairing, data, [str(i + 1) for i in range(len(made))]))
    return data, made, takes


def _published(
    original: Trajectories, release: Any, pairing: str | Path | None, options: dict[str, Any], notes: ReadNotes
) -> TrajectoryRelease:
    """Trajectories that were published by others, beside their originals."""
    reading = {name: value for name, value in options.items() if name not in ("zones", "zone_id")}
    published = read(Trajectories, release, TrajectoryReading.checked(reading), notes)
    if pairing is not None:
        return trajectory_release_of(
            published, read_pairing(pairing, original, [str(i) for i in published.ids.tolist()])
        )
    source = pairing_by_ids(original, published)
    notes.say(
        "some published ids are none of the original's, so that it is not known which trajectory came of which."
        if source is None
        else "published ids are the original's: they are taken to say which trajectory came of which."
    )
    return trajectory_release_of(published, source)


def compare(
    data: Any,
    methods: Sequence[str] | None = None,
    output: str | Path | None = None,
    *,
    k: int | Sequence[int] | None = None,
    trajectories: bool = False,
    suppress: float | str | None = None,
    sample: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: pipeline.Stage = lambda name: None,
    **options: Any,
) -> Comparison | TrajectoryMethods:
    """Run methods with the same k on the same data. Nothing is published.

    `methods` are names, with parameters where wanted, as in `joint:splits=dyadic` or `joint:k=5`; all for flows where none are
    given, all for trajectories with `trajectories`. With several `k` each method runs with each.

    For flows (k 10, budget `suppress` 10 %) `sample` matrices are taken, evenly spread; at most 100 where it is not given. The
    table (`.table`, Arrow) has the means of generalisation Ḡ, reconstruction error E, distribution distance D and suppression S,
    and processor seconds a matrix. For trajectories (k 2, 4 and 8) it has the distortion of range queries, SID and AID, by
    windows of time (see `RangeQueryParams` for `options`), and the share removed; `sample` trajectories are drawn at random. With
    `output` tables and plots are written to that folder. The numbers are exact: they stay in the house.

    >>> crowdveil.compare("trips.parquet", ["joint", "oigh"], zones="zones.geojson").table  # doctest: +SKIP
    >>> crowdveil.compare("cabs.csv", ["microaggregation", "swapmob"], k=[2, 4]).table  # doctest: +SKIP
    """
    check_folder(output, SUMMARY_FILE, overwrite=overwrite)
    takes = kind_of(methods, Trajectories if trajectories or isinstance(data, Trajectories) else Flows)
    other = Flows if takes is Trajectories else Trajectories
    if isinstance(data, other):
        wanted, got = KINDS[other][0], KINDS[takes][0]
        raise ParameterError(f"methods: wanted those for {wanted}, but got ones for {got}; name others.")
    said = notes if notes is not None else ReadNotes()
    found: Comparison | TrajectoryMethods
    if takes is Trajectories:
        if suppress is not None:
            raise ParameterError(
                "suppress: it is a budget of trips, and these methods are for trajectories; leave it out."
            )
        values = {**options, "sample": sample, "seed": seed}
        asked = {n: v for n, v in values.items() if n in TrajectoriesSideBySide.model_fields}
        reading = {n: v for n, v in options.items() if n not in asked}
        found = _compare_trajectories(
            data, methods, K_OF_TRAJECTORIES if k is None else k, TrajectoriesSideBySide.checked(asked),
            TrajectoryReading.checked(reading), said, progress, stage,
        )  # fmt: skip
    else:
        ks = [10] if k is None else [k] if isinstance(k, int) else list(dict.fromkeys(k))
        asked = {"k": max(ks, default=0), "sample": sample, "seed": seed}
        shared: SideBySide = SideBySide.checked(asked if suppress is None else {**asked, "suppress": suppress})
        found = _compare_flows(data, methods, ks, shared, options, said, progress, stage)
    if output is not None:
        found.write(output, overwrite=overwrite)
    return found


def _compare_flows(
    data: Any,
    methods: Sequence[str] | None,
    ks: Sequence[int],
    shared: SideBySide,
    options: dict[str, Any],
    notes: ReadNotes,
    progress: Progress,
    stage: pipeline.Stage,
) -> Comparison:
    if len(ks) > 1:
        if methods is None:
            raise ParameterError("k: several values were given, but no methods; name some with --methods.")
        methods = with_each_k(methods, [str(k) for k in ks])
    stage("reading")
    flows = matrices(_flows(data, options, notes), shared.sample, shared.k)
    chosen = candidates(methods, {"k": shared.k, "suppress": shared.suppress}, flows)
    for candidate in chosen:
        pipeline.need_a_crowd(flows, candidate.params)
    return side_by_side(flows, chosen, shared, all_of_them=methods is None, progress=progress, stage=stage)


def _compare_trajectories(
    data: Any,
    methods: Sequence[str] | None,
    k: int | Sequence[int],
    shared: TrajectoriesSideBySide,
    reading: TrajectoryReading,
    notes: ReadNotes,
    progress: Progress,
    stage: pipeline.Stage,
) -> TrajectoryMethods:
    chosen = trajectory_candidates(methods, [k] if isinstance(k, int) else k)
    stage("reading")
    paths = sampled(read(Trajectories, data, reading, notes), shared.sample, shared.seed)
    for candidate in chosen:
        pipeline.need_a_crowd(paths, candidate.params)
    return trajectory_methods(paths, chosen, shared, all_of_them=methods is None, progress=progress, stage=stage)


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


def quadtree_heatmap(data: Any, output: str | Path | None = None, **options: Any) -> HeatMap:
    """Show where people are on a map of sectors, each with the locations of at least `min_k` (5) people.

    `data` is a path, an Arrow table, a data frame, or `Trajectories`. With `output` a file that ends in .geojson, .png or .html
    is written, or a folder with all three; it is checked before it is put in place. `options` are `min_k`, `min_sector_length_m`,
    `merge_sectors`, `split_n_locations`, `halve_long`, `withhold`, and those of reading. `.sectors` is an Arrow table.

    >>> crowdveil.quadtree_heatmap("cabs.csv", "map.geojson", min_k=10).sectors  # doctest: +SKIP
    """
    return analyse("quadtree-heatmap", data, output, **options)  # type: ignore[no-any-return]


def analyse(
    name: str,
    data: Any,
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
    """Run an analysis on a release of flows (its folder, or a `FlowRelease`), or on trajectories.

    `options` are the parameters of the analysis and those of `StudyReading`, such as `to_zones`, or of reading trajectories. With
    `output` all of it is written as CSV, Parquet or JSON, with `plot` it is drawn as PNG. `original` is what the release was made
    from, read as its manifest says; files that were needed for it, such as zones, are given again. What comes of it is exact and
    stays in the house. What is written of trajectories is anonymous, and may leave it.
    """
    analysis, said = find_analysis(name), notes if notes is not None else ReadNotes()
    if analysis.takes is Trajectories:
        if original is not None or plot is not None:
            raise ParameterError(f"{name} reads trajectories and writes all to one place; leave out original and plot.")
        return _of_trajectories(analysis, data, output, options, overwrite, said, progress, stage)
    params = analysis.params.checked({n: v for n, v in options.items() if n not in StudyReading.model_fields})
    reading = StudyReading.checked({n: v for n, v in options.items() if n in StudyReading.model_fields})
    if original is not None and not analysis.compares:
        raise ParameterError(f"original: {name} reads the release alone; leave it out.")
    with ExitStack() as files:
        if output is not None:
            check_ending(Path(output), ".json")
        if plot is not None:
            check_picture(plot)
        table, picture = (
            None if path is None else files.enter_context(new_file(Path(path), overwrite=overwrite))
            for path in (output, plot)
        )
        stage("reading")
        study = _study(data, original, reading, said)
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


def _of_trajectories(
    analysis: Analysis,
    data: Any,
    output: str | Path | None,
    options: dict[str, Any],
    overwrite: bool,
    notes: ReadNotes,
    progress: Progress,
    stage: pipeline.Stage,
) -> Any:
    """Run an analysis on trajectories. It writes, checks and puts in place by itself."""
    params = analysis.params.checked({n: v for n, v in options.items() if n not in TrajectoryReading.model_fields})
    reading = TrajectoryReading.checked({n: v for n, v in options.items() if n in TrajectoryReading.model_fields})
    if output is not None and analysis.check_output is not None:
        analysis.check_output(Path(output), overwrite=overwrite)
    stage("reading")
    trajectories: Trajectories = read(Trajectories, data, reading, notes)
    if trajectories.counts != "people":
        notes.say("people are not known, so that trajectories are counted (name the column of people with --user).")
    stage(analysis.name)
    found: Any = analysis.run(trajectories, params, progress)
    if output is not None:
        stage("writing")
        found.write(output, progress, overwrite=overwrite)
    return found


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

"""read → model → method → write → verify → attack → report. Every door goes through here, and there is no second way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdveil.analysis.heatmap_manifest import is_heat_map, verify_heat_map
from crowdveil.attacks.known_points import measured_lines
from crowdveil.attacks.risk import against_guarantees, refuse_beaten
from crowdveil.entropy import apart
from crowdveil.errors import GuaranteeViolatedError, InputError, Option, ParameterError
from crowdveil.guarantees import BoundedVolumes, Finding, Guarantee, TrueVolumes, guarantee_from_manifest
from crowdveil.guarantees.base import refuse_unchecked, tally
from crowdveil.io.atomic import check_file, check_target, new_file, new_folder, recover
from crowdveil.io.notes import ReadNotes
from crowdveil.io.pairing import kept_pairing
from crowdveil.io.read_back import flow_release_from
from crowdveil.io.release import TableFormat, write_release
from crowdveil.io.written import MANIFEST_FILE, WrittenRelease, file_hash, read_release
from crowdveil.method import Method
from crowdveil.model.canonical import numbered
from crowdveil.model.flows import Flows
from crowdveil.model.release import Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress, no_progress
from crowdveil.reading import READINGS, FlowReading, TrajectoryReading, read
from crowdveil.registry import find_method
from crowdveil.report.summary import cost_lines, cost_numbers
from crowdveil.run.manifest import (
    build_manifest,
    file_entry,
    read_manifest,
    reading_again,
    refuse_other_counts,
    with_file,
    write_manifest,
)
from crowdveil.run.resume import ATTACKS, drawn_seed, going_on_from, open_finished, run_key
from crowdveil.run.verification import (
    add_run_warnings,
    check,
    check_k_feasible,
    stated_guarantees,
    structural_guarantees,
    validate_release_tables,
    what_k_counts,
    without_exact_figures,
)

Stage = Callable[[str], None]
"""Told the name of each stage as it begins."""


@dataclass(frozen=True)
class Request:
    """One run: which method, on what, with which parameters, to where. Checked when it runs, before anything is read.

    Attributes
    ----------
    method
        Name or alias of the method.
    data
        A path, a table, or a model.
    output
        The folder that the release is written to.
    parameters, reading
        The method's parameters, and the options of reading, by name.
    seed
        A secret: who knows it can repeat every random choice. With it a run is reproducible; without it, every random choice
        comes from fresh entropy of the operating system.
    table_format, data_name
        Form of the tables, and the name of the data file where the usual one is not wanted.
    overwrite
        Replace an earlier release in `output`.
    resume
        A folder that keeps finished time steps, to go on from them after an interruption; removed at the end.
    pairing
        A private file, outside the release, to write which trajectory came of which to.
    attack
        Attack the release before it is published: an adversary who beats a proven guarantee stops the run.
    report
        Write the report into the release.
    private_report
        A file outside the release for a report that shows the original too, and is not for release.
    engine, master, spark
        Where time steps are done: on this machine, or on Spark ("spark"), on a session that is started on `master`, or on the one
        that is given. Data and output are then paths as Spark takes them, or a data frame of it.
    """

    method: str
    data: Any
    output: Path | str
    parameters: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    table_format: TableFormat = "parquet"
    data_name: str | None = None
    overwrite: bool = False
    resume: Path | str | None = None
    pairing: Path | None = None
    attack: bool = True
    report: bool = True
    private_report: Path | None = None
    engine: Literal["local", "spark"] = "local"
    master: str | None = None
    spark: Any = None


@dataclass(frozen=True)
class Result:
    """What came of a run. On a cluster the release stays there, and `release` is None."""

    folder: Path | str
    manifest: dict[str, Any]
    release: Any
    notes: ReadNotes
    cost: list[str]

    def lines(self) -> list[str]:
        """What a person wants to know first: what is guaranteed, and what it cost."""
        manifest = self.manifest
        guaranteed = [f"  guarantee  {p['statement']}" for p in manifest["guarantees"] if p["kind"] == "privacy"]
        if manifest["method"]["status"] == "heuristic":
            guaranteed.append("  guarantee  none of anonymity: this method is a heuristic")
        guaranteed.append(f"  checked  {tally([p['outcome'] for p in manifest['guarantees']])}")
        # Facts of several numbers are told in words among the costs.
        plain = {n: v for n, v in manifest["method"]["facts"].items() if not isinstance(v, dict)}
        facts = [f"  {name.replace('_', ' '):32}{value}" for name, value in plain.items()]
        return [*guaranteed, *(f"  {line}" for line in self.cost), *facts]


def run(request: Request, progress: Progress = no_progress, stage: Stage = lambda name: None) -> Result:
    """Read, anonymize, write to a temporary folder, read back, verify, and only then put it in place."""
    method = find_method(request.method)
    params = method.params.checked(request.parameters)
    reading = READINGS[method.takes].checked(request.reading)
    if request.engine == "spark" or request.spark is not None:
        return _run_there(request, method, params, reading, progress, stage)
    check_target(Path(request.output).absolute(), overwrite=request.overwrite, mark_file=MANIFEST_FILE)
    if request.pairing is not None and method.takes is not Trajectories:
        raise ParameterError(Option("pairing"), f"{method.name} is for flows, which have none; leave it out.")
    if request.private_report is not None:
        check_private(request.private_report, Path(request.output), overwrite=request.overwrite)

    finished = None if request.resume is None else open_finished(
        Path(request.resume), Path(request.output), method=method, params=params, reading=reading, seed=request.seed,
        data=request.data,
    )  # fmt: skip

    seed = drawn_seed(request.seed, finished)
    pairing = kept_pairing(request.pairing, Path(request.output), overwrite=request.overwrite)
    with going_on_from(finished), pairing as keep:
        stage("reading")
        notes = ReadNotes()
        data = read(method.takes, request.data, reading, notes, members=method.needs_members)
        check_k_feasible(data, params)

        stage("anonymizing")
        release = method.run(data, params, np.random.default_rng(seed), progress)
        if isinstance(release, TrajectoryRelease):
            release = numbered(release)
        guarantees = (*method.guarantees(data, params), *structural_guarantees(method))
        numbers = cost_numbers(data, release)
        add_run_warnings(method, data, params, numbers, notes, seed_given=request.seed is not None)
        if finished is not None and not finished.used:
            notes.say(f"{method.name} does all time steps in one go, so nothing was kept to resume from.")

        if isinstance(data, Trajectories):
            keep(data, getattr(release, "source", None))
        with new_folder(Path(request.output), overwrite=request.overwrite, mark_file=MANIFEST_FILE) as folder:
            stage("writing")
            files = write_release(release, folder, request.table_format, request.data_name)
            stage("verifying")
            written = read_release(folder, files)
            checked = check(written, guarantees, data, getattr(release, "source", None))
            refuse_unchecked(checked)
            trials = []
            if request.attack:
                stage("attacking")
                trials = against_guarantees(data, release, guarantees, method.status, apart(seed, ATTACKS), progress)
                refuse_beaten(trials)
            manifest = build_manifest(
                method=method, params=params, reading=reading, seed_given=request.seed is not None, data=request.data,
                notes=notes, counts=what_k_counts(data, params), checked=checked, cost=numbers,
                risk=[trial.as_json() for trial in trials] if request.attack else None,
                facts=getattr(release, "facts", {}),
                files={role: file_entry(folder / name) for role, name in files.items()},
            )  # fmt: skip
            if method.rows == "noisy":
                manifest = without_exact_figures(manifest)
            if request.report:
                stage("reporting")
                manifest = add_report(folder, written, manifest)
            if request.private_report is not None:
                stage("confidential report")
                write_private(request.private_report, written, manifest, data, release, overwrite=request.overwrite)
            write_manifest(folder, manifest)
    risks = [trial.line() for trial in trials if trial.before is not None]
    cost = [*cost_lines(data, release), *measured_lines(release.facts), *risks]
    return Result(Path(request.output), manifest, release, notes, cost)


def _run_there(
    request: Request, method: Method, params: Params, reading: Params, progress: Progress, stage: Stage
) -> Result:
    """The same on Spark, in parts: see `crowdveil.run.spark`."""
    from crowdveil.engine.spark import spark_engine
    from crowdveil.run.spark.running import SparkRun, check_supported_on_spark
    from crowdveil.run.spark.running import run as run_there
    from crowdveil.run.spark.trajectory_running import run as run_tracks

    check_supported_on_spark(method, params, request)
    if not isinstance(reading, FlowReading | TrajectoryReading):
        raise TypeError("data is read as flows or as trajectories")
    stage("starting Spark")
    with spark_engine(request.spark, request.master) as there:
        key = None
        if request.resume is not None:
            if not isinstance(request.data, str | Path):
                raise ParameterError(
                    Option("resume"), "wanted data in a file, but it is a data frame; write it to a file."
                )
            key = run_key(method, params, reading, request.seed, there.files.fingerprint(str(request.data)))
        output, resume = str(request.output).rstrip("/"), None if request.resume is None else str(request.resume)
        job = SparkRun(
            method, params, reading, request.data, output, request.seed, request.overwrite, request.attack, request.report,
            resume, key,
        )  # fmt: skip
        ran = (run_tracks if method.takes is Trajectories else run_there)(job, there, progress, stage)
    return Result(request.output, ran.manifest, None, ran.notes, ran.cost)


def verify_there(
    folder: str,
    original: Any = None,
    reading: dict[str, Any] | None = None,
    *,
    master: str | None = None,
    spark: Any = None,
) -> tuple[list[tuple[Guarantee, Finding]], dict[str, Any]]:
    """As `verify`, on Spark; with the manifest."""
    from crowdveil.engine.spark import spark_engine
    from crowdveil.run.spark.aligned_partitions import verify_with_original
    from crowdveil.run.spark.verifying import verify as verify_parts

    with spark_engine(spark, master) as there:
        if original is None:
            return verify_parts(there, str(folder))
        return verify_with_original(there, str(folder), original, reading or {})


def verify(
    folder: Path, original: Any = None, reading: dict[str, Any] | None = None
) -> list[tuple[Guarantee, Finding]]:
    """Check a release or a heat map: that the files are the ones that were written, and every guarantee in the manifest.

    The files are enough for most of it. With the `original` data, or the file or table that they are to be read from,
    the rest is checked too. They are read as the manifest says, with the options in `reading` in place of its own.
    """
    return verified(folder, original, reading)[0]


def verified(
    folder: Path, original: Any = None, reading: dict[str, Any] | None = None
) -> tuple[list[tuple[Guarantee, Finding]], str]:
    """As `verify`, with what k counts."""
    if is_heat_map(Path(folder)):
        options = TrajectoryReading.checked(reading or {})
        points = None if original is None else read(Trajectories, original, options, ReadNotes())
        sectors, counts = verify_heat_map(Path(folder), points)
        return list(sectors), counts
    manifest, written = open_release(Path(folder))
    guarantees = stated_guarantees(manifest)
    if original is None:
        return check(written, guarantees), manifest["k_counts"]
    takes = Flows if written.is_flows else Trajectories
    return check(written, guarantees, _read_again(manifest, takes, original, reading or {})), manifest["k_counts"]


def open_release(folder: Path, *, but: str | None = None) -> tuple[dict[str, Any], WrittenRelease]:
    """The manifest and the files of a release; files that are not as they were written are refused, except that of a role."""
    recover(folder)
    manifest = read_manifest(folder)
    stated_guarantees(manifest)  # one that means nothing here is refused at the door, and one that is missing
    written = read_release(folder, {role: entry["name"] for role, entry in manifest["files"].items()})
    looked = [entry for role, entry in manifest["files"].items() if role != but]
    gone = [e["name"] for e in looked if not (folder / e["name"]).exists()]
    if gone:
        raise InputError(folder, f"the release lacks {', '.join(gone)}; it cannot be verified.")
    changed = [e["name"] for e in looked if file_hash(folder / e["name"]) != e["sha256"]]
    if changed:
        raise GuaranteeViolatedError(
            folder, f"{', '.join(changed)} changed since the release was made; do not publish it."
        )
    return manifest, written


def sound_release(folder: Path, *, but: str | None = None) -> tuple[dict[str, Any], WrittenRelease]:
    """The same, for whoever shows what is in the files: they must be of the form that every release has."""
    manifest, written = open_release(folder, but=but)
    validate_release_tables(written)
    return manifest, written


def add_report(folder: Path, written: WrittenRelease, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the report of a release into its folder; returns the manifest with it."""
    from crowdveil.report.html import REPORT_FILE, public_report

    (folder / REPORT_FILE).write_text(public_report(written, manifest), encoding="utf-8", newline="\n")
    return with_file(manifest, "report", folder / REPORT_FILE)


def report_again(folder: Path) -> Path:
    """Write the report of a release anew, or for the first time, and enter it in the manifest.

    At every moment the manifest speaks of no report, or of the one that is there.
    """
    from crowdveil.report.html import REPORT_FILE, public_report

    manifest, written = sound_release(folder, but="report")
    plain = manifest | {"files": {role: entry for role, entry in manifest["files"].items() if role != "report"}}
    text = public_report(written, plain)
    if "report" in manifest["files"]:
        write_manifest(folder, plain)
    with new_file(folder / REPORT_FILE, overwrite=True) as file:
        file.write_text(text, encoding="utf-8", newline="\n")
    write_manifest(folder, with_file(plain, "report", folder / REPORT_FILE))
    return folder / REPORT_FILE


def check_private(target: Path, folder: Path, *, overwrite: bool) -> None:
    """Raise unless a private report can be put at `target`; never in the release, which is published as a whole."""
    inside, outside = Path(target).resolve(), Path(folder).resolve()
    if inside.is_relative_to(outside):
        raise ParameterError(
            Option("private_report"),
            f"wanted a file outside the release, but got one in {folder}, which is to be published; name another.",
        )
    if inside.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(
            Option("private_report"), f"wanted a name that ends in .html, but got {Path(target).name}."
        )
    check_file(inside, overwrite=overwrite)


def write_private(
    target: Path, written: WrittenRelease, manifest: dict[str, Any], data: Flows | Trajectories, release: Release | None,
    *, overwrite: bool,
) -> None:  # fmt: skip
    """Write the report that shows the original too, for its owner's eyes alone."""
    from crowdveil.report.html import private_report
    from crowdveil.report.private_context import private_context_of

    with new_file(Path(target), overwrite=overwrite) as file:
        file.touch(mode=0o600)
        file.write_text(
            private_report(written, manifest, private_context_of(data, release)), encoding="utf-8", newline="\n"
        )


def report_of_original(
    folder: Path, target: Path, original: Any, reading: dict[str, Any], *, overwrite: bool = False
) -> None:  # fmt: skip
    """Write the private report of a release that lies there, with the original read as its manifest says."""
    check_private(target, folder, overwrite=overwrite)
    manifest, written = sound_release(folder, but="report")
    data = _read_again(manifest, Flows if written.is_flows else Trajectories, original, reading)
    release = flow_release_from(written, data) if isinstance(data, Flows) else None
    write_private(target, written, manifest, data, release, overwrite=overwrite)


def refuse_other_original(manifest: dict[str, Any], written: WrittenRelease, original: Flows) -> None:
    """Raise if a release of flows was not made from these: the manifest names no file, so that content alone decides."""
    volumes = [e for e in manifest["guarantees"] if e["name"] in (TrueVolumes.name, BoundedVolumes.name)]
    findings = check(written, tuple(guarantee_from_manifest(entry) for entry in volumes), original) if volumes else []
    if any(finding.violated for _, finding in findings):
        raise InputError(
            "original",
            "the release was made from other data, for its volumes differ; give the data that it was made from.",
        )


def _read_again(manifest: dict[str, Any], takes: type, original: Any, given: dict[str, Any]) -> Flows | Trajectories:
    """The original flows or trajectories, read as they were when the release was made."""
    options = READINGS[takes].checked({} if isinstance(original, takes) else reading_again(manifest, given))
    data: Flows | Trajectories = read(takes, original, options, ReadNotes(), members=manifest["k_counts"] == "people")
    refuse_other_counts(manifest, data.counts)
    return data

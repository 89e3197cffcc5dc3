"""The sequence of stages of every run, from the input to a verified release; where a stage is done is a `Backend`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.attacks.risk import require_withstood
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import Name, Option, ParameterError, Text
from crowdveil.guarantees.base import require_checked
from crowdveil.io.notes import ReadNotes
from crowdveil.measures.rounding import round_down_to_groups
from crowdveil.methods.base import Facts
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.reading import READINGS
from crowdveil.registry import find_method
from crowdveil.run.flow_partitions import LocalPartitions, runs_in_partitions
from crowdveil.run.local import LocalBackend
from crowdveil.run.manifest import build_manifest
from crowdveil.run.options import AuditOptions, RunOptions, refuse_table_without_spark
from crowdveil.run.result import Result
from crowdveil.run.stages import Backend, RunSpec
from crowdveil.run.verification import (
    add_run_warnings,
    check_zones_given,
    structural_guarantees,
    what_k_counts,
    without_exact_figures,
)

OTHER_FILES = ("steps", "areas", "crosswalk", "manifest", "report")
"""Names of the files of a release beside its data."""


@dataclass(frozen=True)
class Request:
    """One run: which method, on which data, with which parameters, to which folder. Checked before anything is read.

    Attributes
    ----------
    method
        Name or alias of the method.
    data
        A path, a table, or a model; on Spark a path as Spark takes it, or a data frame of its session.
    output
        The folder that the release is written to.
    parameters, reading, options
        The method's parameters, the input options, and the options of the run (`RunOptions`), by name.
    data_name
        Name of the data file, in place of the usual one.
    spark
        A session of Spark to run on; without one, `options["engine"]` decides.
    """

    method: str
    data: Any
    output: Path | str
    parameters: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    data_name: str | None = None
    spark: Any = None


def run(request: Request, progress: Progress = no_progress, stage: Stage = lambda name: None) -> Result:
    """Check a request, and run its stages on the backend that it names."""
    method = find_method(request.method)
    spec = RunSpec(
        method,
        method.params.checked(request.parameters),
        READINGS[method.takes].checked(request.reading),
        RunOptions.checked(request.options),
        request.data,
        request.output,
        request.data_name,
    )
    if spec.data_name is not None and Path(spec.data_name).stem in OTHER_FILES:
        raise ParameterError(Name(spec.data_name), "a release has another file of this name. Choose another name.")
    if spec.options.exports and method.takes is Trajectories:
        raise ParameterError(Option("export"), f"{method.name} is for trajectories, and it is for flows. Leave it out.")
    if spec.options.pairing is not None and method.takes is not Trajectories:
        raise ParameterError(Option("pairing"), f"{method.name} is for flows, which have none. Leave it out.")
    if getattr(spec.reading, "min_tiles_of", None) is not None and "min_tiles" not in method.params.model_fields:
        raise ParameterError(Option("min_tiles_of"), f"{method.name} has no smallest areas. Leave it out.")
    check_zones_given(method, spec.data, getattr(spec.reading, "zones", None))
    for option in AuditOptions.model_fields:
        if getattr(spec.options, option) and spec.options.ledger is None:
            raise ParameterError(
                Option(option), Text("it is for an audit. Name a ledger with {ledger}, or leave it out.")
            )
    with _backend(spec, request.spark, stage) as backend:
        return run_stages(spec, backend, progress, stage)


def _backend(spec: RunSpec, session: Any, stage: Stage) -> AbstractContextManager[Backend]:
    if spec.options.engine == "local" and session is None:
        refuse_table_without_spark(spec.options.table)
        return LocalPartitions(spec) if runs_in_partitions(spec) else LocalBackend(spec)
    from crowdveil.run.spark import spark_backend

    return spark_backend(spec, session, stage)


def run_stages(spec: RunSpec, backend: Backend, progress: Progress, stage: Stage) -> Result:
    """Run the stages of a run in their order: nothing is published that was not read back from its files and verified."""
    method, params, options = spec.method, spec.params, spec.options
    notes = ReadNotes()
    backend.check_target()

    stage("reading")
    data = backend.read(notes, progress)
    backend.check_k()
    counts = what_k_counts(data, params)

    stage("anonymizing")
    structural = structural_guarantees(method, params, repeated=options.keep_unchanged)
    guarantees = (*method.guarantees(params, Facts.of(data)), *structural)
    solution = backend.solve(guarantees, progress)
    add_run_warnings(method, data, params, solution.cost, notes, seed_given=spec.seed_given)
    for sentence in solution.notes:
        notes.add(sentence)

    stage("writing")
    files = backend.write(progress)

    stage("verifying")
    checked = backend.verify(guarantees, progress)
    require_checked(checked)

    risks = None
    if options.attack:
        stage("attacking")
        risks = backend.attack(guarantees, notes, progress)
        require_withstood(risks or [])

    audited = None
    if options.ledger is not None:
        stage("auditing")
        audited = backend.audit(counts)

    risk = None if risks is None else [risk.as_trial() for risk in risks]
    people = backend.count_people()
    about = None if people is None else round_down_to_groups(people, spec.k) or None
    manifest = build_manifest(
        spec, solution, checked, files, notes, counts=counts, risk=risk, people_about=about,
        step_seconds=data.step_s if isinstance(data, Flows) else None,
        time_zone=data.tz if isinstance(data, Flows) else spec.reading.tz,
    )  # fmt: skip
    if audited is not None:
        manifest = manifest.model_copy(update={"ledger": audited.statement})
    if method.row_semantics == "noisy":
        manifest = without_exact_figures(manifest)

    if options.report:
        stage("reporting")
        manifest = backend.report(manifest, notes)

    folder = backend.publish(manifest)
    risk_lines = [r.line() for r in risks or [] if r.before is not None and method.takes is Trajectories]
    audit_lines = [] if audited is None else [f"ledger: {line}" for line in audited.lines]
    return Result(folder, manifest, solution.release, notes, [*solution.cost_lines, *risk_lines, *audit_lines])

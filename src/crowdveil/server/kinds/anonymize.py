"""Anonymize: the result is a verified release."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from crowdveil.errors import Option, ParameterError
from crowdveil.ledger.candidates import check_auditable
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline
from crowdveil.run.options import AuditOptions, ReleaseOptions
from crowdveil.server.kinds.base import JobOutput, Kind, SourceOptions, Task, values_of


class JobOptions(ReleaseOptions):
    """Options of a run on the service, which chooses the places of files."""

    data_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)$")
    """Name of the data file in the release. [a name after the kind of data]"""


class FlowAuditOptions(AuditOptions, SourceOptions):
    """Options of a run of flows that is audited against the ledger of its source."""


def _run(task: Task) -> JobOutput:
    method = find_method(task.name)
    options = values_of(task.values, ReleaseOptions, AuditOptions) | {"ledger": task.ledger}
    request = pipeline.Request(
        method.name, task.files["data"], task.out, values_of(task.values, method.params),
        values_of(task.reading, READINGS[method.takes]), options, task.values.get("data_name"),
    )  # fmt: skip
    result = pipeline.run(request, task.progress, task.stage)
    return JobOutput(result.notes.sentences(), result.lines())


def _models(name: str) -> tuple[type[Params], ...]:
    method = find_method(name)
    audited = (FlowAuditOptions,) if method.takes is Flows else ()
    return (method.params, READINGS[method.takes], JobOptions, *audited)


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise where a release could not be audited, before anything is read."""
    source = values.get("source")
    if source is not None:
        check_auditable(name, "source")
    for option in AuditOptions.model_fields:
        if values.get(option) and source is None:
            raise ParameterError(
                Option(option), f"it is for an audit, and the token has no {Option('source')}; leave it out."
            )


def _about(name: str) -> dict[str, Any]:
    method = find_method(name)
    return {
        "summary": method.summary,
        "status": method.status,
        "takes": "flows" if method.takes is Flows else "trajectories",
    }


KIND = Kind(
    verb="anonymize",
    collection="methods",
    summary="Anonymize trips, flows or trajectories; the result is a verified release.",
    names=lambda: list(all_methods()),
    find=lambda name: find_method(name).name,
    models=_models,
    run=_run,
    about=_about,
    check=_check,
    packed=True,
    secret=("seed",),
    example={"k": 10, "zone_id": "id", "step": "1h", "tz": "Europe/Paris"},
)

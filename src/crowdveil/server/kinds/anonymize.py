"""Anonymize: the result is a verified release."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from crowdveil.model.flows import Flows
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline
from crowdveil.run.options import ReleaseOptions
from crowdveil.server.kinds.base import JobRequest, Kind, Task, values_of
from crowdveil.server.queue.files import FLOWS

PRIVATE = "private.html"
"""The confidential report that shows the original, in the folder of a run, outside the result."""


class JobOptions(ReleaseOptions):
    """Options of a run on the service, which chooses the places of files."""

    data_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)$")
    """Name of the data file in the release, where the usual one is not wanted."""
    before_after: bool = False
    """Keep a confidential report that shows the original and the release, as long as the result and never in it."""


def _run(task: Task) -> JobRequest:
    method, job = find_method(task.name), JobOptions.checked(values_of(task.values, JobOptions))
    options = values_of(task.values, ReleaseOptions)
    if job.before_after:
        options["private_report"] = task.out.parent / PRIVATE
    request = pipeline.Request(
        method.name, task.files["data"], task.out, values_of(task.values, method.params),
        values_of(task.values | task.files, READINGS[method.takes]), options, job.data_name,
    )  # fmt: skip
    result = pipeline.run(request, task.progress, task.stage)
    return JobRequest(result.notes.sentences(), result.lines())


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
    models=lambda name: (find_method(name).params, READINGS[find_method(name).takes], JobOptions),
    required_files=lambda name: {"data": FLOWS},
    optional_files=lambda name: {},
    run=_run,
    about=_about,
    packed=True,
    secret=("seed",),
    example={"k": 10, "zone_id": "id", "step": "1h", "tz": "Europe/Paris"},
)

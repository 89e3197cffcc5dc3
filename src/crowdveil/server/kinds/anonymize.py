"""Anonymize: the result is a verified release."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline
from crowdveil.server.kinds.base import JobRequest, Kind, Task, values_of
from crowdveil.server.queue.files import FLOWS

PRIVATE = "private.html"
"""The report that shows the original, in the folder of a run next to the result."""


class RunOptions(Params):
    """Parameters of every run of a method."""

    seed: int | None = Field(None, ge=0, le=2**63 - 1)
    """Makes the run reproducible. Keep it secret: who knows it can repeat every random choice. Fresh numbers if not given."""
    format: Literal["parquet", "csv"] = "parquet"
    """Form of the tables."""
    data_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(csv|parquet)$")
    """Name of the data file in the release, where the usual one is not wanted."""
    attack: bool = True
    """Attack the release before it is published; who beats a proven guarantee stops the run."""
    report: bool = True
    """Write report.html into the release."""
    before_after: bool = False
    """Keep a confidential report that compares the original with the release, as long as the result and never in it."""


def _run(task: Task) -> JobRequest:
    method, run = find_method(task.name), RunOptions.checked(values_of(task.values, RunOptions))
    reading = READINGS[method.takes]
    result = pipeline.run(
        pipeline.Request(
            method.name, task.files["data"], task.out, values_of(task.values, method.params),
            values_of(task.values | task.files, reading), seed=run.seed, table_format=run.format, data_name=run.data_name,
            attack=run.attack, report=run.report, private_report=task.out.parent / PRIVATE if run.before_after else None,
        ),
        task.progress, task.stage,
    )  # fmt: skip
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
    models=lambda name: (find_method(name).params, READINGS[find_method(name).takes], RunOptions),
    required_files=lambda name: {"data": FLOWS},
    optional_files=lambda name: {},
    run=_run,
    about=_about,
    packed=True,
    secret=("seed",),
    example={"k": 10, "zone_id": "id", "step": "1h", "tz": "Europe/Paris"},
)

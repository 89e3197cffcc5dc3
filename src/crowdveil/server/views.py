"""Models of responses; the API description and the types of the page are generated from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

JOB_ID = "30c2ad9df0f9470abfd8198b4cb4f86a"
JobState = Literal["queued", "running", "done", "failed", "cancelled", "expired"]
JobKind = Annotated[
    str,
    Field(json_schema_extra={"enum": ["anonymize", "measure", "analyze", "attack", "filter"]}),
]
"""Any text, since a row may be of another version, which must not break a list."""


class View(BaseModel):
    """A response; only declared fields are sent."""

    # All fields are always sent, so all are required, those with a default too.
    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class ProgressView(View):
    """The progress of a job."""

    stage: str | None
    done: int
    total: int


class ReferenceView(View):
    """A reference to a parameter, with its value where one is meant, or to a file, column or method."""

    kind: Literal["option", "name"]
    name: str
    value: str
    subject: bool = Field(description='Whether the sentence is about it, as in "k: Expected …".')


class ErrorView(View):
    """The reason why a job failed."""

    code: str = Field(description="The kind of error, for programs.")
    subject: ReferenceView | None = Field(description="The parameter or file that is wrong.")
    message: str = Field(description="One sentence, which names fields as the API does.")
    parts: list[str | ReferenceView] = Field(
        description="The sentence with its references apart, for forms with labels."
    )


class ErrorAnswer(View):
    """The answer to a refused request."""

    error: ErrorView


class ResultView(View):
    """The file that a job made."""

    name: str
    bytes: int
    sha256: str
    media_type: str


class SummaryView(View):
    """The output of the job, as the command line prints it: notes, and lines."""

    model_config = ConfigDict(extra="ignore")

    notes: list[str]
    lines: list[str]


class ReviewView(View):
    """The review of a result."""

    state: Literal["awaiting", "approved", "rejected"]
    by: str | None = Field(description="The name of the reviewer's token.")
    at: str | None
    comment: str | None


class JobView(View):
    """A job as its owner sees it."""

    model_config = ConfigDict(
        title="Job",
        json_schema_extra={
            "example": {
                "id": JOB_ID, "kind": "anonymize", "name": "joint", "state": "running", "created": 1794749303.5,
                "created_at": "2026-11-15T13:28:23.500+00:00", "started_at": "2026-11-15T13:28:23.700+00:00", "ended_at": None,
                "expires_at": None, "seconds": None, "runs": 1, "progress": {"stage": "anonymizing", "done": 12, "total": 48},
                "files": {"data": "trips.parquet", "zones": "zones.geojson"}, "parameters": {"k": 10}, "error": None,
                "result": None, "summary": None, "review": None,
            }
        },
    )  # fmt: skip

    id: str = Field(pattern="^[0-9a-f]{32}$")
    kind: JobKind
    name: str = Field(description="The method, measure, analysis or attack.")
    state: JobState
    created: float = Field(description="Seconds since 1970.")
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None = Field(description="The time at which the result is removed.")
    seconds: float | None = Field(description="The duration of the run.")
    runs: int = Field(description="The number of times it was started: more than once if a worker died.")
    progress: ProgressView
    files: dict[str, str] = Field(description="The name of each uploaded file, by field.")
    parameters: dict[str, Any]
    error: ErrorView | None
    result: ResultView | None
    summary: SummaryView | None
    review: ReviewView | None = Field(description="The state of the review; null where none is asked for.")


class UploadView(View):
    """An uploaded file."""

    id: str = Field(pattern="^[0-9a-f]{32}$")
    name: str
    bytes: int
    keep_seconds: float = Field(description="Time after its last use at which it is removed.")


class PreviewView(View):
    """The preview of a file."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    columns: list[dict[str, str]] = Field(description="Name and type of each column.")
    rows: list[list[str | None]] = Field(description="The first rows, for their owner's eyes.")
    looks_like: str | None = Field(description="flows or trajectories, from the names of columns.")
    takes: str = Field(description="The kind of data that it was read as.")
    roles: dict[str, str] = Field(description="The column of each role.")
    times: list[dict[str, str | None]] = Field(
        description="The first times as text, and as they are read; null if that fails."
    )
    near: list[str] = Field(description="Time zones near the data.")
    counts: dict[str, int] = Field(description="Numbers of trips, zones, points and so on.")
    crowd_of: str = Field("", description="What k counts: people, trips or trajectories.")
    notes: list[ErrorView] = Field(description="What was guessed.")
    problems: list[dict[str, str | int]] = Field(description="Problems of rows, with their number.")
    error: ErrorView | None = Field(description="The error that a job would fail with.")
    unfit: ErrorView | None = Field(
        description="The error that the method would fail with, as far as the data show it."
    )
    part: bool = Field(description="Whether only the beginning was read.")


class FileView(View):
    """A file of a result."""

    name: str
    bytes: int


class FileList(View):
    """The files of a result."""

    files: list[FileView]


class JobList(View):
    """Jobs, newest first."""

    jobs: list[JobView]


def iso_time(seconds: float | None) -> str | None:
    """Return a time in seconds since 1970 as ISO 8601 in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

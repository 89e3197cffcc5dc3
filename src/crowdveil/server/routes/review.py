"""Reviews: with `--four-eyes` a result is given out only after another token approved its report. And the tokens, for admins."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import ParameterError
from crowdveil.params import Params
from crowdveil.server import openapi
from crowdveil.server.access import Admin, OpenService, Reviewer
from crowdveil.server.queue.store import QueuedJob
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.jobs import JobId, awaits, no_job, readable, report_of, shown
from crowdveil.server.routes.uploads import declared_size, parsed
from crowdveil.server.service import Service
from crowdveil.server.tokens import Caller
from crowdveil.server.views import iso_time

BODY_MOST = 1 << 15
"""Bytes of a decision."""
TokenName = Annotated[
    str, Path(max_length=100, pattern=r"^[^\x00]*$", description="The name of a token.", examples=["anna"])
]


class Decision(Params):
    """The decision of a reviewer."""

    decision: Literal["approve", "reject"]
    """Whether the result may be given out."""
    comment: str = Field("", max_length=2000)
    """Message to the submitter."""


_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {"schema": Decision.model_json_schema(), "example": {"decision": "approve", "comment": ""}}
    },
}


def add_review(app: FastAPI) -> None:
    """Add the routes."""
    _add_decisions(app)
    _add_tokens(app)


def _add_decisions(app: FastAPI) -> None:
    @app.get("/reviews", tags=["reviews"], summary="Results of others that await review", operation_id="list_reviews",
             responses=openapi.errors())  # fmt: skip
    def reviews(service: OpenService, who: Reviewer) -> dict[str, Any]:
        waiting = service.store.awaiting(who.id, all_done=service.settings.four_eyes)
        return {"reviews": readable(waiting, lambda job: _asked(service, job))}

    @app.get("/reviews/{job_id}/report", tags=["reviews"], summary="The report that is to be approved",
             operation_id="get_review_report", responses=openapi.errors(404, 410) | openapi.file_answer())  # fmt: skip
    def report(service: OpenService, who: Reviewer, job_id: JobId) -> Response:
        return report_of(service, _reviewable(service, who, job_id), who)

    @app.get("/reviews/{job_id}", tags=["reviews"], summary="What is to be approved", operation_id="get_review",
             responses=openapi.errors(404))  # fmt: skip
    def one(service: OpenService, who: Reviewer, job_id: JobId) -> dict[str, Any]:
        return _asked(service, _reviewable(service, who, job_id))

    @app.post("/reviews/{job_id}", tags=["reviews"], summary="Approve or reject a result", operation_id="decide",
              openapi_extra={"requestBody": _BODY}, responses=openapi.errors(404, 409, 411, 413))  # fmt: skip
    async def decide(request: Request, service: OpenService, who: Reviewer, job_id: JobId) -> dict[str, Any]:
        declared_size(request, BODY_MOST)
        body = (await request.body()).decode("utf-8", "replace")
        decision: Decision = Decision.checked(parsed(body, "decision"))
        return await run_in_threadpool(_decided, service, who, job_id, decision)


def _decided(service: Service, who: Caller, job_id: str, decision: Decision) -> dict[str, Any]:
    job = _reviewable(service, who, job_id)
    approved = decision.decision == "approve"
    if not service.store.decide(job.id, who.who, who.id, approved=approved, comment=decision.comment):
        raise ApiError(409, "decided", "the result was decided on before, or is gone.")
    return _asked(service, service.store.get(job.id) or job)


def _reviewable(service: Service, who: Caller, job: str) -> QueuedJob:
    """Return a finished job that needs or had a review and is not the reviewer's own."""
    found = service.store.get(job)
    if found is None or found.state != "done" or not (found.review or awaits(service, found)):
        raise no_job()
    if found.owner == who.id:
        raise ApiError(403, "own_job", "a result must be reviewed by another token than the one that asked for it.")
    return found


def _asked(service: Service, job: QueuedJob) -> dict[str, Any]:
    """Return a job as a reviewer sees it: without parameters, which may hold a secret."""
    seen = shown(service, job).model_dump()
    kept = ["id", "kind", "name", "ended_at", "expires_at", "result", "review"]
    if job.kind != "anonymize":
        kept.append("summary")
    return {name: seen[name] for name in kept} | {"submitter": service.tokens.name_of(job.owner)}


def _add_tokens(app: FastAPI) -> None:
    @app.get("/tokens", tags=["tokens"], summary="All tokens, without their secrets", operation_id="list_tokens",
             responses=openapi.errors())  # fmt: skip
    def tokens(service: OpenService, who: Admin) -> dict[str, Any]:
        times = ("created", "expires", "last_used", "revoked")
        return {
            "tokens": [
                {"name": row["name"], "scopes": row["scopes"].split(), **{f"{t}_at": iso_time(row[t]) for t in times}}
                for row in service.tokens.all()
            ]
        }

    @app.delete("/tokens/{name}", tags=["tokens"], summary="Revoke a token", operation_id="revoke_token",
                responses=openapi.errors(404))  # fmt: skip
    def revoke(service: OpenService, who: Admin, name: TokenName) -> dict[str, Any]:
        try:
            service.tokens.revoke(name, who.who)
        except ParameterError as error:
            raise ApiError(404, "not_found", error.text) from None
        return {"name": name, "revoked": True}

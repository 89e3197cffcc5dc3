"""Reviews: with `--four-eyes`, another token must approve the report before a result can be fetched. And tokens, for admins."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import ParameterError
from crowdveil.params import Params
from crowdveil.server.access import Admin, OpenService, Reviewer
from crowdveil.server.queue.store import QueuedJob
from crowdveil.server.responses import ApiError
from crowdveil.server.routes.jobs import JobId, as_file, awaits_review, job_view, no_job, readable, report_of
from crowdveil.server.routes.uploads import declared_size, parsed
from crowdveil.server.service import Service
from crowdveil.server.tokens import Caller
from crowdveil.server.views import iso_time

router = APIRouter()
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


_DECISION = {"schema": Decision.model_json_schema(), "example": {"decision": "approve", "comment": ""}}
_BODY = {"requestBody": {"required": True, "content": {"application/json": _DECISION}}}


@router.get("/reviews", tags=["reviews"], summary="Results of others that await review")
def list_reviews(service: OpenService, who: Reviewer) -> dict[str, Any]:
    """Return the results that the caller may review."""
    waiting = service.store.awaiting(who.id, all_done=service.settings.four_eyes)
    return {"reviews": readable(waiting, lambda job: _review_view(service, job))}


@router.get("/reviews/{job_id}/report", tags=["reviews"], summary="The report to review", **as_file)
def get_review_report(service: OpenService, who: Reviewer, job_id: JobId) -> Response:
    """Send the report of a result that awaits review."""
    return report_of(service, _reviewable(service, who, job_id), who)


@router.get("/reviews/{job_id}", tags=["reviews"], summary="A result to review")
def get_review(service: OpenService, who: Reviewer, job_id: JobId) -> dict[str, Any]:
    """Return a result that awaits review."""
    return _review_view(service, _reviewable(service, who, job_id))


@router.post("/reviews/{job_id}", tags=["reviews"], summary="Approve or reject a result", openapi_extra=_BODY)
async def decide(request: Request, service: OpenService, who: Reviewer, job_id: JobId) -> dict[str, Any]:
    """Record a decision. The body is read here, after the token and its size were checked."""
    declared_size(request, BODY_MOST)
    body = (await request.body()).decode("utf-8", "replace")
    decision: Decision = Decision.checked(parsed(body, "decision"))

    def decided() -> dict[str, Any]:
        job, approved = _reviewable(service, who, job_id), decision.decision == "approve"
        if not service.store.decide(job.id, who.who, who.id, approved=approved, comment=decision.comment):
            raise ApiError(409, "decided", "the result was already reviewed or removed.")
        return _review_view(service, service.store.get(job.id) or job)

    return await run_in_threadpool(decided)


def _reviewable(service: Service, who: Caller, job: str) -> QueuedJob:
    """Return a finished job that needs or had a review and is not the reviewer's own."""
    result = service.store.get(job)
    if result is None or result.state != "done" or not (result.review or awaits_review(service, result)):
        raise no_job()
    if result.owner == who.id:
        raise ApiError(403, "own_job", "another token than the submitter's must review a result.")
    return result


def _review_view(service: Service, job: QueuedJob) -> dict[str, Any]:
    """Return a job as a reviewer sees it: without parameters, which may hold a secret."""
    view = job_view(service, job).model_dump()
    kept = ["id", "kind", "name", "ended_at", "expires_at", "result", "review"]
    if job.kind != "anonymize":
        kept.append("summary")
    return {name: view[name] for name in kept} | {"submitter": service.tokens.name_of(job.owner)}


@router.get("/tokens", tags=["tokens"], summary="All tokens, without their secrets")
def list_tokens(service: OpenService, who: Admin) -> dict[str, Any]:
    """Return all tokens."""
    times = ("created", "expires", "last_used", "revoked")
    return {
        "tokens": [
            {"name": row["name"], "scopes": row["scopes"].split(), **{f"{t}_at": iso_time(row[t]) for t in times}}
            for row in service.tokens.all()
        ]
    }


@router.delete("/tokens/{name}", tags=["tokens"], summary="Revoke a token")
def revoke_token(service: OpenService, who: Admin, name: TokenName) -> dict[str, Any]:
    """Revoke a token."""
    try:
        service.tokens.revoke(name, who.who)
    except ParameterError as error:
        raise ApiError(404, "not_found", error.text) from None
    return {"name": name, "revoked": True}

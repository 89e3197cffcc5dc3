"""Errors as the API sends them: {"error": {"code": …, "subject": …, "message": one sentence, "parts": …}}."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from crowdveil.errors import CrowdveilError, Option, Text, as_json
from crowdveil.params import expected
from crowdveil.server.queue.database import DatabaseUnavailableError

_WORDS = {
    400: ("bad_request", "the request cannot be understood."),
    404: ("not_found", "there is nothing at this address."),
    405: ("method_not_allowed", "this address does not allow this HTTP method."),
}


class ApiError(CrowdveilError):
    """An error that is the answer to a request."""

    def __init__(self, status: int, code: str, *message: object, **headers: str) -> None:
        super().__init__(*message)
        self.status, self.code, self.headers = status, code, headers


def answer(status: int, code: str, text: str | Text, headers: Any = None, **more: Any) -> JSONResponse:
    """Return an error as a response."""
    return JSONResponse({"error": as_json(code, text), **more}, status, headers)


def add_error_answers(app: FastAPI) -> None:
    """Answer all errors of an app in one format."""

    def answered(request: Request, status: int, code: str, text: str | Text, headers: Any = None) -> JSONResponse:
        request.scope["crowdveil.code"] = code  # for the log and the metrics
        return answer(status, code, text, headers)

    @app.exception_handler(ApiError)
    async def refused(request: Request, error: ApiError) -> JSONResponse:
        headers = {n.replace("_", "-"): v for n, v in error.headers.items()}
        return answered(request, error.status, error.code, error.text, headers)

    @app.exception_handler(DatabaseUnavailableError)
    async def away(request: Request, error: DatabaseUnavailableError) -> JSONResponse:
        return answered(request, 503, "away", error.text, {"Retry-After": "5"})

    @app.exception_handler(CrowdveilError)
    async def ours(request: Request, error: CrowdveilError) -> JSONResponse:
        return answered(request, 422, error.code, error.text)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        subject = Option(str(first["loc"][-1]) if first["loc"] else "request")
        wrong = ApiError(422, "bad_request", subject, f"Expected {expected(first)[0]}.")
        return await refused(request, wrong)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        code, message = _WORDS.get(error.status_code, ("refused", "the request was refused."))
        return answered(request, error.status_code, code, message, error.headers)

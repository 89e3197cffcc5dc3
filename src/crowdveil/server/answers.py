"""One shape for everything that goes wrong: {"error": {"code": …, "message": one sentence}}."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from crowdveil.errors import CrowdveilError
from crowdveil.params import reason_in
from crowdveil.server.queue.database import DatabaseUnavailableError
from crowdveil.server.sentences import without_paths

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "A word for programs."},
                "message": {"type": "string", "description": "One sentence for people, as on the command line."},
            },
        }
    },
    "example": {"error": {"code": "bad_parameter", "message": "k: wanted greater than or equal to 2, but got 1."}},
}

_WORDS = {
    400: ("bad_request", "the request cannot be understood."),
    404: ("not_found", "there is nothing at this address."),
    405: ("method_not_allowed", "this address does not take this kind of request."),
}


class ApiError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


def fault(error: BaseException) -> JSONResponse:
    """An internal error as it is sent: nothing of its message, which may hold data."""
    return answer(500, "fault", f"This is a fault of ours ({type(error).__name__}); tell whoever runs the server.")


def answer(status: int, code: str, message: str, headers: Any = None, **more: Any) -> JSONResponse:
    """An error as it is sent."""
    return JSONResponse({"error": {"code": code, "message": message}, **more}, status, headers)


def add_error_answers(app: FastAPI) -> None:
    """Have every error of an app take the one shape."""

    def told(request: Request, status: int, code: str, message: str, headers: Any = None) -> JSONResponse:
        request.scope["crowdveil.code"] = code  # for the log and the figures
        return answer(status, code, message, headers)

    @app.exception_handler(ApiError)
    async def refused(request: Request, error: ApiError) -> JSONResponse:
        headers = {n.replace("_", "-"): v for n, v in error.headers.items()}
        return told(request, error.status, error.code, error.message, headers)

    @app.exception_handler(DatabaseUnavailableError)
    async def away(request: Request, error: DatabaseUnavailableError) -> JSONResponse:
        return told(request, 503, "away", str(error), {"Retry-After": "5"})

    @app.exception_handler(CrowdveilError)
    async def ours(request: Request, error: CrowdveilError) -> JSONResponse:
        code = "bad_parameter" if type(error).__name__ == "ParameterError" else "bad_input"
        return told(request, 422, code, without_paths(str(error)))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        name = str(first["loc"][-1]) if first["loc"] else "request"
        reason = reason_in(str(first["msg"]))
        return told(request, 422, "bad_request", f"{name}: wanted {reason[:1].lower()}{reason[1:]}.")

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        code, message = _WORDS.get(error.status_code, ("refused", "the request was refused."))
        headers = _allow(request) if error.status_code == 405 else error.headers
        return told(request, error.status_code, code, message, headers)


def _allow(request: Request) -> dict[str, str]:
    """The kinds of request that an address takes; of several routes the framework tells those of the first alone."""
    there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {"Allow": ", ".join(sorted({method for route in there for method in route.methods}))}

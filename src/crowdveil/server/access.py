"""The caller of a request: a token, or this machine with --no-auth."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from crowdveil.errors import Text
from crowdveil.server.responses import ApiError
from crowdveil.server.service import Service
from crowdveil.server.tokens import Caller, ExpiredError

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HERE = ("localhost", "127.0.0.1", "::1")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(scheme_name="token", auto_error=False))]


def caller(request: Request, sent: Credentials) -> Caller:
    """Return the caller, or raise if access is denied."""
    service: Service = request.app.state.service
    if sent is None:
        if not service.settings.no_auth:
            raise _denied("Expected a token. Send it as Authorization: Bearer TOKEN, or set CROWDVEIL_TOKEN.")
        _check_local(request)
        return service.tokens.local()
    try:
        who = service.tokens.caller(sent.credentials.strip())
    except ExpiredError as error:
        raise _denied(error.text) from None
    if who is None:
        raise _denied("The token is unknown or revoked. Ask the operator of the server for one.")
    request.scope["crowdveil.caller"] = who.who
    return who


async def _service(request: Request) -> Service:  # async, so that FastAPI starts no thread for it
    service: Service = request.app.state.service
    return service


OpenService = Annotated[Service, Depends(_service)]
"""The service, as a dependency of routes."""
CurrentUser = Annotated[Caller, Depends(caller)]
"""The caller, as a dependency of routes."""


def _scoped(*scopes: str) -> Any:
    """Return a dependency that admits tokens with one of the scopes."""

    async def scoped(who: CurrentUser) -> Caller:  # async, so that FastAPI starts no thread for it
        if not who.scopes.intersection(scopes):
            needed = " or ".join(scopes)
            raise ApiError(
                403,
                "no_scope",
                f"The token lacks the scope {needed}. Ask the operator of the server for a token that has it.",
            )
        return who

    return Depends(scoped)


Sender = Annotated[Caller, _scoped("submit")]
"""A caller who may submit jobs, preview files and cancel jobs."""
Follower = Annotated[Caller, _scoped("submit", "read")]
"""A caller who may follow jobs."""
Reader = Annotated[Caller, _scoped("read")]
"""A caller who may fetch results."""
Reviewer = Annotated[Caller, _scoped("review")]
"""A caller who may review the results of others."""
Admin = Annotated[Caller, _scoped("admin")]
"""A caller who may list and revoke tokens."""
Collector = Annotated[Caller, _scoped("metrics")]
"""A caller who may read metrics."""


def _check_local(request: Request) -> None:
    """Reject requests from pages of other sites, including those that rebind a DNS name to this machine."""
    headers = request.headers
    host, origin = headers.get("host", ""), headers.get("origin")
    try:
        here = urlsplit(f"//{host}").hostname in _HERE and (origin is None or urlsplit(origin).netloc == host)
    except ValueError:  # an invalid IPv6 address
        here = False
    if not here or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise ApiError(403, "foreign", "The request comes from another site. Send it with a token.")


def _denied(sentence: str | Text) -> ApiError:
    return ApiError(401, "no_token", sentence, WWW_Authenticate="Bearer")

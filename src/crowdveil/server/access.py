"""Who asks: a token, or everybody on this machine where there are none."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request

from crowdveil.server.answers import Refused
from crowdveil.server.settings import Service
from crowdveil.server.tokens import Caller, ExpiredError

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HERE = ("localhost", "127.0.0.1", "::1", "[::1]")


def caller(request: Request) -> Caller:
    """Whoever asks; raises where nobody is to be let in."""
    service: Service = request.app.state.service
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if token:
        try:
            found = service.tokens.caller(token.strip()) if kind.lower() == "bearer" else None
        except ExpiredError as error:
            raise _who(str(error)) from None
        if found is None:
            raise _who("the token is not known, or it was revoked; ask whoever runs the server for one.")
        service.rates.check(found)
        return found
    if service.settings.is_local and not service.tokens.any():
        _really_here(request)
        local = service.tokens.local()
        service.rates.check(local)
        return local
    raise _who("wanted a token; send it as Authorization: Bearer TOKEN, or set CROWDVEIL_TOKEN.")


Who = Annotated[Caller, Depends(caller)]
"""Whoever asks, as routes take it."""


def _scoped(*scopes: str) -> Any:
    """Whoever asks, if their token has one of some scopes."""

    def scoped(who: Who) -> Caller:
        if not who.scopes.intersection(scopes):
            wanted = " or ".join(scopes)
            raise Refused(
                403, "no_scope", f"the token lacks the scope {wanted}; ask whoever runs the server for one that has it."
            )
        return who

    return Depends(scoped)


Sender = Annotated[Caller, _scoped("submit")]
"""Who sends jobs, looks at files, and ends jobs."""
Follower = Annotated[Caller, _scoped("submit", "read")]
"""Who follows jobs."""
Reader = Annotated[Caller, _scoped("read")]
"""Who fetches results."""
Reviewer = Annotated[Caller, _scoped("review")]
"""Who decides on results of others."""
Admin = Annotated[Caller, _scoped("admin")]
"""Who lists and revokes tokens."""


def _really_here(request: Request) -> None:
    """A page in the browser of somebody on this machine must not speak for them, by whatever name it calls us."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    origin = request.headers.get("origin")
    elsewhere = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    elsewhere = elsewhere or any(name in request.headers for name in ("forwarded", "x-forwarded-for", "x-real-ip"))
    if host not in _HERE or elsewhere or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise Refused(403, "elsewhere", "the request comes from another site or machine; make a token to allow that.")


def _who(sentence: str) -> Refused:
    return Refused(401, "no_token", sentence, WWW_Authenticate="Bearer")

"""Who asks: a token, or everybody on this machine where there are none."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from crowdveil.server.answers import Refused
from crowdveil.server.settings import Service
from crowdveil.server.tokens import Caller

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
        found = service.tokens.caller(token.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise _who("the token is not known, or it was revoked; ask whoever runs the server for one.")
        return found
    if service.settings.is_local and not service.tokens.any():
        _really_here(request)
        return service.tokens.local()
    raise _who("wanted a token; send it as Authorization: Bearer TOKEN, or set CROWDVEIL_TOKEN.")


Who = Annotated[Caller, Depends(caller)]
"""Whoever asks, as routes take it."""


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

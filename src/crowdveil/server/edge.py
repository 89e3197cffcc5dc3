"""Text that cannot be stored or sent is refused where it comes in, with a sentence that names the field."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from crowdveil.errors import Option
from crowdveil.server.answers import ApiError, answer
from crowdveil.server.texts import is_plain

_WRONG = "the text has a NUL character or half of a surrogate pair; remove it."
_SHOWN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_text(field: str, value: Any) -> None:
    """Raise where a text in a value, however deep, cannot be stored; the sentence names the innermost field."""
    if isinstance(value, str):
        if not is_plain(value):
            raise ApiError(422, "bad_text", Option(field), _WRONG)
    elif isinstance(value, dict):
        for name, inner in value.items():
            check_text(f"a name in {field}", name)
            check_text(name if _SHOWN.fullmatch(name) else field, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            check_text(field, inner)


def filename_of(given: bytes, field: str) -> str:
    """The name of an uploaded file; raises where it has text that cannot be stored."""
    try:
        name = given.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # another encoding: it gets a name of ours
        return given.decode("utf-8", "replace").replace("\0", "")
    check_text(f"{field} (the name of its file)", name)
    return name


class CheckAddress:
    """Refuses a request whose path, query or header has such text; plain ASGI, for all routes."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Answer, or pass on."""
        if scope["type"] == "http":
            try:
                _check_scope(scope)
            except ApiError as error:
                return await answer(error.status, error.code, error.text)(scope, receive, send)
        return await self.app(scope, receive, send)


def _check_scope(scope: Any) -> None:
    check_text("path", scope["path"])
    raw = scope.get("raw_path") or b""
    if b"%" in raw:
        check_text("path", _unquoted(raw.decode("latin-1")))
    query = scope.get("query_string", b"").decode("latin-1")
    for part in query.split("&") if "%" in query or "\0" in query else ():
        name, _, value = part.partition("=")
        name = _unquoted(name)
        check_text("a name in the query", name)
        check_text(name if _SHOWN.fullmatch(name) else "query", _unquoted(value))
    for header, content in scope["headers"]:
        check_text(header.decode("latin-1"), content.decode("latin-1"))


def _unquoted(text: str) -> str:
    """Text of an address; half of a surrogate pair, which servers replace, is kept to be seen."""
    try:
        return unquote_plus(text, errors="surrogatepass")
    except UnicodeDecodeError:
        return unquote_plus(text)

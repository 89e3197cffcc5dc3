"""Sources of data. Each has a ledger in the data directory; releases of a token with a source are audited against it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crowdveil.errors import Option, ParameterError
from crowdveil.ledger.store import MARKER, create_ledger
from crowdveil.server.tokens import Caller
from crowdveil.verbs.base import Verb

FOLDER = "ledgers"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_names(sources: Iterable[str]) -> None:
    """Raise unless the names of sources are plain words."""
    if not all(NAME.fullmatch(source) for source in sources):
        raise ParameterError(
            Option("source"), "Expected up to 64 lower-case letters, digits, _ and -, beginning with a letter or digit."
        )


def ledger_of(root: Path, source: str) -> Path:
    """Return the folder of the ledger of a source in a data directory."""
    check_names([source])
    return root / FOLDER / source


def has_ledger(root: Path, source: str) -> bool:
    """Return whether the ledger of a source exists."""
    return (ledger_of(root, source) / MARKER).is_file()


def make_ledgers(root: Path, sources: Iterable[str]) -> None:
    """Create missing ledgers. A job never replaces a lost ledger, since its audit would find nothing."""
    sources = list(sources)
    check_names(sources)
    (root / FOLDER).mkdir(mode=0o700, exist_ok=True)
    for source in sources:
        if not has_ledger(root, source):
            create_ledger(ledger_of(root, source))


def with_source(kind: Verb, name: str, values: dict[str, Any], who: Caller) -> dict[str, Any]:
    """Return the parameters of a job with its source: the given one, or the only one of the token."""
    if not any("source" in model.model_fields for model in kind.models(name)):
        return values
    source = values.get("source")
    if source is None:
        if len(who.sources) > 1:
            raise ParameterError(
                Option("source"), f"the token is for several sources of data. Name one of {', '.join(who.sources)}."
            )
        return values | {"source": who.sources[0]} if who.sources else values
    if source not in who.sources:
        raise ParameterError(
            Option("source"), "the token is not for this source. Ask the operator of the server for a token that is."
        )
    return values

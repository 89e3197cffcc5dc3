"""Tokens end, and their use is noted now and then; on both databases."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from crowdveil.errors import ParameterError
from crowdveil.server import tokens as module
from crowdveil.server.queue.schema import now, tokens
from crowdveil.server.queue.store import Store
from crowdveil.server.tokens import ExpiredError, Tokens, length_s


def row(known: Tokens, name: str) -> dict[str, Any]:
    (found,) = [row for row in known.all() if row["name"] == name]
    return found


def later(store: Store, **columns: float) -> None:
    """As if the clock had gone on: times of all tokens go back."""
    store.db.do(sa.update(tokens).values({name: tokens.c[name] - seconds for name, seconds in columns.items()}))


def test_a_token_ends(store: Store) -> None:
    known = Tokens(store)
    secret = known.create("anna", expires_s=3600.0)
    assert known.caller(secret) is not None
    later(store, expires=3601)
    with pytest.raises(ExpiredError, match="the token has expired"):
        known.caller(secret)
    assert known.any()  # nobody comes in without one, all the same


def test_the_last_use_is_noted_at_most_once_a_minute(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Tokens(store)
    secret = known.create("anna")
    assert row(known, "anna")["last_used"] is None
    known.caller(secret)
    first = row(known, "anna")["last_used"]
    assert first is not None and abs(store.db.do(sa.select(now().label("n")))[0]["n"] - first) < 60
    known.caller(secret)
    assert row(known, "anna")["last_used"] == first
    Tokens(store).caller(secret)  # another process, which does not know of it
    assert row(known, "anna")["last_used"] == first
    later(store, last_used=100)
    monkeypatch.setattr(module, "SEEN_EVERY_S", -1.0)
    known.caller(secret)
    assert row(known, "anna")["last_used"] >= first
    known.caller(secret + "x")  # who is not known leaves nothing


def test_lengths_of_time() -> None:
    assert [length_s(text, "x") for text in ("90d", "12h", "4w", "30min", "0h")] == [
        7_776_000.0, 43_200.0, 2_419_200.0, 1800.0, 0.0,
    ]  # fmt: skip
    for wrong in ("", "d", "1", "1y", "-1d", "1.5d", "1e3d", "9999999d"):
        with pytest.raises(ParameterError, match="x: Expected a duration"):
            length_s(wrong, "x")

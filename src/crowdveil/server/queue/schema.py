"""The tables of the service, as the newest revision in `migrations/` has them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    DOUBLE_PRECISION,
    BigInteger,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

metadata = MetaData()


def _serial(name: str) -> Column[int]:
    """Return a primary key that the database counts up."""
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), Identity(always=True), primary_key=True)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _text(name: str, **more: Any) -> Column[str]:
    return Column(name, Text, nullable=False, **more)


jobs = Table(
    "jobs", metadata,
    _serial("place"), _text("id"), _text("owner"), _text("kind"), _text("name"), _text("parameters"), _text("files"),
    _text("limits"), Column("max_running", BigInteger, nullable=False), _text("state"),
    Column("created", DOUBLE_PRECISION, nullable=False), Column("started", DOUBLE_PRECISION),
    Column("ended", DOUBLE_PRECISION), Column("expires", DOUBLE_PRECISION),
    Column("keep_s", DOUBLE_PRECISION, nullable=False), Column("lease", Text), Column("lease_until", DOUBLE_PRECISION),
    Column("worker", Text), Column("stage", Text), Column("done", BigInteger), Column("total", BigInteger),
    _number("runs"), _number("crashes"), _number("lost"), Column("error_code", Text), Column("error", Text),
    Column("result", Text),
    Column("claimed", DOUBLE_PRECISION), Column("review", Text), Column("reviewer", Text),
    Column("reviewed", DOUBLE_PRECISION), Column("comment", Text),
    UniqueConstraint("id", name="jobs_id_key"),
    Index("jobs_by_owner", "owner", "place"),
    Index("jobs_by_turn", "state", "owner", "place"),
    Index("jobs_by_claim", "owner", "claimed"),
)  # fmt: skip

tokens = Table(
    "tokens", metadata,
    Column("id", Text, primary_key=True), _text("name"), _text("hash"), _text("limits"),
    Column("created", DOUBLE_PRECISION, nullable=False), Column("revoked", DOUBLE_PRECISION),
    _text("scopes", server_default=text("'submit read'")), Column("owner", Text), Column("expires", DOUBLE_PRECISION),
    Column("last_used", DOUBLE_PRECISION),
    _text("sources", server_default=text("''")),
    UniqueConstraint("hash", name="tokens_hash_key"),
)  # fmt: skip

log = Table(
    "log", metadata,
    _serial("id"), Column("at", DOUBLE_PRECISION, nullable=False), _text("who"), _text("what"), Column("job", Text),
)  # fmt: skip


class now(GenericFunction[float]):  # noqa: N801  (used as a function of SQL)
    """Seconds since 1970 by the clock of the database: those of several machines need not agree."""

    type = DOUBLE_PRECISION()
    inherit_cache = True
    package = "crowdveil"
    name = "now_s"


@compiles(now, "sqlite")
def _now_sqlite(_element: Any, _compiler: Any, **_how: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_postgres(_element: Any, _compiler: Any, **_how: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"

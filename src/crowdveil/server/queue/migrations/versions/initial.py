"""The tables of the service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _serial(name: str) -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    return sa.Column(name, kind, sa.Identity(always=True), primary_key=True)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _counts(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0")) for name in names]


def upgrade() -> None:
    """Create the tables."""
    time = sa.DOUBLE_PRECISION
    op.create_table(
        "jobs", _serial("place"), *_texts("id", "owner", "kind", "name", "parameters", "files", "limits"),
        sa.Column("max_running", sa.BigInteger, nullable=False), *_texts("state"),
        sa.Column("created", time, nullable=False), sa.Column("started", time), sa.Column("ended", time),
        sa.Column("expires", time), sa.Column("keep_s", time, nullable=False), sa.Column("lease", sa.Text),
        sa.Column("lease_until", time), sa.Column("worker", sa.Text), sa.Column("stage", sa.Text),
        sa.Column("done", sa.BigInteger), sa.Column("total", sa.BigInteger), *_counts("runs", "crashes", "lost"),
        sa.Column("error_code", sa.Text), sa.Column("error", sa.Text), sa.Column("result", sa.Text),
        sa.Column("claimed", time), sa.Column("review", sa.Text), sa.Column("reviewer", sa.Text),
        sa.Column("reviewed", time), sa.Column("comment", sa.Text), sa.UniqueConstraint("id", name="jobs_id_key"),
    )  # fmt: skip
    op.create_index("jobs_by_owner", "jobs", ["owner", "place"])
    op.create_index("jobs_by_turn", "jobs", ["state", "owner", "place"])
    op.create_index("jobs_by_claim", "jobs", ["owner", "claimed"])
    op.create_table(
        "tokens", sa.Column("id", sa.Text, primary_key=True), *_texts("name", "hash", "limits"),
        sa.Column("created", time, nullable=False), sa.Column("revoked", time),
        sa.Column("scopes", sa.Text, nullable=False, server_default=sa.text("'submit read'")),
        sa.Column("owner", sa.Text), sa.Column("expires", time), sa.Column("last_used", time),
        sa.Column("sources", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.UniqueConstraint("hash", name="tokens_hash_key"),
    )  # fmt: skip
    op.create_table(
        "log", _serial("id"), sa.Column("at", time, nullable=False), *_texts("who", "what"), sa.Column("job", sa.Text)
    )

"""Tokens get scopes, an expiry, a last use and rotation; jobs get a size, a turn and a review."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_JOBS = sa.table("jobs", sa.column("id"), sa.column("state"), sa.column("result"), sa.column("bytes"))


def upgrade() -> None:
    """Add columns and the indexes of the scheduler; nothing that is there is changed."""
    time = sa.DOUBLE_PRECISION
    op.add_column("jobs", sa.Column("bytes", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    for name, kind in (
        ("claimed", time),
        ("review", sa.Text),
        ("reviewer", sa.Text),
        ("reviewed", time),
        ("comment", sa.Text),
    ):
        op.add_column("jobs", sa.Column(name, kind))
    op.drop_index("jobs_by_state", "jobs")
    op.create_index("jobs_by_turn", "jobs", ["state", "owner", "place"])
    op.create_index("jobs_by_claim", "jobs", ["owner", "claimed"])
    op.add_column("tokens", sa.Column("scopes", sa.Text, nullable=False, server_default=sa.text("'submit read'")))
    op.add_column("tokens", sa.Column("owner", sa.Text))
    for name in ("expires", "last_used"):
        op.add_column("tokens", sa.Column(name, time))
    op.add_column("tokens", sa.Column("old_hash", sa.Text))
    op.add_column("tokens", sa.Column("old_until", time))
    op.create_index("tokens_by_old_hash", "tokens", ["old_hash"])
    _fill_sizes(op.get_bind())


def _fill_sizes(connection: sa.Connection) -> None:
    """Results that are kept count toward the disk quota; what jobs that wait hold was not noted."""
    done = sa.select(_JOBS.c.id, _JOBS.c.result).where(_JOBS.c.state == "done", _JOBS.c.result.is_not(None))
    for row in connection.execute(done).all():
        try:
            size = int(json.loads(row.result)["bytes"])
        except (ValueError, KeyError, TypeError):
            continue
        connection.execute(sa.update(_JOBS).where(_JOBS.c.id == row.id).values(bytes=size))

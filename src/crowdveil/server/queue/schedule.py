"""Whose turn it is: owners of queued jobs take turns, so that one with many jobs does not hold up the others.

Next is the oldest job of the owner with the fewest jobs running; among equals, of the one whose last turn is longest ago. So each
owner gets an equal share of the workers, an owner without a running job waits at most for one turn of every other, and none
waits forever.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from crowdveil.server.queue.schema import jobs


def next_job() -> sa.Select[Any]:
    """The id of the job that is to be claimed now; owners with as many running jobs as they may have are passed over."""
    first = (
        sa.select(sa.func.min(jobs.c.place).label("place"), jobs.c.owner)
        .where(jobs.c.state == "queued").group_by(jobs.c.owner).subquery("first")
    )  # fmt: skip
    at, other = jobs.alias("j"), jobs.alias("r")
    running = (
        sa.select(sa.func.count()).select_from(other)
        .where(other.c.state == "running", other.c.owner == at.c.owner).correlate(at).scalar_subquery()
    )  # fmt: skip
    last = sa.select(sa.func.max(other.c.claimed)).where(other.c.owner == at.c.owner).correlate(at).scalar_subquery()
    return (
        sa.select(at.c.id).join(first, first.c.place == at.c.place).where(running < at.c.max_running)
        .order_by(running, sa.func.coalesce(last, 0.0), at.c.place).limit(1).with_for_update(of=at, skip_locked=True)
    )  # fmt: skip

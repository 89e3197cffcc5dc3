"""Owners take turns: against a plain twin, for many owners and workers; on both databases."""

from __future__ import annotations

import dataclasses
import random
import time

from crowdveil.server.queue.store import NewJob, Store, new_id


def put(store: Store, owner: str, most: int = 4) -> str:
    job = new_id()
    assert store.add(NewJob(job, owner, "filter", "x", {}, {}, max_running=most), 1000)
    return job


def test_one_with_many_jobs_does_not_hold_up_another(store: Store) -> None:
    """Two tokens, one with 50 queued jobs: the other's job is the next but one at the latest."""
    for _ in range(50):
        put(store, "anna")
    first = store.claim("w", 60)
    assert first is not None
    mine = put(store, "bert")
    assert store.finish(first, {"lease": first.lease})
    following = store.claim("w", 60)
    assert following is not None and following.id == mine


def test_owners_take_turns_and_each_in_order(store: Store) -> None:
    jobs = {owner: [put(store, owner) for _ in range(3)] for owner in ("anna", "bert", "cleo")}
    taken = []
    while (job := store.claim("w", 60)) is not None:
        taken.append((job.owner, job.id))
        assert store.finish(job, {"lease": job.lease})
    assert [owner for owner, _ in taken] == ["anna", "bert", "cleo"] * 3
    assert all([job for owner, job in taken if owner == name] == there for name, there in jobs.items())


@dataclasses.dataclass
class Twin:
    """The rule in plain Python."""

    queued: list[tuple[str, str, int]]
    running: list[tuple[str, str]]
    turns: dict[str, int]

    def next(self) -> str | None:
        firsts: dict[str, tuple[int, str, int]] = {}
        for place, (owner, job, most) in enumerate(self.queued):
            firsts.setdefault(owner, (place, job, most))
        busy = {owner: sum(who == owner for who, _ in self.running) for owner in firsts}
        free = [
            (busy[owner], self.turns.get(owner, 0), place, job)
            for owner, (place, job, most) in firsts.items()
            if busy[owner] < most
        ]
        return min(free)[3] if free else None


def test_the_order_is_that_of_the_plain_rule(store: Store) -> None:
    chance, twin, held, turn = random.Random(7), Twin([], [], {}), {}, 0
    most = {name: chance.choice([1, 2, 4]) for name in "abcdef"}
    for _ in range(120):
        what = chance.random()
        if what < 0.4:
            owner = chance.choice("aaaaabcdef")
            twin.queued.append((owner, put(store, owner, most[owner]), most[owner]))
        elif what < 0.75:
            wanted, job = twin.next(), store.claim("w", 60)
            assert (None if job is None else job.id) == wanted
            if job is not None:
                turn += 1
                twin.queued = [entry for entry in twin.queued if entry[1] != job.id]
                twin.running.append((job.owner, job.id))
                twin.turns[job.owner], held[job.id] = turn, job
                time.sleep(0.002)  # the clock of SQLite counts milliseconds
        elif twin.running:
            owner, name = twin.running.pop(chance.randrange(len(twin.running)))
            assert store.finish(held.pop(name), {"lease": "x"})


def test_nobody_starves(store: Store) -> None:
    """However many new jobs come from others, a job is taken after one turn of each of them."""
    for owner in "abcde":
        put(store, owner, 1)
    mine, seen = put(store, "zoe"), 0
    while (job := store.claim("w", 60)) is not None and job.id != mine:
        assert store.finish(job, {"lease": job.lease})
        put(store, job.owner, 1)
        seen += 1
        assert seen <= 5
    assert job is not None

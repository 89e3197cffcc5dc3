"""The queue: nothing is lost, nothing is published twice, owners take turns; its tables and database; on both databases."""

from __future__ import annotations

import dataclasses
import random
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from crowdveil.errors import ParameterError
from crowdveil.server.queue.database import Database, DatabaseUnavailableError, open_database
from crowdveil.server.queue.schema import metadata
from crowdveil.server.queue.store import CRASHES_MOST, LOST_MOST, NewJob, QueuedJob, Store, new_id


def put(store: Store, owner: str = "anna", **more: object) -> str:
    job = new_id()
    assert store.add(NewJob(job, owner, "filter", "trajectories", {"seed": 7}, {"data": "a.csv"}, **more), 1000)  # type: ignore[arg-type]
    return job


def state(store: Store, job: str) -> str:
    found = store.get(job)
    assert found is not None
    return found.state


def claim(store: Store, lease_s: float = 60.0, worker: str = "w") -> QueuedJob:
    job = store.claim(worker, lease_s)
    assert job is not None
    return job


def test_jobs_are_taken_in_order_and_once(store: Store) -> None:
    ids = [put(store) for _ in range(3)]
    assert [claim(store).id for _ in range(3)] == ids
    assert store.claim("w", 60) is None


def test_a_finished_job_has_its_result_and_expires(store: Store) -> None:
    job = put(store, keep_s=3600.0)
    held = claim(store)
    assert store.beat(held, 60, "anonymizing", 3, 10)
    seen = store.get(job)
    assert seen is not None and (seen.state, seen.stage, seen.done, seen.total) == ("running", "anonymizing", 3, 10)
    assert store.finish(held, {"lease": held.lease})
    assert state(store, job) == "done" and store.expire() == []
    store.db.do(sa.text("UPDATE jobs SET expires = 0"))
    assert store.expire() == [job]
    gone = store.get(job)
    # The seed of a noisy release undoes it, so it goes with the result.
    assert gone is not None and gone.state == "expired" and gone.parameters == {}


def test_a_lease_that_ran_out_is_taken_back_and_its_holder_cannot_publish(store: Store) -> None:
    job = put(store)
    late = claim(store, lease_s=0.0)
    time.sleep(0.02)
    assert store.take_back() == 1 and state(store, job) == "queued"
    now = claim(store)
    assert not store.finish(late, {"lease": late.lease}) and not store.fail(late, "x", "y")
    assert not store.beat(late, 60, "x", 0, 0) and not store.crash(late, "") and not store.give_back(late)
    assert not store.holds(late) and store.holds(now)
    assert store.finish(now, {"lease": now.lease})
    assert not store.finish(now, {"lease": "again"})
    found = store.get(job)
    assert found is not None and found.result == {"lease": now.lease} and found.runs == 2


def test_a_held_job_is_not_taken_back(store: Store) -> None:
    put(store)
    claim(store, 60)
    assert store.take_back() == 0 and store.claim("other", 60) is None


def test_a_job_that_ends_its_process_twice_is_failed(store: Store) -> None:
    job = put(store)
    for _ in range(CRASHES_MOST):
        assert store.crash(claim(store), " (signal 9)")
    found = store.get(job)
    assert found is not None and found.state == "failed" and found.error_code == "crashed"
    assert found.error is not None and "twice (signal 9)" in str(found.error) and found.parameters == {}
    assert store.claim("w", 60) is None


def test_a_worker_that_vanishes_is_not_the_jobs_fault_but_has_an_end(store: Store) -> None:
    job = put(store)
    for _ in range(LOST_MOST):
        assert state(store, job) == "queued"
        claim(store, -1.0, "dead")
        assert store.take_back() == 1
    found = store.get(job)
    assert found is not None and found.state == "failed" and found.error_code == "lost" and found.parameters == {}


def test_cancelling(store: Store) -> None:
    waiting, running, done = put(store), put(store), put(store)
    a, b, c = claim(store), claim(store), claim(store)
    assert store.give_back(a) and store.finish(c, {"lease": c.lease})
    for job, becomes in ((waiting, "cancelled"), (running, "cancelled"), (done, "expired")):
        assert store.cancel(job, "bert") is None
        ended = store.cancel(job, "anna")
        assert ended is not None and ended.state == becomes
    assert not store.holds(b) and not store.finish(b, {}) and store.claim("w", 60) is None


def test_owners_see_their_own_alone(store: Store) -> None:
    mine, theirs = put(store, "anna"), put(store, "bert")
    later = put(store, "anna")
    assert [j.id for j in store.of_owner("anna", before=later)] == [mine]
    assert [j.id for j in store.of_owner("anna", before=theirs)] == []
    assert [j.id for j in store.of_owner("anna")] == [later, mine] and [j.id for j in store.of_owner("bert")] == [
        theirs
    ]
    assert store.get(theirs, "anna") is None and store.get(theirs, "bert") is not None


def test_an_owner_runs_as_many_as_allowed_and_others_go_on(store: Store) -> None:
    for _ in range(3):
        put(store, "anna", max_running=1)
    other = put(store, "bert", max_running=1)
    assert claim(store).owner == "anna" and claim(store).id == other
    assert store.claim("w", 60) is None


def test_too_many_waiting_are_refused(store: Store) -> None:
    put(store), put(store)
    assert not store.add(NewJob(new_id(), "anna", "filter", "x", {}, {}), 2)
    assert store.add(NewJob(new_id(), "bert", "filter", "x", {}, {}), 2)


def test_many_workers_at_once_take_each_job_once(store: Store, database_url: str) -> None:
    ids = {put(store, max_running=1000) for _ in range(40)}
    taken: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        mine = Store(open_database(database_url))
        while (job := mine.claim(name, 60)) is not None:
            assert mine.finish(job, {"lease": job.lease})
            with lock:
                taken.append(job.id)
        mine.db.close()

    threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids) and store.counts() == {("filter", "done"): 40}


def test_a_database_that_is_unavailable_is_reported_and_used_again(store: Store) -> None:
    # What a database says that was stopped, or that has no room: both speak of an operational error.
    away = "SELECT no_such_function(1)" if store.db.is_sqlite else "SELECT pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(DatabaseUnavailableError, match="database is unavailable"):
        store.db.do(sa.text(away))
    assert store.counts() == {}


def test_old_rows_are_forgotten(store: Store) -> None:
    job = put(store)
    store.cancel(job, "anna")
    store.forget(3600)
    assert store.get(job) is not None and store.log()
    time.sleep(0.02)
    store.forget(0.0)
    assert store.get(job) is None
    assert store.log() == []


def test_the_log_says_who_did_what_and_nothing_of_the_data(store: Store) -> None:
    job = put(store)
    assert store.fail(claim(store), "bad_input", "secret.csv: column secret has no rows.")
    assert all("secret" not in str(line) for line in store.log())
    assert [line["who"] for line in store.log() if line["job"] == job] == ["anna", "worker"]


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
            twin.queued.append((owner, put(store, owner, max_running=most[owner]), most[owner]))
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
        put(store, owner, max_running=1)
    mine, seen = put(store, "zoe"), 0
    while (job := store.claim("w", 60)) is not None and job.id != mine:
        assert store.finish(job, {"lease": job.lease})
        put(store, job.owner, max_running=1)
        seen += 1
        assert seen <= 5
    assert job is not None


def tables(database: Database) -> dict[str, Any]:
    """What tables look like: columns with types, and indexes."""
    with database.engine.connect() as connection:
        seen = sa.inspect(connection)
        return {
            table: (
                seen.get_pk_constraint(table)["constrained_columns"],
                {c["name"]: (str(c["type"]), c["nullable"], str(c["default"])) for c in seen.get_columns(table)},
                {i["name"]: i["column_names"] for i in seen.get_indexes(table)},
                sorted(tuple(u["column_names"]) for u in seen.get_unique_constraints(table)),
            )
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


def test_the_migration_makes_the_tables_of_the_program(database_url: str) -> None:
    database = Store(open_database(database_url)).db
    migrated = tables(database)
    metadata.drop_all(database.engine)
    metadata.create_all(database.engine)
    assert set(migrated) == {"jobs", "tokens", "log"} and tables(database) == migrated


def test_servers_that_start_at_once_make_the_tables_once(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: Store(open_database(database_url)), range(4)))
    assert all(store.counts() == {} for store in stores)


def test_a_newer_database_is_refused(database_url: str) -> None:
    store = Store(open_database(database_url))
    store.db.do(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ParameterError, match="revision 0001 or older, got 9999"):
        Store(open_database(database_url))


def test_a_command_that_only_reads_makes_nothing(database_url: str) -> None:
    database = open_database(database_url)
    Store(database, create=False)
    assert tables(database) == {}


def test_a_database_that_is_removed_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.touch()
    store = Store(open_database(f"sqlite:///{path}"))
    store.say("anna", "did something")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup")) as backup:
        source.backup(backup)
    path.unlink()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailableError):
            store.say("anna", "did more")
        assert not path.exists()
    for beside in tmp_path.glob("jobs.sqlite-*"):
        beside.unlink()
    (tmp_path / "backup").rename(path)
    assert store.counts() == {}
    store.say("anna", "goes on")


def test_messages_with_bad_text_can_be_stored(store: Store) -> None:
    job, held = put(store), claim(store)
    assert store.fail(held, "bad_input", "a\0b\ud800: Expected rows.")
    found = store.get(job)
    assert found is not None and str(found.error) == "a�b�: Expected rows."

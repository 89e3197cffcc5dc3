"""The queue loses nothing, runs nothing twice in effect, and publishes once; on both databases."""

from __future__ import annotations

import threading
import time

import pytest

from crowdveil.errors import ParameterError
from crowdveil.server.queue.database import DatabaseUnavailableError, open_database
from crowdveil.server.queue.store import CRASHES_MOST, LOST_MOST, NewJob, QueuedJob, Store, new_id
from crowdveil.server.tokens import Limits, Tokens


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
    store.db.do("UPDATE jobs SET expires = 0")
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
    assert found.error is not None and "twice (signal 9)" in found.error and found.parameters == {}
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
    with pytest.raises(DatabaseUnavailableError, match="database unavailable"):
        store.db.do(away)
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


def test_tokens_are_shown_once_and_kept_hashed(store: Store) -> None:
    tokens = Tokens(store, Limits(max_seconds=5))
    assert not tokens.any()
    token = tokens.create("anna", max_running=2)
    assert token not in str(tokens.all()) and token not in str(store.db.do("SELECT * FROM tokens"))
    caller = tokens.caller(token)
    assert caller is not None and caller.name == "anna" and caller.limits == Limits(max_seconds=5, max_running=2)
    assert tokens.caller(token + "x") is None and tokens.caller("") is None
    tokens.revoke("anna")
    assert tokens.caller(token) is None and tokens.any()
    with pytest.raises(ParameterError, match="no such token"):
        tokens.revoke("anna")


def test_two_tokens_of_one_name_are_refused(store: Store) -> None:
    tokens = Tokens(store)
    tokens.create("anna")
    with pytest.raises(ParameterError, match="there is a token of that name"):
        tokens.create("anna")
    with pytest.raises(ParameterError, match="max_seconds"):
        tokens.create("bert", max_seconds=0)

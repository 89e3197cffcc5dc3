"""Partitions on threads: order, errors, interrupts, progress, and which engine is in use."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from crowdveil import engine
from crowdveil.engine import Arrays, LocalEngine, apart, local
from crowdveil.engine.local import kernels_running
from crowdveil.kernels._jit import kernel

THREADS = pytest.mark.parametrize("threads", [1, 2, 8, None])


def squares(partition: int) -> Arrays:
    """As many numbers as the partition says, so that results cannot be mistaken for one another."""
    return np.arange(partition) ** 2, np.array([partition])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "TICK_S", 0.001)


@THREADS
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_results_are_in_the_order_of_partitions(threads: int | None, count: int) -> None:
    def late_at_first(partition: int) -> Arrays:
        if partition % 7 == 0 and partition < 50:
            time.sleep(0.002)
        return squares(partition)

    results = LocalEngine(threads).map(late_at_first, count)
    assert len(results) == count
    for partition, (numbers, name) in enumerate(results):
        assert name.tolist() == [partition] and numbers.tolist() == (np.arange(partition) ** 2).tolist()


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    def drawn(partition: int) -> Arrays:
        return (np.random.default_rng(partition).normal(size=50),)

    one, many = (LocalEngine(threads).map(drawn, 300) for threads in (1, 16))
    assert [a.tobytes() for (a,) in one] == [a.tobytes() for (a,) in many]


def test_partitions_run_side_by_side() -> None:
    """Each of four tasks waits for the other three: with fewer threads than that nobody would ever get on."""
    together = threading.Barrier(4, timeout=20)

    def meet(partition: int) -> Arrays:
        together.wait()
        return squares(partition)

    assert len(LocalEngine(4).map(meet, 8)) == 8


@THREADS
def test_the_error_of_the_lowest_partition_is_raised_as_it_is(threads: int | None) -> None:
    errors = {n: KeyError(f"partition {n}") for n in range(20, 60)}

    def fail(partition: int) -> Arrays:
        if partition in errors:
            time.sleep(0.02 if partition == 20 else 0)  # the lowest is reported last
            raise errors[partition]
        return squares(partition)

    with pytest.raises(KeyError) as raised:
        LocalEngine(threads).map(fail, 500)
    assert raised.value is errors[20]


def test_after_an_error_no_task_begins() -> None:
    begun = []

    def fail(partition: int) -> Arrays:
        begun.append(partition)
        if partition == 3:
            raise ValueError("three")
        time.sleep(0.01)
        return squares(partition)

    with pytest.raises(ValueError, match="three"):
        LocalEngine(2).map(fail, 10_000)
    assert len(begun) < 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_ends_what_runs_and_drops_the_rest(error: type[BaseException], quick: None) -> None:
    begun, ended = [], []

    def slow(partition: int) -> Arrays:
        begun.append(partition)
        time.sleep(0.01)
        ended.append(partition)
        return squares(partition)

    def stop(done: int, total: int) -> None:
        raise error

    with pytest.raises(error):
        LocalEngine(4).map(slow, 10_000, stop)
    assert sorted(begun) == sorted(ended) and len(begun) < 100


@kernel
def count_turns(turns: int) -> int:
    """Stands for a long kernel; it comes to an end by itself so that a test that fails ends too."""
    value = 1
    for _ in range(turns):
        value = (value * 5 + 1) % 1_000_003
    return value


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_kernels_that_run(threads: int, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "FINISH_S", 0.01)
    begun, ended = threading.Event(), threading.Event()

    def task(partition: int) -> Arrays:
        if partition == 1:
            begun.set()
            count_turns(3 * 10**8)
            ended.set()
        return squares(0)

    def stop(done: int, total: int) -> None:
        begun.wait()
        raise KeyboardInterrupt

    assert count_turns(3) > 0 and not kernels_running()
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(threads).map(task, 2, stop)
    assert not ended.is_set() and kernels_running()
    assert ended.wait(60)


def test_what_is_done_apart_comes_back_as_it_is() -> None:
    def work(fails: bool) -> tuple[threading.Thread, str]:
        if fails:
            raise KeyError("gone")
        return threading.current_thread(), "two"

    thread, word = apart(lambda: work(False))
    assert thread is not threading.main_thread() and word == "two"
    with pytest.raises(KeyError, match="gone"):
        apart(lambda: work(True))


@THREADS
@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_progress_rises_and_ends_at_the_total(threads: int | None, count: int, quick: None) -> None:
    reported: list[tuple[int, int]] = []
    callers = set()

    def progress(done: int, total: int) -> None:
        reported.append((done, total))
        callers.add(threading.current_thread())

    def work(partition: int) -> Arrays:
        time.sleep(0.001)
        return squares(partition)

    LocalEngine(threads).map(work, count, progress)
    done = [n for n, _ in reported]
    assert done == sorted(set(done)) and reported[-1] == (count, count)
    assert {total for _, total in reported} == {count}
    assert callers == {threading.current_thread()}


def test_progress_is_reported_now_and_then_and_not_for_every_task() -> None:
    reported: list[float] = []

    def work(partition: int) -> Arrays:
        time.sleep(0.002)
        return squares(partition)

    began = time.monotonic()
    LocalEngine(2).map(work, 700, lambda done, total: reported.append(time.monotonic()))
    times = [began, *reported]
    assert 3 <= len(reported) < 50
    assert max(np.diff(times)) < 0.5, "twice a second even on a busy machine"


def test_the_engine_in_use_is_the_innermost() -> None:
    usual, outer, inner = engine.current(), LocalEngine(1), LocalEngine(2)
    assert isinstance(usual, LocalEngine)
    with engine.use(outer):
        assert engine.current() is outer
        with engine.use(inner) as given:
            assert engine.current() is given is inner
        assert engine.current() is outer
        with pytest.raises(ValueError, match="x"), engine.use(inner):
            raise ValueError("x")
        assert engine.current() is outer
    assert engine.current() is usual


def test_a_task_can_run_partitions_of_its_own() -> None:
    def inside(partition: int) -> Arrays:
        return (np.concatenate([a for a, _ in engine.current().map(squares, partition)] or [np.zeros(0)]),)

    def total(results: list[Any]) -> list[int]:
        return [len(a) for (a,) in results]

    assert total(LocalEngine(2).map(inside, 5)) == [0, 0, 1, 3, 6]

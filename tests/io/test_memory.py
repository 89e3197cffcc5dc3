from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest

from crowdveil.io import memory


def test_large_arrays_are_mapped_where_the_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        @staticmethod
        def mallopt(option: int, value: int) -> int:
            calls.append((option, value))
            return 1

    monkeypatch.setattr(memory.sys, "platform", "linux")
    for library in (Library(), object()):
        monkeypatch.setattr(ctypes, "CDLL", lambda _, library=library: library)
        memory.map_large_arrays.__wrapped__()
    monkeypatch.setattr(memory.sys, "platform", "win32")
    memory.map_large_arrays.__wrapped__()
    assert calls == [(-3, memory.LARGE_BYTES), (-1, memory.KEPT_BYTES)]


def test_what_was_freed_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    monkeypatch.setattr(memory, "_malloc_trim", lambda: kept.append)
    memory.return_unused()
    assert kept == [0]  # bytes that are kept


FAULTS = """
import resource
import numpy as np
from crowdveil.io.memory import map_large_arrays

map_large_arrays()
for turn in range(60):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**17) for _ in range(4)]  # 1 MiB each
    del arrays
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep memory")
def test_small_arrays_come_from_memory_that_was_freed_before() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500  # 50,000 if every array got new pages


@pytest.mark.parametrize(
    ("free", "peak", "wanted"), [(0, 0, []), (1, 0, ["heap"]), (0, 1, ["arrow"]), (1, None, ["arrow", "heap"])]
)
def test_only_much_memory_is_given_back(
    free: int, peak: int | None, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`free` and `peak`: whether the heaps and Arrow have enough, one byte less otherwise; Arrow may not know its peak."""
    given: list[str] = []

    class Pool:
        @staticmethod
        def max_memory() -> int | None:
            return None if peak is None else memory.RETURNED_ARROW_BYTES - 1 + peak

        @staticmethod
        def release_unused() -> None:
            given.append("arrow")

    monkeypatch.setattr(memory.pa, "default_memory_pool", Pool)
    monkeypatch.setattr(memory, "_malloc_trim", lambda: lambda _: given.append("heap"))
    monkeypatch.setattr(memory, "_free_bytes", lambda: memory.RETURNED_BYTES - 1 + free)
    memory.return_unused()
    assert given == wanted


def test_free_memory_is_counted_where_the_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    if platform.libc_ver()[0] == "glibc" and memory._heap_figures() is not None:
        kept = [bytes(1000) for _ in range(50_000)]  # too small for pages of their own
        before = memory._free_bytes()
        del kept[::2]
        assert 15_000_000 < memory._free_bytes() - before < 50_000_000
    monkeypatch.setattr(memory, "_heap_figures", lambda: None)
    assert memory._free_bytes() == memory.RETURNED_BYTES

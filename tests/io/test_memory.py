from __future__ import annotations

import ctypes

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
    assert calls == [(-3, memory.LARGE_BYTES)]

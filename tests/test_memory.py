"""Freed memory that the process keeps: fewer page faults, and only where nobody has set it otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from crowdveil.memory import keep_freed_memory

FAULTS = """
import resource, sys
import numpy as np
from crowdveil.memory import keep_freed_memory

kept = keep_freed_memory() if sys.argv[1] == "keep" else None
for turn in range(60):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**17) for _ in range(4)]  # 1 MiB each
    del arrays
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(how: str, **variables: str) -> tuple[str, int]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how], env=environment | variables, capture_output=True, text=True, check=True
    )
    kept, faults = done.stdout.split()
    return kept, int(faults)


@pytest.mark.skipif(not keep_freed_memory(), reason="only glibc is asked to keep memory")
def test_arrays_come_from_memory_that_was_freed_before() -> None:
    kept, faults = _faults("keep")
    assert kept == "True" and faults < 500
    assert _faults("default")[1] > 10_000


def test_settings_of_the_user_are_left_as_they_are() -> None:
    assert _faults("keep", MALLOC_TRIM_THRESHOLD_="131072")[0] == "False"

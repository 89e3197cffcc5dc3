"""Independent work on threads: numpy, Arrow and our kernels let go of the interpreter while they compute."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def side_by_side(*jobs: Callable[[], Any]) -> list[Any]:
    """Run jobs at the same time, as far as there are cores; their results, in order. The first error is raised."""
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]

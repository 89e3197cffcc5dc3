"""The memory that one job may hold by default."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

SHARE_OF_MEMORY = 0.8
LEAST_MEMORY = 1 << 30


def default_memory(jobs: int, system: Path = Path("/")) -> int:
    """Return the bytes that one of several jobs may hold: a share of the memory, and at least `LEAST_MEMORY`."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        total = 16 << 30
    return max(LEAST_MEMORY, int(SHARE_OF_MEMORY * min(total, *_cgroup_limits(system))) // max(1, jobs))


def _cgroup_limits(system: Path) -> list[int]:
    """Return the limits of memory, in bytes, of the control groups of this process (container, unit of systemd)."""
    found = [sys.maxsize]
    with suppress(OSError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            folder, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
            root = system / "sys/fs/cgroup" / folder
            at = root / group.lstrip("/")
            for level in (at, *at.parents):
                if level.is_relative_to(root):
                    with suppress(OSError, ValueError):  # "max", or a group that the container does not show
                        found.append(int((level / name).read_text()))
    return found

"""A process that works on files of others: limits, an end with its parent, and nothing printed.

It imports little, so that such a process starts in no time.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from crowdveil.errors import TOO_DEEP, CrowdveilError, InputError
from crowdveil.server.workers.sandbox.confine import Bounds, confine
from crowdveil.threads import processors

_PR_SET_PDEATHSIG = 1
_CELLS_FREE, _CELLS_A_BYTE = 4_000_000, 256
"""Values that a Parquet file may hold: many, and as many more as its size can stand for."""
PREVIEW_MEMORY_MOST = 4 << 30
SHARE_OF_MEMORY = 0.8
LEAST_MEMORY = 1 << 30


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def bounds_of(limits: dict[str, Any], memory: int | None, tasks: int | None = None) -> Bounds:
    """Limits of a request as bounds of its process; no file is larger than a request may be many times over."""
    seconds = limits.get("max_seconds")
    return Bounds(
        memory=memory,
        file_bytes=int(limits.get("upload_bytes", 1 << 40)) * 8,
        cpu_seconds=None if seconds is None else (int(seconds) + 60) * processors(),
        tasks=tasks,
    )


def default_memory(jobs: int, system: Path = Path("/")) -> int:
    """Return the bytes that one job may hold by default: a share of the memory there is, and at least `LEAST_MEMORY`."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        there = 16 << 30
    return max(LEAST_MEMORY, int(SHARE_OF_MEMORY * min(there, *_cgroup_limits(system))) // max(1, jobs))


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


def check_rows(path: Path, limits: dict[str, Any]) -> None:
    """Rows of text were counted as they came in; those of Parquet stand at the end of the file."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from crowdveil.io.headers import refuse_wide_parquet

    refuse_wide_parquet(path)
    try:
        about = pq.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError):
        return  # the reader reports what is wrong
    rows, most = about.num_rows, limits.get("max_rows")
    if most is not None and rows > most:
        raise InputError(path.name, f"wanted at most {most:,} rows, but it has more; give less data.")
    # Runs of one value take no space in a file, and all of it once they are unpacked.
    if rows * max(1, about.num_columns) > _CELLS_FREE + _CELLS_A_BYTE * path.stat().st_size:
        raise InputError(path.name, "the file holds far more rows than its size allows; write it again as CSV.")
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    largest = limits.get("upload_bytes")
    if largest is not None and size > 16 * largest:
        raise InputError(path.name, "the file is too large once it is unpacked; give less data.")


def memory_of(process: int) -> int:
    """Memory that a process holds by itself, in bytes; 0 where it is not known."""
    with suppress(OSError, ValueError, IndexError):
        held, shared = Path(f"/proc/{process}/statm").read_text().split()[1:3]
        return (int(held) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def be_apart(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Be the process: read the request, confine this process to its folder, do the work, write the answer."""
    from crowdveil.kernels import cached

    request = json.load(sys.stdin)
    die_with_parent(request["parent"])
    here = Path.cwd()
    bounds = bounds_of(request.get("limits", {}), request["memory"])
    # Compiled kernels may lie outside the installation (NUMBA_CACHE_DIR).
    confine((here,), here / request["temporary"], bounds, read=cached.folders())
    answer = sys.stdout
    sys.stdout = sys.stderr
    try:
        made = work(request)
    except CrowdveilError as error:
        made = {"refused": error.text}
    except RecursionError:
        made = {"refused": TOO_DEEP}
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
        raise
    json.dump(made, answer)

"""What a process owes that works on files of others: limits, an end with its parent, and nothing printed.

It imports little, so that such a process starts in no time.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, InputError

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def limit_process(limits: dict[str, Any]) -> None:
    """No core with data in it, and no file larger than a request may be many times over."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    largest = int(limits.get("upload_bytes", 1 << 40)) * 8
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails with a sentence
    # Files of zones are read by GDAL, which would follow a description of another source to anywhere.
    os.environ |= {"OGR_SKIP": "OGR_VRT", "GDAL_SKIP": "VRT", "OGR_SQLITE_LIST_VIRTUAL_OGR": "NO"}


def check_rows(path: Path, limits: dict[str, Any]) -> None:
    """Rows of text were counted as they came in; those of Parquet are told at the end of the file."""
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
        return  # whoever reads it says what is wrong
    rows, most = about.num_rows, limits.get("max_rows")
    if most is not None and rows > most:
        raise InputError(f"{path.name}: wanted at most {most:,} rows, but it has more; give less data.")
    size = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    largest = limits.get("upload_bytes")
    if largest is not None and size > 16 * largest:
        raise InputError(f"{path.name}: the file is too large once it is unpacked; give less data.")


def memory_of(process: int) -> int:
    """Memory that a process holds by itself, in bytes; 0 where it cannot be told."""
    with suppress(OSError, ValueError, IndexError):
        held, shared = Path(f"/proc/{process}/statm").read_text().split()[1:3]
        return (int(held) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def be_apart(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Be the process: read the request, do the work, write the answer."""
    request = json.load(sys.stdin)
    die_with_parent(request["parent"])
    limit_process(request.get("limits", {}))
    answer = sys.stdout
    sys.stdout = sys.stderr
    try:
        made = work(request)
    except CrowdveilError as error:
        made = {"refused": str(error)}
    except RecursionError:
        made = {"refused": "a file is nested too deep to be read; write it anew."}
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
        raise
    json.dump(made, answer)

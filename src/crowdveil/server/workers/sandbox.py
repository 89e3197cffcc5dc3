"""Run untrusted file parsing in a sandboxed subprocess: `python -m`, in bubblewrap where it starts, else under Landlock.

In bubblewrap, the process has its own mounts, processes and network, and sees only its folder and the installation. Under
Landlock, it shares them with the machine, and may open only these folders; `LEFT_OPEN` lists what that leaves open.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crowdveil.engine.threads import environment_for
from crowdveil.errors import Option, ParameterError
from crowdveil.kernels._jit import CACHE
from crowdveil.server.workers import landlock

BUBBLEWRAP, LANDLOCK = "bubblewrap", "Landlock"
LEFT_OPEN = (
    "Landlock alone leaves gaps: code inside a job can change modes, owners, times and extended attributes of files that the "
    "service's user owns, watch names of files (inotify), start processes that outlive the job, and, before Linux 6.12, send "
    "signals to the server. Install bubblewrap (bwrap)."
)
NEITHER = (
    "this machine starts neither bubblewrap nor Landlock, so code inside a job can do all that the service's user can. "
    "Install bubblewrap (bwrap)."
)
TEMPORARY = "tmp"
"""The temporary folder of a sandboxed process, in the folder that it writes to."""
ANSWER = "answer.json"
ANSWER_MOST = 8 << 20
LOOK_EVERY_S = 0.1
_MODULE = "crowdveil.server.workers.sandboxed"
_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime",
    "/etc/fonts", "/sys/devices/system/cpu",
)  # fmt: skip
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
"""The variables that a sandboxed process keeps; others may hold passwords."""
_FIXED = {
    # A file of zones must not make a library ask a server for a grid, or load a plugin.
    "PROJ_NETWORK": "OFF", "HDF5_PLUGIN_PRELOAD": "::", "HDF5_USE_FILE_LOCKING": "FALSE", "GDAL_DRIVER_PATH": "disable",
    "CPL_CURL_ENABLE_VSIMEM": "NO", "OGR_SQLITE_LIST_VIRTUAL_OGR": "NO", "GDAL_PAM_ENABLED": "NO", "MPLBACKEND": "Agg",
}  # fmt: skip


@dataclass(frozen=True)
class Bounds:
    """Limits of a sandboxed process: bytes of memory and of one file; None for no limit."""

    memory: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True)
class Sandboxed:
    """A running sandboxed process and the folder that it answers in."""

    process: subprocess.Popen[bytes]
    folder: Path

    def end(self) -> None:
        """Kill the process with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal(self) -> int:
        """Return the signal that ended the process, 0 for none; bubblewrap reports it as 128 and more."""
        code = self.process.returncode or 0
        return -code if code < 0 else max(0, code - 128)

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object that the process wrote to its folder; None unless it is a short, regular file."""
        return read_object(self.folder / name)


@cache
def confinement() -> str | None:
    """Return what confines processes on this machine: bubblewrap, Landlock, or None."""
    if shutil.which("bwrap"):
        ran = subprocess.run(
            [*_bubblewrap(_readable([]), []), sys.executable, "-S", "-c", ""], capture_output=True, check=False
        )
        if ran.returncode == 0:
            return BUBBLEWRAP
    return LANDLOCK if landlock.is_offered() else None


def check_confinement(*, local: bool) -> str | None:
    """Return a warning if confinement is weak; raise if there is none and other machines can reach the service."""
    confined_by = confinement()
    if confined_by is None and not local:
        raise ParameterError(Option("host"), f"{NEITHER} Until then, listen on 127.0.0.1.")
    return {BUBBLEWRAP: None, LANDLOCK: LEFT_OPEN, None: NEITHER}[confined_by]


def start(
    module: str, request: dict[str, Any], folder: Path, bounds: Bounds, *, write: Iterable[Path] = (), processes: int = 1,
    how: str | None = None,
) -> Sandboxed:  # fmt: skip
    """Start a process that calls `work(request)` of a module and answers in a folder (see `sandboxed`).

    It may write to that folder and `write`, and read the installation. `processes` such processes share the processors; `how`
    names the confinement, by default the strongest.
    """
    temporary = folder / TEMPORARY
    temporary.mkdir(mode=0o700)
    # A process that reads untrusted files must not write kernels that other processes run, so it has a copy of them.
    shutil.copytree(CACHE, temporary / CACHE.name, copy_function=_copy_if_there)
    environment = clean_environment(os.environ, temporary) | environment_for(processes)
    how, writable = how or confinement(), [folder.resolve(), *(path.resolve() for path in write)]
    readable = _readable(writable)
    command = [sys.executable, "-P", "-m", _MODULE]
    about = {
        "module": module, "folder": str(folder.resolve()), "bounds": asdict(bounds), "parent": os.getpid(), "request": request,
        "landlock": [[str(p) for p in paths] for paths in (readable, writable)] if how == LANDLOCK else None,
    }  # fmt: skip
    with tempfile.TemporaryFile() as asked:
        asked.write(json.dumps(about).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [*_bubblewrap(readable, writable), *command] if how == BUBBLEWRAP else command,
            cwd=folder, env=environment, stdin=asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    return Sandboxed(process, folder)


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file of the kernels; another process that compiles may just have renamed or removed it."""
    with suppress(FileNotFoundError):
        shutil.copyfile(source, target)


def run_sandboxed(
    module: str, request: dict[str, Any], folder: Path, bounds: Bounds, seconds: float, **how: Any
) -> dict[str, Any] | None:
    """Run `work(request)` of a module, and return its answer; None if the process was ended by a signal.

    Raises TimeoutError after some seconds.
    """
    running, until = start(module, request, folder, bounds, **how), time.monotonic() + seconds
    try:
        while running.process.poll() is None:
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(LOOK_EVERY_S)
        return None if running.signal() else running.read(ANSWER)
    finally:
        running.end()
        shutil.rmtree(folder / TEMPORARY, ignore_errors=True)


def clean_environment(environment: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """Return the environment of a sandboxed process, with its temporary folder as home and cache."""
    own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR"), str(temporary))
    return {name: environment[name] for name in _KEPT if name in environment} | _FIXED | own


def read_object(path: Path) -> dict[str, Any] | None:
    """Return a JSON object in a file that an untrusted process wrote; None unless it is a short, regular file."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(ANSWER_MOST + 1)
        value = json.loads(content) if len(content) <= ANSWER_MOST else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bubblewrap(readable: Iterable[Path], writable: Iterable[Path]) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    for option, paths in (("--ro-bind-try", readable), ("--bind", writable)):
        for path in paths:
            command += [option, str(path), str(path)]
    return [*command, "--"]


def _readable(own: Iterable[Path]) -> list[Path]:
    """Return the folders of Python, its packages and the system's libraries, except those that contain an `own` folder."""
    paths, folders = sysconfig.get_paths(), list(own)
    # The first is the folder of the script, or with `python -m` the current one, which may hold anything.
    imported = sys.path if sys.flags.safe_path else sys.path[1:]
    candidates = [Path(path) for path in (*_SYSTEM, *imported, sys.executable) if path and Path(path).is_absolute()]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        candidates += [Path(prefix) / part for part in ("bin", "lib", "lib64", "share", "pyvenv.cfg")]
    candidates += [Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    every = dict.fromkeys(one for path in candidates for one in (path, path.resolve()) if path.exists())
    outer = sorted(
        path for path in every if path != Path("/") and not any(f.is_relative_to(path.resolve()) for f in folders)
    )
    return [path for path in outer if not set(path.parents) & set(outer)]

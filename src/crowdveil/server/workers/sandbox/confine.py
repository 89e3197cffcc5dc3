"""Putting a process into the sandbox, once it has imported what it needs and before it opens the first file of a stranger."""

from __future__ import annotations

import os
import resource
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crowdveil.server.workers.sandbox import landlock, seccomp
from crowdveil.threads import processors

_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime",
    "/dev/urandom", "/dev/random", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
"""What libraries read of a system. Of /proc only what is the same for all: an environment there has passwords in it."""
_ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
    "NUMBA_CACHE_DIR", "CROWDVEIL_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS", "PROJ_DATA", "PROJ_LIB", "GDAL_DATA",
)  # fmt: skip
"""The only variables that such a process keeps."""
_OWN = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_FIXED = {
    # No file of zones makes a library ask a server for a grid, or load a plugin.
    "PROJ_NETWORK": "OFF", "HDF5_PLUGIN_PRELOAD": "::", "HDF5_USE_FILE_LOCKING": "FALSE", "GDAL_DRIVER_PATH": "disable",
    "CPL_CURL_ENABLE_VSIMEM": "NO", "OGR_SQLITE_LIST_VIRTUAL_OGR": "NO", "GDAL_PAM_ENABLED": "NO", "MPLBACKEND": "Agg",
}  # fmt: skip
_THREAD_BYTES = 80 << 20
"""Addresses that a thread takes: its stack, and what the C library reserves for it."""
_SPARE_BYTES = 1 << 30
_MORE_TASKS = 4096
_CGROUP = Path("/proc/self/cgroup")
"""DuckDB reads it, and ends the process where it may not."""


@dataclass(frozen=True)
class Offered:
    """What this machine's kernel can enforce.

    Attributes
    ----------
    landlock
        The version of Landlock's interface, 0 for none.
    seccomp
        Whether system calls can be filtered.
    """

    landlock: int
    seccomp: bool

    @property
    def is_whole(self) -> bool:
        """Whether files and the network are both closed."""
        return self.landlock > 0 and self.seccomp

    def lacks(self) -> str:
        """What is missing, in words."""
        return " and ".join(
            name for name, there in (("Landlock", self.landlock), ("a seccomp filter", self.seccomp)) if not there
        )


def offered() -> Offered:
    """What this machine's kernel can enforce; asks, and changes nothing."""
    return Offered(landlock.version(), seccomp.is_offered())


@dataclass(frozen=True)
class Bounds:
    """What a process may use: memory and file sizes in bytes, seconds of all processors together, tasks of its user."""

    memory: int | None = None
    file_bytes: int | None = None
    cpu_seconds: int | None = None
    tasks: int | None = None


def clean_environment(given: Mapping[str, str], temporary: Path | None = None) -> dict[str, str]:
    """The environment of a confined process: nothing of the service's, and a home and temporary folder of its own.

    Without a folder, that of a process whose forks are confined later.
    """
    kept = {name: given[name] for name in (*_ENVIRONMENT, *_OWN) if name in given}
    return kept | _FIXED | ({} if temporary is None else dict.fromkeys(_OWN, str(temporary)))


def confine(own: Iterable[Path], temporary: Path, bounds: Bounds, *, read: Iterable[Path] = ()) -> None:
    """Confine this process for good: it reads `own`, `read` and the installation, and writes `own`; `temporary` lies in it.

    Raises OSError where the kernel offers something and then does not do it: such a process must not go on.
    """
    folders = [Path(folder).resolve() for folder in own]
    # Found before limits and rules, after which it cannot be.
    installation = [p for p in (*installed(), *read) if not any(f.is_relative_to(p) for f in folders)]
    _environment(temporary)
    _die_first()
    _limit(bounds)
    there = offered()
    if sys.platform == "linux":
        seccomp.no_new_privileges()
    if there.landlock:
        _one_thread()
        if _CGROUP.exists():
            # Held open for good: the kernel could forget the entry that the rule is about, and make another.
            os.open(_CGROUP, os.O_RDONLY | os.O_CLOEXEC)
        landlock.restrict([*installation, _CGROUP], [*folders, Path(os.devnull)])
    if there.seccomp:
        seccomp.restrict()


@cache
def installed() -> tuple[Path, ...]:
    """Where Python, its packages and the system's libraries lie; found once, and known to all forks."""
    paths = sysconfig.get_paths()
    found = [Path(p) for p in (*_SYSTEM, *sys.path) if p and Path(p).is_absolute()]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        found += [Path(prefix) / part for part in ("lib", "lib64", "share", "pyvenv.cfg")]
    found += [Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(p for p in dict.fromkeys(p.resolve() for p in found) if p.exists() and p != Path("/"))


def tasks_of_user() -> int | None:
    """How many tasks the user of this process may have once it is limited; None where that cannot be counted."""
    me, count = os.getuid(), 0
    try:
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with suppress(OSError):
                    if process.stat().st_uid == me:
                        count += len(list((process / "task").iterdir()))
    except OSError:
        return None
    return count + _MORE_TASKS


def close_inherited(*keep: int) -> None:
    """Let go of what a fork inherited: sockets, pipes, files of others. Files of the installation stay, as libraries hold them.

    A number is given to nothing rather than closed: code that closes it later must not close a new file instead.
    """
    listed = Path("/proc/self/fd")
    if not listed.is_dir():
        return
    nothing, places = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), installed()
    for number in [int(entry.name) for entry in listed.iterdir()]:
        if number > 2 and number not in (*keep, nothing):
            with suppress(OSError):
                if not any((listed / str(number)).readlink().is_relative_to(place) for place in places):
                    os.dup2(nothing, number, inheritable=False)
    os.close(nothing)


def _environment(temporary: Path) -> None:
    clean = clean_environment(os.environ, temporary)
    os.environ.clear()
    os.environ.update(clean)
    tempfile.tempdir = str(temporary)


def _die_first() -> None:
    """Have the kernel end this process, and not the server or a worker, when the machine runs out of memory."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit(bounds: Bounds) -> None:
    """Resource limits; one that the system holds lower already stays."""
    _lower(resource.RLIMIT_CORE, 0)
    if bounds.file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, bounds.file_bytes)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails with a sentence
    if bounds.cpu_seconds is not None:
        _lower(resource.RLIMIT_CPU, bounds.cpu_seconds)
    if bounds.tasks is not None:
        _lower(resource.RLIMIT_NPROC, bounds.tasks)
    if bounds.memory is not None:
        threads = 2 * processors() * _THREAD_BYTES
        _lower(resource.RLIMIT_AS, _addresses() + bounds.memory + threads + _SPARE_BYTES)


def _lower(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _addresses() -> int:
    """Addresses that this process has taken already, in bytes."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _one_thread() -> None:
    """Landlock holds the thread that asks for it and those that it starts: others would stay free."""
    tasks = Path("/proc/self/task")
    if tasks.is_dir() and len(list(tasks.iterdir())) > 1:
        raise OSError("threads were started before the sandbox")

"""Landlock: the kernel lets a process open only files below named folders, and the process can never undo that.

The C library has no functions for the calls of Landlock, so they are made by number, which is the same on all processors.
Landlock does not cover every kind of socket, so a filter of two system calls refuses all sockets.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ALL_V1 = (1 << 13) - 1
_NET = 3
"""Binding and connecting of TCP."""
_SCOPES = 3
"""Abstract Unix sockets, and signals to processes outside."""
# Without execute, since a job starts no program; loading a library is reading.
_READ = _READ_FILE | _READ_DIR
# Without links, devices, sockets and pipes, since a job makes plain files and folders.
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""Rights that apply to a rule about a file."""
_SYSTEM = (
    "/dev/urandom", "/dev/random", "/dev/zero", "/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory",
    "/sys/fs/cgroup",
)  # fmt: skip
"""Files that libraries read outside the installation; in /proc, only those that are the same for all processes."""
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER, _DEATH_SIGNAL = 38, 22, 2, 1
_SOCKETS = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}
"""By processor: its name for filters, and the calls `socket` and `io_uring_setup`, which makes sockets, too."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def is_offered() -> bool:
    """Return whether this kernel has Landlock, and the filter is known for this processor."""
    return sys.platform == "linux" and platform.machine() in _SOCKETS and _version() > 0


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        raise OSError("the parent ended")


def restrict(read: Iterable[Path], write: Iterable[Path]) -> None:
    """Let this thread, and all that it starts, open only these folders and make no sockets; raise OSError if that fails.

    Paths that do not exist are left out.
    """
    _prctl(_NO_NEW_PRIVS, 1)
    version = _version()
    if version < 1:
        raise OSError("no Landlock")
    files = _ALL_V1 | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    files |= _IOCTL_DEV if version >= 5 else 0
    ruleset = _Ruleset(files, _NET if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    handle = _checked(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    # It stays open, since the kernel could otherwise drop the entry of the rule and make another.
    os.open("/proc/self/", os.O_PATH | os.O_CLOEXEC)
    own = Path(f"/proc/{os.getpid()}")
    try:
        for paths, rights in (([*read, *map(Path, _SYSTEM), own], _READ), ([*write, Path(os.devnull)], _WRITE)):
            for path in paths:
                _allow(handle, path, rights & files)
        _checked(_RESTRICT_SELF, ctypes.c_int(handle), ctypes.c_uint32(0))
    finally:
        os.close(handle)
    _refuse_sockets()


def _refuse_sockets() -> None:
    """Install the filter: each instruction is code, jump if true, jump if not, value."""
    machine, *calls = _SOCKETS[platform.machine()]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
    # Calls of the x32 interface have other numbers, from 0x40000000 on.
    steps = [(load, 0, 0, 4), (equal, 0, 5, machine), (load, 0, 0, 0), (at_least, 3, 0, 0x40000000)]
    steps += [(equal, 2, 0, calls[0]), (equal, 1, 0, calls[1]), (answer, 0, 0, allow), (answer, 0, 0, refuse)]
    program = b"".join(struct.pack("=HBBI", *step) for step in steps)
    instructions = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    _prctl(_SET_SECCOMP, _FILTER, ctypes.byref(Program(len(steps), ctypes.addressof(instructions))))


def _version() -> int:
    """Return the version of Landlock's interface that this kernel has; 0 without Landlock."""
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def _prctl(option: int, *arguments: object) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *padded) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = _PathBeneath(rights, place)
        _checked(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_RULE_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


def _checked(number: int, *arguments: object) -> int:
    result = _call(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result

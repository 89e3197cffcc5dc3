"""A filter of system calls (seccomp): no sockets, no new processes or programs, no look into other processes.

What is refused answers EPERM, so that a library which tries it reports an error and no process is killed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 38, 22
_MODE_FILTER = 2
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000
_SECCOMP, _ACTION_AVAILABLE = (317, 277), 2

# name: (x86_64, aarch64); None where the processor has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # the network; io_uring would do the same past this filter
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200), "listen": (50, 201),
    "accept4": (288, 242), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # programs and processes
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "process_madvise": (440, 440),
    # the system
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "quotactl": (179, 60), "syslog": (103, 116), "mknod": (133, None), "mknodat": (259, 33),
    "personality": (135, 92), "symlink": (88, None), "symlinkat": (266, 36), "memfd_secret": (447, 447),
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147),
    "setresgid": (119, 149), "setgroups": (116, 159), "capset": (126, 91), "shmat": (30, 196), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
_TO_PROCESS = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
"""Calls whose first argument is a process: that may be none but this one."""
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def is_known() -> bool:
    """Whether there is a filter for this processor."""
    return sys.platform == "linux" and platform.machine() in _MACHINES and sys.maxsize > 2**32


def is_offered() -> bool:
    """Whether this kernel takes a filter that refuses calls, and we have one for this processor."""
    if not is_known():
        return False
    action = ctypes.c_uint32(_ERRNO)
    number = _SECCOMP[_MACHINES[platform.machine()][0]]
    asked = ctypes.CDLL(None).syscall(
        ctypes.c_long(number), ctypes.c_uint(_ACTION_AVAILABLE), ctypes.c_uint(0), ctypes.byref(action)
    )
    return bool(asked == 0)


def no_new_privileges() -> None:
    """Never gain privileges again, as by a program with the set-user-id bit; filters ask for it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")


def restrict() -> None:
    """Put the filter on this thread and all that it starts; raises OSError if the kernel does not take it."""
    if not is_known():
        raise OSError(errno.ENOSYS, "no filter for this machine")
    program = _program(*_MACHINES[platform.machine()], os.getpid())
    held = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(program) // 8, ctypes.addressof(held))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(given), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _program(column: int, machine: int, me: int) -> bytes:
    """The filter as a program of the kernel's small machine: each instruction is code, jump if true, jump if not, value."""
    refuse, absent = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    code = [_step(_LOAD, _ARCH), _step(_JUMP_EQUAL, machine, 1, 0), _step(_RETURN, refuse), _step(_LOAD, _NUMBER)]
    if column == 0:  # calls of the x32 interface have numbers of their own
        code += [_step(_JUMP_AT_LEAST, _X32, 0, 1), _step(_RETURN, refuse)]
    for numbers in _REFUSED.values():
        if (number := numbers[column]) is not None:
            code += [_step(_JUMP_EQUAL, number, 0, 1), _step(_RETURN, refuse)]
    # The C library falls back to clone, whose flags can be looked at, where clone3 is absent.
    code += [_step(_JUMP_EQUAL, _CLONE3[column], 0, 1), _step(_RETURN, absent)]
    # clone makes threads, and nothing else.
    code += [
        _step(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_JUMP_ANY, _CLONE_THREAD, 1, 0),
        _step(_RETURN, refuse),
        _step(_RETURN, _ALLOW),
    ]
    for process in _TO_PROCESS.values():
        code += [
            _step(_JUMP_EQUAL, process[column], 0, 5),
            _step(_LOAD, _FIRST_ARGUMENT),
            _step(_JUMP_EQUAL, me, 2, 0),
            _step(_JUMP_EQUAL, 0, 1, 0),
            _step(_RETURN, refuse),
            _step(_RETURN, _ALLOW),
        ]
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, if_true: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_not, value)

"""What the sandbox enforces on this machine: tried in a process of its own, and never taken from what the kernel claims."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.server.workers.sandbox.confine import Bounds, clean_environment, confine, offered

WARNING = (
    "WARNING: this kernel offers no {lacks}, so a process that opens an upload is not fully confined: a hole in a library that "
    "reads files could reach other files and the network. Use a newer kernel, and --require-sandbox. See docs/service.md."
)
REQUIRED = "require-sandbox: this machine does not enforce it ({missing}); use a kernel with Landlock and seccomp."
_CODE = "from crowdveil.server.workers.sandbox.trial import main; main()"
_SECRET = "CROWDVEIL_DATABASE_URL"
_ALL = ("files", "network")
_FILE_BYTES, _MEMORY = 1 << 20, 1 << 28


@dataclass(frozen=True)
class Attempt:
    """One thing that was tried: which part of the sandbox it belongs to, in words, and whether it was refused."""

    part: str
    what: str
    refused: bool


def check_sandbox(require: bool, say: Callable[[str], Any]) -> None:
    """Warn where the sandbox is not whole; raise where it must be."""
    there = offered()
    if not require:
        if not there.is_whole:
            say(WARNING.format(lacks=there.lacks()))
        return
    missing = [a.what for a in tried() if a.part in _ALL and not a.refused]
    if missing:
        raise ParameterError(REQUIRED.format(missing="; ".join(missing)))


def tried() -> list[Attempt]:
    """Try to leave the sandbox in every way that it is meant to close."""
    with tempfile.TemporaryDirectory(prefix="crowdveil-check-") as made, socket.socket() as listening:
        folder = Path(made).resolve()
        own, other = folder / "own", folder / "other"
        for each in (own, own / "tmp", other):
            each.mkdir(mode=0o700)
        (other / "secret").write_text("secret")
        (own / "link").symlink_to(other / "secret")
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        asked = {"own": str(own), "other": str(other), "port": listening.getsockname()[1], "process": os.getpid()}
        environment = clean_environment(os.environ, own / "tmp") | {_SECRET: "secret"}
        ran = subprocess.run(
            [sys.executable, "-P", "-c", _CODE], input=json.dumps(asked), capture_output=True, text=True, env=environment,
            timeout=120, check=False,
        )  # fmt: skip
        try:
            return [Attempt(*attempt) for attempt in json.loads(ran.stdout)]
        except ValueError:
            return [Attempt("files", "a confined process cannot be started", False)]


def main() -> None:
    """Be the process that tries."""
    asked = json.load(sys.stdin)
    own, other = Path(asked["own"]), Path(asked["other"])
    confine((own,), own / "tmp", Bounds(memory=_MEMORY, file_bytes=_FILE_BYTES, cpu_seconds=60, tasks=None))
    (own / "mine").write_text("mine")  # what must work
    json.dump([[part, what, _refused(do)] for part, what, do in _attempts(asked, own, other)], sys.stdout)


def _attempts(asked: dict[str, Any], own: Path, other: Path) -> list[tuple[str, str, Callable[[], Any]]]:
    return [
        ("files", "read a file outside the job's folder", lambda: (other / "secret").read_text()),
        ("files", "read it through a link in the job's folder", lambda: (own / "link").read_text()),
        ("files", "list a folder outside", lambda: list(other.iterdir())),
        ("files", "write a file outside", lambda: (other / "new").write_text("")),
        ("files", "give a file outside a name in the job's folder", lambda: os.link(other / "secret", own / "taken")),
        ("files", "make a link", lambda: (own / "new").symlink_to(other)),
        ("files", "read /etc/passwd", lambda: Path("/etc/passwd").read_text()),
        ("files", "read the environment of a process", lambda: Path("/proc/self/environ").read_bytes()),
        ("files", "read the memory of the server", lambda: Path(f"/proc/{asked['process']}/mem").open("rb").close()),
        ("network", "connect to a listener on this machine", lambda: _connect(asked["port"])),
        ("network", "make a socket for names (UDP)", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()),
        ("network", "make a Unix socket", lambda: socket.socket(socket.AF_UNIX).close()),
        ("processes", "start a process", _fork),
        ("processes", "run a program", lambda: _run(own / "absent")),
        ("processes", "send a signal to the server", lambda: os.kill(asked["process"], 0)),
        ("limits", "write a file larger than allowed", lambda: (own / "large").write_bytes(b"0" * (_FILE_BYTES + 1))),
        ("limits", "take more memory than allowed", lambda: bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])),
        ("environment", "see the address of the database", lambda: os.environ[_SECRET]),
    ]


def _refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except (OSError, MemoryError, KeyError):
        return True
    return False


def _connect(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def _run(absent: Path) -> None:
    try:
        os.execv(absent, ["absent"])
    except FileNotFoundError:
        return  # the kernel looked for it, so it would run one that is there


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()

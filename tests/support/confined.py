"""What a sandboxed process tries in tests: to read hostile files with libraries that trust them, and to leave the sandbox."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hostile


def read_files(folder: Path) -> dict[str, str]:
    """Read every file of a folder as readers did that trusted their libraries."""
    seen = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".omx":
            seen[path.name] = hostile.unsafe_matrix(path)
        elif path.suffix == ".parquet":
            import pyarrow.parquet as pq

            try:
                seen[path.name] = str(pq.read_table(path).nbytes)
            except (MemoryError, OSError) as error:
                seen[path.name] = type(error).__name__
        elif path.is_file():
            seen[path.name] = hostile.unsafe_zones(path)
    return seen


def attempts(asked: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return what a sandbox must refuse, by name."""
    other, secret, own = Path(asked["other"]), Path(asked["other"], "secret"), Path.cwd()

    def connect() -> None:
        with socket.create_connection(("127.0.0.1", asked["port"]), timeout=5):
            pass

    return {
        "read a file outside": secret.read_text,
        "read it through a link": (own / "link").read_text,
        "list a folder outside": lambda: list(other.iterdir()),
        "write a file outside": lambda: (other / "new").write_text(""),
        "give a file outside a name inside": lambda: os.link(secret, own / "taken"),
        "read /etc/passwd": Path("/etc/passwd").read_text,
        "read the environment of the server": lambda: Path(f"/proc/{asked['server']}/environ").read_bytes(),
        "read the memory of the server": lambda: Path(f"/proc/{asked['server']}/mem").open("rb").close(),
        "connect to this machine": connect,
        "write a large file": lambda: (own / "large").write_bytes(b"0" * (asked["file_bytes"] + 1)),
        "take more memory": lambda: bytearray(resource.getrlimit(resource.RLIMIT_DATA)[0]),
        "see the address of the database": lambda: os.environ["CROWDVEIL_DATABASE_URL"],
    }


def shared(asked: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return what Landlock alone leaves open."""
    secret = Path(asked["other"], "secret")
    return {
        "change the mode of a file outside": lambda: secret.chmod(0o777),
        "change its times": lambda: os.utime(secret, (1, 1)),
        "change its owner": lambda: os.chown(secret, os.getuid(), os.getgid()),
        "see that it is there": secret.stat,
        "signal the server": lambda: os.kill(asked["server"], signal.SIGCONT),
    }


def secrets() -> list[str]:
    """Return where this process holds anything that looks like a token: in its environment, or in its memory."""
    token, found = re.compile(rb"cv_[A-Za-z0-9_-]{43}"), []
    if token.search(Path("/proc/self/environ").read_bytes()):
        found.append("environment")
    with Path("/proc/self/mem").open("rb") as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            start, end = (int(text, 16) for text in line.split()[0].split("-"))
            with suppress(OSError, ValueError, OverflowError):  # what the kernel itself shares
                memory.seek(start)
                if line.split()[1].startswith("rw") and token.search(memory.read(end - start)):
                    found.append(line.split()[-1])
    return found


def send(port: int) -> None:
    """Send a datagram to this machine, if that is possible."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            sending.sendto(b"x", ("127.0.0.1", port))
    except OSError:
        return


def _refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except (OSError, MemoryError, KeyError):
        return True
    return False


def work(asked: dict[str, Any]) -> dict[str, Any]:
    """Try what a request asks for."""
    if asked.get("secrets"):
        return {"found": secrets()}
    if "port" not in asked:
        return read_files(Path.cwd())
    send(asked["datagrams"])
    if not asked["confined"]:
        return {
            name: _refused(do)
            for name, do in attempts(asked).items()
            if name not in ("write a large file", "take more memory")
        }
    return {name: _refused(do) for name, do in (attempts(asked) | shared(asked)).items()}

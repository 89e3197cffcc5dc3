"""The service under strain: broken files, many clients, a full queue, `kill -9`, a large upload, and its own description.

    python benchmarks/service.py [inside] [fuzz] [hostile] [load] [rate] [fair] [kill] [upload] [schema] [--small]

`inside` runs jobs with broken files in one process, without a server, so that there can be many of them. Each check ends with
an assertion, and prints what it saw. The last line is a ratio: the memory that the server grew by while it took a file, over
the size of the file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _bench import SMALL  # isort: skip  (it puts the helpers of the tests on the path)
import serving_checks as checks
from serving import Running, cabs
from serving_hostile import hostile, watched

HOSTILE = 5 if SMALL else 200
INSIDE, FUZZED, JOBS, CLIENTS, KILLED, EVERY_S, UPLOAD_MIB, EXAMPLES = (
    (20, 10, 6, 3, 3, 1.0, 16, 1) if SMALL else (10_000, 2000, 200, 20, 100, 1.0, 1024, 10)
)
RATE_S, RATE_LEAST = 5.0, 100


def with_service(check: Callable[[Running], Any], *arguments: str) -> Any:
    """Run a check on a service of its own."""
    with tempfile.TemporaryDirectory() as folder:
        service = Running(Path(folder), *arguments)
        service.make_token("anna")
        service.start()
        try:
            return check(service)
        finally:
            service.stop()


def load(service: Running) -> Any:
    """The first round warms the server up; memory is to be flat over the second."""
    checks.load(service, CLIENTS, CLIENTS)
    seen = checks.load(service, JOBS, CLIENTS)
    if seen["MiB after"] - seen["MiB before"] > 32:
        raise SystemExit(f"load: the server's memory grew: {seen}")
    return seen


def rate(service: Running) -> Any:
    """States of a job, asked for on one connection that stays open."""
    seen = checks.rate(service, RATE_S)
    if seen["requests a second"] < RATE_LEAST:
        raise SystemExit(f"rate: wanted at least {RATE_LEAST} requests a second: {seen}")
    return seen


def upload(service: Running) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        block = cabs(20_000, 5).encode()
        while file.tell() < UPLOAD_MIB << 20:
            file.write(block)
        file.flush()
        seen = checks.upload(service, Path(file.name))
    if seen["MiB grown"] > 100:
        raise SystemExit(f"upload: the server's memory grew: {seen}")
    return seen


def attacked() -> Any:
    """Files that attack their reader, to a service that strace watches."""
    with tempfile.TemporaryDirectory() as folder:
        service = Running(Path(folder))
        service.make_token("anna")
        return hostile(service, HOSTILE, seed=1)


def fuzzed() -> Any:
    """Broken files, to a service that strace watches."""
    with tempfile.TemporaryDirectory() as folder:
        service = Running(Path(folder))
        service.make_token("anna")
        with watched(service) as seen:
            answers = checks.fuzz(service, FUZZED, seed=1)
        return answers | seen


CHECKS: dict[str, Callable[[], Any]] = {
    "inside": lambda: checks.performed(INSIDE, seed=1),
    "fuzz": fuzzed,
    "hostile": attacked,
    "load": lambda: with_service(load),
    "rate": lambda: with_service(rate),
    "fair": lambda: with_service(lambda service: checks.fair(service, 50)),
    "kill": lambda: with_service(lambda s: checks.killing(s, KILLED, EVERY_S, seed=1)),
    "schema": lambda: with_service(lambda s: dict(checks.described(s, EXAMPLES, 1)), "--max-waiting", "1000000"),
    "upload": lambda: with_service(upload),
}


def main(wanted: list[str]) -> None:
    ratio = None
    for name in wanted or CHECKS:
        seen = CHECKS[name]()
        print(f"{name}: {seen}", flush=True)
        if name == "upload":
            ratio = seen["MiB grown"] / seen["MiB sent"]
    if ratio is not None:
        print(f"{ratio:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])

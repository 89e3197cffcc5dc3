"""What all tests share: the public data sets next to the checkout, and the command as a user runs it."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from examples import tries
from hypothesis import HealthCheck, settings

# Kernels compile at their first call and machines are loaded, so no example has a deadline, and none is too slow to make.
# A build machine tries the same examples each time.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=tries(100))
settings.register_profile("here", untimed)
settings.register_profile("ci", untimed, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Without it each process that imports numpy and scipy waits in a loop for work, 0.1 s of a processor.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell, from which commands that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules and tests are made once, and stay: to look for garbage among them takes a second.
gc.disable()

pytest_plugins = ("bad_input", "serving_fixtures", "spark_runs")

PROJECT = Path(__file__).resolve().parents[1]
REAL_DATA = PROJECT.parent / "shared" / "data"
COMMAND = (sys.executable, "-c", "from crowdveil.cli.main import main; main()")
IN_MEMORY = Path("/dev/shm")
SERVICES = ("server", "deploy", "spark", "test_doc_services.py")
"""Tests whose processes may not keep the kernels that they compile: other tests have compiled most of them before."""
LONG = ("test_stopped_commands.py", "test_third_party.py")
"""Tests that take seconds each: begun at the end, they would leave the other workers without work."""


def pytest_configure() -> None:
    """Let pictures have few pixels: what is drawn, and where, is the same. Not where guides draw those of the docs.

    And let files of tests lie in memory where there is much of it: no test is about the disk, whose work takes 3 % of the time.
    """
    os.environ["MATPLOTLIBRC"] = str(PROJECT / "tests" / "support" / "matplotlibrc")
    with suppress(AttributeError, OSError):  # another system than Linux
        folder = os.statvfs(IN_MEMORY)
        free = min(_memory(), folder.f_bavail * folder.f_frsize)
        if free >= 4 << 30 and os.access(IN_MEMORY, os.W_OK) and not folder.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def _memory() -> int:
    """Return the bytes of memory that there are for all processes."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        there = min(there, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return there


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for `-n auto`: two keep two cores busy while one waits for a service.

    Each takes up to 1.2 GiB, and services as much again, so that there are two where memory is small.
    """
    return 3 if _memory() >= 7 << 30 else 2


@cache
def _turn(path: Path) -> int:
    """Return 0 for usual tests, 1 for long ones and 2 for those of services."""
    first = path.relative_to(PROJECT / "tests").parts[0]
    return 2 if first in SERVICES else int(first in LONG)


@pytest.hookimpl(trylast=True)  # when those that are not wanted are gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of services behind three quarters of all, so that one worker runs them all and starts services once.

    The last of two or three workers begins before them; others take tests from the end of its queue when theirs is empty.
    Long tests are right before those of services.
    """
    items.sort(key=lambda item: _turn(item.path))
    usual = sum(_turn(item.path) == 0 for item in items)
    place = min(len(items) * 3 // 4, usual)
    items[place:] = items[usual:] + items[place:usual]
    gc.freeze()  # a million objects of modules and tests, which the collector would go through again and again
    gc.set_threshold(20_000, 20, 20)  # rarely: the collector took 3 % of the time
    gc.enable()


def pytest_unconfigure() -> None:
    """Leave what there is to the system when the process ends."""
    gc.freeze()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report of a test in a worker only what is counted or shown: to send and receive a report takes a millisecond.

    Every test has three reports, of which those of its preparation and its end matter where they did not pass.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or options.verbose > 0 or options.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of public data sets; tests that use it are marked `realdata`."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the public data sets are not at {REAL_DATA}")
    return REAL_DATA


@pytest.fixture(scope="session")
def commuting(realdata: Path) -> Path:
    """The folder of flows between counties, which was added later than the others."""
    if not (realdata / "commuting").is_dir():
        pytest.skip(f"there are no flows between counties at {realdata}")
    return realdata / "commuting"


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask 1,000 range queries of a window where a measure asks 100,000; for tests that are not about their answers."""
    from crowdveil.measures.trajectory import range_queries

    draw = range_queries.draw_queries

    def draw_few(compared: Any, params: Any, window: int) -> Any:
        return draw(compared, params.model_copy(update={"queries": min(params.queries, 1000)}), window)

    monkeypatch.setattr(range_queries, "draw_queries", draw_few)


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The message of a failure; fails where there is none, or more than two sentences."""
        if self.err.startswith("Usage: "):
            errors = [line for line in self.err.splitlines() if line.startswith("Error: ")]
            assert len(errors) == 1, self.err
            return errors[0]
        lines = self.err.splitlines()
        assert len(lines) == 1, f"Expected one line on stderr, got {len(lines)}:\n{self.err}"
        assert lines[0].startswith("crowdveil: "), self.err
        assert lines[0].endswith((".", "?")), self.err
        assert len(re.findall(r"[.!?] [A-Z]", lines[0])) <= 1, f"more than two sentences: {self.err}"
        return lines[0]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ran]]:
    """Run `crowdveil ARGS` in this process, as its entry point does; what libraries print below Python counts too."""
    from crowdveil.cli.main import main

    with suppress(ImportError):
        import pandas  # noqa: F401  # a command leaves it out of its process, where later tests need it

    before = signal.getsignal(signal.SIGTERM)

    def run(*args: object) -> Ran:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["crowdveil", *map(str, args)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        said = capfd.readouterr()
        assert isinstance(code, int)
        return Ran(code, said.out, said.err)

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def spawn() -> Callable[..., subprocess.Popen[str]]:
    """Start `crowdveil ARGS` as a process of its own."""

    def start(*args: object, **how: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            [*COMMAND, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONWARNINGS": "error::RuntimeWarning"}, **how,
        )  # fmt: skip

    return start

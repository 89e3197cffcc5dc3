"""What all tests share: the public data sets next to the checkout, and the command as a user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples import tries
from hypothesis import HealthCheck, settings

# Kernels compile at their first call and machines are loaded, so no example has a deadline, and none is too slow to make.
# A build machine tries the same examples each time.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=tries(100))
settings.register_profile("here", untimed)
settings.register_profile("ci", untimed, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell, from which commands that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ("bad_input", "serving_fixtures", "spark_runs")

PROJECT = Path(__file__).resolve().parents[1]
REAL_DATA = PROJECT.parent / "shared" / "data"
COMMAND = (sys.executable, "-c", "from crowdveil.cli.main import main; main()")


def pytest_configure() -> None:
    """Let pictures have few pixels: what is drawn, and where, is the same. Not where guides draw those of the docs."""
    os.environ["MATPLOTLIBRC"] = str(PROJECT / "tests" / "support" / "matplotlibrc")


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

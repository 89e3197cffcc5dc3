"""One number of threads for all: from the environment, or from the processors that the process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crowdveil
from crowdveil.engine import LocalEngine
from crowdveil.engine.threads import VARIABLE, environment_for, processors, thread_count
from crowdveil.errors import ParameterError
from crowdveil.io.duckdb_engine import engine


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for name in environment_for(1):
        monkeypatch.delenv(name, raising=False)


def test_affinity_counts_and_not_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processors() == thread_count() == LocalEngine().threads == 8
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == 64


def test_the_variable_is_obeyed_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")
    assert thread_count() == LocalEngine().threads == 3
    with engine() as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (3,)


@pytest.mark.parametrize("bad", ["0", "-1", "all", "1.5", "²"])
def test_a_bad_number_is_one_sentence(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, bad)
    with pytest.raises(ParameterError, match="CROWDVEIL_THREADS: Expected a number of threads of at least 1"):
        thread_count()


@pytest.mark.parametrize(("workers", "share"), [(0, "8"), (1, "8"), (3, "2"), (8, "1"), (100, "1")])
def test_workers_share_the_processors(workers: int, share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(environment_for(workers).values()) == {share}
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert environment_for(workers)["OMP_NUM_THREADS"] == "5"


def test_jobs_start_with_their_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from crowdveil.server.workers import sandbox

    started: dict[str, Any] = {}
    monkeypatch.setattr(sandbox.subprocess, "Popen", lambda *_, **how: started.update(how))
    sandbox.start("any", {}, tmp_path, sandbox.Bounds(), processes=4, how="nothing")
    assert started["env"][VARIABLE] == started["env"]["OMP_NUM_THREADS"] == "2"


def test_the_option_sets_it(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment_for(1):
        monkeypatch.setenv(name, "7")
    assert command("--threads", "2", "methods").code == 0 and os.environ[VARIABLE] == "2"


def test_no_other_place_counts_processors() -> None:
    sources = Path(crowdveil.__file__).parent.rglob("*.py")
    found = {path.name for path in sources if "cpu_count(" in path.read_text(encoding="utf-8")}
    assert found == {"threads.py"}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_a_process_on_one_processor_has_one_thread() -> None:
    one = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    code = f"{one}; from crowdveil.engine import threads; print(threads.thread_count())"
    clean = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"

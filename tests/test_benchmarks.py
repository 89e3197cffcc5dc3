"""Each benchmark runs in its small size, and ends with a ratio."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
ELSEWHERE = {"service": "takes many minutes in its small size, too; tests/server/test_checks.py runs its checks"}
"""Benchmarks that other tests run."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.stem for p in BENCHMARKS.glob("[a-z]*.py") if p.stem not in ELSEWHERE))
def test_a_benchmark_runs_in_its_small_size(name: str) -> None:
    if name == "spark":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            pytest.skip("needs Java")
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--small"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=BENCHMARKS.parent)
    if "there is nothing to measure" in ran.stderr or "skipped" in ran.stdout:
        pytest.skip("needs public data that are not here")
    assert ran.returncode == 0, ran.stderr[-2000:]
    figure = ran.stdout.strip().splitlines()[-1].split(": ")[-1].split(" ")[0]
    assert float(figure.replace(",", "")) >= 0

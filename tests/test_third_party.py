"""A method in a package of its own: installed for real, then found, run and verified like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "example_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example package can be imported."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-build-isolation", "--no-index", "--target", str(target), str(PACKAGE)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(target)}


def _crowdveil(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from crowdveil.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)


def test_it_is_listed_and_has_help(installed: dict[str, str]) -> None:
    assert "top-flows" in _crowdveil(installed, "methods").stdout
    shown = _crowdveil(installed, "anonymize", "top-flows", "--help").stdout
    assert "--most" in shown and "--zones" in shown


def test_it_runs_and_is_verified(installed: dict[str, str], tmp_path: Path) -> None:
    flows = tmp_path / "flows.csv"
    flows.write_text("origin,destination,volume\na,b,30\nb,a,20\na,a,4\n")
    out = tmp_path / "out"
    done = _crowdveil(installed, "anonymize", "top-flows", str(flows), "--most", "1", "--format", "csv", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert (out / "flows.csv").read_text().splitlines()[1:] == [",a,b,30,30,published"]
    assert _crowdveil(installed, "verify", str(out)).returncode == 0


def test_without_the_package_it_is_unknown() -> None:
    done = _crowdveil(
        {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, "anonymize", "top-flows", "x", "-o", "y"
    )
    assert done.returncode == 2 and "there is no method top-flows" in done.stderr

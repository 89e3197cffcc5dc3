"""A method in a package of its own: installed for real, then found, run and verified like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "example_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example package can be imported."""
    pytest.importorskip("hatchling", reason="nothing here builds packages")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-build-isolation", "--no-index", "--target", str(target), str(PACKAGE)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(target)}


_COMMANDS = """
import sys
from crowdveil.cli.main import main
for line in sys.argv.pop(1).split("|"):
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
"""


def _crowdveil(environment: dict[str, str], *commands: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run commands in one process, up to the first that fails: most of the time of a command is its start."""
    called = [sys.executable, "-c", _COMMANDS, "|".join(commands)]
    return subprocess.run(called, env=environment, capture_output=True, text=True, **how)


def test_it_is_listed_has_help_runs_and_is_verified(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("origin,destination,volume\na,b,30\nb,a,20\na,a,4\n")
    done = _crowdveil(
        installed, "methods", "anonymize top-flows --help",
        "anonymize top-flows flows.csv --most 1 --format csv -o out", "verify out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed, _, shown = done.stdout.partition("Usage:")
    assert "top-flows" in listed and "--most" in shown and "--zones" in shown
    assert (tmp_path / "out" / "flows.csv").read_text().splitlines()[1:] == [",a,b,30,30,published"]
    assert "out: verified and written" in shown


def test_without_the_package_it_is_unknown() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = _crowdveil(environment, "anonymize top-flows x -o y")
    assert done.returncode == 2 and "there is no method top-flows" in done.stderr

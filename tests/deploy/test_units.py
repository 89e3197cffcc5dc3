"""The examples for operators: units that systemd accepts, a proxy configuration that its program accepts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from crowdveil.cli.main import load_command

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
EXPOSURE_MOST = 2.0
"""Of 10, as `systemd-analyze security` rates a unit."""


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd is not installed")
    return found


def test_units_are_accepted(analyze: str, tmp_path: Path) -> None:
    for unit in UNITS:
        # The program lies elsewhere on the machine of the test.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M)
        (tmp_path / unit.name).write_text(text)
    ran = subprocess.run([analyze, "verify", *map(str, tmp_path.iterdir())], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.stem)
def test_units_are_hardened(unit: Path, analyze: str) -> None:
    ran = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True
    )
    found = re.search(r"exposure level for \S+: ([0-9.]+)", ran.stdout)
    assert found is not None, ran.stderr
    assert float(found[1]) <= EXPOSURE_MOST


@pytest.mark.parametrize("unit", ["crowdveil.service", "crowdveil-worker.service"])
def test_a_job_that_is_ended_for_want_of_memory_does_not_end_the_service(unit: str) -> None:
    text = (DEPLOY / "systemd" / unit).read_text()
    assert re.search("^MemoryMax=", text, re.M) and re.search("^OOMPolicy=continue$", text, re.M)


def test_proxies_name_the_address_of_the_unit() -> None:
    unit = (DEPLOY / "systemd" / "crowdveil.service").read_text()
    assert "--host" not in unit and "--port" not in unit  # 127.0.0.1:8000
    for proxy in ("nginx.conf", "Caddyfile"):
        assert "127.0.0.1:8000" in (DEPLOY / proxy).read_text()


@pytest.mark.parametrize("unit", ["crowdveil.service", "crowdveil-worker.service"])
def test_units_give_options_that_there_are(unit: str) -> None:
    found = re.search(r"^ExecStart=\S+ server (\w+) (.*)$", (DEPLOY / "systemd" / unit).read_text(), re.M)
    assert found is not None
    group = load_command("server")
    assert isinstance(group, click.Group)
    command = group.commands[found[1]]
    command.make_parser(click.Context(command)).parse_args(found[2].split())


def test_caddy_accepts_its_file() -> None:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("Caddy is not installed")
    ran = subprocess.run([caddy, "validate", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"],
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_container_runs_without_root() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    stages = text.split("FROM ")[1:]
    assert len(stages) == 2 and re.search(r"^USER 10001:10001$", stages[-1], flags=re.M)

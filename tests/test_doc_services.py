"""Commands of the docs that need a service, a database or Spark run as they are written, against ones that the test starts.

Only what names another machine is replaced: addresses, folders of the system, tokens, ids of jobs and uploads. `pip` is not run.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from doc_pages import ROOT, blocks
from serving import free_port, until

pytestmark = pytest.mark.slow

OPERATE = "operate-the-service.md"
ADDRESS, ID = "https://crowdveil.example.org", "30c2ad9df0f9470abfd8198b4cb4f86a"
# Commands of an operator with rights of root: made harmless, so that the rest of their block runs.
SHELL = """
set -e
curl() { command curl --no-progress-meter --fail-with-body "$@"; }
pip() { :; }
useradd() { :; }
sudo() { shift 2; "$@"; }
install() { mkdir -p "${!#}"; }
"""
INPUT = """
crowdveil synth trips 110000 --tiles 64 --people 20000 --days 1 --zones-out zones.geojson -o trips.csv
crowdveil synth trips 110000 --tiles 64 --people 20000 --days 1 --zones-out zones.geojson -o trips.parquet --overwrite
crowdveil synth trajectories 120 -o cabs.csv
crowdveil synth trajectories 120 -o cabs.parquet
"""
TRACKS = "crowdveil anonymize microaggregation cabs.csv -o tracks/ --pairing kept.csv"


class Folder:
    """A folder with a home of its own, in which commands of a page run one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replaced: dict[str, str] = {}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        clean = {n: v for n, v in os.environ.items() if not n.startswith(("CROWDVEIL_", "XDG_"))}
        self.environment = {**clean, "PATH": programs, "HOME": str(path / "home")}
        (path / "home").mkdir()

    def written(self, text: str) -> str:
        """Return commands with the names of other machines replaced."""
        for name, value in self.replaced.items():
            text = text.replace(name, value)
        return text

    def run(self, text: str) -> str:
        """Run commands, and return what they print; fail if one of them does."""
        done = subprocess.run(
            ["bash", "-c", SHELL + self.written(text)], cwd=self.path, env=self.environment, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.written(text)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def use_job(self, printed: str) -> None:
        """Put the id of a job or an upload, which was printed, into the commands that follow."""
        (self.replaced[ID],) = set(re.findall(r"\b[0-9a-f]{32}\b", printed))


def lines(block: str) -> list[str]:
    """Return the commands of a block."""
    return block.replace("\\\n", " ").splitlines()


@contextmanager
def serving(folder: Folder, command: str) -> Iterator[None]:
    """Start a service or a worker as a page says, wait until it answers, and stop it afterwards."""
    command = re.sub("^sudo -u [a-z]+ ", "", folder.written(command.partition("#")[0]))
    port, starts = free_port(), " server start" in command
    if starts:
        command += f" --port {port}"
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder.path, env=folder.environment)
    try:
        if starts:
            folder.replaced[ADDRESS] = f"http://127.0.0.1:{port}"
            _wait_until_healthy(process, folder.replaced[ADDRESS])
        yield
        assert process.poll() is None, command
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    assert code == 0, command


def _wait_until_healthy(process: subprocess.Popen[bytes], address: str) -> None:
    ask = ["curl", "--silent", "--fail", f"{address}/health"]
    patience = time.monotonic() + 120
    while subprocess.run(ask, stdout=subprocess.DEVNULL, check=False).returncode:
        assert process.poll() is None and time.monotonic() < patience, address
        time.sleep(0.1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files by the names that pages give them: trips, zones, cabs."""
    made = Folder(tmp_path_factory.mktemp("files"))
    made.run(INPUT)
    return made.path


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Folder:
    pytest.importorskip("fastapi")
    for file in files.glob("*.*"):
        shutil.copy(file, tmp_path)
    return Folder(tmp_path)


@pytest.fixture
def service(folder: Folder) -> Iterator[Folder]:
    """A folder next to a service with a token, which pages write as an address and `cv_…`."""
    token = folder.run("crowdveil server token create user").split()[-1]
    folder.replaced["cv_…"] = folder.environment["CROWDVEIL_TOKEN"] = token
    with serving(folder, "crowdveil server start"):
        yield folder


def console(page: str, holding: str) -> str:
    """Return the one block of commands on a page that holds a text."""
    (found,) = (body for kind, body in blocks(ROOT / "docs" / page) if kind == "console" and holding in body)
    return found


def finished(service: Folder) -> None:
    """Wait for the job whose id the next commands have."""
    while re.search(
        r'"state":\s*"(queued|running)"', service.run(f'curl -H "Authorization: Bearer cv_…" {ADDRESS}/jobs/{ID}')
    ):
        time.sleep(0.2)


def test_commands_with_a_server(service: Folder) -> None:
    service.run(TRACKS)
    service.run(console("service.md", "export CROWDVEIL_SERVER"))
    assert {"out", "map", "profiles.csv", "clean.csv"} <= {path.name for path in service.path.iterdir()}
    service.environment["CROWDVEIL_SERVER"] = service.replaced[ADDRESS]
    service.use_job(service.run("crowdveil anonymize joint trips.parquet --zones zones.geojson -o x --detach"))
    service.run(console("service.md", "crowdveil server jobs"))
    assert (service.path / "later" / "manifest.json").is_file()


def test_a_job_over_http(service: Folder) -> None:
    submit, *later = lines(console("service.md", "-F data=@trips.parquet"))
    service.use_job(service.run(submit))
    finished(service)
    service.run("\n".join(later))
    assert list(service.path.glob("*.zip"))


def test_an_upload(service: Folder) -> None:
    start, submit = lines(console("service.md", "/uploads?name"))
    service.use_job(service.run(start))
    service.use_job(service.run(submit))
    finished(service)
    service.run(f'curl -H "Authorization: Bearer cv_…" {ADDRESS}/jobs/{ID}/result -o result.zip')


def test_tokens_audit_and_reviews(folder: Folder) -> None:
    folder.run(console(OPERATE, "token revoke"))
    scopes = {"carla": "", "rina": "--scope review"}
    secrets = {n: folder.run(f"crowdveil server token create {n} {how}").split()[-1] for n, how in scopes.items()}
    commands = lines(console(OPERATE, "review approve"))
    with serving(folder, "crowdveil server start --four-eyes"):
        folder.environment |= {"CROWDVEIL_SERVER": folder.replaced[ADDRESS], "CROWDVEIL_TOKEN": secrets["rina"]}
        for part in (commands[:3], commands[3:]):  # a decision is final, so the last one is about another job
            send = "crowdveil anonymize joint trips.parquet --zones zones.geojson -o x --detach"
            folder.use_job(folder.run(f"CROWDVEIL_TOKEN={secrets['carla']} {send}"))
            while folder.replaced[ID] not in folder.run("crowdveil server review list"):
                time.sleep(0.2)
            folder.run("\n".join(part))
    folder.run(console(OPERATE, "server audit"))


@pytest.mark.parametrize("holding", ["the first start prints a token", "useradd"])
def test_a_service_starts(folder: Folder, tmp_path: Path, holding: str) -> None:
    folder.replaced |= {"/var/lib/crowdveil": str(tmp_path / "lib")}
    *before, start = lines(console(OPERATE, holding))
    folder.run("\n".join(before))
    with serving(folder, start):
        pass


def test_a_service_with_postgresql(folder: Folder, postgres: str, tmp_path: Path) -> None:
    folder.replaced |= {"postgresql://crowdveil@db/crowdveil": postgres, "/shared/crowdveil": str(tmp_path / "shared")}
    _, serve, worker = lines(console(OPERATE, "--database-url postgresql"))
    with serving(folder, serve), serving(folder, worker):
        until(lambda: httpx.get(f"{folder.replaced[ADDRESS]}/ready", timeout=30).status_code == 200, 60)


def test_commands_on_spark(folder: Folder, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    folder.run(
        "crowdveil synth trips 4000 --tiles 16 --people 400 --days 1 --zones-out zones.geojson -o trips.parquet --overwrite"
    )
    # Those need a cluster and a catalog; tests of Spark submit a program and read a table.
    elsewhere = ("spark-submit", "--table")
    consoles = [b for kind, b in blocks(ROOT / "docs" / "spark.md") if kind == "console"]
    for block in consoles:
        if not any(word in block for word in elsewhere):
            folder.run(block)
    assert (tmp_path / "out" / "report.html").is_file()

"""Each extra, installed from the wheel into an environment of its own, does its job; without it, one sentence names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRIPS = ("trips.parquet", "--zones", "zones.geojson")
FRAMES = """
import geopandas, pandas, crowdveil
zones = geopandas.read_file("zones.geojson")
crowdveil.anonymize(pandas.read_parquet("trips.parquet"), "of-frames", method="suppression", zones=zones, k=2, report=False)
"""
POLARS = """
import crowdveil
flows = crowdveil.anonymize("trips.parquet", method="suppression", zones="zones.geojson", k=2, report=False).flows.to_polars()
"""
SERVE = """
import subprocess, sys
line = [sys.executable, "-c", "from crowdveil.cli.main import main; main()", "server", "start", "--port", "0", "--workers", "0",
        "--data-dir", "service"]
with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as service:
    said = []
    for said_line in service.stdout:
        said.append(said_line)
        if "ready" in said_line:
            break
    service.terminate()
sys.stderr.write("".join(said))
sys.exit(0 if said and "ready" in said[-1] else 2)
"""
JOBS: dict[str, tuple[str, ...]] = {
    "analysis": ("anonymize", "glove-sk", *TRIPS, "--k", "5", "--no-report", "-o", "glove-sk"),
    "omx": ("flows", *TRIPS, "-o", "flows.omx"),
    "pandas": ("-c", FRAMES),
    "polars": ("-c", POLARS),
    "postgres": (
        "server",
        "token",
        "create",
        "anna",
        "--data-dir",
        "d",
        "--database-url",
        "postgresql://anna@127.0.0.1:1/none",
    ),
    "server": ("-c", SERVE),
    "spark": ("anonymize", "suppression", *TRIPS, "--k", "5", "--no-report", "-o", "on-spark", "--engine", "spark"),
}
"""What each extra is for: arguments of `crowdveil`, or of Python after -c."""
NO_DATABASE = "postgres"
"""Its job ends at a database that does not answer, which needs the package."""

pytestmark = pytest.mark.slow


def _run(line: list[str], **how: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(line, capture_output=True, text=True, env=environment, **how)  # type: ignore[call-overload, no-any-return]


def _install(python: Path, what: str) -> None:
    done = _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what])
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("packages cannot be fetched here")
    assert done.returncode == 0, done.stderr


def _job(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = ("-c", "from crowdveil.cli.main import main; main()")
    return _run([str(python), *(() if arguments[0] == "-c" else code), *arguments], cwd=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("wheel")
    done = _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (made,) = target.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel alone."""
    folder = tmp_path_factory.mktemp("core") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    _install(folder / "bin" / "python", str(wheel))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def folder(core: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips, zones and a release, all made by the wheel alone: the core needs no extra."""
    made = tmp_path_factory.mktemp("data")
    city = ("--tiles", "64", "--people", "400", "--days", "1", "--zones-out", "zones.geojson")
    for line in (
        ("synth", "trips", "3000", *city, "-o", "trips.parquet"),
        ("anonymize", "suppression", *TRIPS, "--k", "5", "-o", "out"),
        ("verify", "out"),
    ):
        done = _job(core, made, *line)
        assert done.returncode == 0, done.stderr
    return made


def _with_extra(core: Path, wheel: Path, extra: str, target: Path) -> Path:
    """Return the Python of an environment with one extra: that of the core, to which pip adds what is missing."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target)], check=True)
    packages = next((core.parents[1] / "lib").glob("python*")) / "site-packages"
    shutil.copytree(
        packages, next((target / "lib").glob("python*")) / "site-packages", dirs_exist_ok=True, copy_function=os.link
    )
    _install(target / "bin" / "python", f"{wheel}[{extra}]")
    return target / "bin" / "python"


@pytest.mark.parametrize("extra", JOBS)
def test_an_extra_alone_does_its_job_and_is_named_where_it_is_missing(
    extra: str, wheel: Path, core: Path, folder: Path, tmp_path: Path
) -> None:
    if extra == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    without = _job(core, folder, *JOBS[extra])
    assert without.returncode != 0
    if extra != "pandas":  # there, the user's own import fails
        sentence = without.stderr.strip().splitlines()[-1]
        named = "server" if extra == "postgres" else extra
        code = 1 if extra == "polars" else 2  # an error that ends Python, or a command
        assert without.returncode == code and f"crowdveil[{named}]" in sentence, without.stderr
    done = _job(_with_extra(core, wheel, extra, tmp_path / "venv"), folder, *JOBS[extra])
    if extra == NO_DATABASE:
        assert done.returncode == 2 and "needs the package" not in done.stderr, done.stderr
        assert "Internal error" not in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stderr

"""Readers refuse files that attack them, by themselves: here is no sandbox around them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyogrio
import pytest
from hostile import SECRET, Hostile, Listener, make_secret, unsafe_matrix, unsafe_zones

from conftest import Ran
from crowdveil.errors import InputError
from crowdveil.io.omx import read_omx
from crowdveil.io.zones import read_zones

_READ = """
import sys
from pathlib import Path
from crowdveil.errors import InputError
from crowdveil.io.omx import read_omx
from crowdveil.io.zones import read_zones
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        (read_omx if path.suffix == ".omx" else read_zones)(path)
        print("read", path.name)
    except InputError:
        pass
"""


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Listener]]:
    """A folder of hostile files, the secret that they are after, and who listens."""
    folder, secret = tmp_path_factory.mktemp("hostile"), make_secret(tmp_path_factory.mktemp("secret"))
    with Listener() as listener:
        made = Hostile(secret, listener.url)
        for name, content in (made.zones() | made.matrices()).items():
            (folder / name).write_bytes(content)
        yield folder, secret, listener


def names() -> list[str]:
    made = Hostile(Path("secret.csv"), "")
    return [*made.zones()]


@pytest.mark.parametrize("name", names())
def test_hostile_zones_are_refused(name: str, attack: tuple[Path, Path, Listener]) -> None:
    folder, _, listener = attack
    with pytest.raises(InputError) as refused:
        read_zones(folder / name)
    assert SECRET not in str(refused.value) and listener.asked == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("storage", "data in other files"),
        ("link", "holds links"),
        ("virtual", "data in other files"),
        ("soft", "holds links"),
        ("away", "holds links"),
        ("own_type", "named types|neither numbers"),
        ("records", "neither numbers nor texts"),
        ("large", "more than 4,000,000,000 values"),
        ("large_pieces", "chunks of more than 256 MiB"),
        ("group", "holds links"),
    ],
)
def test_hostile_matrices_are_refused(name: str, says: str, attack: tuple[Path, Path, Listener]) -> None:
    with pytest.raises(InputError, match=says):
        read_omx(attack[0] / f"{name}.omx")


def test_the_attacks_are_real(attack: tuple[Path, Path, Listener]) -> None:
    """The libraries give the secret away where they are let, so that refusing means something."""
    folder, _, listener = attack
    pipelines = ("gdalg.json", "gdalg.geojson") if pyogrio.__gdal_version__ >= (3, 11) else ()
    assert all(SECRET in unsafe_zones(folder / name) for name in (*pipelines, "vrt.geojson", "vrt.gpkg", "vrt.shp"))
    assert all(SECRET[:8] in unsafe_matrix(folder / f"{name}.omx") for name in ("link", "virtual"))
    assert "id,WKT" in unsafe_matrix(folder / "storage.omx")
    before = listener.asked
    unsafe_zones(folder / "crs-link.geojson")
    assert listener.asked > before
    listener.asked = before


@pytest.mark.slow
def test_readers_open_nothing_else_and_ask_nobody(attack: tuple[Path, Path, Listener], tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    folder, secret, listener = attack
    seen = tmp_path / "seen"
    ran = subprocess.run(
        ["strace", "-f", "-o", seen, "-e", "trace=open,openat,socket,connect,execve", sys.executable, "-c", _READ, folder],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.stdout == ""
    calls = seen.read_text()
    assert calls.count(str(folder)) > 30
    assert str(secret.parent) not in calls and listener.asked == 0
    assert not re.search(r"(socket|connect)\(.*AF_INET", calls)


@pytest.mark.parametrize("name", ["gdalg.json", "vrt.geojson", "crs-link.geojson", "virtual.gpkg", "link.zip"])
def test_hostile_zones_on_the_command_line(
    name: str, attack: tuple[Path, Path, Listener], command: Callable[..., Ran], tmp_path: Path
) -> None:
    trips = tmp_path / "trips.csv"
    trips.write_text("origin,destination\na,a\n")
    ran = command("anonymize", "joint", trips, "--zones", attack[0] / name, "-o", tmp_path / "out")
    assert ran.code == 2 and SECRET not in ran.sentence and not (tmp_path / "out").exists()

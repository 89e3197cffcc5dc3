"""A folder as a zip file: the same bytes whenever, and nothing of a zip file is trusted."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.archive import check_archive, pack, unpack

FILES = {"manifest.json": b"{}", "flows.parquet": b"PAR1" * 1000, "areas.geojson": b"[]" * 5000}
PARTS = {
    "manifest.json": b"{}",
    "flows.parquet/part-00000.parquet": b"PAR1",
    "flows.parquet/part-00001.parquet": b"PAR1" * 9,
}


def folder_of(where: Path, order: list[str]) -> Path:
    where.mkdir()
    for i, name in enumerate(order):
        (where / name).write_bytes(FILES[name])
        os.utime(where / name, (i * 1e8, i * 1e8))
        (where / name).chmod(0o600 + i)
    return where


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    for i, order in enumerate((list(FILES), list(FILES)[::-1])):
        pack(folder_of(tmp_path / f"from{i}", order), tmp_path / f"{i}.zip")
    assert (tmp_path / "0.zip").read_bytes() == (tmp_path / "1.zip").read_bytes()
    unpack(tmp_path / "0.zip", tmp_path / "back", 1 << 20)
    assert {p.name: p.read_bytes() for p in (tmp_path / "back").iterdir()} == FILES


def test_rows_in_a_folder_of_parts_are_packed_too(tmp_path: Path) -> None:
    (tmp_path / "from" / "flows.parquet").mkdir(parents=True)
    for name, content in PARTS.items():
        (tmp_path / "from" / name).write_bytes(content)
    pack(tmp_path / "from", tmp_path / "a.zip")
    unpack(tmp_path / "a.zip", tmp_path / "back", 1 << 20)
    assert {name: (tmp_path / "back" / name).read_bytes() for name in PARTS} == PARTS
    assert len(list((tmp_path / "back").rglob("*"))) == len(PARTS) + 1


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/b", "a\\b", "..", "", ".x", "né", "../x.parquet/b", "a.parquet/../b", "a.parquet/b/c"]
)
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        entry = zipfile.ZipInfo("placeholder")
        entry.filename = name
        archive.writestr(entry, b"1")
    with pytest.raises(InputError, match=r"a\.zip: Expected|a\.zip: the zip file is broken"):
        unpack(tmp_path / "a.zip", tmp_path / "out", 1 << 20, "a.zip")
    assert not (tmp_path / "out").exists() and not (tmp_path.parent / "x").exists()


def test_links_locks_and_bombs_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1 << 20))
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"1")
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("A", b"1")
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        archive.writestr("a.parquet", b"1")
        archive.writestr("A.parquet/b", b"1")
    for name, says in (
        ("both", "distinct names"),
        ("link", "no links"),
        ("bomb", "unpacked files are too large"),
        ("lzma", "stored or deflated"),
        ("twice", "distinct names"),
    ):
        with pytest.raises(InputError, match=says):
            check_archive(tmp_path / f"{name}.zip", name, 1000)


@given(st.data())
def test_broken_zip_files_are_refused_or_read(data: st.DataObject) -> None:
    import tempfile

    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    content = bytearray(held.getvalue())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zip"
        path.write_bytes(bytes(content))
        with suppress(InputError):  # any other error is a fault
            unpack(path, Path(folder) / "out", 1 << 20)

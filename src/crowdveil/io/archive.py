"""A folder of plain files as one zip file, and back. The same files make the same bytes; nothing of a zip file is trusted."""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from crowdveil.errors import InputError

FILES_MOST = 64
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=, -]{0,119}")
"""A name that means the same everywhere, and no other place than the folder that it stands in."""
_WHEN = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20
_PACKED = (".parquet", ".pq", ".png", ".zip")
"""Endings of files that are packed by themselves."""


def pack(folder: Path, target: Path) -> None:
    """Write the files of a folder, in the order of their names and without times or owners."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(p for p in folder.iterdir() if p.is_file()):
            entry = zipfile.ZipInfo(path.name, _WHEN)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_STORED if path.suffix in _PACKED else zipfile.ZIP_DEFLATED
            entry.file_size = path.stat().st_size  # so that large ones get the fields that they need
            with path.open("rb") as source, archive.open(entry, "w") as packed:
                while piece := source.read(_PIECE):
                    packed.write(piece)


def check_archive(path: Path, name: str, most: int) -> None:
    """Raise unless a zip file holds plain files that together are no larger than `most` bytes. Unpacks nothing."""
    with _opened(path, name) as archive:
        _entries(archive, name, most)


def unpack(path: Path, folder: Path, most: int, name: str = "release.zip") -> None:
    """Write the files of a zip file into a folder that is new or empty."""
    with _opened(path, name) as archive:
        entries = _entries(archive, name, most)
        folder.mkdir(exist_ok=True)
        for entry in entries:
            write_entry(archive, entry, folder / entry.filename, name)


def _opened(path: Path, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, OverflowError):
        raise _broken(name) from None


def _entries(archive: zipfile.ZipFile, name: str, most: int) -> list[zipfile.ZipInfo]:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if not entries or len(entries) > FILES_MOST or len({n.lower() for n in names}) < len(names):
        raise InputError(name, f"wanted a zip file of 1 to {FILES_MOST} files with different names.")
    if not all(PLAIN_NAME.fullmatch(n) for n in names):
        raise InputError(name, "wanted plain files without folders in the zip file; pack those of a release alone.")
    for entry in entries:
        if not is_plain_entry(entry):
            raise InputError(name, "wanted plain files in the zip file, no links and nothing encrypted.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(name, "wanted files that are stored or deflated in the zip file.")
    if sum(entry.file_size for entry in entries) > most:
        raise InputError(name, f"the zip file is too large once it is unpacked; at most {most >> 20:,} MiB may be.")
    return entries


def is_plain_entry(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry of a zip file is a plain file: no link, no device, nothing encrypted."""
    return stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG) and not entry.flag_bits & 0x1


def write_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, name: str) -> None:
    """Write a file out of a zip file, of no more than the size that it says; `name` is what messages call the zip file."""
    # x: nothing that is there is written over, and no link is followed.
    with target.open("xb") as file:
        for piece in _pieces(archive, entry, name):
            file.write(piece)


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """The content of a file; whatever is wrong with it, the zip file is broken, and so it is if it is larger than it says."""
    left = entry.file_size
    try:
        with archive.open(entry) as packed:
            while piece := packed.read(min(_PIECE, left + 1)):
                left -= len(piece)
                if left < 0:
                    raise _broken(name)
                yield piece
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, OSError, zlib.error):
        raise _broken(name) from None


def _broken(name: str) -> InputError:
    return InputError(name, "the zip file is broken; pack it anew.")

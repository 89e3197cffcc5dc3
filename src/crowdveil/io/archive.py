"""Pack the files of a release as a zip file, and unpack it.

Equal files give equal bytes. The rows of a large release are a folder of Parquet files, the only folder that a zip file may have.
A zip file is untrusted input: names, sizes and kinds of entries are checked.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from crowdveil.errors import InputError

MAX_FILES = 4096
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=, -]{0,119}")
"""A file name that is valid on every system and cannot leave its folder."""
_ENTRY = re.compile(rf"({PLAIN_NAME.pattern}\.parquet/)?{PLAIN_NAME.pattern}")
"""The name of an entry: a file, or a file in a folder of Parquet files."""
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
_CHUNK_BYTES = 1 << 20
_COMPRESSED = (".parquet", ".pq", ".png", ".zip")
"""Suffixes of formats that are compressed already."""


def pack(folder: Path, target: Path) -> None:
    """Write the files of a folder as a zip file, sorted by name, without times or owners."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _FIXED_DATE)
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_STORED if path.suffix in _COMPRESSED else zipfile.ZIP_DEFLATED
            entry.file_size = path.stat().st_size  # large entries need 64-bit fields
            with path.open("rb") as source, archive.open(entry, "w") as packed:
                while chunk := source.read(_CHUNK_BYTES):
                    packed.write(chunk)


def check_archive(path: Path, name: str, max_bytes: int) -> None:
    """Raise unless a zip file holds plain files of at most `max_bytes` bytes in total. Unpack nothing."""
    with open_archive(path, name) as archive:
        _check_entries(archive, name, max_bytes)


def unpack(path: Path, folder: Path, max_bytes: int, name: str = "release.zip") -> None:
    """Write the files of a zip file into a folder that is new or empty."""
    with open_archive(path, name) as archive:
        entries = _check_entries(archive, name, max_bytes)
        folder.mkdir(exist_ok=True)
        for entry in entries:
            target = folder / entry.filename
            target.parent.mkdir(exist_ok=True)
            write_entry(archive, entry, target, name)


def open_archive(path: Path, name: str) -> zipfile.ZipFile:
    """Open a zip file; `name` is its name in messages."""
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, OverflowError):
        raise _broken(name) from None


def _check_entries(archive: zipfile.ZipFile, name: str, max_bytes: int) -> list[zipfile.ZipInfo]:
    entries = archive.infolist()
    names = [entry.filename.lower() for entry in entries]
    folders = {name.partition("/")[0] for name in names if "/" in name}
    if not 0 < len(entries) <= MAX_FILES or len({*names, *folders}) < len(names) + len(folders):
        raise InputError(name, f"Expected a zip file of 1 to {MAX_FILES:,} files with distinct names.")
    if not all(_ENTRY.fullmatch(entry.filename) for entry in entries):
        raise InputError(
            name, "Expected files in the zip file, and no folder but that of the rows. Pack only the release's files."
        )
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise InputError(name, "Expected files that are stored or deflated in the zip file.")
    check_plain(entries, name, max_bytes)
    return entries


def check_plain(entries: list[zipfile.ZipInfo], name: str, max_bytes: int) -> None:
    """Raise unless entries of a zip file are plain files of at most `max_bytes` bytes in total once unpacked."""
    if not all(_is_plain(entry) for entry in entries):
        raise InputError(name, "Expected plain files in the zip file, no links and nothing encrypted.")
    if sum(entry.file_size for entry in entries) > max_bytes:
        raise InputError(name, f"the unpacked files are too large. Expected at most {max_bytes >> 20:,} MiB.")


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a plain file: no link, no device, not encrypted."""
    return stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG) and not entry.flag_bits & 0x1


def write_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, name: str) -> None:
    """Write an entry of a zip file to a new file. `name` is the zip file's name in messages."""
    # Mode x overwrites no file and follows no link.
    with target.open("xb") as file:
        for chunk in _read_chunks(archive, entry, name):
            file.write(chunk)


def _read_chunks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    """Yield the content of an entry; raise if it is broken or larger than declared."""
    left = entry.file_size
    try:
        with archive.open(entry) as packed:
            while chunk := packed.read(min(_CHUNK_BYTES, left + 1)):
                left -= len(chunk)
                if left < 0:
                    raise _broken(name)
                yield chunk
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, OSError, zlib.error):
        raise _broken(name) from None


def _broken(name: str) -> InputError:
    return InputError(name, "the zip file is broken. Pack it again.")

"""The folder that a release is written to: a path of this machine, or a URI that pyarrow knows, such as hdfs:// or s3://."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from crowdveil.errors import OutputError, Text
from crowdveil.io import atomic
from crowdveil.io.written_release import MANIFEST_FILE


def file_system(address: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it."""
    if "://" not in address:
        return pafs.LocalFileSystem(), address
    # Hadoop's name of the store that pyarrow calls s3.
    address = f"s3{address.removeprefix('s3a')}" if address.startswith("s3a://") else address
    try:
        files, path = pafs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise OutputError(
            address, Text("Cannot open this address ({kind}). Choose another {output}.", kind=type(error).__name__)
        ) from error
    return files, path


class ReleaseFolder:
    """A folder that appears as a whole, or not at all.

    On a remote file system a release appears with its manifest, which is moved last: object stores cannot rename a folder.
    """

    def __init__(self, address: str, *, overwrite: bool) -> None:
        self.address, self.overwrite = address, overwrite

    @property
    def is_remote(self) -> bool:
        """Whether the address is a URI."""
        return "://" in self.address

    def check(self) -> None:
        """Raise unless a release can be written to the folder."""
        if not self.is_remote:
            atomic.check_target(Path(self.address).absolute(), overwrite=self.overwrite, mark_file=MANIFEST_FILE)
            return
        files, path = file_system(self.address)
        if files.get_file_info(path).type == pafs.FileType.File:
            raise OutputError(self.address, atomic.IS_FILE)
        names = _names(files, path)
        if names and not self.overwrite:
            raise OutputError(self.address, atomic.FOLDER_EXISTS)
        if names and MANIFEST_FILE not in names:
            raise OutputError(self.address, atomic.NO_RELEASE)

    @contextmanager
    def new(self) -> Iterator[str]:
        """Yield the address of a temporary folder that becomes the folder on success, and is removed on failure."""
        if not self.is_remote:
            with atomic.new_folder(Path(self.address), overwrite=self.overwrite, mark_file=MANIFEST_FILE) as folder:
                yield str(folder)
            return
        self.check()
        files, path = file_system(self.address)
        parent, _, name = path.rpartition("/")
        temporary = f"{parent}/.{name}.unfinished"
        files.create_dir(temporary)
        try:
            files.delete_dir_contents(temporary)
            yield f"{self.address.removesuffix(name)}.{name}.unfinished"
            _move(files, temporary, path)
        finally:
            files.delete_dir(temporary)

    @staticmethod
    def put(paths: Iterable[Path], folder: str) -> None:
        """Copy files of this machine into a remote folder."""
        files, path = file_system(folder)
        for file in paths:
            with files.open_output_stream(f"{path}/{file.name}") as stream:
                stream.write(file.read_bytes())


def _names(files: pafs.FileSystem, path: str) -> list[str]:
    """Return the names in a folder, none where it does not exist."""
    return [info.base_name for info in files.get_file_info(pafs.FileSelector(path, allow_not_found=True))]


def _move(files: pafs.FileSystem, temporary: str, path: str) -> None:
    """Move all files of a release to its folder, the manifest last; an earlier release is removed before, its manifest first."""
    if MANIFEST_FILE in _names(files, path):
        files.delete_file(f"{path}/{MANIFEST_FILE}")
    files.create_dir(path)
    files.delete_dir_contents(path)
    found = files.get_file_info(pafs.FileSelector(temporary, recursive=True))
    for info in sorted(found, key=lambda info: info.base_name == MANIFEST_FILE):
        target = f"{path}/{info.path.removeprefix(temporary).lstrip('/')}"
        if info.type == pafs.FileType.Directory:
            files.create_dir(target)
        else:
            files.move(info.path, target)

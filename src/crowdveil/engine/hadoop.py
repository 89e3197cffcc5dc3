"""Files of Spark's file systems (file:, hdfs:, s3a:), through Hadoop's classes in the driver's Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import Option, OutputError


class HadoopFiles:
    """Folders and files by address; one without a scheme is resolved as Spark does."""

    def __init__(self, context: Any) -> None:
        self._jvm = context._jvm
        self._conf = context._jsc.hadoopConfiguration()

    def _at(self, address: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(address)
        try:
            system = path.getFileSystem(self._conf)
        except Exception as error:
            raise OutputError(
                address, f"Spark cannot reach this address ({type(error).__name__}). Check it and its jars."
            ) from error
        # The raw local file system writes no hidden checksum files, which do not belong in a release.
        if system.getScheme() == "file" and hasattr(system, "getRawFileSystem"):
            system = system.getRawFileSystem()
        return system, path

    def exists(self, address: str) -> bool:
        """Return whether there is a file or folder."""
        system, path = self._at(address)
        return bool(system.exists(path))

    def is_folder(self, address: str) -> bool:
        """Return whether there is a folder."""
        system, path = self._at(address)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isDirectory())

    def names(self, address: str) -> list[str]:
        """Return the names in a folder, sorted, without hidden ones of Spark and Hadoop."""
        return sorted(name for name, _, _ in self.listed(address) if not name.startswith((".", "_")))

    def listed(self, address: str) -> list[tuple[str, int, int]]:
        """Return name, length and modification time of each file of a folder, or of a file."""
        system, path = self._at(address)
        found = system.listStatus(path)
        return [(f.getPath().getName(), int(f.getLen()), int(f.getModificationTime())) for f in found]

    def make_folder(self, address: str, *, private: bool = False) -> None:
        """Create a folder and its parents; a private one is readable by its owner only."""
        system, path = self._at(address)
        self._must(system.mkdirs(path), address)
        if private:
            self.hide(address)

    def hide(self, address: str) -> None:
        """Make a file or folder readable by its owner only, if the file system has owners."""
        system, path = self._at(address)
        mode = "700" if system.getFileStatus(path).isDirectory() else "600"
        system.setPermission(path, self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    def move(self, here: str, there: str) -> None:
        """Rename a file or folder; atomically if the file system can."""
        system, path = self._at(here)
        self._must(system.rename(path, self._jvm.org.apache.hadoop.fs.Path(there)), there)

    def remove(self, address: str) -> None:
        """Remove a file or folder if it exists."""
        system, path = self._at(address)
        system.delete(path, True)

    def put(self, here: Path, there: str) -> None:
        """Copy a file from this machine to an address."""
        system, path = self._at(there)
        system.copyFromLocalFile(False, True, self._jvm.org.apache.hadoop.fs.Path(here.absolute().as_uri()), path)

    def fetch(self, there: str, here: Path) -> None:
        """Copy a file or folder to this machine."""
        system, path = self._at(there)
        system.copyToLocalFile(False, path, self._jvm.org.apache.hadoop.fs.Path(here.absolute().as_uri()), True)

    def sibling(self, address: str, name: str) -> str:
        """Return the address of another name in the same folder."""
        parent = self._jvm.org.apache.hadoop.fs.Path(address).getParent()
        return name if parent is None else f"{parent.toString().rstrip('/')}/{name}"

    def name(self, address: str) -> str:
        """Return the last part of an address."""
        return str(self._jvm.org.apache.hadoop.fs.Path(address).getName())

    @staticmethod
    def _must(done: bool, address: str) -> None:
        if not done:
            raise OutputError(address, f"cannot be written. Name another path with {Option('output')}.")

"""Files wherever Spark has them (file:, hdfs:, s3a:), through Hadoop's own file systems, by what the driver's Java knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import InputError, Option, OutputError


class HadoopFiles:
    """Folders and files by their addresses; one without a scheme is where Spark would look for it."""

    def __init__(self, context: Any) -> None:
        self._jvm = context._jvm
        self._conf = context._jsc.hadoopConfiguration()

    def _at(self, address: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(address)
        try:
            system = path.getFileSystem(self._conf)
        except Exception as error:
            raise OutputError(
                address, f"Spark cannot reach such a place ({type(error).__name__}); check the address, and its jars."
            ) from error
        # Local files come with hidden files of checksums: nobody wants these in a release.
        if system.getScheme() == "file" and hasattr(system, "getRawFileSystem"):
            system = system.getRawFileSystem()
        return system, path

    def exists(self, address: str) -> bool:
        """Whether there is a file or folder."""
        system, path = self._at(address)
        return bool(system.exists(path))

    def is_folder(self, address: str) -> bool:
        """Whether there is a folder."""
        system, path = self._at(address)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isDirectory())

    def names(self, address: str) -> list[str]:
        """Names in a folder, in order; those that Spark and Hadoop hide are left out."""
        return sorted(name for name, _, _ in self.listed(address) if not name.startswith((".", "_")))

    def listed(self, address: str) -> list[tuple[str, int, int]]:
        """Name, length and time of change of what is in a folder; of a file, its own."""
        system, path = self._at(address)
        found = system.listStatus(path)
        return [(f.getPath().getName(), int(f.getLen()), int(f.getModificationTime())) for f in found]

    def fingerprint(self, address: str) -> list[list[Any]]:
        """What tells a file, or a folder of files, from what was there at another time: names, lengths, times of change."""
        if not self.exists(address):
            raise InputError(address, "there is no such file.")
        return sorted(list(entry) for entry in self.listed(address))

    def make_folder(self, address: str, *, private: bool = False) -> None:
        """Make a folder and those above it; a private one is for its owner alone."""
        system, path = self._at(address)
        self._must(system.mkdirs(path), address)
        if private:
            self.hide(address)

    def hide(self, address: str) -> None:
        """Let nobody but the owner read a file or look into a folder, where the file system has owners."""
        system, path = self._at(address)
        mode = "700" if system.getFileStatus(path).isDirectory() else "600"
        system.setPermission(path, self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    def move(self, here: str, there: str) -> None:
        """Rename a file or folder; at once where the file system can."""
        system, path = self._at(here)
        self._must(system.rename(path, self._jvm.org.apache.hadoop.fs.Path(there)), there)

    def remove(self, address: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if there is none."""
        system, path = self._at(address)
        system.delete(path, True)

    def put(self, here: Path, there: str) -> None:
        """Copy a file from this machine."""
        system, path = self._at(there)
        system.copyFromLocalFile(False, True, self._jvm.org.apache.hadoop.fs.Path(here.absolute().as_uri()), path)

    def fetch(self, there: str, here: Path) -> None:
        """Copy a file or a folder to this machine."""
        system, path = self._at(there)
        system.copyToLocalFile(False, path, self._jvm.org.apache.hadoop.fs.Path(here.absolute().as_uri()), True)

    def beside(self, address: str, name: str) -> str:
        """The address of another name in the same folder."""
        path = self._jvm.org.apache.hadoop.fs.Path(address)
        above = path.getParent()
        return name if above is None else f"{above.toString().rstrip('/')}/{name}"

    def name(self, address: str) -> str:
        """The last part of an address."""
        return str(self._jvm.org.apache.hadoop.fs.Path(address).getName())

    @staticmethod
    def _must(done: bool, address: str) -> None:
        if not done:
            raise OutputError(address, f"cannot be written; name another place with {Option('output')}.")

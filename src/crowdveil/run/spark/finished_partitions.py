"""Finished partitions of a run on a cluster: kept as files, in chunks, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.engine.finished import KEY_FILE, check_key
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import OutputError, counted
from crowdveil.io.atomic import scratch_folder
from crowdveil.model.arrays import Ints
from crowdveil.progress import Progress

_DONE = "steps.json"


class FinishedPartitions:
    """Results of partitions in a folder of the cluster: a folder for each chunk, and the key of the run they belong to.

    Parameters
    ----------
    folder
        Where they are kept to resume from; None where they are not kept.
    key
        All that they depend on.
    what
        The noun for what is counted: time steps, or partitions.
    entropy
        Entropy of a run without a seed, kept with the key; an earlier run's entropy takes precedence.
    """

    def __init__(
        self, engine: SparkEngine, folder: str | None, key: dict[str, Any] | None, what: str = "time step",
        entropy: int | None = None,
    ) -> None:  # fmt: skip
        self.kept, self.what, self.entropy = folder, what, entropy
        self.total = 0
        """Time steps of the data, once they are known."""
        self._engine, self._folder = engine, folder or ""
        self._chunks: dict[str, list[int]] = {} if folder is None else self._found(key or {})
        if folder is not None and not self._chunks:
            engine.files.make_folder(folder, private=True)
            # As text: some readers of JSON round large numbers.
            self._put(
                {"key": key, "entropy": None if self.entropy is None else str(self.entropy)}, KEY_FILE, private=True
            )

    def describe(self) -> str | None:
        """Return how many are kept and where; None where none are kept, or the total is unknown."""
        if self.kept is None or not self.total:
            return None
        return f"{len(self.steps):,} of {counted(self.total, self.what)} are kept in {self.kept}"

    def begin(self, folder: str, numbers: Ints) -> None:
        """Set the folder for results that are not kept to resume from, and the total."""
        self._folder, self.total = self.kept or folder, len(numbers)

    @property
    def steps(self) -> Ints:
        """Return the numbers of finished time steps."""
        return np.array([step for steps in self._chunks.values() for step in steps], np.int64)

    def add(self, steps: Ints, results: Frame, progress: Progress) -> None:
        """Solve the partitions of a chunk, and write their results; `steps` are the numbers of their time steps."""
        name = f"chunk-{len(self._chunks):05}"
        self._engine.write(results, f"{self._folder}/{name}", by="kind", progress=progress)
        self._put(steps.tolist(), f"{name}/_{_DONE}")
        self._chunks[name] = steps.tolist()

    def all(self) -> Frame:
        """Return the results of all partitions."""
        first, *others = [self._engine.read(f"{self._folder}/{name}") for name in self._chunks]
        return reduce(lambda all_of_them, frame: all_of_them.unionByName(frame), others, first)

    def remove(self) -> None:
        """Remove the folder, if it is one to resume from."""
        if self.kept is not None:
            self._engine.files.remove(self.kept)

    def _found(self, key: dict[str, Any]) -> dict[str, list[int]]:
        """Return the steps of each chunk in the folder; raise if they are of another run."""
        files = self._engine.files
        if not files.exists(self._folder):
            return {}
        if not files.is_folder(self._folder):
            raise OutputError(self._folder, "wanted a folder to resume from, but this is a file; name another.")
        if not files.listed(self._folder):
            return {}
        if not files.exists(f"{self._folder}/{KEY_FILE}"):
            raise OutputError(self._folder, "the folder holds no finished time steps; name another to resume from.")
        content = self._get(KEY_FILE)
        check_key(self._folder, content["key"], json.loads(json.dumps(key)))
        kept = content.get("entropy")
        check_key(self._folder, {"seed": kept is None}, {"seed": self.entropy is None})
        self.entropy = None if kept is None else int(kept)
        chunks: dict[str, list[int]] = {}
        for name in files.names(self._folder):
            if name.startswith("chunk-"):
                if files.exists(f"{self._folder}/{name}/_{_DONE}"):
                    chunks[name] = self._get(f"{name}/_{_DONE}")
                else:
                    files.remove(f"{self._folder}/{name}")  # it was interrupted
        return chunks

    def _put(self, content: Any, name: str, *, private: bool = False) -> None:
        with scratch_folder() as made:
            (Path(made) / "content").write_text(json.dumps(content), encoding="utf-8")
            self._engine.files.put(Path(made) / "content", f"{self._folder}/{name}")
            if private:
                self._engine.files.hide(f"{self._folder}/{name}")

    def _get(self, name: str) -> Any:
        with scratch_folder() as made:
            self._engine.files.fetch(f"{self._folder}/{name}", Path(made) / "content")
            return json.loads((Path(made) / "content").read_text(encoding="utf-8"))

"""Finished parts of a run on a cluster: kept as files, in waves, so that a run can go on where it was cut short."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Wave:
    """Parts that are finished together: their time steps, and what is to be made of them."""

    steps: Ints
    outcome: Frame


class FinishedParts:
    """What came of parts, in a folder of the cluster: one folder a wave, beside the key of the run they belong to.

    Parameters
    ----------
    folder
        Where they are kept for another run; None where they are not.
    key
        All that they depend on.
    what
        What is finished: time steps, or parts of another kind that have numbers.
    entropy
        What random choices are drawn from where no seed was given: kept with the key; that of an earlier run where there is one.
    """

    def __init__(
        self, engine: SparkEngine, folder: str | None, key: dict[str, Any] | None, what: str = "time step",
        entropy: int | None = None,
    ) -> None:  # fmt: skip
        self.kept, self.what, self.entropy = folder, what, entropy
        self.total = 0
        """Time steps of the data, once they are known."""
        self._engine, self._folder = engine, folder or ""
        self._waves: dict[str, list[int]] = {} if folder is None else self._found(key or {})
        if folder is not None and not self._waves:
            engine.files.make_folder(folder, private=True)
            # Numbers of JSON are read by others as floating-point ones, which have fewer bits.
            self._put(
                {"key": key, "entropy": None if self.entropy is None else str(self.entropy)}, KEY_FILE, private=True
            )

    def told(self) -> str | None:
        """How many are kept and where; None where none are kept, or none are known yet."""
        if self.kept is None or not self.total:
            return None
        return f"{len(self.steps):,} of {counted(self.total, self.what)} are kept in {self.kept}"

    def begin(self, folder: str, numbers: Ints) -> None:
        """Take a folder for parts that are not kept; those of the data's time steps are counted."""
        self._folder, self.total = self.kept or folder, len(numbers)

    @property
    def steps(self) -> Ints:
        """The time steps that are finished."""
        return np.array([step for steps in self._waves.values() for step in steps], np.int64)

    def add(self, wave: Wave, progress: Progress) -> None:
        """Make the parts of a wave, and keep what came of them."""
        name = f"wave-{len(self._waves):05}"
        self._engine.write(wave.outcome, f"{self._folder}/{name}", by="kind", progress=progress)
        self._put(wave.steps.tolist(), f"{name}/_{_DONE}")
        self._waves[name] = wave.steps.tolist()

    def all(self) -> Frame:
        """What came of all parts."""
        frames = [self._engine.read(f"{self._folder}/{name}") for name in self._waves]
        made = frames[0]
        for frame in frames[1:]:
            made = made.unionByName(frame)
        return made

    def remove(self) -> None:
        """Take the folder away, if it is one that was kept for another run."""
        if self.kept is not None:
            self._engine.files.remove(self.kept)

    def _found(self, key: dict[str, Any]) -> dict[str, list[int]]:
        """The waves in the folder; raises if they are of another run."""
        files = self._engine.files
        if not files.exists(self._folder):
            return {}
        if not files.is_folder(self._folder):
            raise OutputError(self._folder, "wanted a folder to resume from, but this is a file; name another.")
        if not files.listed(self._folder):
            return {}
        if not files.exists(f"{self._folder}/{KEY_FILE}"):
            raise OutputError(
                self._folder, "the folder holds no finished time steps of ours; name another to resume from."
            )
        content = self._get(KEY_FILE)
        check_key(self._folder, content["key"], json.loads(json.dumps(key)))
        kept = content.get("entropy")
        check_key(self._folder, {"seed": kept is None}, {"seed": self.entropy is None})
        self.entropy = None if kept is None else int(kept)
        waves: dict[str, list[int]] = {}
        for name in files.names(self._folder):
            if name.startswith("wave-"):
                if files.exists(f"{self._folder}/{name}/_{_DONE}"):
                    waves[name] = self._get(f"{name}/_{_DONE}")
                else:
                    files.remove(f"{self._folder}/{name}")  # it was cut short
        return waves

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

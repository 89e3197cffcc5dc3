"""Resuming a run after an interruption: which run kept time steps belong to, and when they are removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crowdveil import __version__, engine
from crowdveil.engine import FinishedPartitions, LocalEngine, keep_until_done
from crowdveil.engine.finished import KeptPartitions
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.written_release import file_hash
from crowdveil.run.manifest import FILES
from crowdveil.run.seeds import fresh
from crowdveil.run.stages import RunSpec


def open_finished(spec: RunSpec) -> FinishedPartitions:
    """Open the folder of a run's finished time steps; raise if those there are of another run.

    Without a seed, the entropy of the first run is kept with them, so that a resumed run repeats its draws.
    """
    folder = Path(str(spec.options.resume))
    _check_separate(folder.absolute(), Path(spec.output).absolute())
    return FinishedPartitions(folder, run_key(spec, _hashes(_path(spec.data))), first_entropy(spec))


def first_entropy(spec: RunSpec) -> int | None:
    """Return fresh entropy for a run without a seed."""
    return fresh() if spec.options.seed is None else None


def run_key(spec: RunSpec, data: Any) -> dict[str, Any]:
    """Return all that the results of a run depend on; `data` identifies its input."""
    options = {name: getattr(spec.reading, name) for name in type(spec.reading).model_fields}
    files = {name: value for name, value in options.items() if name in FILES and _is_file(name, value)}
    return {
        "method": spec.method.name,
        "parameters": spec.params.model_dump(mode="json"),
        "input options": {n: str(v) if n in FILES else v for n, v in options.items() if n not in files},
        "seed": spec.options.seed,
        "data": {"data": data, **{name: _hashes(Path(path)) for name, path in files.items()}},
        "version of crowdveil": __version__,
    }


ATTACKS = "attacks"
"""The purpose of the attacks' seed: their draws are not those of the method."""


def drawn_seed(seed: int | None, finished: KeptPartitions | None) -> int:
    """Return the seed of a run: the given one, or fresh entropy; of a resumed run, the entropy that it was begun with."""
    if seed is not None:
        return seed
    return fresh() if finished is None or finished.entropy is None else finished.entropy


@contextmanager
def keep_finished_steps(finished: FinishedPartitions | None) -> Iterator[None]:
    """Keep the time steps that are finished inside; removed on success, or where a guarantee is violated."""
    if finished is None:
        yield
        return
    with keep_until_done(finished), engine.use(LocalEngine(finished=finished)):
        yield


def _check_separate(folder: Path, output: Path) -> None:
    """Raise if one folder contains the other: a release is moved and replaced as a whole."""
    if folder == output or folder in output.parents or output in folder.parents:
        raise ParameterError(Option("resume"), "wanted a folder apart from that of the release; name another.")


def _path(data: Any) -> Path:
    if not isinstance(data, str | Path):
        raise ParameterError(
            Option("resume"), "wanted data in a file, but it is in memory; write it to a file, or do not resume."
        )
    if not Path(data).exists():
        raise InputError(data, "there is no such file.")
    return Path(data)


def _is_file(name: str, value: Any) -> bool:
    """Return whether an option names a file; a tree may be named by its kind instead."""
    if value is not None and not isinstance(value, str | Path):
        raise ParameterError(Option("resume"), f"wanted {name} in a file, but it is in memory; write it to a file.")
    return value is not None and Path(value).is_file()


def _hashes(path: Path) -> list[str]:
    """Return the hash of a file or folder; of a shapefile, those of all its component files."""
    shapefile = path.suffix.lower() == ".shp"
    files = sorted(p for p in path.parent.iterdir() if p.stem == path.stem and p.is_file()) if shapefile else [path]
    return [file_hash(file) for file in files]

"""Runs that can go on after an interruption: which run finished time steps belong to, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from crowdveil import engine
from crowdveil.engine import FinishedSteps, LocalEngine, kept_until_done
from crowdveil.entropy import fresh
from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.written import file_hash
from crowdveil.method import Method
from crowdveil.params import Params
from crowdveil.run.manifest import FILES


def open_finished(
    folder: Path, output: Path, *, method: Method, params: Params, reading: Params, seed: int | None, data: Any
) -> FinishedSteps:
    """The finished time steps of a run in `folder`; refused if those there are of another run. Without a seed, the entropy of the
    first run is kept with them, so that a resumed run goes on with the same draws.
    """
    _apart(Path(folder).absolute(), Path(output).absolute())
    key = run_key(method, params, reading, seed, _hashes(_path(data)))
    return FinishedSteps(folder, key, fresh() if seed is None else None)


def run_key(method: Method, params: Params, reading: Params, seed: int | None, data: Any) -> dict[str, Any]:
    """All that the results of a run depend on; `data` is what tells its data from other data."""
    options = {name: getattr(reading, name) for name in type(reading).model_fields}
    files = {name: value for name, value in options.items() if name in FILES and _is_file(name, value)}
    return {
        "method": method.name,
        "parameters": params.model_dump(mode="json"),
        "options of reading": {n: str(v) if n in FILES else v for n, v in options.items() if n not in files},
        "seed": seed,
        "data": {"data": data, **{name: _hashes(Path(path)) for name, path in files.items()}},
        "version of crowdveil": version("crowdveil"),
    }


ATTACKS = "attacks"
"""What the seed of the attacks of a run is for: their draws are not those of the method."""


class Drawn(Protocol):
    """Finished parts of a run, with the entropy that it was begun with."""

    entropy: int | None


def drawn_seed(seed: int | None, finished: Drawn | None) -> int:
    """The seed of a run: the one that was given, or fresh entropy; of a resumed run, that of its beginning."""
    if seed is not None:
        return seed
    return fresh() if finished is None or finished.entropy is None else finished.entropy


@contextmanager
def going_on_from(finished: FinishedSteps | None) -> Iterator[None]:
    """Keep the time steps that are finished inside; removed when all went well, or a guarantee turned out broken."""
    if finished is None:
        yield
        return
    with kept_until_done(finished), engine.use(LocalEngine(finished=finished)):
        yield


def _apart(folder: Path, output: Path) -> None:
    """A release is moved into place whole and replaced whole, so nothing else can lie in its folder, or around it."""
    if folder == output or folder in output.parents or output in folder.parents:
        raise ParameterError(Option("resume"), "wanted a folder apart from that of the release; name another.")


def _path(data: Any) -> Path:
    if not isinstance(data, str | Path):
        raise ParameterError(
            Option("resume"), "wanted data in a file, but it is in memory; write it to a file, or do not resume."
        )
    if not Path(data).is_file():
        raise InputError(data, "there is no such file.")
    return Path(data)


def _is_file(name: str, value: Any) -> bool:
    """Whether an option names a file; a tree may be named by its kind instead."""
    if value is not None and not isinstance(value, str | Path):
        raise ParameterError(Option("resume"), f"wanted {name} in a file, but it is in memory; write it to a file.")
    return value is not None and Path(value).is_file()


def _hashes(path: Path) -> list[str]:
    """Of a file, and of those beside it that are parts of a shapefile."""
    shapefile = path.suffix.lower() == ".shp"
    parts = sorted(p for p in path.parent.iterdir() if p.stem == path.stem and p.is_file()) if shapefile else [path]
    return [file_hash(part) for part in parts]

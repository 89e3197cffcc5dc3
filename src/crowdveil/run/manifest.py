"""The manifest of a release: method, input, guarantees and their findings, information loss, files."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crowdveil.analysis.heatmap_manifest import read_map_manifest
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.manifest import (
    FORMAT,
    INPUT_FILES,
    CheckedGuarantee,
    DataEntry,
    DecisionEntry,
    InputEntry,
    Manifest,
    MethodEntry,
    Trial,
)
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import is_omx
from crowdveil.io.tiling import Tiling
from crowdveil.io.written_release import file_hash
from crowdveil.io.zones import VORONOI, is_voronoi
from crowdveil.measures.rounding import DEFAULT_K
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.run.options import DECISION
from crowdveil.run.stages import FileEntries, Findings, RunSpec, Solution
from crowdveil.version import __version__

NOT_OF_FLOWS = ("hierarchy", "partition")
"""Input options that do not change flows: the original of a release is read without them."""
_PACKAGES = ("numpy", "pyarrow", "duckdb", "shapely", "pyproj", "numba", "h3", "scipy")


def build_manifest(
    spec: RunSpec,
    solution: Solution,
    checked: Findings,
    files: FileEntries,
    notes: ReadNotes,
    *,
    counts: str,
    risk: list[Trial] | None,
    people_about: int | None,
    step_seconds: int | None,
    time_zone: str,
) -> Manifest:
    """Return the manifest of a run.

    `counts` is what k counts, `risk` of attacks before and after (None without an attack), `people_about` the number of people,
    rounded down (None where it is not known or not published), and `step_seconds` the length of a time step (None without one).
    """
    method, options = spec.method, spec.options
    return Manifest(
        format=FORMAT,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        crowdveil=__version__,
        python=platform.python_version(),
        packages={name: version(name) for name in _PACKAGES},
        method=MethodEntry(
            name=method.name,
            status=method.status,
            parameters=spec.params.model_dump(mode="json"),
            seed_given=spec.seed_given,
            facts=dict(solution.facts),
        ),
        input=InputEntry(
            data=DataEntry(kind=_kind(spec.data), people_about=people_about),
            options=_options(spec.reading),
            **notes.published(spec.k or DEFAULT_K),
        ),
        step_seconds=step_seconds,
        time_zone=time_zone,
        k=spec.k,
        k_unit=counts,
        guarantees=guarantee_entries(checked),
        original_ids_published=False,
        cost=solution.cost,
        distortion=solution.distortion,
        risk=risk,
        decision=DecisionEntry(**{n: value for n in DECISION if (value := getattr(options, n)) is not None}),
        files=files,
    )


def guarantee_entries(checked: Sequence[tuple[Guarantee, Finding]]) -> list[CheckedGuarantee]:
    """Return guarantees and their findings, as the manifest lists them."""
    return [
        CheckedGuarantee(
            name=guarantee.name,
            kind=guarantee.kind,
            parameters=guarantee.model_dump(mode="json"),
            statement=guarantee.statement(),
            outcome=finding.outcome.value,
            checked=finding.detail,
            with_original=finding.with_original,
        )
        for guarantee, finding in checked
    ]


def _options(reading: Params) -> dict[str, Any]:
    """Return the options that differ from their defaults; files by their hash. The time zone stands in the manifest itself."""
    given = {
        n: getattr(reading, n)
        for n, f in type(reading).model_fields.items()
        if n != "tz" and _differs(getattr(reading, n), f.default)
    }
    return {n: _described(value) if n in INPUT_FILES else value for n, value in given.items()}


def _differs(value: Any, default: Any) -> bool:
    """Return whether a value is not the default; a data frame, which zones may be, is compared cell by cell, so it differs."""
    if default is None:  # polars warns of a comparison with None
        return value is not None
    differs = value != default
    return differs if isinstance(differs, bool) else True


def _kind(data: Any) -> str:
    """Return the kind of the input. Its name is not published, and a hash would confirm a guess of a single record."""
    if isinstance(data, Flows | Trajectories):
        return "model"
    return "omx" if is_omx(data) else "table"


def _described(data: Any) -> dict[str, str]:
    """Describe a public file or folder (zones, trees, releases) by its hash; a kind of tree by name, other data by type."""
    if Tiling.of(data) is not None:
        return {"name": data}
    if is_voronoi(data):
        return {"kind": "voronoi"} | _described(data.removeprefix(VORONOI))
    if isinstance(data, str | Path):
        path = Path(data)
        return {"sha256": file_hash(path)} if path.exists() else {"name": path.name}
    return {"type": type(data).__name__}


def original_input_options(manifest: Manifest, given: dict[str, Any]) -> dict[str, Any]:
    """Return the input options of a release, to read its original; files of zones and trees are compared with the manifest.

    The manifest has only the hash of a file, so that files must be among the options that are `given`.
    Trees and partitions are left out: they do not change flows.
    """
    before = manifest.input.options
    for name in [name for name in INPUT_FILES if name in before]:
        if name in given:
            _must_be_the_same(given[name], before[name], name)
        elif Tiling.of(before[name].get("name")) is not None:
            given = {**given, name: before[name]["name"]}
        elif name not in NOT_OF_FLOWS:
            raise ParameterError(
                Text(
                    "the release was made with a file of {name}. Give it with {option}.", name=name, option=Option(name)
                )
            )
    options = (
        {name: value for name, value in before.items() if name not in INPUT_FILES} | {"tz": manifest.time_zone} | given
    )
    return {name: value for name, value in options.items() if name not in NOT_OF_FLOWS}


def map_input_options(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the input options of a heat map, to read its original; a GeoJSON alone states none."""
    stated = read_map_manifest(folder).input_options if folder.is_dir() else {}
    # A manifest may come from anyone: it must not choose which files of this machine are opened.
    return {name: value for name, value in stated.items() if name not in INPUT_FILES} | given


def refuse_other_counts(manifest: Manifest, counts: str) -> None:
    """Raise if k counts something else in the original than in its release, unless trajectories were asked for."""
    before = manifest.k_unit
    if counts != before and before != "trajectories":
        raise InputError(f"the original counts {counts}, but the release counts {before}. Read it as for the release.")


def _must_be_the_same(data: Any, before: dict[str, str], option: str) -> None:
    """Raise if the hash of a file differs from the manifest's."""
    if "sha256" in before and _described(data).get("sha256", before["sha256"]) != before["sha256"]:
        raise InputError(
            data,
            Text(
                "this is not the file that the release was made with (its SHA-256 differs from the manifest's). Give that "
                "file with {option}.",
                option=Option(option),
            ),
        )

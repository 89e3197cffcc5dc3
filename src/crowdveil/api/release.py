"""Anonymize data, and verify a release."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from crowdveil.api.opened import folder_of, split_options, warn
from crowdveil.errors import Option, ParameterError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.tabular import Table
from crowdveil.progress import Progress, Stage, progress_bar
from crowdveil.reading import READINGS
from crowdveil.registry import METHODS, all_methods, find_method
from crowdveil.run import pipeline, releases
from crowdveil.run.options import RunOptions
from crowdveil.run.result import Result


def anonymize(
    method: str,
    data: Any,
    output: str | Path | None = None,
    *,
    spark: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Anonymize data with a method, and write a verified release to the folder `output`; without one, keep it in memory.

    The result has tables (`result.flows.to_pandas()`, `result.areas.to_geopandas()`), `result.report()`, `result.plot.flows()`
    and `result.save(folder)`. Notes of reading are warnings (`CrowdveilWarning`), and `result.notes`.

    `data` is a path, an Arrow table, a data frame, or `Flows` or `Trajectories`. `options` are the method's parameters, the
    input options and the options of the run (see `crowdveil anonymize METHOD --help`), such as `k=10, zones="zones.geojson"`.
    Options of every run are `seed`, `format`, `overwrite`, `pairing`, `attack`, `report`, `engine`
    and `master`. Random choices are drawn from entropy of the operating system; with a `seed` a run is reproducible. Keep the
    seed secret, for it repeats every random choice, and the file of a `pairing`, for it undoes the new ids.
    With a session of Spark in `spark` the run is done there: `data` is then a path as Spark takes it, or a data frame of it.

    >>> crowdveil.anonymize("suppression", "trips.parquet", "out", zones="zones.geojson", k=10)  # doctest: +SKIP
    """
    run_options, options = split_options(options, RunOptions)
    reading, parameters = split_options(options, READINGS[find_method(method).takes])
    if output is None and (spark is not None or run_options.get("engine") == "spark"):
        raise ParameterError(Option("output"), "a release on Spark is not kept in memory; give a folder.")
    with ExitStack() as opened:
        target = output if output is not None else Path(opened.enter_context(TemporaryDirectory())) / "release"
        request = pipeline.Request(method, data, target, parameters, reading, run_options, spark=spark)
        stage: Stage = lambda name: None  # noqa: E731
        if progress is None:
            progress, stage = opened.enter_context(progress_bar())
        result = pipeline.run(request, progress, stage)
        result = result.in_memory() if output is None else result
    warn(result.notes)
    return result


def methods() -> Table:
    """Return a table of the methods: name, what they take, status, parameters, and what they do.

    >>> crowdveil.methods().to_pandas()  # doctest: +SKIP
    """
    return Table(pa.Table.from_pylist([_row(method) for method in all_methods().values()]))


def _row(method: Method) -> dict[str, str]:
    return {
        "name": method.name,
        "takes": "flows" if method.takes is Flows else "trajectories",
        "status": method.status,
        "parameters": ", ".join(method.params.model_fields),
        "summary": method.summary,
    }


def _parameters() -> str:
    """Return the methods with their parameters, for the help of `anonymize`."""
    rows = [_row(find_method(name)) for name in METHODS]
    lines = [f"    {row['name']} ({row['takes']}): {row['parameters'] or 'no parameters'}" for row in rows]
    return "\n    Methods and their parameters:\n\n" + "\n".join(lines) + "\n    "


anonymize.__doc__ = (anonymize.__doc__ or "") + _parameters()


def verify(
    folder: str | Path | Result, original: Any = None, *, pairing: Any = None, **options: Any
) -> list[tuple[Guarantee, Finding]]:
    """Check a release or a heat map from its files; returns each guarantee with its finding.

    `folder` is that of a release or of a heat map, the GeoJSON of a heat map, or a result of `anonymize`.
    A finding's `outcome` is `Outcome.HOLDS`,
    `VIOLATED` or `NOT_CHECKED`, where files alone are not enough. `original` is what the release was made
    from: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read as the manifest says (for a heat map
    as `options` say). `pairing`, the file that was kept, says which published trajectory is whose: without it the people of
    trajectories are not counted. Files that were needed for it, such as zones, are given as `options`.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson")  # doctest: +SKIP
    """
    with folder_of(folder) as opened:
        return releases.verify(Path(opened), original, options, pairing)

"""Write comparisons and sweeps as a folder of tables and plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from crowdveil.comparison import plots
from crowdveil.comparison.flows import FlowComparison
from crowdveil.comparison.sweep import Sweep
from crowdveil.comparison.trajectories import TrajectoryMethodComparison
from crowdveil.errors import MissingExtraError
from crowdveil.io.atomic import check_target, new_folder
from crowdveil.io.tables import write_table

SUMMARY_FILE, VALUES_FILE, SWEEP_FILE = "summary.csv", "compare.csv", "sweep.csv"

Comparison = FlowComparison | TrajectoryMethodComparison | Sweep
Draw = Callable[[Path], None]


def write_comparison(found: Comparison, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write tables and plots to a folder atomically; without matplotlib write the tables alone, then raise."""
    tables, drawings, missing = _tables(found), _plots(found), None
    with new_folder(Path(folder), overwrite=overwrite, mark_file=next(iter(tables))) as target:
        for name, table in tables.items():
            write_table(table, target / name)
        try:
            for name, draw in drawings.items():
                draw(target / name)
        except MissingExtraError as error:
            missing = error
    if missing is not None:
        raise missing


def check_folder(target: str | Path | None, mark_file: str, *, overwrite: bool) -> None:
    """Raise unless the target folder can be written."""
    if target is not None:
        check_target(Path(target).absolute(), overwrite=overwrite, mark_file=mark_file)


def _tables(found: Comparison) -> dict[str, pa.Table]:
    if isinstance(found, Sweep):
        return {SWEEP_FILE: found.table}
    return {SUMMARY_FILE: found.table, VALUES_FILE: found.values}


def _plots(found: Comparison) -> dict[str, Draw]:
    if isinstance(found, Sweep):
        return {"sweep.png": partial(plots.sweep, found)}
    if isinstance(found, TrajectoryMethodComparison):
        return {"distortion.png": partial(plots.distortion_by_window, found)}
    by_k = {"error-by-k.png": partial(plots.error_by_k, found)} if plots.several_k(found) else {}
    return {
        "ratios.png": partial(plots.ratios, found),
        "coarseness-and-loss.png": partial(plots.coarseness_and_loss, found),
        **by_k,
    }

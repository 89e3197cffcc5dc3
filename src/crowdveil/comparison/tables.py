"""Write comparisons and sweeps as a folder of tables and plots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from crowdveil.comparison import plots, time_plots
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.comparison.flows import FlowComparison
from crowdveil.comparison.measure_plots import plots_of_measures
from crowdveil.comparison.several_inputs import InputComparisons
from crowdveil.comparison.sweep import Sweep
from crowdveil.comparison.trajectories import TrajectoryMethodComparison, TrajectorySweep
from crowdveil.errors import Naming, counted, reason_as
from crowdveil.io.atomic import check_target, new_folder
from crowdveil.io.tables import write_table

SUMMARY_FILE, VALUES_FILE, SWEEP_FILE = "summary.csv", "compare.csv", "sweep.csv"
MARK_FILE = "CONFIDENTIAL.txt"

Comparison = FlowComparison | TrajectoryMethodComparison | Sweep | InputComparisons
Draw = Callable[[Path], None]


def write_comparison(found: Comparison, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write confidential tables and plots to a folder that only its owner can read."""
    tables, drawings = _tables(found), _plots(found)
    with new_folder(Path(folder), overwrite=overwrite, mark_file=next(iter(tables))) as target:
        for name, table in tables.items():
            write_table(table, target / name)
        for name, draw in drawings.items():
            draw(target / name)
        (target / MARK_FILE).write_text(f"{CONFIDENTIAL}\n", encoding="utf-8")
        target.chmod(0o700)
        for file in target.iterdir():
            file.chmod(0o600)


def check_folder(target: str | Path | None, mark_file: str, *, overwrite: bool) -> None:
    """Raise unless the target folder can be written."""
    if target is not None:
        check_target(Path(target).absolute(), overwrite=overwrite, mark_file=mark_file)


def omissions(found: Comparison, naming: Naming) -> list[str]:
    """Return a sentence for each method that is missing in a comparison, with the reason."""
    return [f"{label} is left out: {reason_as(reason, naming)}" for label, reason in found.left_out.items()]


def conclusions(found: Comparison) -> list[str]:
    """Return what the numbers of a comparison mean, and of a sweep which to take."""
    if isinstance(found, Sweep):
        matrices = f"Means of {counted(found.flows.steps, 'matrix', 'matrices')}."
        return [matrices, *found.choices(), found.recommendation()]
    return [found.caption(), *([found.recommendation()] if isinstance(found, TrajectorySweep) else [])]


def _tables(found: Comparison) -> dict[str, pa.Table]:
    if isinstance(found, Sweep):
        return {SWEEP_FILE: found.table}
    if isinstance(found, TrajectorySweep):
        return {SWEEP_FILE: found.table, VALUES_FILE: found.values}
    return {SUMMARY_FILE: found.table, VALUES_FILE: found.values}


def _plots(found: Comparison) -> dict[str, Draw]:
    if isinstance(found, Sweep):
        varied = {"varied.png": partial(time_plots.varied_values, found)} if found.varied else {}
        return {"sweep.png": partial(plots.sweep, found), "time.png": partial(time_plots.sweep_time, found), **varied}
    if isinstance(found, TrajectoryMethodComparison):
        windowed: dict[str, Draw] = {"distortion.png": partial(plots.distortion_by_window, found)}
        windowed = windowed if found.shared.by_window else {}
        return windowed if found.shared.measures is None else {**windowed, **plots_of_measures(found)}
    if isinstance(found, InputComparisons):
        return _plots_of_inputs(found)
    by_k = {"error-by-k.png": partial(plots.error_by_k, found)} if plots.several_k(found) else {}
    return {
        "ratios.png": partial(plots.ratios, found),
        "coarseness-and-loss.png": partial(plots.coarseness_and_loss, found),
        **by_k,
    }


def _plots_of_inputs(found: InputComparisons) -> dict[str, Draw]:
    """Return the plots of each input, with its number in front, and those over all inputs."""
    made = {
        f"{number}-{name}": draw
        for number, each in enumerate(found.by_input.values(), start=1)
        for name, draw in _plots(each).items()
    }
    if found.of_flows:
        made["ratios.png"] = partial(time_plots.ratios_of_inputs, found.of_flows)
        made["time-by-tiles.png"] = partial(time_plots.time_by_tiles, found.of_flows)
    return made

"""`crowdveil server warmup`: compile the kernels of methods ahead of the first run."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.demo import make_city
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import InputError, counted
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline

TILES, PEOPLE, TRIPS, TRAJECTORIES = 36, 300, 3_000, 120


@click.command()
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
def command(methods: tuple[str, ...]) -> None:
    """Compile the kernels of all methods, or of those that are named, before the first run.

    Each method runs on a small synthetic city, and only its compiled kernels are kept. This takes a few minutes after an
    installation or an update, and later seconds.

    \b
    Examples:
      crowdveil server warmup joint suppression
      crowdveil server warmup
    """
    chosen = [find_method(name) for name in methods] or list(all_methods().values())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="crowdveil-warmup-") as scratch, progress_bar() as (_, stage):
        folder = Path(scratch)
        make_city(folder, 0, TILES, PEOPLE, TRIPS, TRAJECTORIES, 1)
        for number, method in enumerate(chosen, 1):
            stage(f"compiling {method.name} ({number} of {len(chosen)})")
            _run(method, folder)
    done = counted(len(chosen), "method")
    click.echo(f"compiled the kernels of {done} ({time.perf_counter() - start:.0f} s)")


def _run(method: Method, folder: Path) -> None:
    """Run a method on the small city. One that cannot use this data compiles its kernels in its first run."""
    of_flows = method.takes is Flows
    data = folder / ("trips.parquet" if of_flows else "trajectories.parquet")
    reading: dict[str, Any] = {"zones": folder / "zones.geojson", "tz": "UTC"} if of_flows else {}
    parameters = {"k": 3} if "k" in method.params.model_fields else {}
    try:
        pipeline.run(pipeline.Request(method.name, data, folder / method.name, parameters, reading))
    except InputError:
        return

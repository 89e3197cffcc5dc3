"""Show a release: its report, and pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crowdveil.api.opened import folder_of
from crowdveil.errors import InputError, Option, OutputError, ParameterError
from crowdveil.io.atomic import new_file
from crowdveil.run import releases
from crowdveil.run.result import Result

PLOTS = ("flows", "areas", "profiles", "heatmap", "pareto")
"""What `plot` draws."""


def write_report(
    folder: str | Path | Result,
    private_report: str | Path | None = None,
    *,
    original: Any = None,
    overwrite: bool = False,
    **options: Any,
) -> Path:
    """Write the report of a release into its folder, as one self-contained HTML file.

    With `private_report` the original is shown too, in a file outside the release, and nothing in the release changes:
    `original` is what it was made from, and `options` are files such as zones, as for `verify`.

    >>> crowdveil.write_report("out")  # doctest: +SKIP
    """
    if private_report is None:
        if original is not None or options:
            raise ParameterError(
                "original", "the report in a release does not show it; name a file with private_report."
            )
        return releases.report_again(_on_disk(folder))
    if original is None:
        raise ParameterError(
            Option("private_report"), f"the original is needed for it; give it with {Option('original')}."
        )
    with folder_of(folder) as opened:
        releases.report_of_original(Path(opened), Path(private_report), original, options, overwrite=overwrite)
    return Path(private_report)


def _on_disk(folder: str | Path | Result) -> Path:
    """Return the folder of a release; raise for one in memory."""
    place = folder.folder if isinstance(folder, Result) else folder
    if place is None:
        raise InputError("folder", "the release is in memory; write its report with result.report().save(file).")
    return Path(place)


def plot(
    kind: str,
    folder: str | Path | Result,
    output: str | Path,
    *,
    top: int = 300,
    zones: Sequence[str] = (),
    overwrite: bool = False,
) -> None:
    """Draw a release as PNG or SVG: `flows` or `areas` on a map, `profiles` of areas, a `heatmap` of trajectories; or the
    `pareto` curves of a folder that `compare` or `sweep` wrote. Needs matplotlib (extra `report`).

    `top` is the number of flows on the map, `zones` are the areas whose profiles are drawn, the busiest where none are named.

    >>> crowdveil.plot("flows", "out", "flows.svg")  # doctest: +SKIP
    """
    from crowdveil.report.release_plots import PlotOptions, draw, pareto

    if kind not in PLOTS:
        raise ParameterError("kind", f"wanted one of {', '.join(PLOTS)}, but got {kind!r}.")
    if Path(output).suffix.lower() not in (".png", ".svg"):
        raise OutputError(output, f"wanted a name that ends in .png or .svg; name another with {Option('output')}.")
    with new_file(Path(output), overwrite=overwrite) as file:
        if kind == "pareto":
            with folder_of(folder) as opened:
                pareto(Path(opened), file)
        else:
            with folder_of(folder) as opened:
                manifest, written = releases.sound_release(Path(opened), but="report")
            draw(kind, written, manifest, PlotOptions(top, tuple(zones)), file)

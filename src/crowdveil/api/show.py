"""Show a release: its report, and pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from crowdveil.api.opened import folder_of
from crowdveil.errors import InputError, Option, OutputError, ParameterError
from crowdveil.io.atomic import new_file
from crowdveil.io.notes import ReadNotes
from crowdveil.io.zones import read_zones
from crowdveil.model.flows import Flows
from crowdveil.reading import FlowReading, read
from crowdveil.run import releases
from crowdveil.run.manifest import original_input_options
from crowdveil.run.result import Result

PLOTS = ("flows", "areas", "profiles", "heatmap", "pareto")
"""What `plot` draws."""
ZONE_PLOTS = ("destinations", "origins")
"""What `plot_zone` draws."""


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
    check_picture_name(output)
    with new_file(Path(output), overwrite=overwrite) as file:
        if kind == "pareto":
            with folder_of(folder) as opened:
                pareto(Path(opened), file)
        else:
            with folder_of(folder) as opened:
                manifest, written = releases.sound_release(Path(opened), but="report")
            draw(kind, written, manifest, PlotOptions(top, tuple(zones)), file)


def plot_zone(
    kind: Literal["destinations", "origins"],
    folder: str | Path,
    zone: str,
    output: str | Path,
    *,
    zones: Any,
    zone_id: str | None = None,
    original: Any = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    **options: Any,
) -> None:
    """Draw where the trips of a zone go (`destinations`) or come from (`origins`) in a release, as PNG or SVG.

    `zones` are the zones of the release. With `original`, the picture shows the original too and is confidential; its input
    `options` are those of the release unless given. Needs matplotlib (extra `report`).

    >>> crowdveil.plot_zone("destinations", "out", "74", "map.png", zones="zones.geojson")  # doctest: +SKIP
    """
    from crowdveil.report.zone_maps import draw_zone, original_trips, released_trips

    if kind not in ZONE_PLOTS:
        raise ParameterError("kind", f"wanted one of {', '.join(ZONE_PLOTS)}, but got {kind!r}.")
    check_picture_name(output)
    said = notes if notes is not None else ReadNotes()
    manifest, written = releases.sound_release(Path(folder), but="report")
    if not written.is_flows:
        raise InputError(kind, "wanted a release of flows, but this one holds trajectories; choose another plot.")
    found = read_zones(zones, zone_id=zone_id, notes=said)
    before = None
    if original is not None:
        reading = original_input_options(manifest, {**options, "zones": zones, "zone_id": zone_id})
        flows: Flows = read(Flows, original, FlowReading.checked(reading), said)
        found = flows.zones
        before = original_trips(flows, zone, kind)
    after = released_trips(written, found, zone, kind)
    with new_file(Path(output), overwrite=overwrite) as file:
        draw_zone(found, zone, kind, after, before, file)


def check_picture_name(output: str | Path) -> None:
    """Raise unless a file is a PNG or an SVG by its name."""
    if Path(output).suffix.lower() not in (".png", ".svg"):
        raise OutputError(output, f"wanted a name that ends in .png or .svg; name another with {Option('output')}.")

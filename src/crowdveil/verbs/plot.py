"""Show a release: its report, and pictures of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.report.plots.kinds import find_kind
from crowdveil.run import releases
from crowdveil.run.pictures import Picture, check_name, draw_picture
from crowdveil.run.result import Result
from crowdveil.verbs.opened import folder_of, warn


def write_report(folder: str | Path | Result) -> Path:
    """Write the report of a release into its folder again, as one self-contained HTML file, from its files alone.

    >>> crowdveil.write_report("out")  # doctest: +SKIP
    """
    return releases.report_again(_on_disk(folder))


def _on_disk(folder: str | Path | Result) -> Path:
    """Return the folder of a release; raise for one in memory."""
    place = folder.folder if isinstance(folder, Result) else folder
    if place is None:
        raise InputError("folder", "the release is in memory; write its report with result.report().save(file).")
    return Path(place)


def plot(
    kind: str,
    release: str | Path | Result | Sequence[str | Path | Result] | None = None,
    output: str | Path | None = None,
    *,
    original: Any = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    **options: Any,
) -> Picture:
    """Draw a release, the original, or both, as PNG or SVG; `crowdveil plot --help` lists the kinds. Needs matplotlib.

    `release` is the folder of a release, a result, or a list of them.
    With `original` the picture shows the original: it is marked as confidential, and the name of its file must have the word
    confidential. Its input options are those of the release unless given. `options` are those of the kind, such as `top`,
    `zone`, `zoom` or `at`, and input options. Without `output` the picture is returned and not written.

    >>> crowdveil.plot("flows", "out", "flows.svg")  # doctest: +SKIP
    >>> crowdveil.plot("destinations", "out", "map.png", zone="r3c3", zones="zones.geojson")  # doctest: +SKIP
    >>> crowdveil.plot("heatmap", original="cabs.csv", output="heat-confidential.png")  # doctest: +SKIP
    """
    find_kind(kind)
    if output is not None:
        check_name(output, confidential=original is not None)
    form: Literal["png", "svg"] = "svg" if output is not None and Path(output).suffix.lower() == ".svg" else "png"
    own = ReadNotes()
    with ExitStack() as opened:
        sources = [releases.sound_release(Path(opened.enter_context(folder_of(r)))) for r in _listed(release)]
        picture = draw_picture(kind, sources, original, options, own if notes is None else notes, form=form)
    if output is not None:
        picture.save(output, overwrite=overwrite)
    if notes is None:
        warn(own)
    return picture


def _listed(release: Any) -> list[Any]:
    if release is None:
        return []
    return list(release) if isinstance(release, list | tuple) else [release]

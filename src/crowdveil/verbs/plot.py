"""Draw pictures of a release."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from crowdveil.io.notes import ReadNotes
from crowdveil.params import Params
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.report.plots.kinds import KINDS, PlotKind, find_kind
from crowdveil.run import releases
from crowdveil.run.pictures import Picture, check_name, draw_picture
from crowdveil.run.result import Result
from crowdveil.verbs.base import InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.opened import folder_of, warn


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
    confidential. The release has its input options. `options` are those of the kind, such as `top`, `zone`, `zoom` or `at`, and
    further input options. Without `output` the picture is only returned.

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


def _files(name: str) -> tuple[InputFile, ...]:
    kind = find_kind(name)
    metavar = "RELEASE" if kind.most == 1 else "RELEASE..."
    release = InputFile("release", (), metavar, several=True, required=kind.releases == "required", argument=True)
    original = InputFile(
        "original", (), help="The data before anonymization. The picture is then confidential, and its name must say so.",
        required=False,
    )  # fmt: skip
    return (*([release] if kind.releases != "no" else []), *([original] if kind.original != "no" else []))


def _options(name: str) -> tuple[type[Params], ...]:
    kind = find_kind(name)
    return (kind.params, TrajectoryReading if _without_release(kind) else FlowReading)


def _without_release(kind: PlotKind) -> bool:
    """Return whether an original of trajectories may be drawn without a release and the input options in its manifest."""
    return kind.releases != "required" and kind.original != "no" and kind.data == "trajectories"


def _hidden(name: str) -> frozenset[str]:
    """Return the input options that come from the manifest: all but files."""
    kind = find_kind(name)
    if _without_release(kind):
        return frozenset()
    named = () if kind.zones == "no" and kind.original == "no" else ("zones", "zone_id")
    return frozenset(FlowReading.model_fields) - {*named, *(("hierarchy",) if kind.name in ("tree", "matrix") else ())}


def _run(task: Task) -> Outcome:
    original = task.files.get("original")
    picture = plot(
        task.name, list(task.files.get("release", ())), task.output, original=original, overwrite=task.overwrite,
        notes=task.notes, **task.of(*_options(task.name)),
    )  # fmt: skip
    return Outcome(task.notes, ["The picture shows the original: do not publish it."] if picture.confidential else [])


VERB = Verb(
    verb="plot",
    summary="Draw maps, matrices, losses, trajectories and trees, as PNG or SVG.",
    names=lambda: list(KINDS),
    find=lambda name: find_kind(name).name,
    group=with_examples(
        "Draw a release, the original, or both on the same scale, as PNG or SVG.\n\n"
        "A picture of a release has published numbers only. A picture of the original is marked as confidential, and the name of "
        "its file must have the word confidential.",
        "plot",
        "flows out/ -o flows.png",
        "destinations out/ --zone r3c3 --zones zones.geojson --original trips.parquet -o to-confidential.png",
        "paths cabs/ -o paths.png",
        "tree --zones zones.geojson -o tree.svg",
    ),
    run=_run,
    options=_options,
    files=_files,
    output=lambda name: Output("Picture to write: .png or .svg.", required=True),
    hidden=_hidden,
    about=lambda name: {"summary": find_kind(name).summary},
    help=lambda name: with_examples(find_kind(name).text.strip(), "", *find_kind(name).examples),
)

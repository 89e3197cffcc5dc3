"""Draw pictures of releases, of the original, and of both: read the data of a kind of picture, and mark confidential ones.

A picture without the original is made from the files of releases alone. A picture with the original carries a mark, has a
name that says so, and cannot be written into a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from crowdveil.comparison.requested_measures import named_measures
from crowdveil.errors import InputError, Option, OutputError, ParameterError, Text
from crowdveil.io.atomic import new_file
from crowdveil.io.hierarchy import build_hierarchy
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_reader import load_flow_release, load_trajectory_release
from crowdveil.io.written_release import MANIFEST_FILE, WrittenRelease
from crowdveil.io.zones import read_zones
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.trees import BUILDERS
from crowdveil.model.zones import Zones
from crowdveil.reading import READINGS, read
from crowdveil.report import trajectory_picture
from crowdveil.report.measurement import measured
from crowdveil.report.plots import flow_maps, flow_panels, tree
from crowdveil.report.plots.drawing import Drawing
from crowdveil.report.plots.flow_panels import ORIGINAL, FlowPanel, release_title
from crowdveil.report.plots.kinds import PlotKind, find_kind
from crowdveil.report.plots.loss import draw_loss, manifest_axes, measured_axes
from crowdveil.report.plots.profiles import draw_profiles
from crowdveil.report.plots.trajectory_maps import TrajectoryPanel, draw_heat_map, draw_paths
from crowdveil.run import releases
from crowdveil.run.manifest import original_input_options

Source = tuple[Manifest, WrittenRelease]
"""A release: its manifest and its files."""
MARK = "confidential"
"""Word in the name of a picture that shows the original."""


@dataclass(frozen=True, repr=False)
class Picture:
    """A picture, as PNG or SVG.

    Attributes
    ----------
    content
        The file.
    title
        What it shows.
    kind
        Its format.
    confidential
        Whether it shows the original.
    """

    content: bytes
    title: str
    kind: Literal["png", "svg"] = "png"
    confidential: bool = False

    def save(self, file: str | Path, *, overwrite: bool = True) -> Path:
        """Write the picture; one that shows the original must have a name that says so, outside of releases."""
        check_name(file, confidential=self.confidential)
        with new_file(Path(file), overwrite=overwrite) as temporary:
            temporary.touch(mode=0o600 if self.confidential else 0o666)
            temporary.write_bytes(self.content)
        return Path(file)

    def show(self, ax: Any) -> None:
        """Draw the picture, a PNG, on axes of matplotlib."""
        from matplotlib.image import imread

        ax.imshow(imread(BytesIO(self.content), format="png"))
        ax.set_axis_off()

    def __repr__(self) -> str:
        shows = "; confidential, it shows the original" if self.confidential else ""
        return f"<Picture: {self.title}{shows}; write it with .save(file)>"

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook."""
        return self.content if self.kind == "png" else None

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook."""
        return self.content.decode() if self.kind == "svg" else None


def check_name(file: str | Path, *, confidential: bool) -> None:
    """Raise unless a file is a PNG or SVG by its name, and one that shows the original is named so and in no release."""
    path = Path(file)
    if path.suffix.lower() not in (".png", ".svg"):
        raise OutputError(file, Text("Expected a name that ends in .png or .svg. Name another with {output}."))
    if not confidential:
        return
    if MARK not in path.stem.lower():
        raise OutputError(
            file,
            Text(
                "the picture shows the original, so its name must have the word {word}, as in "
                "{stem}-{word}{suffix}; name it with {output}.",
                stem=path.stem,
                word=MARK,
                suffix=path.suffix,
            ),
        )
    if (path.resolve().parent / MANIFEST_FILE).exists():
        raise OutputError(
            file, Text("the picture shows the original and must not be in a release. Name another with {output}.")
        )


def draw_picture(
    name: str,
    sources: Sequence[Source],
    original: Any,
    options: Mapping[str, Any],
    notes: ReadNotes,
    *,
    form: Literal["png", "svg"] = "png",
) -> Picture:
    """Draw a picture of releases, of the original, or of both; `options` are those of the kind and of the input."""
    kind = find_kind(name)
    own = {key: value for key, value in options.items() if key in kind.params.model_fields}
    reading = {key: value for key, value in options.items() if key not in own}
    params = kind.params.checked(own)
    _check_sources(kind, sources, original, reading)
    drawing = _drawn(kind, params, sources, original, reading, notes)
    if drawing.confidential != (original is not None):
        raise RuntimeError("a picture and its mark differ")
    buffer = BytesIO()
    drawing.save(buffer, form)
    return Picture(buffer.getvalue(), drawing.heading, form, drawing.confidential)


def _check_sources(kind: PlotKind, sources: Sequence[Any], original: Any, reading: Mapping[str, Any]) -> None:
    if kind.releases == "no" and sources:
        raise ParameterError(kind.name, "this picture is not of a release. Leave the release out.")
    if kind.releases == "required" and not sources:
        raise ParameterError(kind.name, "Expected a release, got none. Give its folder.")
    if kind.original == "no" and original is not None:
        raise ParameterError(Option("original"), f"{kind.name} does not show the original. Leave it out.")
    if not sources and original is None and "optional" in (kind.releases, kind.original):
        raise ParameterError(kind.name, Text("Expected a release, or the original with {original}. Give one."))
    if len(sources) > kind.most > 0:
        raise ParameterError(kind.name, f"Expected at most {kind.most} releases, got {len(sources)}. Leave some out.")
    if kind.zones == "required" and reading.get("zones") is None and original is None:
        raise ParameterError(Option("zones"), "the picture needs the zones. Give their file.")
    if reading and original is None and (kind.zones == "no" or set(reading) - {"zones", "zone_id", "hierarchy"}):
        raise ParameterError(
            "this picture is drawn from the release alone. Leave out the input options, or give the original."
        )


def _drawn(
    kind: PlotKind, params: Any, sources: Sequence[Source], original: Any, reading: dict[str, Any], notes: ReadNotes
) -> Drawing:
    for _, written in sources:
        _check_content(kind, written)
    if kind.name == "loss":
        return _loss(params, sources, original, reading, notes)
    if kind.data == "trajectories":
        return _trajectories(kind.name, params, sources, original, reading, notes)
    if kind.name == "profiles":
        manifest, written = sources[0]
        return draw_profiles(written, manifest, params.zone)
    return _flows(kind.name, params, sources, original, reading, notes)


def _check_content(kind: PlotKind, written: WrittenRelease) -> None:
    if kind.data not in (written.content, "either"):
        raise InputError(
            kind.name, f"Expected a release of {kind.data}, but this one holds {written.content}. Choose another plot."
        )


def _read_original(
    takes: type, original: Any, sources: Sequence[Source], reading: dict[str, Any], notes: ReadNotes
) -> Any:
    """Read the original with the input options of the first release, or with those that are given."""
    if isinstance(original, takes):
        options: dict[str, Any] = {}
    elif sources:
        options = original_input_options(sources[0][0], reading)
    else:
        options = {name: value for name, value in reading.items() if name != "hierarchy"}
    data = read(takes, original, READINGS[takes].checked(options), notes)
    if isinstance(data, Flows):
        for manifest, written in sources:
            releases.refuse_other_original(manifest, written, data)
    return data


def _flows(
    name: str, params: Any, sources: Sequence[Source], original: Any, reading: dict[str, Any], notes: ReadNotes
) -> Drawing:
    flows = None if original is None else _read_original(Flows, original, sources, reading, notes)
    zones = flows.zones if flows is not None else _zones(reading, notes)
    if zones is None and name in ("tree", "destinations"):
        raise ParameterError(Option("zones"), "the picture needs the zones. Give their file.")
    if zones is not None and name == "tree":
        return tree.draw_tree(_tree(zones, [], reading), zones, params.groups)
    at = params.at
    panels: list[FlowPanel] = [] if flows is None else [flow_panels.original_panel(flows, at)]
    titles = _titles(sources)
    panels += [
        flow_panels.released_panel(written, manifest, at, title)
        for (manifest, written), title in zip(sources, titles, strict=True)
    ]
    if name == "matrix":
        order = None if zones is None or not zones.located else _tree(zones, sources, reading)
        names = [] if zones is None else [str(zone) for zone in zones.ids]
        return flow_maps.draw_matrix(panels, flow_maps.tile_order(panels, order, names), order is not None)
    _check_located(name, panels, zones)
    if name == "flows":
        return flow_maps.draw_flow_map(panels, zones, params.top, params.zoom)
    if zones is not None and name == "destinations":
        return flow_maps.draw_zone(panels, zones, params.zone, params.direction, params.zoom)
    return flow_maps.draw_coarsening(panels, zones, params.zoom, params.end)


def _check_located(name: str, panels: Sequence[FlowPanel], zones: Zones | None) -> None:
    if zones is not None and zones.located:
        return
    drawn = [panel.flows for panel in panels if len(panel.flows.volume)]
    if drawn and not any(flows.located for flows in drawn):
        raise InputError(name, "the zones have no positions, so there is no map. Choose another plot.")


def _zones(reading: Mapping[str, Any], notes: ReadNotes) -> Zones | None:
    if reading.get("zones") is None:
        return None
    return read_zones(reading["zones"], zone_id=reading.get("zone_id"), notes=notes)


def _tree(zones: Zones, sources: Sequence[Source], reading: Mapping[str, Any]) -> Any:
    """Return the tree that is given, or the one that the first release was made with, or the Ward tree."""
    kind = reading.get("hierarchy")
    if kind is None and sources:
        used = sources[0][0].input.options.get("hierarchy", {}).get("name")
        kind = used if used in BUILDERS else None
    return build_hierarchy(zones, kind or "ward")


def _trajectories(
    name: str, params: Any, sources: Sequence[Source], original: Any, reading: dict[str, Any], notes: ReadNotes
) -> Drawing:
    panels: list[TrajectoryPanel] = []
    if original is not None:
        data = _read_original(Trajectories, original, sources, reading, notes)
        panels.append(TrajectoryPanel(ORIGINAL, True, trajectory_picture.original(data)))
    for (_, written), title in zip(sources, _titles(sources), strict=True):
        panels.append(TrajectoryPanel(title, False, trajectory_picture.released(written)))
    return (draw_heat_map if name == "heatmap" else draw_paths)(panels, params.zoom)


def _loss(params: Any, sources: Sequence[Source], original: Any, reading: dict[str, Any], notes: ReadNotes) -> Drawing:
    titles = [title.removeprefix("release: ") for title in _titles(sources)]
    if original is None:
        if params.measures is not None or params.pairing is not None:
            raise ParameterError(Option("original"), "measures compare a release with the original. Give it.")
        axes = manifest_axes([(title, manifest.cost) for title, (manifest, _) in zip(titles, sources, strict=True)])
        return draw_loss(axes, "What was published", ["The numbers of the manifests."], confidential=False)
    takes: type = Flows if sources[0][1].is_flows else Trajectories
    if any(written.is_flows != sources[0][1].is_flows for _, written in sources):
        raise InputError("loss", "Expected releases of one kind, got flows and trajectories. Draw them separately.")
    data = _read_original(takes, original, sources, reading, notes)
    found = [
        (title, _scores(data, written, params, takes)) for title, (_, written) in zip(titles, sources, strict=True)
    ]
    note = "Values are means over time steps. Every measure has its own axis." if takes is Flows else ""
    heading = f"Information loss of {titles[0]}" if len(titles) == 1 else "Information loss"
    return draw_loss(measured_axes(found), heading, [note] if note else [], confidential=True)


def _titles(sources: Sequence[Source]) -> list[str]:
    """Return a title of each release with the parameters that differ, and a number where titles would be equal."""
    manifests = [manifest for manifest, _ in sources]
    titles = [release_title(manifest, manifests) for manifest in manifests]
    return [f"{title} ({i + 1})" if titles.count(title) > 1 else title for i, title in enumerate(titles)]


def _scores(data: Any, written: WrittenRelease, params: Any, takes: type) -> Any:
    names = None if params.measures is None else [name.strip() for name in params.measures.split(",")]
    if isinstance(data, Flows):
        made: Any = load_flow_release(written, data)
    else:
        made = load_trajectory_release(written)
        if params.pairing is not None:
            made = releases.with_pairing(made, params.pairing, data)
    return measured(data, made, named_measures(names, takes)).scores

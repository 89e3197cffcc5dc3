"""Flows as a panel of a picture shows them: a release, or the original, summed over time steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.io.geojson import read_outlines
from crowdveil.io.manifest import Manifest
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.area_labels import zone_labels
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.report.flow_picture import FlowPicture, all_flows, sum_by_pair
from crowdveil.report.page_model import method_parameters
from crowdveil.report.plots.drawing import frame_around
from crowdveil.report.shapes import PictureFrame, Rings

ORIGINAL = "original (confidential)"
NONE_PUBLISHED = "none published,\nwhich is not 0"


@dataclass(frozen=True, eq=False)
class FlowPanel:
    """Flows between areas over all chosen time steps, a row for each pair of areas with trips, the largest first.

    Attributes
    ----------
    title, confidential
        Its title, and whether it shows the original.
    flows
        The areas and the rows.
    tile_names
        The tiles of the areas.
    k_unit
        What k counts in a release; empty for the original.
    """

    title: str
    confidential: bool
    flows: FlowPicture
    tile_names: list[str]
    k_unit: str = ""

    @classmethod
    def of(
        cls, title: str, confidential: bool, flows: FlowPicture, tile_names: list[str], chosen: Mask, k_unit: str = ""
    ) -> FlowPanel:
        """Return the panel of the rows of the chosen time steps."""
        rows = chosen[flows.step]
        pairs = sum_by_pair(flows.origin[rows], flows.destination[rows], flows.volume[rows], len(flows.names))
        some = pairs[2] > 0
        origin, destination, volume = (column[some] for column in pairs)
        step = np.zeros(len(volume), np.int64)
        summed = replace(flows, step=step, origin=origin, destination=destination, volume=volume)
        return cls(title, confidential, summed, tile_names, k_unit)

    def tiles_of(self, area: int) -> Ints:
        """Return the numbers of the tiles of an area."""
        tiles: Ints = self.flows.tiles[self.flows.offsets[area] : self.flows.offsets[area + 1]]
        return tiles


def released_panel(written: WrittenRelease, manifest: Manifest, at: str | None, title: str) -> FlowPanel:
    """Return the flows of a written release; `at` chooses time steps by the beginning of their local time.

    Trips of rows that span several time steps are then spread evenly over these.
    """
    tz = manifest.time_zone
    flows, t = all_flows(written, manifest)
    flows = replace(flows, rings=Rings.of(read_outlines(written.features)))
    panel = FlowPanel.of(title, False, flows, written.tile_names, _chosen(t, tz, at), manifest.k_unit)
    if at is not None and not len(panel.flows.volume):
        raise InputError(Option("at"), "the release has no flow in this time step. Name one of its time steps.")
    return panel


def original_panel(flows: Flows, at: str | None) -> FlowPanel:
    """Return the original flows between zones. Confidential."""
    t = flows.t if flows.step_s is not None else np.full(flows.steps, NO_TIME)
    zones = flows.zones
    drawn = FlowPicture.between(
        zone_labels(zones), zones.lon, zones.lat, zone_rings(zones), flows.step, flows.origin.astype(np.int64),
        flows.destination.astype(np.int64), flows.volume,
    )  # fmt: skip
    chosen = _chosen(t, flows.tz, at)
    panel = FlowPanel.of(ORIGINAL, True, drawn, [str(name) for name in zones.ids], chosen)
    if at is not None and not len(panel.flows.volume):
        raise InputError(Option("at"), "the original has no trip in this time step. Name another.")
    return panel


def _chosen(t: Ints, tz: str, at: str | None) -> Mask:
    """Return which time steps begin with `at` in local time; all of them without `at`."""
    if at is None:
        return np.ones(len(t), np.bool_)
    known = t != NO_TIME
    texts = iso_times(np.where(known, t, 0), tz).to_pylist()
    begins = np.array([text.startswith(at.strip().replace(" ", "T")) for text in texts], np.bool_)
    chosen: Mask = known & begins
    return chosen


def release_title(manifest: Manifest, others: Sequence[Manifest] = ()) -> str:
    """Return the method and k of a release, and the parameters that differ from those of others in the picture."""
    method, parameters = manifest.method.name, _parameters(manifest)
    named = [f"k = {parameters['k']:,}"] if parameters.get("k") is not None else []
    of_others = [_parameters(other) for other in others]
    named += [
        f"{name.replace('_', ' ')} = {value}"
        for name, value in parameters.items()
        if name != "k" and any(name in other and other[name] != value for other in of_others)
    ]
    return f"release: {', '.join([method, *named])}"


def _parameters(manifest: Manifest) -> dict[str, Any]:
    """Return the parameters of a release, with the length of its time steps."""
    seconds = manifest.step_seconds
    step = "all" if seconds is None else f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"
    return {**method_parameters(manifest), "step": step}


def zone_rings(zones: Zones) -> Rings:
    """Return the outlines of zones; none where there are only centroids or ids."""
    return Rings.of(zones.shapes() if zones.located else [None] * len(zones))


def meaning_of_gray(panels: Sequence[FlowPanel]) -> str:
    """Return the meaning of a missing value: no trips in the original, none published in a release."""
    if all(panel.confidential for panel in panels):
        return "Gray: no trips."
    original = "no trips in the original; " if any(panel.confidential for panel in panels) else ""
    return f"Gray: {original}none published, which is not 0."


def common_frame(panels: Sequence[FlowPanel], base: Zones | None, zoom: tuple[float, ...] | None) -> PictureFrame:
    """Return one frame for all panels: around their flows and the base, or the box of `zoom`."""
    lon, lat = [np.zeros(0)], [np.zeros(0)]
    for flows in (panel.flows for panel in panels):
        used = np.unique(np.concatenate([flows.origin, flows.destination]))
        lon += [flows.lon[used], flows.rings.lon]
        lat += [flows.lat[used], flows.rings.lat]
    if base is not None and base.located:
        rings = zone_rings(base)
        lon += [base.lon, rings.lon]
        lat += [base.lat, rings.lat]
    return frame_around(np.concatenate(lon), np.concatenate(lat), zoom)

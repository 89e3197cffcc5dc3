"""The kinds of pictures: their parameters, their data, and examples."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import Field, field_validator

from crowdveil.errors import ParameterError
from crowdveil.params import Params

Needs = Literal["no", "optional", "required"]
Data = Literal["flows", "trajectories", "either", "none"]


class PlotParams(Params):
    """Parameters of a picture without any."""


class ZoomParams(PlotParams):
    """Parameters of a picture of a part of the map."""

    zoom: Any = Field(None, json_schema_extra={"metavar": "W,S,E,N"})
    """Draw this box of the map, in degrees: west, south, east, north."""

    @field_validator("zoom")
    @classmethod
    def _box(cls, value: Any) -> Any:
        if value is None:
            return None
        try:
            box = tuple(float(v) for v in (value.split(",") if isinstance(value, str) else value))
        except (TypeError, ValueError):
            box = ()
        fits = len(box) == 4 and -180 <= box[0] < box[2] <= 540 and -90 <= box[1] < box[3] <= 90
        if not fits:
            raise ValueError("west,south,east,north in degrees, such as -74.1,40.6,-73.8,40.9")
        return box


class TimeParams(PlotParams):
    """Parameters of a picture of some time steps."""

    at: str | None = Field(None, min_length=4, json_schema_extra={"metavar": "TIME"})
    """Draw the time steps of this local day or hour, such as 2020-03-06 or 2020-03-06T08. Default: all, summed."""


class FlowMapParams(ZoomParams, TimeParams):
    """Parameters of a flow map."""

    top: int = Field(150, ge=1, le=20_000)
    """Draw about this many flows: all that are as large as the last of them, in every panel."""


class ZoneMapParams(ZoomParams, TimeParams):
    """Parameters of a map of one zone."""

    zone: str = Field(json_schema_extra={"metavar": "ZONE"})
    """The zone whose trips are drawn."""
    direction: Literal["from", "to"] = "from"
    """Trips from the zone, by their destinations, or trips to it, by their origins."""


class CoarseningParams(ZoomParams, TimeParams):
    """Parameters of a map of merged zones."""

    end: Literal["both", "origin", "destination"] = "both"
    """End of the trips: zones as origins, as destinations, or a map for each."""


class ProfileParams(PlotParams):
    """Parameters of profiles."""

    zone: Any = Field((), json_schema_extra={"metavar": "AREA"})
    """Area whose profile is drawn; may be given again. Default: the busiest."""

    @field_validator("zone")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else tuple(str(name) for name in value or ())


class LossParams(PlotParams):
    """Parameters of the information loss."""

    measures: str | None = Field(None, json_schema_extra={"metavar": "NAMES"})
    """With the original: names of measures with commas between. Default: all of them."""
    pairing: Any = Field(None, json_schema_extra={"metavar": "FILE"})
    """With original trajectories: the file that anonymize --pairing wrote."""


class TreeParams(PlotParams):
    """Parameters of a tree."""

    groups: int = Field(8, ge=2, le=12)
    """Largest number of colored groups of zones."""


@dataclass(frozen=True)
class PlotKind:
    """A kind of picture.

    Attributes
    ----------
    name, summary, text
        Its name, a line for lists, and a paragraph for its help.
    params
        Its parameters.
    data
        What it shows; "none" for trees.
    releases, most
        Whether it needs a release, and how many it can show.
    original
        Whether it needs the original; with it the picture is confidential.
    zones
        Whether it needs the zones.
    examples
        Commands, without the program's name.
    """

    name: str
    summary: str
    text: str
    params: type[Params]
    data: Data
    releases: Needs
    original: Needs
    most: int = 1
    zones: Needs = "optional"
    examples: tuple[str, ...] = ()


_MAP = "With --original the original is drawn too, on the same scale, and the picture is confidential. "
_SEVERAL = "Several releases are drawn next to one another. "
_ZONE = "Trips of an area are spread evenly over its zones; gray zones have no published trips, which does not mean 0. "

KINDS: dict[str, PlotKind] = {
    kind.name: kind
    for kind in (
        PlotKind(
            "flows", "The largest flows on a map.",
            "Draw the largest flows on a map: arrows whose width and color show trips, and circles for trips inside an area. "
            + _SEVERAL + _MAP + "With --zones their outlines are the base.",
            FlowMapParams, "flows", "optional", "optional", 3,
            examples=("plot flows out/ -o flows.png", "plot flows out/ --top 300 --zoom -74.02,40.7,-73.9,40.82 -o manhattan.svg",
                      "plot flows out/ --original trips.parquet --zones zones.geojson -o flows-confidential.png"),
        ),
        PlotKind(
            "matrix", "The OD matrix, with tiles in the order of the tree.",
            "Draw the OD matrix with tiles in the order of the tree, so that each published flow is a rectangle. "
            + _SEVERAL + _MAP,
            TimeParams, "flows", "optional", "optional", 3,
            examples=("plot matrix out/ -o matrix.png",
                      "plot matrix out/ --original trips.parquet --zones zones.geojson -o matrix-confidential.png"),
        ),
        PlotKind(
            "destinations", "Where the trips of a zone go, or come from.",
            "Draw where the trips of a zone go, or with --direction to where they come from. " + _ZONE + _SEVERAL + _MAP,
            ZoneMapParams, "flows", "optional", "optional", 3, "required",
            examples=("plot destinations out/ --zone r3c3 --zones zones.geojson -o to.png",
                      "plot destinations out/ --zone r3c3 --direction to --zones zones.geojson --original trips.parquet "
                      "-o from-confidential.png"),
        ),
        PlotKind(
            "coarsening", "How many zones each zone was merged with.",
            "Draw how many zones each zone was merged with, as origin and as destination. With --zones each zone has its own "
            "color, otherwise each area. " + _SEVERAL,
            CoarseningParams, "flows", "required", "no", 3,
            examples=("plot coarsening out/ --zones zones.geojson -o coarsening.png",
                      "plot coarsening joint/ atg-dual/ --zones zones.geojson --at 2026-03-02 -o compared.png"),
        ),
        PlotKind(
            "profiles", "Trips of areas by time step.",
            "Draw the trips that leave and reach areas by time step. Unpublished values are gaps, not zeros.",
            ProfileParams, "flows", "required", "no", zones="no",
            examples=("plot profiles out/ --zone r3c3 --zone r3c4 -o profiles.png",),
        ),
        PlotKind(
            "loss", "Information loss, each measure with its own axis.",
            "Draw the information loss of releases, each measure on its own axis. Without --original it is what the "
            "manifests publish; with it every measure, exact and confidential. " + _SEVERAL,
            LossParams, "either", "required", "optional", 6,
            examples=("plot loss joint/ atg-dual/ -o published.png",
                      "plot loss joint/ --original trips.parquet --zones zones.geojson -o loss-confidential.png"),
        ),
        PlotKind(
            "heatmap", "Trajectories by square cell.",
            "Draw the number of trajectories in each square cell, of a release, of the original, or of both. " + _MAP,
            ZoomParams, "trajectories", "optional", "optional", 3, "no",
            examples=("plot heatmap cabs/ -o heat.png", "plot heatmap --original cabs.csv -o heat-confidential.png"),
        ),
        PlotKind(
            "paths", "Paths of trajectories, with their points.",
            "Draw each distinct path with its points, colored by the number of trajectories that are published on it. " + _MAP,
            ZoomParams, "trajectories", "optional", "optional", 3, "no",
            examples=("plot paths cabs/ -o paths.png", "plot paths cabs/ --original cabs.csv -o paths-confidential.png"),
        ),
        PlotKind(
            "tree", "The tree over zones.",
            "Draw the tree over zones, and its groups on a map. --hierarchy names the tree; ward is the default.",
            TreeParams, "none", "no", "no", 0, "required",
            examples=("plot tree --zones zones.geojson --hierarchy ward -o tree.svg",),
        ),
    )
}  # fmt: skip


def find_kind(name: str) -> PlotKind:
    """Return a kind of picture by its name."""
    if name not in KINDS:
        near = get_close_matches(name, KINDS, n=1)
        more = f"Did you mean {near[0]}?" if near else f"Expected one of {', '.join(KINDS)}."
        raise ParameterError("kind", f"there is no plot {name}. {more}")
    return KINDS[name]

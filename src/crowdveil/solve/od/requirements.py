"""Check that data has what a method needs, before anything is solved: positions of zones, outlines, a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.flows import Flows
from crowdveil.model.points_of_interest import NO_CATEGORY
from crowdveil.solve.od.area_content import points_of


def check_tree(data: Flows, params: Any) -> None:
    """Raise unless there is a tree over the zones, or positions to make one of; and points of interest, where they count."""
    check_pois(data, params)
    if len(data) and data.origin_tree is None and data.destination_tree is None:
        data.zones.need_location("Ward trees")


def check_positions(data: Flows, _params: Any) -> None:
    """Raise unless the positions of the zones are known, for clusters of flows."""
    if len(data):
        data.zones.need_location("clusters of flows")


def check_pois(data: Flows, params: Any) -> None:
    """Raise unless there are points of interest, with categories, where areas must contain some."""
    points, categories = getattr(params, "min_pois", 0), getattr(params, "min_poi_categories", 0)
    if points or categories:
        found = points_of(data)
        if categories and np.all(found.category == NO_CATEGORY):
            raise InputError(
                Option("min_poi_categories"),
                f"no point of interest has a category. Add a column category to the table of {Option('pois')}.",
            )


def check_outlines(data: Flows, what: str) -> None:
    """Raise unless all zones have an area."""
    if np.isnan(data.zones.area_m2).any():
        raise InputError(f"{what} needs zones with outlines. Give polygons with {Option('zones')}, or a grid.")

"""Check that data has what a method needs, before anything is solved: positions of zones, outlines, a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.errors import InputError, Option, Text
from crowdveil.model.flows import Flows


def check_tree(data: Flows, _params: Any) -> None:
    """Raise unless there is a tree over the zones, or positions to make one of."""
    if len(data) and data.origin_tree is None and data.destination_tree is None:
        data.zones.need_location("Ward trees")


def check_positions(data: Flows, _params: Any) -> None:
    """Raise unless the positions of the zones are known, for clusters of flows."""
    if len(data):
        data.zones.need_location("clusters of flows")


def check_outlines(data: Flows, what: Option) -> None:
    """Raise unless all zones have an area."""
    if np.isnan(data.zones.area_m2).any():
        raise InputError(Text("{what} needs zones with outlines. Give polygons with {zones}, or a grid.", what=what))

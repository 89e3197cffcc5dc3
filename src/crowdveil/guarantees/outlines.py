"""Check written outlines of areas: each must be a valid polygon."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np


def broken_outlines(features: Sequence[dict[str, Any]]) -> int:
    """Count polygons that are invalid, unreadable, or beyond ±180°; features without an outline do not count."""
    texts = [json.dumps(f["geometry"]) for f in features if f.get("geometry") is not None]
    if not texts:
        return 0
    import shapely

    shapes = shapely.from_geojson(np.array(texts, dtype=object), on_invalid="ignore")
    bounds = shapely.bounds(shapes).reshape(-1, 4)
    outside = (np.abs(bounds[:, [0, 2]]) > 180).any(axis=1) | (np.abs(bounds[:, [1, 3]]) > 90).any(axis=1)
    # A shape that is no geometry is neither valid nor empty.
    return int((~shapely.is_valid(shapes) | outside).sum())

"""Manifests that no run wrote."""

from __future__ import annotations

from typing import Any

from crowdveil.io.manifest import Manifest

_PLAIN: dict[str, Any] = {
    "format": 6,
    "crowdveil": "0",
    "k_unit": "people",
    "guarantees": [],
    "files": {},
    "created": "2026-01-01T00:00:00+00:00",
    "python": "3",
    "packages": {},
    "method": {"name": "suppression", "status": "proven", "parameters": {}, "seed_given": False, "facts": {}},
    "input": {
        "data": {"kind": "table", "people_about": None},
        "options": {},
        "notes": [],
        "dropped": {},
        "dropped_percent": None,
    },
    "step_seconds": None,
    "time_zone": "UTC",
    "k": None,
    "cost": {"published_volume": 0, "published_flows": 0, "published_time_steps": 0},
    "risk": None,
}


def manifest_of(method: dict[str, Any] | None = None, **changes: Any) -> Manifest:
    """Return a manifest with some entries; those of the method are added to the usual ones."""
    return Manifest.model_validate(_PLAIN | changes | {"method": _PLAIN["method"] | (method or {})})

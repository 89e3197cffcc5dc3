"""Crowdveil hides every traveler in a crowd of at least k, and proves it on the file that it writes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
"""The only place of the version: the package, manifests, reports and the service take it from here."""

_PUBLIC = {
    "anonymize": "crowdveil.api",
    "verify": "crowdveil.api",
    "methods": "crowdveil.api",
    "derive": "crowdveil.api",
    "ledger_init": "crowdveil.api",
    "ledger_list": "crowdveil.api",
    "ledger_check": "crowdveil.api",
    "ledger_add": "crowdveil.api",
    "ledger_explain": "crowdveil.api",
    "ledger_verify": "crowdveil.api",
    "ledger_retire": "crowdveil.api",
    "write_report": "crowdveil.api",
    "plot": "crowdveil.api",
    "measure": "crowdveil.api",
    "attack": "crowdveil.api",
    "describe": "crowdveil.api",
    "compare": "crowdveil.api",
    "compare_inputs": "crowdveil.api",
    "sweep": "crowdveil.api",
    "sweep_trajectories": "crowdveil.api",
    "reconstruct": "crowdveil.api",
    "profiles": "crowdveil.api",
    "land_use": "crowdveil.api",
    "topics": "crowdveil.api",
    "topic_number": "crowdveil.api",
    "quadtree_heatmap": "crowdveil.api",
    "read_flows": "crowdveil.io.flows",
    "read_trips": "crowdveil.io.flows",
    "trips_to_flows": "crowdveil.io.flows",
    "read_trajectories": "crowdveil.io.trajectories",
    "read_zones": "crowdveil.io.zones",
    "read_voronoi": "crowdveil.io.zones",
    "write_flows": "crowdveil.io.tables",
    "write_zones": "crowdveil.io.geojson",
    "write_trajectories": "crowdveil.io.tables",
    "keep_zones": "crowdveil.io.zone_edits",
    "keep_trips": "crowdveil.io.zone_edits",
    "split_zones": "crowdveil.io.zone_edits",
    "split_trips": "crowdveil.io.zone_edits",
    "build_hierarchy": "crowdveil.io.hierarchy",
    "filter_trajectories": "crowdveil.filters",
    "all_methods": "crowdveil.registry",
    "all_measures": "crowdveil.registry",
    "all_analyses": "crowdveil.registry",
    "all_attacks": "crowdveil.registry",
    "Flows": "crowdveil.model.flows",
    "Trips": "crowdveil.model.trips",
    "Trajectories": "crowdveil.model.trajectories",
    "Zones": "crowdveil.model.zones",
    "Hierarchy": "crowdveil.model.hierarchy",
    "FlowRelease": "crowdveil.model.release",
    "TrajectoryRelease": "crowdveil.model.release",
    "CrowdveilError": "crowdveil.errors",
    "CrowdveilWarning": "crowdveil.errors",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Import public names when they are asked for, so that `crowdveil --help` loads next to nothing."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

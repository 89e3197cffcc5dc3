"""Crowdveil hides every traveler in a crowd of at least k, and proves it on the file that it writes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
"""The only place of the version: the package, manifests, reports and the service take it from here."""

_PUBLIC = {
    "anonymize": "crowdveil.api.release",
    "verify": "crowdveil.api.release",
    "methods": "crowdveil.api.release",
    "derive": "crowdveil.api.derive",
    "ledger_init": "crowdveil.api.ledger",
    "ledger_list": "crowdveil.api.ledger",
    "ledger_check": "crowdveil.api.ledger",
    "ledger_add": "crowdveil.api.ledger",
    "ledger_explain": "crowdveil.api.ledger",
    "ledger_verify": "crowdveil.api.ledger",
    "ledger_retire": "crowdveil.api.ledger",
    "write_report": "crowdveil.api.show",
    "plot": "crowdveil.api.show",
    "measure": "crowdveil.api.measure",
    "attack": "crowdveil.api.attack",
    "describe": "crowdveil.api.describe",
    "compare": "crowdveil.api.compare",
    "compare_inputs": "crowdveil.api.compare",
    "sweep": "crowdveil.api.compare",
    "sweep_trajectories": "crowdveil.api.compare",
    "reconstruct": "crowdveil.api.analyze",
    "profiles": "crowdveil.api.analyze",
    "land_use": "crowdveil.api.analyze",
    "topics": "crowdveil.api.analyze",
    "topic_number": "crowdveil.api.analyze",
    "quadtree_heatmap": "crowdveil.api.analyze",
    "read_flows": "crowdveil.io.flows",
    "read_trips": "crowdveil.io.flows",
    "trips_to_flows": "crowdveil.io.flows",
    "read_trajectories": "crowdveil.io.trajectories",
    "read_zones": "crowdveil.io.zones",
    "read_voronoi": "crowdveil.io.zones",
    "write_flows": "crowdveil.io.tables",
    "write_zones": "crowdveil.io.geojson",
    "write_trajectories": "crowdveil.io.tables",
    "measure_queries": "crowdveil.api.range_queries",
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

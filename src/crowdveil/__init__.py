"""Crowdveil hides every traveler in a crowd of at least k, and proves it on the file that it writes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
"""The only place of the version: the package, manifests, reports and the service take it from here."""

_MODULES = {
    "crowdveil.api.release": ("anonymize", "verify", "list_methods"),
    "crowdveil.api.derive": ("derive",),
    "crowdveil.api.ledger": (
        "ledger_init",
        "ledger_list",
        "ledger_check",
        "ledger_add",
        "ledger_explain",
        "ledger_verify",
        "ledger_retire",
    ),
    "crowdveil.api.show": ("write_report", "plot"),
    "crowdveil.api.trips": ("trips",),
    "crowdveil.api.measure": ("measure",),
    "crowdveil.api.attack": ("attack",),
    "crowdveil.api.describe": ("describe",),
    "crowdveil.api.compare": ("compare",),
    "crowdveil.api.analyze": ("reconstruct", "profiles", "land_use", "topics", "quadtree_heatmap"),
    "crowdveil.io.flows": ("read_flows", "read_trips", "trips_to_flows"),
    "crowdveil.io.trajectories": ("read_trajectories",),
    "crowdveil.io.zones": ("read_zones", "read_voronoi"),
    "crowdveil.io.tables": ("write_flows", "write_trajectories"),
    "crowdveil.io.geojson": ("write_zones",),
    "crowdveil.api.range_queries": ("measure_queries",),
    "crowdveil.io.hierarchy": ("build_hierarchy",),
    "crowdveil.run.filters": ("filter_trajectories",),
    "crowdveil.registry": ("all_methods", "all_measures", "all_analyses", "all_attacks"),
    "crowdveil.model.flows": ("Flows",),
    "crowdveil.model.trips": ("Trips",),
    "crowdveil.model.trajectories": ("Trajectories",),
    "crowdveil.model.zones": ("Zones",),
    "crowdveil.model.hierarchy": ("Hierarchy",),
    "crowdveil.model.release": ("FlowRelease", "TrajectoryRelease"),
    "crowdveil.errors": ("CrowdveilError", "CrowdveilWarning"),
}
"""The modules of public names."""
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Import public names when they are asked for, so that `crowdveil --help` loads next to nothing."""
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

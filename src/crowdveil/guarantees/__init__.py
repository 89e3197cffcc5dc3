"""List guarantees by name. Checkers read written files; they import neither kernels nor methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from crowdveil.errors import InputError
from crowdveil.guarantees.base import Finding, Guarantee, Outcome

if TYPE_CHECKING:
    from crowdveil.guarantees.budget import SuppressionBudget
    from crowdveil.guarantees.combinations import CombinationKAnonymity
    from crowdveil.guarantees.derived import SumsOfParent
    from crowdveil.guarantees.extent import (
        GeneralizationLimit,
        MaxArea,
        MinInhabitedTiles,
        MinPoiCategories,
        MinPois,
        MinTiles,
    )
    from crowdveil.guarantees.flows import DisjointFlows, FlowKAnonymity, WellFormedFlows
    from crowdveil.guarantees.k_delta import KDeltaAnonymity
    from crowdveil.guarantees.noise import DifferentialPrivacy
    from crowdveil.guarantees.original import BoundedVolumes, TrueVolumes
    from crowdveil.guarantees.sectors import (
        DisjointSectors,
        EveryLocationCounted,
        SectorGuarantee,
        SectorKAnonymity,
        WellFormedSectors,
    )
    from crowdveil.guarantees.suppressed_trajectories import SuppressedSegments, SuppressedTrajectories
    from crowdveil.guarantees.swapping import NoOwnPoints, OriginalPoints, SwappedTrajectories
    from crowdveil.guarantees.tile_pairs import SharedTilePairs
    from crowdveil.guarantees.trajectories import (
        LocationsOnTileCenters,
        SegmentKAnonymity,
        TrajectoryKAnonymity,
        WellFormedTrajectories,
    )

    GUARANTEES: tuple[type[Guarantee], ...]

_OF_MODULES = {
    "flows": ("FlowKAnonymity", "DisjointFlows", "WellFormedFlows"),
    "derived": ("SumsOfParent",),
    "noise": ("DifferentialPrivacy",),
    "budget": ("SuppressionBudget",),
    "extent": ("GeneralizationLimit", "MinTiles", "MinInhabitedTiles", "MinPois", "MinPoiCategories", "MaxArea"),
    "original": ("TrueVolumes", "BoundedVolumes"),
    "trajectories": ("TrajectoryKAnonymity", "SegmentKAnonymity", "LocationsOnTileCenters", "WellFormedTrajectories"),
    "suppressed_trajectories": ("SuppressedTrajectories", "SuppressedSegments"),
    "combinations": ("CombinationKAnonymity",),
    "swapping": ("OriginalPoints", "SwappedTrajectories", "NoOwnPoints"),
    "tile_pairs": ("SharedTilePairs",),
    "k_delta": ("KDeltaAnonymity",),
    "sectors": ("SectorKAnonymity", "DisjointSectors", "EveryLocationCounted", "WellFormedSectors"),
}
_MODULES = {name: module for module, names in _OF_MODULES.items() for name in names}
"""The module of each guarantee, imported when the guarantee is asked for: a run has few of them, and their classes take long."""

__all__ = [
    "GUARANTEES",
    "BoundedVolumes",
    "CombinationKAnonymity",
    "DifferentialPrivacy",
    "DisjointFlows",
    "DisjointSectors",
    "EveryLocationCounted",
    "Finding",
    "FlowKAnonymity",
    "GeneralizationLimit",
    "Guarantee",
    "KDeltaAnonymity",
    "LocationsOnTileCenters",
    "MaxArea",
    "MinInhabitedTiles",
    "MinPoiCategories",
    "MinPois",
    "MinTiles",
    "NoOwnPoints",
    "OriginalPoints",
    "Outcome",
    "SectorGuarantee",
    "SectorKAnonymity",
    "SegmentKAnonymity",
    "SharedTilePairs",
    "SumsOfParent",
    "SuppressedSegments",
    "SuppressedTrajectories",
    "SuppressionBudget",
    "SwappedTrajectories",
    "TrajectoryKAnonymity",
    "TrueVolumes",
    "WellFormedFlows",
    "WellFormedSectors",
    "WellFormedTrajectories",
    "guarantee_from_manifest",
]


def __getattr__(name: str) -> Any:
    """Import a guarantee, or all of them."""
    if name == "GUARANTEES":
        return tuple(__getattr__(guarantee) for guarantee in _MODULES)
    if name == "SectorGuarantee":
        return import_module(f"{__name__}.sectors").SectorGuarantee
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def guarantee_from_manifest(entry: dict[str, Any]) -> Guarantee:
    """Make a guarantee from its name and parameters in a manifest."""
    every: tuple[type[Guarantee], ...] = __getattr__("GUARANTEES")
    kinds = {g.name: g for g in every}
    try:
        return kinds[entry["name"]](**entry["parameters"])
    except (KeyError, TypeError, ValidationError):
        raise InputError(
            "the manifest names a guarantee that this version cannot check; use the version in it."
        ) from None

"""List guarantees by name. Checkers read written files; they import neither kernels nor methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from crowdveil.errors import InputError
from crowdveil.guarantees.base import Finding as Finding
from crowdveil.guarantees.base import Guarantee as Guarantee
from crowdveil.guarantees.base import Outcome as Outcome

if TYPE_CHECKING:
    from crowdveil.guarantees.boxes import TruthfulBoxes as TruthfulBoxes
    from crowdveil.guarantees.budget import SuppressionBudget as SuppressionBudget
    from crowdveil.guarantees.combinations import CombinationKAnonymity as CombinationKAnonymity
    from crowdveil.guarantees.derived import SumsOfParent as SumsOfParent
    from crowdveil.guarantees.extent import GeneralizationLimit as GeneralizationLimit
    from crowdveil.guarantees.extent import MaxArea as MaxArea
    from crowdveil.guarantees.extent import MinInhabitedTiles as MinInhabitedTiles
    from crowdveil.guarantees.extent import MinPoiCategories as MinPoiCategories
    from crowdveil.guarantees.extent import MinPois as MinPois
    from crowdveil.guarantees.extent import MinTiles as MinTiles
    from crowdveil.guarantees.flows import DisjointFlows as DisjointFlows
    from crowdveil.guarantees.flows import FlowKAnonymity as FlowKAnonymity
    from crowdveil.guarantees.flows import WellFormedFlows as WellFormedFlows
    from crowdveil.guarantees.k_delta import KDeltaAnonymity as KDeltaAnonymity
    from crowdveil.guarantees.noise import DifferentialPrivacy as DifferentialPrivacy
    from crowdveil.guarantees.original import BoundedVolumes as BoundedVolumes
    from crowdveil.guarantees.original import TrueVolumes as TrueVolumes
    from crowdveil.guarantees.sectors import DisjointSectors as DisjointSectors
    from crowdveil.guarantees.sectors import EveryLocationCounted as EveryLocationCounted
    from crowdveil.guarantees.sectors import SectorGuarantee as SectorGuarantee
    from crowdveil.guarantees.sectors import SectorKAnonymity as SectorKAnonymity
    from crowdveil.guarantees.sectors import WellFormedSectors as WellFormedSectors
    from crowdveil.guarantees.suppressed_trajectories import SuppressedSegments as SuppressedSegments
    from crowdveil.guarantees.suppressed_trajectories import SuppressedTrajectories as SuppressedTrajectories
    from crowdveil.guarantees.swapping import NoOwnPoints as NoOwnPoints
    from crowdveil.guarantees.swapping import OriginalPoints as OriginalPoints
    from crowdveil.guarantees.swapping import SwappedTrajectories as SwappedTrajectories
    from crowdveil.guarantees.tile_pairs import SharedTilePairs as SharedTilePairs
    from crowdveil.guarantees.trajectories import LocationsOnTileCenters as LocationsOnTileCenters
    from crowdveil.guarantees.trajectories import SegmentKAnonymity as SegmentKAnonymity
    from crowdveil.guarantees.trajectories import TrajectoryKAnonymity as TrajectoryKAnonymity
    from crowdveil.guarantees.trajectories import WellFormedTrajectories as WellFormedTrajectories

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
    "boxes": ("TruthfulBoxes",),
    "sectors": ("SectorKAnonymity", "DisjointSectors", "EveryLocationCounted", "WellFormedSectors"),
}
_MODULES = {name: module for module, names in _OF_MODULES.items() for name in names}
"""The module of each guarantee, imported when the guarantee is asked for: a run has few of them, and their classes take long."""

__all__ = sorted(
    ["GUARANTEES", "Finding", "Guarantee", "Outcome", "SectorGuarantee", "guarantee_from_manifest", *_MODULES]
)


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

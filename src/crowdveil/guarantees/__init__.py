"""List guarantees by name. Checkers read written files; they import neither kernels nor methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from crowdveil.errors import InputError
from crowdveil.guarantees.base import Finding, Guarantee, Outcome
from crowdveil.guarantees.budget import PeriodBudget, SuppressionBudget
from crowdveil.guarantees.combinations import CombinationKAnonymity
from crowdveil.guarantees.derived import SumsOfParent
from crowdveil.guarantees.extent import GeneralizationLimit, MaxArea, MinTiles
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
from crowdveil.guarantees.swapping import NoOwnPoints, OriginalPoints, SharedTilePairs, SwappedTrajectories
from crowdveil.guarantees.trajectories import (
    LocationsOnTileCenters,
    SegmentKAnonymity,
    TrajectoryKAnonymity,
    WellFormedTrajectories,
)

GUARANTEES: tuple[type[Guarantee], ...] = (
    FlowKAnonymity, DisjointFlows, WellFormedFlows, SumsOfParent, DifferentialPrivacy, SuppressionBudget, PeriodBudget,
    GeneralizationLimit, MinTiles, MaxArea, TrueVolumes, BoundedVolumes,
    TrajectoryKAnonymity, SegmentKAnonymity, LocationsOnTileCenters, WellFormedTrajectories, SuppressedTrajectories,
    SuppressedSegments, CombinationKAnonymity, OriginalPoints, SwappedTrajectories, NoOwnPoints, SharedTilePairs,
    KDeltaAnonymity, SectorKAnonymity, DisjointSectors, EveryLocationCounted, WellFormedSectors,
)  # fmt: skip
"""All guarantees; a manifest names them."""
_OF_NAME = {guarantee.name: guarantee for guarantee in GUARANTEES}

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
    "MinTiles",
    "NoOwnPoints",
    "OriginalPoints",
    "Outcome",
    "PeriodBudget",
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


def guarantee_from_manifest(name: str, parameters: Mapping[str, Any]) -> Guarantee:
    """Make a guarantee from its name and parameters in a manifest."""
    try:
        return _OF_NAME[name](**parameters)
    except (KeyError, TypeError, ValidationError):
        raise InputError(
            "the manifest names a guarantee that this version cannot check. Use the version in it."
        ) from None

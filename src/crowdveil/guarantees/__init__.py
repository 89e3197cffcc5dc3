"""List guarantees by name. Checkers read written files; they import neither kernels nor methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from crowdveil.errors import InputError
from crowdveil.guarantees.base import Finding as Finding
from crowdveil.guarantees.base import Guarantee as Guarantee
from crowdveil.guarantees.base import Outcome as Outcome
from crowdveil.guarantees.budget import PeriodBudget as PeriodBudget
from crowdveil.guarantees.budget import SuppressionBudget as SuppressionBudget
from crowdveil.guarantees.combinations import CombinationKAnonymity as CombinationKAnonymity
from crowdveil.guarantees.derived import SumsOfParent as SumsOfParent
from crowdveil.guarantees.extent import GeneralizationLimit as GeneralizationLimit
from crowdveil.guarantees.extent import MaxArea as MaxArea
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
from crowdveil.guarantees.swapping import SharedTilePairs as SharedTilePairs
from crowdveil.guarantees.swapping import SwappedTrajectories as SwappedTrajectories
from crowdveil.guarantees.trajectories import LocationsOnTileCenters as LocationsOnTileCenters
from crowdveil.guarantees.trajectories import SegmentKAnonymity as SegmentKAnonymity
from crowdveil.guarantees.trajectories import TrajectoryKAnonymity as TrajectoryKAnonymity
from crowdveil.guarantees.trajectories import WellFormedTrajectories as WellFormedTrajectories

GUARANTEES: tuple[type[Guarantee], ...] = (
    FlowKAnonymity, DisjointFlows, WellFormedFlows, SumsOfParent, DifferentialPrivacy, SuppressionBudget, PeriodBudget,
    GeneralizationLimit, MinTiles, MaxArea, TrueVolumes, BoundedVolumes,
    TrajectoryKAnonymity, SegmentKAnonymity, LocationsOnTileCenters, WellFormedTrajectories, SuppressedTrajectories,
    SuppressedSegments, CombinationKAnonymity, OriginalPoints, SwappedTrajectories, NoOwnPoints, SharedTilePairs,
    KDeltaAnonymity, SectorKAnonymity, DisjointSectors, EveryLocationCounted, WellFormedSectors,
)  # fmt: skip
"""All guarantees; a manifest names them."""
_OF_NAME = {guarantee.name: guarantee for guarantee in GUARANTEES}


def guarantee_from_manifest(name: str, parameters: Mapping[str, Any]) -> Guarantee:
    """Make a guarantee from its name and parameters in a manifest."""
    try:
        return _OF_NAME[name](**parameters)
    except (KeyError, TypeError, ValidationError):
        raise InputError(
            "the manifest names a guarantee that this version cannot check. Use the version in it."
        ) from None

"""List the names that mdl-anonymizer has for methods, measures, analyses, aggregations and their parameters.

This is their only place. It imports nothing from this package, since the registry imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Names:
    """Names in mdl-anonymizer of something that is registered here.

    Attributes
    ----------
    names
        Its names; a name of several entries means all of them.
    parameters
        Our name of a parameter by its name in mdl-anonymizer; "" for one without effect here.
    factors
        Factors for values of parameters with other units, by their name in mdl-anonymizer.
    defaults
        Defaults of mdl-anonymizer that differ from ours, by our name.
    """

    names: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def translate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters under our names and in our units. Upper and lower case do not matter.

        Values other than numbers are kept, and rejected later.
        """
        spellings = {name.lower(): name for name in self.parameters}
        found: dict[str, Any] = {}
        for key, value in values.items():
            name = spellings.get(key.lower(), key.lower())
            found[self.parameters.get(name, name)] = self._convert(name, value)
        found.pop("", None)
        return {**self.defaults, **found}

    def _convert(self, name: str, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value * self.factors[name] if is_number and name in self.factors else value


NONE = Names()

_DISTANCE = {"trajectory_distance": "distance", "trajectory_distance.p_lambda": "time_weight"}
_CLUSTERING = {
    "clustering_method.trajectory_distance": "distance",
    "clustering_method.trajectory_distance.p_lambda": "time_weight",
    "clustering_method.aggregation_method": "center_aggregation",
    "aggregation_method": "aggregation",
    "aggregation_method.p_lambda": "aggregation_time_weight",
}
_TILES = {"tesselation_meters": "tile_m", "tessellation_meters": "tile_m", "sort": ""}

METHODS: dict[str, Names] = {
    "simple-generalization": Names(("SimpleGeneralization",), {"tile_size": "tile_size_m", "tiles_filename": "zones"}),
    "protected-generalization": Names(
        ("ProtectedGeneralization",),
        {"tile_size": "tile_size_m", "tiles_filename": "zones", "time_interval": "time_interval_s"},
        {"time_interval": 60.0},
        {"time_interval_s": 0, "time_strategy": "keep"},
    ),
    "microaggregation": Names(
        ("Microaggregation", "SimpleMDAV"),
        _CLUSTERING,
        defaults={"aggregation": "mean-trajectory"},
    ),
    "time-partitioned-microaggregation": Names(
        ("TimePartMicroaggregation",),
        {"interval": "interval_s", **_CLUSTERING},
    ),
    "swap-locations": Names(
        ("SwapAllLocations", "SwapLocations"),
        {
            "min_r_s": "min_radius_m",
            "max_r_s": "max_radius_m",
            "min_r_t": "min_time_s",
            "max_r_t": "max_time_s",
            "tile_size": "tile_size_m",
        },
    ),
    "swap-locations-2012": Names(("SwapLocations2012",), {"R_t": "time_threshold_s", "R_s": "space_threshold_m"}),
    "swapmob": Names(
        ("SwapMob",),
        {"spatial_thold": "max_distance_m", "temporal_thold": "max_time_s", "min_n_swap": "min_n_swaps"},
        {"spatial_thold": 1000.0},
    ),
}
MEASURES: dict[str, Names] = {
    "rmse": Names(("Rsme",), _DISTANCE),
    "rmse-document": Names((), _DISTANCE),
    "normalized-rmse": Names((), _DISTANCE),
    "record-linkage": Names(("RecordLinkage",), {**_DISTANCE, "percen_window_size": "window", "seed": ""}),
    "propensity-score": Names(("PropensityScore",), {"tiles_size": "tile_m", "time_interval": "time_interval_s"}),
    "trajectories-removed": Names(("TrajectoriesRemoved",)),
    "locations-removed": Names(("TrajectoriesRemoved",)),
    "visits-per-location": Names(("ScikitMeasures",), _TILES),
    "straight-line-distance": Names(("ScikitMeasures",), _TILES),
    "uncorrelated-location-entropy": Names(("ScikitMeasures",), _TILES),
    "random-location-entropy": Names(("ScikitMeasures",), _TILES),
    "mean-square-displacement": Names(("ScikitMeasures",), _TILES),
}
ANALYSES: dict[str, Names] = {
    "quadtree-heatmap": Names(("QuadTreeHeatMap",), {"min_sector_length": "min_sector_length_m"}),
}
AGGREGATIONS: dict[str, Names] = {
    "mean-trajectory": Names(("Mean_trajectory", "Mean_Trajectory", "Martinez2021.Aggregation")),
    "closest-trajectory": Names(("Closest_trajectory_to_mean_trajectory",)),
    "closest-locations": Names(("Closest_locations_to_mean_trajectory",)),
    "composed-trajectory": Names(()),
}


TABLE: dict[str, dict[str, Names]] = {
    "method": METHODS,
    "measure": MEASURES,
    "analysis": ANALYSES,
    "aggregation": AGGREGATIONS,
}
"""Names by kind, then by our name. Distances are not listed: they have the names of the papers in both."""

"""List methods, measures, analyses and attacks in their displayed order; find them by name or alias.

Distances and aggregations of trajectories are listed in `solve`, since methods use them. Methods are listed by module, and a
command imports only its own. Other packages add methods through the entry-point group `crowdveil.methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

from crowdveil.analysis.base import Analysis
from crowdveil.attacks.base import Attack
from crowdveil.engine import extensions
from crowdveil.errors import ParameterError
from crowdveil.measures.base import Measure
from crowdveil.methods.base import Method
from crowdveil.reading import looks_like_trajectories
from crowdveil.solve.trajectory import aggregation
from crowdveil.solve.trajectory.aggregation import Aggregation
from crowdveil.solve.trajectory.distances import NAMES, DistanceKind, distance_kind

METHODS: dict[str, str] = {
    "joint": "crowdveil.methods.od.joint",
    "atg-dual": "crowdveil.methods.od.atg_dual",
    "atg-soft": "crowdveil.methods.od.atg_soft",
    "atg-coupled": "crowdveil.methods.od.atg_coupled",
    "atg-exact": "crowdveil.methods.od.atg_exact",
    "fixed": "crowdveil.methods.od.fixed",
    "uniform": "crowdveil.methods.baselines.uniform",
    "oigh": "crowdveil.methods.baselines.oigh",
    "mondrian": "crowdveil.methods.baselines.mondrian",
    "glove": "crowdveil.methods.baselines.glove",
    "glove-sk": "crowdveil.methods.baselines.glove_sk",
    "laplace": "crowdveil.methods.od.laplace",
    "suppression": "crowdveil.methods.od.suppression",
    "microaggregation": "crowdveil.methods.trajectory.microaggregation",
    "time-partitioned-microaggregation": "crowdveil.methods.trajectory.time_partitioned_microaggregation",
    "segment-microaggregation": "crowdveil.methods.trajectory.segment_microaggregation",
    "log-cost-generalization": "crowdveil.methods.baselines.log_cost_generalization",
    "frechet-microaggregation": "crowdveil.methods.trajectory.frechet_microaggregation",
    "protected-generalization": "crowdveil.methods.trajectory.protected_generalization",
    "swap-locations": "crowdveil.methods.trajectory.swap_locations",
    "swap-locations-2012": "crowdveil.methods.baselines.swap_locations_2012",
    "w4m": "crowdveil.methods.baselines.w4m",
    "swapmob": "crowdveil.methods.trajectory.swapmob",
    "simple-generalization": "crowdveil.methods.trajectory.simple_generalization",
}
ENTRY_POINTS = "crowdveil.methods"
MEASURE_POINTS, ANALYSIS_POINTS = "crowdveil.measures", "crowdveil.analyses"

_MEASURES_OF: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("od.generalization", ("generalization", "generalization-cost", "generalization-boxes", "mean-duration",
                           "generalization-by-duration", "origin-area", "destination-area", "origin-tiles",
                           "destination-tiles")),
    ("od.counts", ("suppressed",)),
    ("od.reconstruction", ("reconstruction-error", "distribution-distance", "common-part", "cosine-distance",
                           "jensen-shannon", "origin-margin", "destination-margin")),
    ("od.closeness", ("t-closeness",)),
    ("od.counts", ("confidence-coverage", "confidence-width")),
    ("od.reconstruction", ("trip-length",)),
    ("od.counts", ("areas", "flows")),
    ("trajectory.range_queries", ("sid", "aid")),
    ("trajectory.distances", ("rmse", "rmse-document", "normalized-rmse", "record-linkage")),
    ("trajectory.propensity", ("propensity-score",)),
    ("trajectory.distortion", ("trajectories-removed", "locations-removed")),
    ("trajectory.mobility", ("visits-per-location", "straight-line-distance", "uncorrelated-location-entropy",
                             "random-location-entropy", "mean-square-displacement")),
)  # fmt: skip
"""The measures of each module, which lists their records in `MEASURES`, in their displayed order."""
MEASURES = {name: f"crowdveil.measures.{module}" for module, names in _MEASURES_OF for name in names}
"""The module of each measure."""

ANALYSES: dict[str, str] = {
    "reconstruct": "crowdveil.analysis.reconstruction",
    "profiles": "crowdveil.analysis.profiles",
    "land-use": "crowdveil.analysis.land_use",
    "topics": "crowdveil.analysis.topics",
    "quadtree-heatmap": "crowdveil.analysis.quadtree_heatmap",
}
"""The module of each analysis; its name is its command in `crowdveil analyze`."""

ATTACKS: dict[str, str] = {
    "location": "crowdveil.attacks.background_knowledge:LOCATION",
    "sequence": "crowdveil.attacks.background_knowledge:SEQUENCE",
    "time": "crowdveil.attacks.background_knowledge:TIME",
    "unique-location": "crowdveil.attacks.background_knowledge:UNIQUE_LOCATION",
    "frequency": "crowdveil.attacks.background_knowledge:FREQUENCY",
    "probability": "crowdveil.attacks.background_knowledge:PROBABILITY",
    "proportion": "crowdveil.attacks.background_knowledge:PROPORTION",
    "home-work": "crowdveil.attacks.background_knowledge:HOME_WORK",
    "dominance": "crowdveil.attacks.dominance:ATTACK",
    "minimum-group-size": "crowdveil.attacks.od.published:MINIMUM_GROUP_SIZE",
    "singleton-margins": "crowdveil.attacks.od.published:SINGLETON_MARGINS",
    "differencing": "crowdveil.attacks.od.differencing:ATTACK",
    "homogeneity": "crowdveil.attacks.od.homogeneity:ATTACK",
    "releases": "crowdveil.attacks.od.releases:ATTACK",
}
"""The module and the record of each attack: first those on trajectories, then those on a release of flows, then on several."""
EXPERIMENTS: dict[str, str] = {
    "trajectory-recovery": "crowdveil.experiments.trajectory_recovery:ATTACK",
    "destination-belief": "crowdveil.experiments.destination_belief:ATTACK",
}
"""The module and the record of each attack of a paper; `all` does not include them."""


_Record = TypeVar("_Record")
OTHER_NAMES: tuple[str, ...] = ("crowdveil.compat.mobidatalab.names",)
"""Modules whose `TABLE` has names in other software, by kind and by our name."""


def our_names(kind: str, name: str) -> tuple[str, ...]:
    """Return our names for the name of a method, measure, analysis or aggregation in other software; none for other kinds."""
    tables = (import_module(module).TABLE.get(kind, {}) for module in OTHER_NAMES)
    return tuple(ours for table in tables for ours, other in table.items() if name in other.names)


def method_names() -> list[str]:
    """Return the names of all methods, without importing them."""
    return [*METHODS, *extensions.installed(ENTRY_POINTS)]


@lru_cache(maxsize=1)
def all_methods() -> dict[str, Method]:
    """Return all methods by name: those of this package, then those of others."""
    return {name: _own_method(name) for name in METHODS} | _of_packages(ENTRY_POINTS, Method, METHODS)


def find_method(name: str) -> Method:
    """Return a method by its name, alias, or name in other software."""
    for ours in (name, *our_names("method", name)):
        if ours in METHODS:
            return _own_method(ours)
    for method in all_methods().values():
        if name == method.name or name in method.aliases:
            return method
    raise _unknown("method", name, all_methods())


def default_method(data: Any, options: Mapping[str, Any]) -> Method:
    """Return the default method for data; `options` may name its columns of points."""
    return find_method("microaggregation" if looks_like_trajectories(data, options) else "joint")


@lru_cache(maxsize=1)
def all_measures() -> dict[str, Measure]:
    """Return all measures by name, of flows and of trajectories."""
    return {name: _own_measure(name) for name in MEASURES} | _of_packages(MEASURE_POINTS, Measure, MEASURES)


def find_measure(name: str) -> Measure:
    """Return a measure by its name or symbol."""
    return find_measures(name)[0]


def find_measures(name: str) -> tuple[Measure, ...]:
    """Return the measure with a name or symbol, or all measures with a name in other software."""
    found = [name] if name in MEASURES else our_names("measure", name)
    if found:
        return tuple(_own_measure(ours) for ours in found)
    for measure in all_measures().values():
        if name and name in (measure.name, measure.symbol):
            return (measure,)
    raise _unknown("measure", name, all_measures())


def all_analyses() -> dict[str, Analysis]:
    """Return all analyses by name."""
    return {name: _analysis(name) for name in ANALYSES} | _of_packages(ANALYSIS_POINTS, Analysis, ANALYSES)


def find_analysis(name: str) -> Analysis:
    """Return an analysis by its name or its name in other software."""
    for ours in (name, *our_names("analysis", name)):
        if ours in ANALYSES or ours in extensions.installed(ANALYSIS_POINTS):
            return _analysis(ours)
    raise _unknown("analysis", name, all_analyses())


def all_attacks() -> dict[str, Attack]:
    """Return all attacks by name."""
    return {name: find_attack(name) for name in (*ATTACKS, *EXPERIMENTS)}


def find_attack(name: str) -> Attack:
    """Return an attack by its name or one of its aliases."""
    module, _, record = (ATTACKS | EXPERIMENTS).get(name, "").partition(":")
    if not module:
        return _find("attack", name, all_attacks)
    attack: Attack = getattr(import_module(module), record)
    return attack


def all_distances() -> dict[str, DistanceKind]:
    """Return all distances between trajectories by name."""
    return {name: distance_kind(name) for name in NAMES.all}


def find_distance(name: str) -> DistanceKind:
    """Return a distance by its name or one of its aliases."""
    return _find("distance", name, all_distances)


def all_aggregations() -> dict[str, Aggregation]:
    """Return all aggregations of a group of trajectories to one, by name."""
    return {name: aggregation.find_aggregation(name) for name in aggregation.NAMES.all}


def find_aggregation(name: str) -> Aggregation:
    """Return an aggregation by its name or its name in other software."""
    return _find("aggregation", name, all_aggregations)


def _of_packages(group: str, kind: type[_Record], own: Mapping[str, str]) -> dict[str, _Record]:
    """Return the records of installed packages by name; raise where one has a name of ours."""
    names = extensions.installed(group)
    if taken := [name for name in names if name in own]:
        raise ParameterError(f"two installed packages have {taken[0]} in {group}; uninstall one of them.")
    return {name: extensions.load(group, name, kind) for name in names}


def _own_method(name: str) -> Method:
    method: Method = import_module(METHODS[name]).METHOD
    return method


def _own_measure(name: str) -> Measure:
    listed: tuple[Measure, ...] = import_module(MEASURES[name]).MEASURES
    return next(measure for measure in listed if measure.name == name)


def _analysis(name: str) -> Analysis:
    """Return an analysis of this package, or of another installed one."""
    own = name in ANALYSES
    found: Analysis = (
        import_module(ANALYSES[name]).ANALYSIS if own else extensions.load(ANALYSIS_POINTS, name, Analysis)
    )
    return found


def _find(kind: str, name: str, records: Callable[[], dict[str, _Record]]) -> _Record:
    """Return the record with this name or alias, or name in other software."""
    known, ours = records(), (name, *our_names(kind, name))
    for own, record in known.items():
        if own in ours or name in getattr(record, "aliases", ()):
            return record
    raise _unknown(kind, name, known)


def _unknown(kind: str, name: str, known: Iterable[str]) -> ParameterError:
    listed = list(known)
    near = get_close_matches(name.lower(), listed, n=1, cutoff=0.7)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(listed)}."
    return ParameterError(f"there is no {kind} {name}. {hint}")

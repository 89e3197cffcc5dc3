"""Group zones by the shape of their profiles: where people live, work and go out.

What it does
------------
The profile of a zone (trips that leave and reach it in each hour) is divided by its trips, so that zones of equal use and
different size have equal profiles. Zones are grouped by k-means. The number of groups has the best mean silhouette between
`least_clusters` and `most_clusters`, unless `clusters` is given. Groups are numbered by size, the largest first.

Zones with fewer than `least_trips` trips a day (leaving and reaching, estimated from the release) are not grouped: the profile
of a few trips is random.

Comparison with the original
----------------------------
The original is grouped in the same way. `agreement` is the adjusted Rand index of the two groupings: 1 for equal groups, about 0
for random ones. Both group only the zones with enough trips on both sides. Each side has its own number of groups;
`agreement_same_number` is the index if the original has as many groups as the release. Each group of the original gets the number
of the group that it shares most zones with. All of this comes from the original and is confidential.

Notes
-----
Groups have no names: the typical profile shows whether a group is offices or dwellings. Zones that are always published as one
area have equal profiles, so the groups of a coarse release are too smooth. Profiles are of published trips: an hour without any
published trip of a zone counts 0, whether its trips were suppressed or there were none. Plots leave a gap where nothing of a
whole group was published.

References
----------
Matet et al., Mobile phone Origin-Destination Matrix Anonymization and Analysis, CCS 2021. Hubert, Arabie, Comparing
partitions, 1985. Rousseeuw, Silhouettes, 1987.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from crowdveil.analysis.base import Analysis, TableResult
from crowdveil.analysis.calendar import Period, Slots
from crowdveil.analysis.profiles import shown, trips_a_day, zone_profiles
from crowdveil.analysis.study import Study, StudySide
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, Text, counted, import_extra
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.tabular import align_rows
from crowdveil.model.zones import Zones
from crowdveil.params import Params

STARTS = 10
"""Random starts of k-means, of which the best counts."""


class LandUseParams(Params):
    """Parameters of land use."""

    period: Period = "week"
    """Period of the profiles: the 168 hours of a week, or the 24 of a day."""
    clusters: int | None = Field(None, ge=2)
    """Number of groups. Default: the one with the best silhouette."""
    least_clusters: int = Field(2, ge=2)
    """Minimum number of groups to try."""
    most_clusters: int = Field(8, ge=2)
    """Maximum number of groups to try."""
    least_trips: float = Field(20.0, ge=0)
    """Trips a day, leaving and reaching, below which a zone is not grouped."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the random starts of k-means."""

    @model_validator(mode="after")
    def _in_order(self) -> LandUseParams:
        if self.most_clusters < self.least_clusters:
            raise ValueError("most_clusters of least_clusters or more")
        return self


@dataclass(frozen=True, eq=False)
class Clustering:
    """Groups of zones.

    Attributes
    ----------
    cluster
        Group of each grouped zone, from 0.
    shape
        Profile of each of them in shares of its trips: hours of leaving, then hours of reaching.
    silhouette
        Mean silhouette of each number of groups tried.
    """

    cluster: Ints
    shape: Floats
    silhouette: dict[int, float]

    @cached_property
    def groups(self) -> list[int]:
        """Numbers of the groups; those of an original may have gaps, since they follow those of the release."""
        return [int(c) for c in np.unique(self.cluster)]

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.groups)

    @cached_property
    def typical(self) -> Floats:
        """Mean shape of each group."""
        return np.stack([self.shape[self.cluster == c].mean(axis=0) for c in self.groups])

    def zones_in(self, group: int) -> int:
        """Return the number of zones of a group."""
        return int((self.cluster == group).sum())


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """A comparison of the groups with the known classes of their zones.

    Attributes
    ----------
    classes, groups
        Names of the classes in alphabetical order, and numbers of the groups from 1.
    counts
        Zones of each class (row) in each group (column).
    agreement
        The adjusted Rand index: 1 if both are the same partition, about 0 by chance.
    without_class
        Zones without a known class, which are not compared.
    """

    classes: list[str]
    groups: list[int]
    counts: Ints
    agreement: float
    without_class: int

    @classmethod
    def of(cls, labels: Labels, cluster: Ints) -> ReferenceMap:
        """Compare the class of each zone, None where it is unknown, with its group, from 0."""
        known = np.array([label is not None for label in labels], np.bool_)
        if not known.any():
            raise InputError(Option("reference"), "no zone that is grouped has a class in this column. Name another.")
        classes, groups = labels[known].astype(str), cluster[known] + 1
        counts = _sklearn("metrics.cluster").contingency_matrix(classes, groups)
        return cls(
            np.unique(classes).tolist(), np.unique(groups).tolist(), counts, _agreement(classes, groups), int((~known).sum())
        )  # fmt: skip

    def lines(self) -> list[str]:
        """Return the confusion matrix and the agreement as text."""
        rows = [["class", *(f"group {group}" for group in self.groups)]]
        rows += [[name, *map(str, row)] for name, row in zip(self.classes, self.counts.tolist(), strict=True)]
        without = f"; {counted(self.without_class, 'zone')} without a class not compared" if self.without_class else ""
        agreement = f"agreement with the known map (adjusted Rand index) {self.agreement:.3f}{without}"
        return ["Zones of each known class by group:", "", *align_rows(rows), "", agreement]

    def about(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "agreement": round(self.agreement, 6),
            "classes": self.classes,
            "groups": self.groups,
            "zones": self.counts.tolist(),
            "zones_without_class": self.without_class,
        }


@dataclass(frozen=True, eq=False, repr=False)
class LandUse(TableResult):
    """Groups of zones of the release and, if given, of the original.

    Attributes
    ----------
    zones, grouped
        All zones, and the indices of the grouped ones.
    trips
        Trips a day of each grouped zone, in the release.
    released, original
        The groups.
    agreement, agreement_same_number
        Adjusted Rand index of the two, each with its own number of groups, and both with that of the release.
    reference
        Comparison of the groups of the release with known classes, if given.
    """

    zones: Zones
    slots: Slots
    params: LandUseParams
    grouped: Ints
    trips: Floats
    released: Clustering
    original: Clustering | None = None
    agreement: float = float("nan")
    agreement_same_number: float = float("nan")
    reference: ReferenceMap | None = None

    @property
    def clusters(self) -> dict[str, int]:
        """Group of each zone by its id, from 1."""
        return {str(self.zones.ids[z]): int(c) + 1 for z, c in zip(self.grouped, self.released.cluster, strict=True)}

    def table(self) -> pa.Table:
        """Return a row for each grouped zone."""
        columns: dict[str, Any] = {
            "zone": pa.array(self.zones.ids[self.grouped], pa.string()),
            "cluster": self.released.cluster + 1,
            "trips_a_day": self.trips,
        }
        if self.original is not None:
            columns["original_cluster"] = self.original.cluster + 1
        return pa.table(columns)

    @property
    def labels(self) -> Labels:
        """The ids of the zones."""
        return self.zones.ids

    def about(self) -> dict[str, Any]:
        """Return the description of the groups: typical profiles, and agreement with the original."""
        content: dict[str, Any] = {
            "analysis": "land-use",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": "Groups of zones with similar profiles; a typical profile has the share of a zone's trips that leave it, "
            "and that reach it, in each hour."
            + ("" if self.original is None else " Includes original data: confidential, do not publish."),
            "left_out_zones": len(self.zones) - len(self.grouped),
            "clusters": self._typical(self.released),
            "silhouette": {str(k): round(v, 6) for k, v in self.released.silhouette.items()},
        }
        if self.original is not None:
            content |= {
                "original_clusters": self._typical(self.original),
                "original_silhouette": {str(k): round(v, 6) for k, v in self.original.silhouette.items()},
                "agreement": _number(self.agreement),
                "agreement_same_number": _number(self.agreement_same_number),
            }
        if self.reference is not None:
            content["reference"] = self.reference.about()
        return content

    def _typical(self, found: Clustering) -> list[dict[str, Any]]:
        hours = len(self.slots)
        return [
            {
                "cluster": c + 1,
                "zones": found.zones_in(c),
                "leaving": np.round(typical[:hours], 6).tolist(),
                "reaching": np.round(typical[hours:], 6).tolist(),
            }
            for c, typical in zip(found.groups, found.typical, strict=True)
        ]

    def lines(self) -> list[str]:
        """Return a line per group, and the agreement with the original."""
        out = len(self.zones) - len(self.grouped)
        lines = [
            f"{counted(len(self.grouped), 'zone')} in {counted(self.released.count, 'group')} "
            f"(silhouette {shown(self.released.silhouette.get(self.released.count, float('nan')))}); "
            f"{counted(out, 'zone')} with fewer than {self.params.least_trips:g} trips a day not grouped",
            "",
            *self._groups(self.released),
        ]
        if self.original is not None:
            lines += [
                "", f"The original has {counted(self.original.count, 'group')}:", "", *self._groups(self.original), "",
                f"agreement (adjusted Rand index) {shown(self.agreement)}; with the original in "
                f"{counted(self.released.count, 'group')} too, {shown(self.agreement_same_number)}",
            ]  # fmt: skip
        return lines if self.reference is None else [*lines, "", *self.reference.lines()]

    def _groups(self, found: Clustering) -> list[str]:
        hours, rows = len(self.slots), [["group", "leave most at", "reach most at", "zones", "leaving"]]
        if self.slots.weekday is not None:
            rows[0].append("weekend")
        for c, typical in zip(found.groups, found.typical, strict=True):
            leave, reach = typical[:hours], typical[hours:]
            peaks = [self.slots.name(int(np.argmax(part))) for part in (leave, reach)]
            rows.append([str(c + 1), *peaks, f"{found.zones_in(c):,}", f"{100 * leave.sum():.0f} %"])
            if self.slots.weekday is not None:
                rows[-1].append(f"{100 * (leave + reach)[self.slots.weekday >= 5].sum():.0f} %")
        return align_rows(rows, left=3)


def _number(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None


def shapes(side: StudySide, slots: Slots, zones: int) -> tuple[Floats, Floats]:
    """Return the profile of each zone, leaving and reaching, in shares of its trips; and its trips a day."""
    both = np.concatenate([zone_profiles(side, slots, zones, out=out)[0] for out in (True, False)], axis=1)
    both = np.nan_to_num(both)  # an hour that never occurred is 0 in all zones
    totals = both.sum(axis=1, keepdims=True)
    shape: Floats = np.divide(both, totals, out=np.zeros_like(both), where=totals > 0)
    hours = len(slots)
    return shape, trips_a_day(both[:, :hours], slots) + trips_a_day(both[:, hours:], slots)


def run(study: Study, params: LandUseParams, progress: Progress) -> LandUse:
    """Group the zones of the release and, if given, of the original."""
    slots = Slots.of([side.release for side in study.sides], params.period)
    profiles = [shapes(side, slots, len(study.zones)) for side in study.sides]
    grouped = np.flatnonzero(np.all([trips >= max(params.least_trips, 1e-9) for _, trips in profiles], axis=0))
    fewest = params.clusters or params.least_clusters
    if len(grouped) <= fewest:
        raise InputError(
            Option("least_trips"),
            Text(
                "Expected more than {fewest} with at least {least:g} trips a day, got {found:,}. Lower "
                "{least_trips}, or choose larger zones.",
                fewest=counted(fewest, "zone"),
                least=params.least_trips,
                found=len(grouped),
            ),
        )
    released = _best(profiles[0][0][grouped], params, progress)
    reference = None if study.reference is None else ReferenceMap.of(study.reference[grouped], released.cluster)
    if study.original is None:
        return LandUse(study.zones, slots, params, grouped, profiles[0][1][grouped], released, reference=reference)
    shape = profiles[1][0][grouped]
    original = _matched(_best(shape, params, progress), released)
    same = _clustered(shape, released.count, params.seed)
    return LandUse(
        study.zones, slots, params, grouped, profiles[0][1][grouped], released, original,
        _agreement(released.cluster, original.cluster), _agreement(released.cluster, same), reference,
    )  # fmt: skip


def _best(shape: Floats, params: LandUseParams, progress: Progress) -> Clustering:
    """Return the clustering with the best silhouette; ties go to fewer groups."""
    metrics = _sklearn("metrics")
    most = min(params.most_clusters, len(shape) - 1)
    tried = [params.clusters] if params.clusters else list(range(params.least_clusters, most + 1))
    clusters: dict[int, Ints] = {}
    silhouette: dict[int, float] = {}
    for done, count in enumerate(tried, start=1):
        clusters[count] = _clustered(shape, count, params.seed)
        several = len(np.unique(clusters[count])) > 1
        silhouette[count] = float(metrics.silhouette_score(shape, clusters[count])) if several else float("nan")
        progress(done, len(tried))
    best = max(tried, key=lambda count: (np.nan_to_num(silhouette[count], nan=-2.0), -count))
    return Clustering(clusters[best], shape, silhouette)


def _clustered(shape: Floats, count: int, seed: int) -> Ints:
    """Return k-means groups, numbered by size, the largest first, then by their first zone."""
    cluster = _sklearn("cluster")
    with warnings.catch_warnings():
        # Fewer distinct profiles than groups is valid: zones that are always published as one area are equal.
        warnings.simplefilter("ignore")
        label = cluster.KMeans(count, n_init=STARTS, random_state=seed).fit_predict(shape)
    names, first, size = np.unique(label, return_index=True, return_counts=True)
    rank = np.empty(count, np.int64)
    rank[names[np.lexsort((first, -size))]] = np.arange(len(names))
    numbered: Ints = rank[label]
    return numbered


def _matched(found: Clustering, to: Clustering) -> Clustering:
    """Number each group like the group in `to` that it shares most zones with; the rest follow."""
    from scipy.optimize import linear_sum_assignment

    common = np.zeros((found.count, max(found.count, to.count)), np.int64)
    np.add.at(common, (found.cluster, to.cluster), 1)
    own, other = linear_sum_assignment(-common)
    number = np.empty(found.count, np.int64)
    number[own] = other
    return Clustering(number[found.cluster], found.shape, found.silhouette)


def _agreement(labels: Any, other: Ints) -> float:
    return float(_sklearn("metrics").adjusted_rand_score(labels, other))


def _sklearn(part: str) -> Any:
    return import_extra(f"sklearn.{part}", "scikit-learn", "analysis", "grouping zones")


ANALYSIS = Analysis(
    "land-use",
    LandUseParams,
    run,
    __doc__ or "",
    "Zones are grouped by k-means on their profiles in shares of their trips; the number of groups has the best silhouette. "
    "With --original, the original is grouped too, and the adjusted Rand index of the two is reported. "
    "With --reference, the groups are compared with known classes of the zones.",
    extra="analysis",
    examples=(
        "out/ --zones zones.geojson --plot map.png -o groups.csv",
        "out/ --original trips.parquet --zones zones.geojson --clusters 4 --plot compared.png",
    ),
)

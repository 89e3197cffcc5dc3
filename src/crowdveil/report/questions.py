"""Answer the three questions of the European regulators (opinion 05/2014 of the Article 29 Working Party) with numbers.

Every number is counted in the published files or comes from the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.attacks.od.homogeneity import AREA, TILE, KnownEnds
from crowdveil.errors import counted
from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.measures.od.closeness import mean_variation
from crowdveil.model.arrays import Ints, ranks
from crowdveil.report.attack_table import percent
from crowdveil.report.trajectory_picture import published_class_sizes

NOISY = "differential-privacy"


@dataclass(frozen=True)
class Answer:
    """A question of the regulators by name and in words, and the answer."""

    name: str
    question: str
    lines: list[str]


def answers(written: WrittenRelease, manifest: Manifest) -> list[Answer]:
    """Return the three answers."""
    lines_of_answers = _of_flows(written, manifest) if written.is_flows else _of_trajectories(written, manifest)
    questions = (
        ("Singling out", "Can the records of one person be isolated?"),
        ("Linkability", "Can records of one person be linked, in the release or with other data?"),
        ("Inference", "Can an attribute of a person be inferred, even without singling them out?"),
    )
    return [Answer(*both, lines) for both, lines in zip(questions, lines_of_answers, strict=True)]


def smallest_group_size(written: WrittenRelease, manifest: Manifest) -> int | None:
    """Return the minimum group size of a published flow; None if group sizes are not published."""
    counts = manifest.k_unit
    if manifest.guaranteed(NOISY) is not None or counts not in written.data.column_names or not len(written.data):
        return None
    return int(written.column(counts).min())


def _of_flows(written: WrittenRelease, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    counts, noise, k = manifest.k_unit, manifest.guaranteed(NOISY), manifest.guaranteed("flow-k-anonymity")
    if not len(written.data):
        return _NOTHING_PUBLISHED
    return _group_sizes(written, counts, noise, k), _linkability_of_flows(manifest), _inference(written, noise)


_NOTHING_PUBLISHED = (["Nothing was published, so nothing can be found."],) * 3


def _group_sizes(
    written: WrittenRelease, counts: str, noise: dict[str, Any] | None, k: dict[str, Any] | None
) -> list[str]:  # fmt: skip
    if noise is not None:
        return [
            f"No group size is guaranteed: a flow may be of one person or of none. Noise of ε = {noise['epsilon']:g} "
            "hides whether any single trip took place."
        ]
    people = written.column(counts)
    lines = [f"The smallest of {counted(len(people), 'published flow')} has {int(people.min()):,} {counts}."]
    if k is None:
        return [*lines, "The method guarantees no group size."]
    near = float(np.mean(people < 2 * k["k"]))
    lines.append(
        f"At least {k['k']:,} are guaranteed, and {percent(100 * near)} of the flows have fewer than {2 * k['k']:,}."
    )
    if counts == "trips":
        lines.append("People are not known in the data: k counts trips, and all trips of a flow may be of one person.")
    return lines


def _linkability_of_flows(manifest: Manifest) -> list[str]:
    lines = ["Rows hold no person id and no original id: rows of different time steps cannot be linked by a key."]
    if manifest.guaranteed("disjoint-flows") is not None:
        lines.append(
            "In each time step a pair of tiles is in at most one row, so no row can be subtracted from another."
        )
    elif manifest.guaranteed(NOISY) is None:
        lines.append("Rows of one time step may overlap: no group size is guaranteed for the difference of two.")
    return [*lines, several_releases(manifest)]


def several_releases(manifest: Manifest) -> str:
    """Return the risk that this release is subtracted from others: the audit of its ledger, or that there was none."""
    ledger = manifest.ledger
    if ledger is None:
        return (
            "Not covered: repeated releases. Other releases of the same data were not audited; they might be subtracted from "
            "this one."
        )
    entry = f"Repeated releases: it is entry {ledger.entry} of a ledger"
    if ledger.epsilon_of_all_releases is not None:
        return f"{entry}; over its releases with noise ε adds up to {ledger.epsilon_of_all_releases:g}."
    if not ledger.entries_audited:
        return f"{entry}, in which no earlier release shares a record with it."
    audited = counted(ledger.entries_audited, "earlier release")
    return (
        f"{entry}, audited against {audited} (tier {ledger.tier}). The smallest "
        f"set that can be derived by adding and subtracting published volumes has at least {ledger.k:,} {ledger.k_unit}."
    )


@dataclass(frozen=True)
class DestinationFigures:
    """What the origin and time step of a trip reveal about its destination.

    Attributes
    ----------
    area, tile
        The share of trips whose destination is known as one area, and as one tile.
    guessed
        The share of trips to the most frequent destination area of their origin.
    sized
        Tiles of a destination area, on average over trips.
    far
        The mean distance of an origin's destinations from those of all trips; None if there are too many to compare.
    """

    area: float
    tile: float
    guessed: float
    sized: float
    far: float | None


def destination_figures(written: WrittenRelease) -> DestinationFigures:
    """Return what the origin and time step of trips reveal about their destination, computed once for a release."""
    figures: DestinationFigures = written.cached("destination figures", lambda: _destination_figures(written))
    return figures


def _destination_figures(written: WrittenRelease) -> DestinationFigures:
    *_, step = written.row_spans()
    origin, volume = written.area_numbers("origin_area"), np.maximum(written.column("volume"), 0)
    destination, sizes = written.area_numbers("destination_area"), written.area_sizes
    group, groups = ranks(step * max(len(written.features), 1) + origin)
    known, largest = KnownEnds.of(group, destination, sizes, volume), np.zeros(groups, np.int64)
    np.maximum.at(largest, group, volume)
    trips = max(float(volume.sum()), 1.0)
    far = None
    if float(np.sum(sizes[destination])) <= MAX_ENTRIES:
        order = np.lexsort((group, step))
        rows = step[order], group[order], destination[order], volume[order]
        far = mean_variation(*rows, *written.tiles_by_area)
    parts = known.volume[known.area], known.volume[known.tile], largest, volume * sizes[destination]
    area, tile, guessed, sized = (float(part.sum()) / trips for part in parts)
    return DestinationFigures(area, tile, guessed, sized, far)


def _inference(written: WrittenRelease, noise: dict[str, Any] | None) -> list[str]:
    """Return what an adversary who knows the origin and time step of a trip learns about its destination."""
    when, figures = "interval" if written.has_intervals else "time step", destination_figures(written)
    lines = [
        f"Background knowledge: the adversary knows origin area and {when} of a trip, and that it is in the file.",
        f"Destination area revealed ({AREA}): {percent(100 * figures.area)} of the trips. All published flows of their origin "
        f"and {when} have one destination area.",
        f"Destination tile revealed ({TILE}): {percent(100 * figures.tile)} of the trips. That area is a single tile, the "
        "smallest unit of the map.",
        f"Guessing the most frequent destination area is correct for {percent(100 * figures.guessed)} of the trips.",
        f"A destination area has {figures.sized:,.1f} tiles on average over trips.",
    ]
    if figures.far is not None:
        lines.append(
            f"The destinations of an origin differ from those of all trips of the {when} by {figures.far:.2f} on average over "
            "trips (t-closeness with equal distances: 0 the same tiles, 1 no tile in common). No method guarantees it."
        )
    if noise is not None:
        lines.append("These are shares of noisy volumes, not of real trips.")
    return lines


MAX_ENTRIES = 100_000_000
"""Tiles of the destinations of all rows up to which t-closeness is computed for a report."""


def _of_trajectories(written: WrittenRelease, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    equal = published_class_sizes(written)
    if not len(equal):
        return _NOTHING_PUBLISHED
    unique = float(np.mean(equal == 1))
    single = [
        f"Of {counted(len(equal), 'published trajectory', 'published trajectories')} {percent(100 * unique)} are unique in all "
        f"locations and times; the smallest equivalence class has {int(equal.min()):,}."
    ]
    k = (
        manifest.guaranteed("trajectory-k-anonymity")
        or manifest.guaranteed("segment-k-anonymity")
        or manifest.guaranteed("combination-k-anonymity")
    )
    if k is not None and "k" in k:
        single.append(f"A group size of {k['k']:,} is guaranteed (the guarantees name the adversary).")
    elif manifest.method.status == "heuristic":
        single.append("No group size is guaranteed: the method is a heuristic.")
    linked = [
        "Trajectories come in the order of a hash of their published points, which reveals nothing more; no original id was "
        "published."
    ]
    if "user_id" in written.data.column_names:
        linked.append("Trajectories of one person share a new id, as requested: they can be linked.")
    measured = manifest.method.facts.get("measured")
    inferred = [_homogeneity(equal)]
    if measured and measured.get("found_percent") is not None:
        linked.append(
            "An adversary who knows a whole original trajectory links it to the correct published one for "
            f"{measured['linked_percent']} % of those tried."
        )
        inferred.insert(
            0,
            f"An adversary who knows {measured['known_points']} exact points of a person finds one published trajectory for "
            f"{measured['found_percent']} % (in the original {measured['found_percent_in_the_original']} %).",
        )
        if measured.get("true_points_percent") is not None:
            inferred.insert(1, f"Of its points, {measured['true_points_percent']} % are points of the same person.")
    return single, linked, inferred


def _homogeneity(equal: Ints) -> str:
    shared = float(np.mean(equal > 1))
    if not shared:
        return "Every published trajectory is distinct: an adversary who recognizes one learns all of its published points."
    return (
        f"{percent(100 * shared)} of the published trajectories are equal to others: an adversary who finds the equivalence "
        "class of a person learns the trajectory published for all of it."
    )

"""The three questions of the European regulators (opinion 05/2014 of the Article 29 Working Party), answered with numbers.

Every number is counted in the published files, or stands in the manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.attacks.adversary_view import ranks
from crowdveil.attacks.od.homogeneity import AREA, TILE, Known
from crowdveil.errors import counted
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints

NOISY = "differential-privacy"


@dataclass(frozen=True)
class Answer:
    """What is asked, what it means here, and what was found."""

    name: str
    question: str
    lines: list[str]


def answers(written: WrittenRelease, manifest: dict[str, Any], equal: Ints | None) -> list[Answer]:
    """The three answers; `equal` says how many published trajectories are like each one."""
    found = _of_flows(written, manifest) if written.is_flows else _of_trajectories(written, manifest, equal)
    asked = (
        ("Singling out", "Can one person's records be told from all others?"),
        ("Linkability", "Can records of one person be put together, here or with other data?"),
        ("Inference", "Can something about a person be concluded, even without singling them out?"),
    )
    return [Answer(*both, lines) for both, lines in zip(asked, found, strict=True)]


def guaranteed(manifest: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The parameters of a guarantee, None if it is not made."""
    return next((p["parameters"] for p in manifest["guarantees"] if p["name"] == name), None)


def smallest_crowd(written: WrittenRelease, manifest: dict[str, Any]) -> int | None:
    """The smallest crowd behind a published flow; None where crowds are not told."""
    counts = manifest["k_counts"]
    if guaranteed(manifest, NOISY) is not None or counts not in written.data.column_names or not len(written.data):
        return None
    return int(written.column(counts).min())


def _of_flows(written: WrittenRelease, manifest: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    counts, noise, k = manifest["k_counts"], guaranteed(manifest, NOISY), guaranteed(manifest, "flow-k-anonymity")
    if not len(written.data):
        nothing = ["Nothing was published, so that there is nothing to find."]
        return nothing, nothing, nothing
    return _crowds(written, counts, noise, k), _links_of_flows(manifest), _conclusions(written, noise)


def _crowds(
    written: WrittenRelease, counts: str, noise: dict[str, Any] | None, k: dict[str, Any] | None
) -> list[str]:  # fmt: skip
    if noise is not None:
        return [
            f"Crowds are not guaranteed: a flow may be made by one person, or by nobody. Noise of ε = {noise['epsilon']:g} "
            "hides whether any one trip took place."
        ]
    crowd = written.column(counts)
    least, n = int(crowd.min()), len(crowd)
    lines = [f"The smallest crowd behind any of {counted(n, 'published flow')} is {least:,} {counts}."]
    if k is None:
        return [*lines, "No crowd is guaranteed by this method."]
    near = float(np.mean(crowd < 2 * k["k"]))
    lines.append(
        f"At least {k['k']:,} are guaranteed, and {_percent(near)} of the flows have fewer than {2 * k['k']:,}."
    )
    if counts == "trips":
        lines.append("People are not known in the data: k counts trips, and all of a crowd may be trips of one person.")
    return lines


def _links_of_flows(manifest: dict[str, Any]) -> list[str]:
    disjoint = guaranteed(manifest, "disjoint-flows") is not None
    lines = [
        "Rows have no key of a person, and no original id was published: rows of two time steps have nothing in common."
    ]
    if disjoint:
        lines.append(
            "In each time step a pair of tiles lies in one row at most, so that no row can be subtracted from another."
        )
    elif guaranteed(manifest, NOISY) is None:
        lines.append("Rows of one time step may overlap: the difference of two is not guaranteed to be a crowd.")
    return lines


def _conclusions(written: WrittenRelease, noise: dict[str, Any] | None) -> list[str]:
    """Who knows where and when somebody left: how much do they learn about where to?"""
    _, step = written.row_steps()
    origin, volume = written.area_numbers("origin_area"), np.maximum(written.column("volume"), 0)
    destination = written.area_numbers("destination_area")
    sizes = np.array([len(tiles) for tiles in written.area_tiles], np.int64)
    group, _ = ranks(step * max(len(written.features), 1) + origin)
    known, largest = Known.of(group, destination, sizes, volume), np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(largest, group, volume)
    trips = max(float(volume.sum()), 1.0)
    area, tile, guessed = (
        _percent(float(part.sum()) / trips) for part in (known.volume[known.area], known.volume[known.tile], largest)
    )
    sized = float(np.sum(volume * sizes[destination])) / trips
    lines = [
        "Suppose that an adversary knows the time step and the area that a person left, and that the trip is in the file.",
        f"Destination area known ({AREA}): {area} of the trips. All published flows of their origin in their time step go to one "
        "area, of one tile or of many.",
        f"Destination tile known ({TILE}): {tile} of the trips. That one area is a single tile, the smallest unit of the map.",
        f"The adversary who always names the most frequent destination area is right for {guessed} of the trips.",
        f"A destination area has {sized:,.1f} tiles on average over trips.",
    ]
    if noise is not None:
        lines.append("These are shares of noisy volumes, not of trips that were made.")
    return lines


def _of_trajectories(
    written: WrittenRelease, manifest: dict[str, Any], equal: Ints | None
) -> tuple[list[str], list[str], list[str]]:
    if equal is None or not len(equal):
        nothing = ["Nothing was published, so that there is nothing to find."]
        return nothing, nothing, nothing
    unique = float(np.mean(equal == 1))
    single = [
        f"Of {counted(len(equal), 'published trajectory', 'published trajectories')} {_percent(unique)} are like no other in all "
        f"places and times; the smallest group of equal ones has {int(equal.min()):,}."
    ]
    k = guaranteed(manifest, "trajectory-k-anonymity") or guaranteed(manifest, "combination-k-anonymity")
    if k is not None and "k" in k:
        single.append(f"A crowd of {k['k']:,} is guaranteed (see the guarantees for against whom).")
    elif manifest["method"]["status"] == "heuristic":
        single.append("No crowd is guaranteed: the method is a heuristic.")
    linked = [
        "Trajectories are numbered by a hash of their published points, which says no more, and no original id was published."
    ]
    if "user_id" in written.data.column_names:
        linked.append("Trajectories of one person share a new key, as was asked for: they can be put together.")
    measured = manifest["method"].get("facts", {}).get("measured")
    inferred = [_homogeneity(equal)]
    if measured and measured.get("found_percent") is not None:
        linked.append(
            "By the whole way the right published trajectory is found for "
            f"{measured['linked_percent']} % of those that were tried."
        )
        inferred.insert(
            0,
            f"Who knows {measured['known_points']} exact points of somebody finds one published trajectory for "
            f"{measured['found_percent']} % (in the original {measured['found_percent_in_the_original']} %).",
        )
        if measured.get("true_points_percent") is not None:
            inferred.insert(
                1, f"Of what is seen there, {measured['true_points_percent']} % are the same person's points."
            )
    return single, linked, inferred


def _homogeneity(equal: Ints) -> str:
    shared = float(np.mean(equal > 1))
    if not shared:
        return (
            "Every published trajectory is different, so that who recognizes one learns all of what is published of it."
        )
    return (
        f"{_percent(shared)} of the published trajectories are equal to others: who finds somebody's group learns the way "
        "that is published for all of it."
    )


def _percent(share: float) -> str:
    """Whole percents; what is not quite none or all says so."""
    if 0 < share < 0.005:
        return "below 1 %"
    if 0.995 < share < 1:
        return "above 99 %"
    return f"{100 * share:.0f} %"

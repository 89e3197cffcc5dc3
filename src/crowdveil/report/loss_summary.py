"""The information loss of a release in three numbers, each with a sentence. All come from its files and manifest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats
from crowdveil.report.attack_table import percent
from crowdveil.report.interval_charts import mean_hours


@dataclass(frozen=True)
class Loss:
    """A number, and a sentence on its meaning."""

    value: str
    sentence: str

    @property
    def line(self) -> str:
        """Both, in one line."""
        return f"{self.value}: {self.sentence}"


def losses(written: WrittenRelease, manifest: Manifest) -> list[Loss]:
    """Return the three numbers of a release."""
    if not len(written.data):
        return [Loss("100 %", "Nothing was published: all of the data is suppressed.")]
    return _of_flows(written, manifest) if written.is_flows else _of_trajectories(written, manifest)


def coarseness(written: WrittenRelease, manifest: Manifest) -> str:
    """Return a line on how coarse a release is."""
    numbers = losses(written, manifest)
    return (numbers[1] if len(numbers) > 1 else numbers[0]).line


def _of_flows(written: WrittenRelease, manifest: Manifest) -> list[Loss]:
    volume = np.maximum(written.column("volume"), 0)
    sizes = written.area_sizes
    origin, destination = (written.area_numbers(column) for column in ("origin_area", "destination_area"))
    ends = [np.bincount(end, volume, len(sizes)) for end in (origin, destination)]
    both = np.asarray(ends[0] + ends[1], np.float64)
    trips = max(float(volume.sum()), 1.0)
    mean = float(both @ sizes) / (2 * trips)
    single = sizes == 1
    exact = 100 * float(volume[single[origin] & single[destination]].sum()) / trips
    return [
        _suppressed_trips(manifest),
        Loss(
            f"{mean:,.1f} zones",
            "An origin or destination of a published trip is known as an area of this many zones on average"
            f"{_extent(written, both)}; in the data it was 1 zone.{_length(written)}",
        ),
        Loss(percent(exact), "Of the published trips, this share keeps both its zone of origin and its zone of destination."),
    ]  # fmt: skip


def _suppressed_trips(manifest: Manifest) -> Loss:
    share = manifest.cost.get("suppressed_volume_percent")
    if share is None:
        sentence = "Volumes have random noise, so that the share of trips that is not published is not given."
        return Loss("noise", sentence)
    return Loss(percent(share), "Of all trips in the data, this share is suppressed: it is in no published flow.")


def _extent(written: WrittenRelease, trips: Floats) -> str:
    """Return the mean size of areas over the trips that leave or reach each, where it is known."""
    km2 = np.array([f["properties"].get("area_km2") or np.nan for f in written.features], np.float64)
    used = trips > 0
    mean = float(trips[used] @ km2[used]) / max(float(trips.sum()), 1.0)
    return f", {mean:,.3g} km²" if np.isfinite(mean) else ""


def _length(written: WrittenRelease) -> str:
    """Return a sentence on intervals of time, where rows have them."""
    if not written.has_intervals:
        return ""
    return f" Its time is known as an interval of {mean_hours(written):,.1f} hours on average."


def _of_trajectories(written: WrittenRelease, manifest: Manifest) -> list[Loss]:
    share = manifest.cost["suppressed_trajectories_percent"]
    suppressed = Loss(percent(share), "Of all trajectories in the data, this share is suppressed.")
    return [suppressed, _moved(manifest), _coverage(manifest)]


def _moved(manifest: Manifest) -> Loss:
    distortion = manifest.distortion
    moved = {} if distortion is None else distortion.get("moved_m") or {}
    if distortion is None:
        return Loss("–", "How far points were moved was not measured (runs on a cluster do not measure it).")
    if moved.get("middle") is None:
        return Loss("–", "How far points were moved is not published: too few people are behind the figure.")
    far = moved.get("high")
    more = "" if far is None else f", and more than {distance(far)} for one in ten trajectories"
    value = moved["middle"]
    if value == 0 and not far:
        return Loss("0 m", "Points of half of the trajectories or more are where they were in the data.")
    return Loss(
        distance(value), f"Half of the points of a usual trajectory are at least this far from where they were{more}."
    )


def _coverage(manifest: Manifest) -> Loss:
    share = (manifest.distortion or {}).get("coverage_percent")
    squares = "squares of 500 m that at least k people visit in the data"
    if share is None:
        return Loss("–", f"The covered part of the map is not known: there are no {squares}, or it was not measured.")
    return Loss(percent(share), f"Of the {squares}, this share has a published point.")


def distance(meters: float) -> str:
    """Format meters, from 1,000 on as kilometers."""
    return f"{meters / 1000:,.3g} km" if meters >= 1000 else f"{meters:,.3g} m"

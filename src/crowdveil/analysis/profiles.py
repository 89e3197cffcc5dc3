"""Estimate the profiles of zones and pairs of zones over the hours of the week, or of the day.

What it does
------------
Areas change from hour to hour in a release, so hours are compared on fixed zones: all rows are spread over the chosen zones, as
`reconstruct` does, and summed by hour. A profile is the mean number of trips in each hour of the week: trips that leave a
zone, that reach it, or that go between two zones. The mean is over all occurrences of the hour between the first and the last
time step, with or without published trips. Suppressed trips are missing, so a profile is slightly too low.

An hour of the week in which no row of a profile was ever published is empty, in tables and plots: its trips were suppressed,
or there were none, or the hour did not occur. The release does not reveal which, so 0 would be a guess. In the original, an hour
without trips is 0.

Comparison with the original
----------------------------
`original` is the profile of the original, estimated in the same way. `correlation` is Pearson's, over hours; `error` is
Σ |release − original| / Σ original, over hours. Both compare only hours that are observed on both sides, since an empty hour of
the release is unknown; `hours_compared` is their number. The number of hours and the trips a day show how much empty hours lose.
All three come from the original and are confidential.

Notes
-----
Hours are in local time of the release's time zone. If time steps are longer than an hour, so are the slots of the profile.
Bounds are means, too: of the trips in rows that lie wholly in the zones, and in rows that touch them.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices, appendix H
and Fig. 14.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.analysis.base import Analysis, TableResult
from crowdveil.analysis.calendar import GAPS, Period, Slots
from crowdveil.analysis.estimates import ANYWHERE, Groups, estimates
from crowdveil.analysis.study import Study, StudySide
from crowdveil.engine.progress import Progress
from crowdveil.errors import Option, ParameterError, counted
from crowdveil.measures.base import ratio
from crowdveil.model.arrays import Floats, Ints, Labels, Mask, row_slices
from crowdveil.model.tabular import align_rows
from crowdveil.model.time_axis import DAY_S
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.solve.od.overlaps import Shares

MAX_LISTED = 10
"""Profiles in the summary."""


class ProfileParams(Params):
    """Parameters of profiles."""

    period: Period = "week"
    """Period of the profiles: the 168 hours of a week, or the 24 of a day."""
    select: str | None = Field(None, json_schema_extra={"metavar": "LIST"})
    """Only these zones and pairs, separated by commas: 74, or 74:75 for trips from 74 to 75. Default: all zones."""
    pairs: int = Field(0, ge=0)
    """Number of pairs of zones to add, the largest ones of the release."""
    least_trips: float = Field(0.0, ge=0)
    """Omit zones (trips leaving and reaching) and pairs with fewer trips a day. Trips of the original count if it is given."""


@dataclass(frozen=True, eq=False, repr=False)
class Profiles(TableResult):
    """Mean trips by hour.

    Attributes
    ----------
    zones
        The zones.
    slots
        The hours.
    origin, destination
        Zones of each profile; ANYWHERE (-1) for any origin or destination.
    volume, lower, upper
        A row per profile, a column per hour; NaN in hours without a published row, and in those that never occurred.
    original
        Volume of the original; None if it was not given; NaN only in hours that never occurred.
    """

    zones: Zones
    slots: Slots
    params: ProfileParams
    origin: Ints
    destination: Ints
    volume: Floats
    lower: Floats
    upper: Floats
    original: Floats | None = None

    def __len__(self) -> int:
        return len(self.origin)

    def name(self, profile: int) -> str:
        """Return the name of a profile, such as "from 74", "to 74" or "74 → 75"."""
        o, d = (None if z == ANYWHERE else self.zones.ids[z] for z in (self.origin[profile], self.destination[profile]))
        return f"to {d}" if o is None else f"from {o}" if d is None else f"{o} → {d}"

    @cached_property
    def trips_a_day(self) -> Floats:
        """Published trips a day of each profile."""
        return trips_a_day(self.volume, self.slots)

    @property
    def compared(self) -> Mask:
        """Whether each hour is observed in both the release and the original, as an array like `volume`."""
        original = np.nan if self.original is None else self.original
        return np.isfinite(self.volume) & np.isfinite(original)

    @property
    def hours_compared(self) -> Ints:
        """Number of hours of each profile that `correlation` and `error` compare."""
        hours: Ints = self.compared.sum(axis=1)
        return hours

    @cached_property
    def correlation(self) -> Floats:
        """Pearson's correlation of release and original over `compared` hours; NaN without original, or if one is constant."""
        if self.original is None:
            return np.full(len(self), np.nan)
        return correlations(self.volume, self.original)

    @cached_property
    def error(self) -> Floats:
        """Σ |release − original| / Σ original over `compared` hours; NaN without the original, or if it has no trips."""
        if self.original is None:
            return np.full(len(self), np.nan)
        lost = np.nansum(np.abs(self.volume - self.original), axis=1)
        return ratio(lost, np.sum(self.original, axis=1, where=self.compared))

    def largest(self, count: int) -> list[int]:
        """Return the indices of the profiles with most trips."""
        return [int(i) for i in np.argsort(-self.trips_a_day, kind="stable")[:count]]

    def table(self) -> pa.Table:
        """Return a row per profile and hour."""
        ids, n, hours = pa.array(self.zones.ids, pa.string()), len(self), len(self.slots)
        columns: dict[str, Any] = {}
        for name in ("origin", "destination"):
            zone = np.repeat(getattr(self, name), hours)
            numbers = pa.array(zone.astype(np.int32), mask=zone == ANYWHERE)
            columns[name] = pa.DictionaryArray.from_arrays(numbers, ids)
        for name, words in self.slots.columns().items():
            columns[name] = pa.array(words * n, pa.string())
        for name in ("volume", "lower", "upper", "original"):
            values = getattr(self, name)
            if values is not None:
                columns[name] = pa.array(values.ravel(), from_pandas=True)
        if self.original is not None:
            for name in ("correlation", "error", "hours_compared"):
                columns[name] = pa.array(np.repeat(getattr(self, name), hours), from_pandas=True)
        return pa.table(columns)

    @property
    def labels(self) -> Labels:
        """The ids of the zones."""
        return self.zones.ids

    def about(self) -> dict[str, Any]:
        """Return the description of the numbers, for the file."""
        return {
            "analysis": "profiles",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": "Mean published trips in each hour; estimates, not counts. Suppressed trips are missing. "
            "An hour in which nothing was published is empty: suppressed, or not observed."
            + ("" if self.original is None else " Includes original data: confidential, do not publish."),
            "weeks": round(self.slots.weeks, 3),
        }

    def lines(self) -> list[str]:
        """Return the largest profiles, their peak hours, and their similarity to the original."""
        head = ["profile", "trips a day", "peak"]
        if self.original is not None:
            head += ["original", "correlation", "error", "hours compared"]
        rows = [head]
        for i in self.largest(MAX_LISTED):
            most = self.slots.name(int(np.nanargmax(self.volume[i]))) if np.isfinite(self.volume[i]).any() else "–"
            rows.append([self.name(i), f"{self.trips_a_day[i]:,.1f}", most])
            if self.original is not None:
                of_original = trips_a_day(self.original[i : i + 1], self.slots)[0]
                rows[-1] += [f"{of_original:,.1f}", shown(self.correlation[i]), shown(self.error[i])]
                rows[-1].append(f"{self.hours_compared[i]:,}")
        lines = [f"{counted(len(self), 'profile')} over {self.slots.weeks:,.1f} weeks", "", *align_rows(rows)]
        empty = int(np.isnan(self.volume).sum())
        if empty:
            lines += ["", f"{empty:,} of {self.volume.size:,} hours are empty: {GAPS}"]
        if self.original is not None and len(self):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # the median of no values is NaN, shown as undefined
                middle = np.nanmedian(self.correlation), np.nanmedian(self.error)
            hours = f"over the {self.compared.sum():,} of {self.volume.size:,} hours that are observed in both"
            lines += ["", f"median correlation {shown(middle[0])}, median error {shown(middle[1])}, {hours}"]
        return lines


def shown(value: float) -> str:
    """Format a number with two decimals; "–" if undefined."""
    return f"{value:.2f}" if np.isfinite(value) else "–"


def correlations(released: Floats, original: Floats) -> Floats:
    """Return Pearson's correlation of each row of two tables, over columns that both have; NaN if a row is constant."""
    both = np.isfinite(released) & np.isfinite(original)
    number = np.maximum(both.sum(axis=1, keepdims=True), 1)
    released, original = (np.where(both, values, 0.0) for values in (released, original))
    a, b = (np.where(both, v - v.sum(axis=1, keepdims=True) / number, 0.0) for v in (released, original))
    spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    # A constant row may differ by rounding errors.
    flat = spread <= 1e-12 * np.sqrt((released**2).sum(axis=1) * (original**2).sum(axis=1))
    return ratio((a * b).sum(axis=1), np.where(flat, 0.0, spread))


def trips_a_day(means: Floats, slots: Slots) -> Floats:
    """Return the trips a day of each row of mean trips by hour."""
    days = slots.times.sum() * slots.slot_s / DAY_S
    trips: Floats = np.nansum(means * slots.times, axis=1) / days
    return trips


def zone_profiles(side: StudySide, slots: Slots, zones: int, *, out: bool, gaps: bool = False) -> Floats:
    """Return mean trips that leave (or reach) each zone in each hour, with lower and upper bounds: (3, zones, hours).

    With `gaps`, hours in which no row touches a zone are NaN, not 0.
    """
    flows = estimates(side, slots.groups(side.release), origins=out, destinations=not out)
    sums = np.full((3, zones, len(slots)), np.nan if gaps else 0.0)
    sums[:, flows.origin if out else flows.destination, flows.group] = flows.volume, flows.lower, flows.upper
    return _means(sums, slots)


def pair_profile(side: StudySide, slots: Slots, origin: int, destination: int, *, gaps: bool = False) -> Floats:
    """Return mean trips from one zone to another in each hour, with bounds: (3, hours)."""
    ends = _in_zone(side.shares, origin), _in_zone(side.shares_reached, destination)
    flows = estimates(StudySide(side.release, *ends), slots.groups(side.release))
    sums = np.full((3, len(slots)), np.nan if gaps else 0.0)
    sums[:, flows.group] = flows.volume, flows.lower, flows.upper
    return _means(sums, slots)


def _in_zone(shares: Shares, zone: int) -> Shares:
    """Return the shares of areas in one zone."""
    entry = np.flatnonzero(shares.zone == zone)
    area = row_slices(shares.offsets)[entry]
    part = shares.part[entry] / shares.whole[area]
    return Shares.of_entries(len(shares), 1, area, np.zeros_like(area), part, shares.inside[entry])


def _means(sums: Floats, slots: Slots) -> Floats:
    means: Floats = np.divide(sums, slots.times, out=np.full(sums.shape, np.nan), where=slots.times > 0)
    return means


def run(study: Study, params: ProfileParams, progress: Progress) -> Profiles:
    """Return profiles of zones, then of pairs."""
    slots = Slots.of([side.release for side in study.sides], params.period)
    ends = _requested(study, params)
    tables = [
        _table(side, slots, ends, len(study.zones), progress, gaps=side is study.released) for side in study.sides
    ]
    (volume, lower, upper), original = tables[0], tables[1][0] if study.original is not None else None
    trips = trips_a_day(volume if original is None else original, slots)
    # A zone that no row touches is omitted unless it was named.
    keep = (np.nansum(upper, axis=1) > 0) | (params.select is not None)
    if original is not None:
        keep |= trips > 0
    if params.least_trips > 0:
        keep &= _busy(study.sides[-1], slots, ends, trips) >= params.least_trips
    return Profiles(
        study.zones, slots, params, ends[keep, 0], ends[keep, 1], volume[keep], lower[keep], upper[keep],
        None if original is None else original[keep],
    )  # fmt: skip


def _busy(side: StudySide, slots: Slots, ends: Ints, trips: Floats) -> Floats:
    """Return the trips a day of each pair, and of the zone (leaving and reaching) of each other profile."""
    zones = side.shares.zones
    of_zone = sum(trips_a_day(zone_profiles(side, slots, zones, out=out)[0], slots) for out in (True, False))
    pair = (ends != ANYWHERE).all(axis=1)
    return np.where(pair, trips, np.asarray(of_zone)[ends.max(axis=1)])


def _table(side: StudySide, slots: Slots, ends: Ints, zones: int, progress: Progress, *, gaps: bool) -> Floats:
    profiles = np.zeros((3, len(ends), len(slots)))
    for out, (this, other) in ((True, (0, 1)), (False, (1, 0))):
        rows = np.flatnonzero((ends[:, other] == ANYWHERE) & (ends[:, this] != ANYWHERE))
        if len(rows):
            profiles[:, rows] = zone_profiles(side, slots, zones, out=out, gaps=gaps)[:, ends[rows, this]]
    pairs = np.flatnonzero((ends != ANYWHERE).all(axis=1)).tolist()
    for done, row in enumerate(pairs, start=1):
        profiles[:, row] = pair_profile(side, slots, *ends[row].tolist(), gaps=gaps)
        progress(done, len(pairs))
    return profiles


def _requested(study: Study, params: ProfileParams) -> Ints:
    """Return origin and destination of each requested profile."""
    zones = np.arange(len(study.zones))
    anywhere = np.full_like(zones, ANYWHERE)
    if params.select is not None:
        ends = [_ends(study.zones, word) for word in params.select.split(",")]
        listed = np.array([end for both in ends for end in both], np.int64).reshape(-1, 2)
    else:
        listed = np.concatenate([np.column_stack([zones, anywhere]), np.column_stack([anywhere, zones])])
    return np.concatenate([listed, _largest_pairs(study.released, params.pairs)]).astype(np.int64)


def _largest_pairs(side: StudySide, count: int) -> Ints:
    """Return origin and destination of the pairs of zones with most trips over all time steps."""
    if not count:
        return np.zeros((0, 2), np.int64)
    flows = estimates(side, Groups.all(side.release))
    top = np.sort(np.argsort(-flows.volume, kind="stable")[:count])
    return np.column_stack([flows.origin[top], flows.destination[top]])


def _ends(zones: Zones, word: str) -> list[tuple[int, int]]:
    """Return the ends of "74" or "74:75"; a name may itself contain a colon."""
    word = word.strip()
    if (zone := zones.index_of(word)) >= 0:
        return [(zone, ANYWHERE), (ANYWHERE, zone)]
    for i in (i for i, sign in enumerate(word) if sign == ":"):
        pair = zones.index_of(word[:i]), zones.index_of(word[i + 1 :])
        if min(pair) >= 0:
            return [pair]
    raise ParameterError(
        Option("select"),
        f"Expected ids of zones such as 74, or two with a colon such as 74:75, but {word!r} names none. Check the ids.",
    )


ANALYSIS = Analysis(
    "profiles",
    ProfileParams,
    run,
    __doc__ or "",
    "A profile is the mean of published trips in each hour of the week that leave a zone, reach it, or go between two zones. "
    "With --original, its profiles are added, with correlation and error.",
    examples=(
        "out/ -o profiles.csv",
        "out/ --select r3c3,r3c3:r3c4 --plot two.png",
        "out/ --original trips.parquet --zones zones.geojson --least-trips 20 --plot compared.png",
    ),
)

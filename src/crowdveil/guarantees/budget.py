"""Check the suppression budget of a release of flows, from its files and with the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.intervals import days_that_count, local_seconds, people_in, rounded_over_windows
from crowdveil.guarantees.original import step_volumes, volumes_by_step, volumes_in_rows, volumes_of_rows
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, Mask, group_sums
from crowdveil.model.flows import Flows

BudgetPeriod = Literal["all", "hour-of-day", "hour-of-week", "day-type", "day"]
_PERIODS: dict[BudgetPeriod, str] = {
    "all": "in all time steps together", "hour-of-day": "in the time steps of each hour of the day",
    "hour-of-week": "in the time steps of each hour of the week",
    "day-type": "in the time steps of each type of day (working days, Saturdays, Sundays)", "day": "on each day",
}  # fmt: skip


class _Budget(Guarantee):
    """The limit of both budgets, and the comparison with it."""

    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = dict.fromkeys(("steps", "over", "open", "below_k", "strange"), "sum")

    suppress: Annotated[float, Field(ge=0, le=1)] | Annotated[str, Field(pattern=r"^[0-9]{1,15}trips$")]
    """A share of the volume, or a number of trips as "500trips"."""
    k: int = Field(ge=1)
    weighted: bool = False
    """Whether trips have weights. The weight of a flow is then rounded to whole trips."""

    @property
    def trips(self) -> int | None:
        """Return the number of trips that may be suppressed; None if the budget is a share."""
        return int(self.suppress.removesuffix("trips")) if isinstance(self.suppress, str) else None

    def _sentence(self, period: str, exception: str) -> str:
        limit = (
            f"{100 * float(self.suppress):g} % of the volume is" if self.trips is None else f"{self.trips:,} trips are"
        )
        rounded = "; flows, or published sums of them, are rounded to whole trips for this" if self.weighted else ""
        return f"At most {limit} suppressed {period}, {exception} with a total group size below {self.k:,}{rounded}."

    def _within(self, suppressed: Ints, volume: Ints) -> Mask:
        """Return where the budget is kept, by its definition and without the arithmetic of the methods."""
        if self.trips is not None:
            return suppressed <= self.trips
        share = float(self.suppress)
        within: Mask = np.array(
            [within_budget(w, v, share) for w, v in zip(suppressed.tolist(), volume.tolist(), strict=True)], bool
        )
        return within

    def _describe(self, counts: Mapping[str, int], with_original: bool, unit: str, groups: str) -> str:
        """Return how many time steps or `groups` exceed the budget, and how many may do so."""
        # The number of original or of entirely suppressed time steps would tell empty ones from suppressed ones.
        steps = "every time step of the original" if with_original else counted(counts["steps"], unit)
        parts = [f"{steps} checked, more is suppressed in {counts['over']:,}{groups}"]
        if counts["open"]:
            parts.append(f"not given in {counted(counts['open'], unit)}")
        if counts["strange"]:
            parts.append(f"{counts['strange']:,} are not in the original")
        return f"{'; '.join(parts)}."


class SuppressionBudget(_Budget):
    """At most a given volume of each time step is suppressed."""

    name: ClassVar[str] = "suppression-budget"

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return self._sentence("in each time step", "except in those")

    def check(self, written: WrittenRelease) -> Finding:
        """Compare the suppressed totals in the files with the volume of their time steps."""
        suppressed, given = written.listed("suppressed")
        published = sum_rows(written, written.column("volume"))
        if self.weighted:
            # Only the original shows the rounding of flows: a volume differs by at most one trip for each of its flows.
            flows, volume = sum_rows(written, _most_flows(written)), published + suppressed
            over, open_ = self._compare((suppressed - flows, volume), (suppressed + flows, volume), ~given)
        else:
            # If trips are counted, a missing total is below k trips, and even k - 1 may be within the budget.
            trips = "trips" in written.data.column_names and np.array_equal(
                written.column("trips"), written.column("volume")
            )
            most = np.where(given, suppressed, self.k - 1)
            unknown = ~given if not trips else np.zeros(len(given), np.bool_)
            over, open_ = self._compare((suppressed, published + suppressed), (most, published + most), unknown)
        counts = {"steps": len(given), "over": int(over.sum()), "open": int(open_.sum())}
        return self.make_finding(counts["over"] > 0, counts, open_=counts["open"] > 0)

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Compare the volume missing from each time step of the original with the volume of the step."""
        published, strange = volumes_by_step(written, original)
        volume = step_volumes(original)
        least = most = volume - published
        if self.weighted:
            in_rows = volumes_in_rows(written, original)
            if in_rows is None:  # rows overlap, so that the flows in them may be rounded up or down
                flows = np.diff(original.offsets)
                least, most = least - flows, most + flows
            else:
                # A row may be missing because it was rounded to 0, and other rows have its trips.
                least = most = volume - np.maximum(published, in_rows)
        over, open_ = self._compare((least, volume), (most, volume), np.zeros(len(volume), np.bool_))
        hidden = np.flatnonzero(over & (published == 0))
        for step in hidden.tolist():
            over[step] = people_in(original, np.array([step])) >= self.k
        counts = {
            "steps": len(over),
            "over": int(over.sum()),
            "below_k": int((~over[hidden]).sum()),
            "strange": strange,
            "open": int(open_.sum()),
        }
        return self.make_finding(counts["over"] + strange > 0, counts, open_=counts["open"] > 0, with_original=True)

    def _compare(self, least: tuple[Ints, Ints], most: tuple[Ints, Ints], unknown: Mask) -> tuple[Mask, Mask]:
        """Return the time steps that suppress more than the budget, and those that may do so.

        `least` and `most` are bounds of the suppressed volume, each with the total volume for it.
        """
        over = ~self._within(*least)
        return over, ~over & (unknown | ~self._within(*most))

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many time steps exceed the budget, and how many may do so."""
        return self._describe(counts, with_original, "time step", "")


class _Parts(NamedTuple):
    """Time steps or days that count for the budget of a period: their group, volumes, and unknown suppressed totals."""

    group: Ints
    published: Ints
    volume: Ints
    unknown: Mask


class PeriodBudget(_Budget):
    """At most a given volume of all time steps of a period is suppressed."""

    name: ClassVar[str] = "period-budget"

    period: BudgetPeriod
    """All time steps together; those of each hour of the day or of the week; those of working days, Saturdays and Sundays; or
    those of each day, where rows have intervals of time."""
    tz: str = "UTC"
    """Time zone of the hours and days of the period."""
    interval_s: int | None = Field(None, ge=1, le=86_400)
    """Seconds of the longest interval that can be published, where the period is a day."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        excluded = "time steps" if self.interval_s is None else f"intervals of {self.interval_s / 3600:g} hours"
        return self._sentence(_PERIODS[self.period], f"not counting {excluded}")

    def check(self, written: WrittenRelease) -> Finding:
        """Compare the suppressed totals of each group in the files with its volume."""
        suppressed, given = written.listed("suppressed")
        published = sum_rows(written, written.column("volume"))
        listed, step = written.listed_steps()
        unknown = ~given | self.weighted
        if self.interval_s is not None:
            # Intervals below k do not count, and no file states their volume, so an excess proves nothing.
            unknown |= ~self._within(suppressed, published + suppressed)
        return self._compare(_Parts(self._groups(listed)[step], published, published + suppressed, unknown), len(step))

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Compare the missing volume of each group with its volume, not counting time steps of fewer than k people."""
        parts, strange = (self._days if self.period == "day" else self._steps)(written, original)
        return self._compare(parts, original.steps, strange, with_original=True)

    def _steps(self, written: WrittenRelease, original: Flows) -> tuple[_Parts, int]:
        """Return the time steps of the original that count, and how many published ones it lacks."""
        published, strange = volumes_by_step(written, original)
        volume = step_volumes(original)
        unknown = np.zeros(len(volume), np.bool_)
        if self.weighted:
            in_rows = volumes_in_rows(written, original)
            unknown = np.full(len(volume), in_rows is None)
            published = published if in_rows is None else np.maximum(published, in_rows)
        empty = np.flatnonzero((published == 0) & (volume > 0))
        keep = np.ones(len(volume), np.bool_)
        keep[[step for step in empty.tolist() if people_in(original, np.array([step])) < self.k]] = False
        return _Parts(self._groups(original.t)[keep], published[keep], volume[keep], unknown[keep]), strange

    def _days(self, written: WrittenRelease, original: Flows) -> tuple[_Parts, int]:
        """Return the days of the original, with the intervals that count, and the number of rows outside of these."""
        day, counts = days_that_count(original, self.tz, self.interval_s or 86_400, self.k)
        original = rounded_over_windows(original, day)
        days, number = np.unique(day[counts], return_inverse=True)
        volume = group_sums(number, step_volumes(original)[counts], len(days))
        # Rows by the day of the first original time step in their interval; all others are counted in the last place.
        of_step = np.full(original.steps + 1, len(days))
        of_step[:-1][counts] = number
        start = written.row_intervals()[0] if written.has_intervals else written.column("t")
        of_row = of_step[np.searchsorted(original.t, start)]
        published = group_sums(of_row, written.column("volume"), len(days) + 1)[:-1]
        unknown = np.zeros(len(days), np.bool_)
        if self.weighted:
            in_rows = volumes_of_rows(written, original)
            unknown = np.full(len(days), in_rows is None)
            if in_rows is not None:
                published = np.maximum(published, group_sums(of_row, in_rows, len(days) + 1)[:-1])
        return _Parts(days, published, volume, unknown), int((of_row == len(days)).sum())

    def _groups(self, t: Ints) -> Ints:
        """Return the group of each time step: its local hour, hour of the week, type of day, or day."""
        local = local_seconds(t, self.tz)
        day, hour = (local // 86_400 + 3) % 7, local // 3600 % 24  # 1970-01-01 was a Thursday
        groups = {
            "hour-of-day": hour, "hour-of-week": 24 * day + hour, "day-type": np.maximum(day - 4, 0),
            "day": local // 86_400,
        }  # fmt: skip
        return groups.get(self.period, np.zeros(len(local), np.int64))

    def _compare(self, parts: _Parts, steps: int, strange: int = 0, *, with_original: bool = False) -> Finding:
        """Compare the suppressed part of each group with its volume."""
        groups, number = np.unique(parts.group, return_inverse=True)
        of_group = [group_sums(number, values, len(groups)).tolist() for values in parts[1:]]
        sums = dict(zip(map(str, groups.tolist()), map(list, zip(*of_group, strict=True)), strict=True))
        return self._compare_sums(sums, steps, strange, with_original)

    def _compare_sums(self, sums: dict[str, list[int]], steps: int, strange: int, with_original: bool) -> Finding:
        """Compare the suppressed part of each group with its volume.

        `sums` has the published volume, the volume, and the number of unknown totals, which leaves the group open.
        """
        published, volume, unknown = np.array([*sums.values()], np.int64).reshape(-1, 3).T
        over, open_ = ~self._within(volume - published, volume), unknown > 0
        counts = {
            "steps": steps, "over": int((over & ~open_).sum()), "open": int(open_.sum()), "strange": strange,
        }  # fmt: skip
        found = self.make_finding(
            counts["over"] + strange > 0, counts, open_=counts["open"] > 0, with_original=with_original
        )
        return replace(found, sums=sums)

    def merge_findings(self, findings: Sequence[Finding]) -> Finding:
        """Merge the findings of all partitions; time steps of one group may be in several of them."""
        if not findings:
            return super().merge_findings(findings)
        sums: dict[str, list[int]] = {}
        for finding in findings:
            for group, values in finding.sums.items():
                before = sums.get(group, [0] * len(values))
                sums[group] = [a + b for a, b in zip(before, values, strict=True)]
        steps, strange = (sum(finding.counts.get(name, 0) for finding in findings) for name in ("steps", "strange"))
        return self._compare_sums(sums, steps, strange, any(finding.with_original for finding in findings))

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many groups of time steps exceed the budget, and how many may do so."""
        unit = "day" if self.period == "day" else "time step"  # a row of the list of time steps
        groups = {"all": "", "day": " days"}.get(self.period, " groups of them")
        return self._describe(counts, with_original, unit, groups)


def sum_rows(written: WrittenRelease, values: Ints) -> Ints:
    """Return the sum of the rows' values for each listed time step; the listed total is not used, since it proves nothing."""
    if written.has_intervals:
        # Rows outside of all windows are added behind the last one.
        return group_sums(written.row_windows(), values, len(written.steps) + 1)[:-1]
    times, number = written.row_steps()
    listed, step = written.listed_steps()
    sums = group_sums(number, values, len(times) + 1)
    at = np.searchsorted(times, listed)
    at[~np.isin(listed, times)] = len(times)
    total: Ints = sums[at][step]
    return total


def _most_flows(written: WrittenRelease) -> Ints:
    """Return an upper bound of the number of original flows in each row: its pairs of tiles, or its trips if they are fewer."""
    tiles = np.array([*map(len, written.area_tiles), 0], np.int64)  # the last is for areas that are not listed
    pairs: Ints = tiles[written.area_numbers("origin_area")] * tiles[written.area_numbers("destination_area")]
    if "trips" in written.data.column_names:
        pairs = np.minimum(pairs, written.column("trips"))
    return pairs


def within_budget(suppressed: int, volume: int, share: float) -> bool:
    """Return whether a suppressed volume is within a share of the volume.

    Python rounds the quotient of two whole numbers to the nearest float, and the share is the float nearest to the user's
    decimals. So 1 of 3 is within 1/3, and 3 of 10 within 0.3, without a tolerance.
    """
    return suppressed <= 0 or (volume > 0 and suppressed / volume <= share)

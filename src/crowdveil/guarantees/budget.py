"""Check the suppression budget of a release of flows, from its files and with the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.intervals import days_that_count, local_seconds, people_in, rounded_over_windows
from crowdveil.guarantees.original import step_volumes, volumes_by_step, volumes_in_rows, volumes_of_rows
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, Mask, group_sums
from crowdveil.model.flows import Flows

BudgetPeriod = Literal["step", "all", "hour-of-day", "hour-of-week", "day-type", "day"]
"""What a suppression budget is for: each time step; all of them together; those of each hour of the day or of the week, or of
working days, Saturdays and Sundays; those of each day, where rows have intervals of time."""
_PERIODS: dict[BudgetPeriod, str] = {
    "step": "each time step", "all": "all time steps together", "hour-of-day": "the time steps of each hour of the day",
    "hour-of-week": "the time steps of each hour of the week",
    "day-type": "the time steps of working days, of Saturdays and of Sundays each", "day": "each day",
}  # fmt: skip


class SuppressionBudget(Guarantee):
    """At most a given volume of each time step, or of all time steps of a period, is suppressed."""

    name: ClassVar[str] = "suppression-budget"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = dict.fromkeys(("steps", "over", "open", "below_k", "strange"), "sum")
    from_data: ClassVar[tuple[str, ...]] = ("tz", "interval_s")

    suppress: Annotated[float, Field(ge=0, le=1)] | Annotated[str, Field(pattern=r"^[0-9]{1,15}trips$")]
    """A share of the volume, or a number of trips as "500trips"."""
    k: int = Field(ge=1)
    weighted: bool = False
    """Whether trips have weights: a flow then counts as the whole trips that its weight is rounded to."""
    period: BudgetPeriod = "step"
    tz: str = "UTC"
    """Time zone of the hours and days of the period."""
    interval_s: int | None = Field(None, ge=1, le=86_400)
    """Seconds of the longest interval that can be published, where the period is a day."""

    @property
    def trips(self) -> int | None:
        """Return the number of trips that may be suppressed; None where a share may be."""
        return int(self.suppress.removesuffix("trips")) if isinstance(self.suppress, str) else None

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        limit = f"{100 * float(self.suppress):g} % of the volume" if self.trips is None else f"{self.trips:,} trips"
        rounded = "; flows, or published sums of them, are rounded to whole trips for this" if self.weighted else ""
        of, without = _PERIODS[self.period], "unless its" if self.period == "step" else "without time steps whose"
        if self.interval_s is not None:
            without = f"without intervals of {self.interval_s / 3600:g} hours whose"
        return f"Of {of} at most {limit} is suppressed, {without} group size is below {self.k:,} in all{rounded}."

    def check(self, written: WrittenRelease) -> Finding:
        """Compare each given suppressed total with the volume of its time step."""
        suppressed, given = written.listed("suppressed")
        published = self._sum_rows(written, written.column("volume"))
        volume = published + suppressed
        if self.period != "step":
            listed, step = written.listed_steps()
            group, unknown = self._groups(listed)[step], ~given | self.weighted
            if self.interval_s is not None:
                # Intervals below k do not count, and no file says how much they have: too much in all proves nothing.
                unknown |= ~self._within(suppressed, volume)
            return self._check_groups(published, volume, group, unknown)
        if self.weighted:
            # Only the original shows what each flow is rounded to; a volume differs by at most a trip for each flow in it.
            flows = self._sum_rows(written, _most_flows(written))
            over = given & ~self._within(suppressed - flows, volume)
            open_ = ~over & ~(given & self._within(suppressed + flows, volume))
        else:
            over = ~self._within(suppressed, volume)  # a total that is not given is 0 here
            # Totals not given are below k trips, where trips are counted: then even k - 1 may be within the budget.
            trips = "trips" in written.data.column_names and np.array_equal(
                written.column("trips"), written.column("volume")
            )
            upper = np.full(len(suppressed), self.k - 1)
            open_ = ~given & ~(trips & self._within(upper, published + upper))
        counts = {"steps": len(given), "over": int(over.sum()), "open": int(open_.sum())}
        return self.make_finding(counts["over"] > 0, counts, open_=counts["open"] > 0)

    def check_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Compare what is missing of each time step of the original, given or not, with its volume."""
        if self.period == "day":
            return self._check_days_with_flows(written, original)
        published, strange = volumes_by_step(written, original)
        volume = step_volumes(original)
        if self.period != "step":
            return self._check_groups_with_flows(written, original, published, volume, strange)
        open_ = 0
        in_rows = volumes_in_rows(written, original) if self.weighted else published
        if in_rows is None:  # rows overlap: nothing shows which flows are in them, so each may be rounded up or down
            flows = np.diff(original.offsets)
            over = ~self._within(volume - published - flows, volume)
            open_ = int((~over & ~self._within(volume - published + flows, volume)).sum())
        else:
            # A row may have been rounded to 0, and left out, because the volumes of others have its trips.
            over = ~self._within(volume - np.maximum(published, in_rows), volume)
        whole = over & (published == 0)
        for step in np.flatnonzero(whole).tolist():
            over[step] = people_in(original, np.array([step])) >= self.k
        counts = {
            "steps": len(over),
            "over": int(over.sum()),
            "below_k": int((whole & ~over).sum()),
            "strange": strange,
            "open": open_,
        }
        return self.make_finding(counts["over"] + strange > 0, counts, open_=open_ > 0, with_original=True)

    def _check_groups(
        self,
        published: Ints,
        volume: Ints,
        group: Ints,
        unknown: Mask,
        *,
        strange: int = 0,
        with_original: bool = False,
    ) -> Finding:
        """Compare what is suppressed of each group of time steps with its volume; an unknown total leaves it open."""
        groups, number = np.unique(group, return_inverse=True)
        of_group = [group_sums(number, values, len(groups)).tolist() for values in (published, volume, unknown)]
        sums = dict(zip(map(str, groups.tolist()), map(list, zip(*of_group, strict=True)), strict=True))
        return self._compare_sums(sums, len(group), strange, with_original)

    def _compare_sums(self, sums: dict[str, list[int]], steps: int, strange: int, with_original: bool) -> Finding:
        """Compare what is suppressed of each group with its volume; `sums` has what is published, the volume, and how many totals
        are unknown.
        """
        of_group = np.array([*sums.values()], np.int64).reshape(-1, 3).T
        outside, open_ = ~self._within(of_group[1] - of_group[0], of_group[1]), of_group[2] > 0
        counts = {
            "steps": steps, "over": int((outside & ~open_).sum()), "open": int(open_.sum()), "strange": strange,
        }  # fmt: skip
        found = self.make_finding(
            counts["over"] + strange > 0, counts, open_=counts["open"] > 0, with_original=with_original
        )
        return replace(found, sums=sums)

    def merge_findings(self, findings: Sequence[Finding]) -> Finding:
        """Merge the findings of all partitions; time steps of one group may be in several of them."""
        if self.period in ("step", "day") or not findings:
            return super().merge_findings(findings)
        sums: dict[str, list[int]] = {}
        for finding in findings:
            for group, values in finding.sums.items():
                before = sums.get(group, [0] * len(values))
                sums[group] = [a + b for a, b in zip(before, values, strict=True)]
        steps, strange = (sum(finding.counts.get(name, 0) for finding in findings) for name in ("steps", "strange"))
        return self._compare_sums(sums, steps, strange, any(finding.with_original for finding in findings))

    def _check_groups_with_flows(
        self, written: WrittenRelease, original: Flows, published: Ints, volume: Ints, strange: int
    ) -> Finding:
        """Compare each group of time steps of the original, without those of fewer than k people in all."""
        unknown = np.zeros(len(volume), np.bool_)
        if self.weighted:
            in_rows = volumes_in_rows(written, original)
            unknown = np.full(len(volume), in_rows is None)
            published = published if in_rows is None else np.maximum(published, in_rows)
        empty = np.flatnonzero((published == 0) & (volume > 0))
        keep = np.ones(len(volume), np.bool_)
        keep[[step for step in empty.tolist() if people_in(original, np.array([step])) < self.k]] = False
        columns = (published[keep], volume[keep], self._groups(original.t)[keep], unknown[keep])
        return self._check_groups(*columns, strange=strange, with_original=True)

    def _groups(self, t: Ints) -> Ints:
        """Return the group of each time step: by its local hour, hour of the week, type of day or day."""
        local = local_seconds(t, self.tz)
        day, hour = (local // 86_400 + 3) % 7, local // 3600 % 24  # 1970-01-01 was a Thursday
        groups = {"hour-of-day": hour, "hour-of-week": 24 * day + hour, "day-type": np.maximum(day - 4, 0)}
        return (groups | {"day": local // 86_400}).get(self.period, np.zeros(len(local), np.int64))

    def _check_days_with_flows(self, written: WrittenRelease, original: Flows) -> Finding:
        """Compare what is missing of each day of the original with its volume, without intervals of fewer than k people."""
        day, counts = days_that_count(original, self.tz, self.interval_s or 86_400, self.k)
        original = rounded_over_windows(original, day)
        groups, number = np.unique(day[counts], return_inverse=True)
        volume = group_sums(number, step_volumes(original)[counts], len(groups) + 1)
        # Rows by the day of the first time step of the original that they span; the last place is for all others.
        of_step = np.full(original.steps + 1, len(groups))
        of_step[:-1][counts] = number
        start = written.row_intervals()[0] if written.has_intervals else written.column("t")
        of_row = of_step[np.searchsorted(original.t, start)]
        published = group_sums(of_row, written.column("volume"), len(groups) + 1)
        strange, open_ = int((of_row == len(groups)).sum()), 0
        if self.weighted:
            sums = volumes_of_rows(written, original)
            open_ = len(groups) if sums is None else 0
            if sums is not None:
                published = np.maximum(published, group_sums(of_row, sums, len(groups) + 1))
        over = 0 if open_ else int((~self._within(volume - published, volume))[:-1].sum())
        counted_ = {"steps": original.steps, "over": over, "strange": strange, "open": open_}
        return self.make_finding(over + strange > 0, counted_, open_=open_ > 0, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return in how many time steps more is suppressed, and in how many that is unknown."""
        # The number of time steps of the original, or of those suppressed whole, would distinguish empty from suppressed ones.
        unit = "day" if self.period == "day" else "time step"  # a row of the list of time steps
        steps = "every time step of the original" if with_original else counted(counts["steps"], unit)
        groups = "" if self.period in ("step", "all") else " days" if self.period == "day" else " groups of them"
        said = [f"{steps} checked, more is suppressed in {counts['over']:,}{groups}"]
        if counts["open"]:
            said.append(f"not given in {counted(counts['open'], unit)}")
        if counts["strange"]:
            said.append(f"{counts['strange']:,} are not in the original")
        return f"{'; '.join(said)}."

    def _within(self, suppressed: Ints, volume: Ints) -> Mask:
        """Return where at most the budget is suppressed, by the definition and not by the arithmetic of the methods."""
        if self.trips is not None:
            return suppressed <= self.trips
        share = float(self.suppress)
        within: Mask = np.array(
            [within_budget(w, v, share) for w, v in zip(suppressed.tolist(), volume.tolist(), strict=True)], bool
        )
        return within

    @staticmethod
    def _sum_rows(written: WrittenRelease, values: Ints) -> Ints:
        """Return the sum of the rows' values for each listed time step: the listed total itself proves nothing."""
        if written.has_intervals:
            # Rows of no window are added behind the last.
            return group_sums(written.row_windows(), values, len(written.steps) + 1)[:-1]
        times, number = written.row_steps()
        listed, step = written.listed_steps()
        sums = group_sums(number, values, len(times) + 1)
        at = np.searchsorted(times, listed)
        at[~np.isin(listed, times)] = len(times)
        total: Ints = sums[at][step]
        return total


def _most_flows(written: WrittenRelease) -> Ints:
    """Return an upper bound of the original flows in each row: its pairs of tiles, and its trips where these are counted."""
    tiles = np.array([*map(len, written.area_tiles), 0], np.int64)  # the last is for areas that are not listed
    pairs: Ints = tiles[written.area_numbers("origin_area")] * tiles[written.area_numbers("destination_area")]
    if "trips" in written.data.column_names:
        pairs = np.minimum(pairs, written.column("trips"))
    return pairs


def within_budget(suppressed: int, volume: int, budget: float) -> bool:
    """Return whether the suppressed part of a volume is within a budget: a share of it up to 1, or a number of trips above 1.

    The share is the quotient of two whole numbers, which Python rounds correctly to the nearest float; the budget is the float
    nearest to the user's decimals. So 1 of 3 is within 1/3, and 3 of 10 within 0.3, without a tolerance.
    """
    if budget > 1:
        return suppressed <= budget
    return suppressed <= 0 or (volume > 0 and suppressed / volume <= budget)

"""Describe OD matrices before anonymization: size, density, and the share that is already k-anonymous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Naming, Option, ParameterError, Text, as_argument, as_command_line, render
from crowdveil.io.flows import with_tree
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.io.tables import write_json_or_table
from crowdveil.io.times import step_times
from crowdveil.model.arrays import Floats, Ints, slice_sums
from crowdveil.model.flows import Flows
from crowdveil.model.hierarchy import Hierarchy
from crowdveil.model.tabular import TableProperty, align_rows

K = (6, 10)
COARSER = (1, 2, 4, 8, 16, 24)
"""Numbers of time steps, or of tiles of an area, to try."""
ENOUGH = 0.5
"""Share of the trips in flows of k that a suggestion must reach."""


@dataclass(frozen=True)
class Coarser:
    """Share of the trips in flows of at least k if time steps, or tiles, are joined.

    Attributes
    ----------
    what
        "time steps" or "tiles".
    joined
        Largest number of joined ones.
    shares
        The share for each k.
    exact
        Whether the shares are exact; otherwise they are upper bounds, since joined flows may share people.
    """

    what: str
    joined: int
    shares: tuple[float, ...]
    exact: bool


@dataclass(frozen=True, eq=False, repr=False)
class Description(TableProperty):
    """Numbers that describe OD matrices.

    Attributes
    ----------
    flows
        The described matrices.
    k
        The values of k, rising.
    coarser
        Shares with joined time steps or tiles.
    suggestion
        A sentence on k and the budget; "" if there is none.
    """

    flows: Flows
    k: tuple[int, ...]
    coarser: tuple[Coarser, ...] = ()
    suggestion: str = ""

    @property
    def by_step(self) -> dict[str, Floats]:
        """Return the numbers of each time step: flows, trips, density, and shares of flows and trips at or above each k."""
        flows = self.flows
        rows, trips = np.diff(flows.offsets), flows.trips_by_step
        found: dict[str, Floats] = {
            "flows": rows.astype(np.float64),
            "trips": trips.astype(np.float64),
            "density": rows / max(len(flows.zones), 1) ** 2,
        }
        for k in self.k:
            enough = flows.people >= k
            found[f"flows_k{k}"] = _ratio(slice_sums(flows.offsets, enough.astype(np.int64)), rows)
            found[f"trips_k{k}"] = _ratio(slice_sums(flows.offsets, np.where(enough, flows.volume, 0)), trips)
        return found

    @property
    def pooled(self) -> dict[str, float]:
        """Return the numbers of all time steps together, with shares of all flows and of all trips."""
        flows, total = self.flows, max(self.flows.total, 1)
        found = {"flows": float(len(flows)), "trips": float(flows.total)}
        found["density"] = len(flows) / max(flows.steps * len(flows.zones) ** 2, 1)
        for k in self.k:
            enough = flows.people >= k
            found[f"flows_k{k}"] = float(enough.mean()) if len(flows) else 0.0
            found[f"trips_k{k}"] = float(flows.volume[enough].sum()) / total
        return found

    def lines(self, naming: Naming = as_command_line) -> list[str]:
        """Return the description as text, with parameters named as `naming` says."""
        flows, mean, pooled = self.flows, {n: float(v.mean()) for n, v in self.by_step.items()}, self.pooled
        used = len(np.union1d(flows.origin, flows.destination))
        people = "unknown; k counts trips" if flows.k_unit == "trips" else f"{flows.distinct_people or 0:,}"
        if flows.k_unit == "people" and flows.distinct_people is None:
            people = "unknown in total, known for each flow"
        rows = [["", "all", "mean of time steps"]]
        rows.append(["flows", f"{len(flows):,}", f"{mean['flows']:,.1f}"])
        rows.append(["trips", f"{flows.total:,}", f"{mean['trips']:,.1f}"])
        rows.append(["density", _percent(pooled["density"], 3), _percent(mean["density"], 3)])
        for k in self.k:
            for what in ("flows", "trips"):
                name = f"{what}_k{k}"
                label = f"{what} in flows of at least {k}" if what == "trips" else f"flows of at least {k}"
                rows.append([label, _percent(pooled[name]), _percent(mean[name])])
        head = [
            f"tiles       {len(flows.zones):,}, of which {used:,} have trips",
            f"time steps  {flows.steps:,}{'' if flows.step_s is None else f' of {flows.step_s:,} s'}",
            f"people      {people}",
            "",
        ]
        return [*head, *align_rows(rows, remarks=True), *(render(line, naming) for line in self._suggested())]

    def _suggested(self) -> list[str | Text]:
        if not self.coarser and not self.suggestion:
            return []
        rows = [["joined", *(f"trips in flows of {k}" for k in self.k)]]
        for found in self.coarser:
            bound = "" if found.exact else "at most "
            label = f"{found.joined} {found.what}" if found.joined > 1 else f"single {found.what}"
            rows.append([label, *(f"{bound}{_percent(share)}" for share in found.shares)])
        advice = [sentence for sentence in (self._advice(w) for w in ("time steps", "tiles")) if sentence]
        return ["", *align_rows(rows, remarks=True), "", *advice, *([self.suggestion] if self.suggestion else [])]

    def _advice(self, what: str) -> str | Text:
        """Return the least number of joined steps or tiles at which enough trips are in flows of the largest k."""
        tried = [found for found in self.coarser if found.what == what]
        best = next((found for found in tried if found.shares[-1] >= ENOUGH), None)
        if not tried or (best is not None and best.joined == 1):
            return ""
        if best is None:
            return f"Even {tried[-1].joined} {what} joined leave less than {ENOUGH:.0%} of the trips in flows of {self.k[-1]}."
        return Text(
            "{joined} {what} joined have {bound}{share} of the trips in flows of {most}; see {option}.",
            joined=best.joined,
            what=what,
            bound="" if best.exact else "at most ",
            share=_percent(best.shares[-1]),
            most=self.k[-1],
            option=Option("step" if what == "time steps" else "zones"),
        )

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        flows = self.flows
        return {
            "tiles": len(flows.zones),
            "tiles_with_trips": len(np.union1d(flows.origin, flows.destination)),
            "time_steps": flows.steps,
            "k_unit": flows.k_unit,
            "people": flows.distinct_people,
            "k": list(self.k),
            "all": self.pooled,
            "mean": {name: float(values.mean()) for name, values in self.by_step.items()},
            "joined": [
                {"what": c.what, "joined": c.joined, "trips": list(c.shares), "exact": c.exact} for c in self.coarser
            ],
            "suggestion": self.suggestion or None,
        }

    def summary(self) -> str:
        """Return the size of the data, and the share of trips in flows of at least the largest k."""
        flows, k = self.flows, self.k[-1]
        share = f"{_percent(self.pooled[f'trips_k{k}'])} of the trips in flows of at least {k} {flows.k_unit}"
        return f"{len(flows):,} flows, {flows.steps:,} time steps, {len(flows.zones):,} tiles; {share}"

    def _repr_html_(self) -> str:
        """Return the description as a notebook shows it."""
        return f"<p><b>Description</b>: {escape(self.summary())}</p><pre>{escape(chr(10).join(self.lines(as_argument)))}</pre>"

    @property
    def table(self) -> pa.Table:
        """Return a row for each time step."""
        return pa.table({"t": pa.array(step_times(self.flows, as_text=True), pa.string()), **self.by_step})

    def write(self, path: Path) -> None:
        """Write everything as .json, or the numbers of each time step as .csv or .parquet."""
        write_json_or_table(self.as_json, lambda: self.table, path)

    def plot(self, path: Path) -> None:
        """Draw the share of flows and of trips in flows of at least k as a PNG, by k and, if there are several, by time step."""
        several = self.flows.steps > 1
        figure = new_figure(10 if several else 5.4, 4.4)
        left, *right = np.atleast_1d(figure.subplots(1, 1 + several))
        flows, top = self.flows, int(self.flows.people.max(initial=1))
        ks = np.unique(np.geomspace(1, max(top, 2), 200).round().astype(np.int64))
        size = np.sort(flows.people)
        below = np.searchsorted(size, ks)
        trips = np.concatenate([np.zeros(1), np.cumsum(flows.volume[np.argsort(flows.people, kind="stable")])])
        left.plot(ks, 100 * (1 - below / max(len(size), 1)), label="flows")
        left.plot(ks, 100 * (1 - trips[below] / max(trips[-1], 1)), label="trips")
        for k in self.k:
            left.axvline(k, color="#888888", linestyle="--", linewidth=1)
        left.set_xscale("log")
        left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        left.set_xlabel(f"k, {flows.k_unit}")
        left.set_ylabel("in flows of at least k, %")
        left.legend(frameon=False)
        for axis in right:
            by_step = self.by_step
            for k in self.k:
                axis.plot(100 * by_step[f"trips_k{k}"], label=f"k = {k}", linewidth=1)
            axis.set_xlabel("time step")
            axis.set_ylabel("trips in flows of at least k, %")
            axis.set_ylim(0, 100)
            axis.legend(frameon=False)
        figure.suptitle("Original data: confidential, do not publish", fontsize=10)
        figure.savefig(path)


def describe_flows(flows: Flows, ks: Sequence[int], *, suggest: bool = True) -> Description:
    """Describe matrices for values of k; with `suggest`, also try coarser time steps and tiles."""
    k = tuple(sorted(set(ks)))
    if not k or k[0] < 1:
        raise ParameterError(Option("k"), "Expected group sizes of at least 1, such as 6,10. Change them.")
    if len(flows) == 0:
        raise InputError("input", "Expected at least one flow, got none. Check the input.")
    coarser = (*_longer_steps(flows, k), *_larger_tiles(flows, k)) if suggest else ()
    return Description(flows, k, coarser)


def _ratio(part: Ints, total: Ints) -> Floats:
    shares: Floats = part / np.maximum(total, 1)
    return shares


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _longer_steps(flows: Flows, ks: Sequence[int]) -> list[Coarser]:
    if flows.step_s is None or flows.steps == 1:
        return []
    step = np.repeat((flows.t - flows.t[0]) // flows.step_s, np.diff(flows.offsets))
    return [
        _joined(
            flows, ks, "time steps", n, step // n, *(end.astype(np.int64) for end in (flows.origin, flows.destination))
        )
        for n in COARSER
        if n <= max(int(step[-1]), 1)
    ]


def _larger_tiles(flows: Flows, ks: Sequence[int]) -> list[Coarser]:
    if flows.origin_tree is None and not flows.zones.located:
        return []
    tree = flows.origin_tree or with_tree(flows, "ward").origin_tree
    if tree is None:
        return []
    step = np.repeat(np.arange(flows.steps), np.diff(flows.offsets))
    found = []
    for n in COARSER:
        if n < len(flows.zones):
            area = areas_of_size(tree, n)
            found.append(_joined(flows, ks, "tiles", n, step, area[flows.origin], area[flows.destination]))
    return found


def areas_of_size(tree: Hierarchy, most: int) -> Ints:
    """Return the area of each tile: the largest node of the tree around it that has at most `most` tiles."""
    fits = tree.size <= most
    area = np.arange(len(tree.parent))
    for node in range(len(area) - 2, -1, -1):  # parents come after their children
        if fits[tree.parent[node]]:
            area[node] = area[tree.parent[node]]
    of_tile = np.empty(len(tree.leaf_tile), np.int64)
    of_tile[tree.leaf_tile] = area[tree.leaf_node]
    return of_tile


def _joined(flows: Flows, ks: Sequence[int], what: str, n: int, step: Ints, origin: Ints, destination: Ints) -> Coarser:
    keys = np.column_stack([step, origin, destination])
    order = np.lexsort(keys.T[::-1])
    first = np.flatnonzero(np.any(np.diff(keys[order], axis=0, prepend=-1), axis=1))
    people = np.add.reduceat(flows.people[order], first)
    trips = np.add.reduceat(flows.volume[order], first)
    shares = tuple(float(trips[people >= k].sum()) / max(flows.total, 1) for k in ks)
    return Coarser(what, n, shares, n == 1 or flows.k_unit == "trips")

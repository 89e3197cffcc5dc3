"""Results of all partitions merged: findings, attacks, costs, facts, and the small tables of a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import RiskEstimate, merge_risk_estimates
from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.times import time_column
from crowdveil.io.written_release import STEP_COLUMNS
from crowdveil.methods.base import Method
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.report.cost_summary import FlowCost
from crowdveil.run.stages import Findings, Guarantees, RunSpec, Solution
from crowdveil.solve.od.step_solver import summarize_figures

PARTITION_ROWS, PARTITIONS_PER_SLOT = 2_000_000, 4
"""Most rows of a partition, unless one time step has more; and fewest partitions for each slot of a cluster."""
ROW, AREA, SUMMARY = "row", "area", "summary"
"""Kinds of a partition's results: rows of the release, its areas, and a summary as one line of JSON."""
BY_STEP = "by_step"
"""The part of a summary that holds where each interval of all partitions is one time step."""


def result_table(schema: pa.Schema, kind: str, n: int, columns: dict[str, Any]) -> pa.Table:
    """Return `n` results of a kind; columns that it does not have are null."""
    columns = {**columns, "kind": pa.array([kind] * n, pa.string())}
    return pa.table([columns.get(f.name, pa.nulls(n, f.type)) for f in schema], schema=schema)


@dataclass(frozen=True)
class Totals:
    """Summaries of all partitions, in any order."""

    partitions: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, lines: Sequence[str]) -> Self:
        """Make totals from lines of JSON."""
        return cls.of_partitions([json.loads(line) for line in lines])

    @classmethod
    def of_partitions(cls, every: Sequence[dict[str, Any]]) -> Self:
        """Make totals from summaries."""
        return cls(every)

    def checked(self, guarantees: Guarantees) -> Findings:
        """Return the merged finding of each guarantee."""
        return merge_findings(guarantees, [partition["findings"] for partition in self.partitions])


@dataclass(frozen=True)
class FlowTotals(Totals):
    """Totals of flows. The time steps of partitions may interleave, so that ordered results are sorted by time.

    `partitions` are those with flows; `cost` includes the weight of those that are rounded to nothing.
    """

    cost: FlowCost = field(default_factory=FlowCost)
    has_intervals: bool = False
    """Whether rows have intervals of time, of which any is longer than a time step."""

    @classmethod
    def of_partitions(cls, every: Sequence[dict[str, Any]]) -> Self:
        """Make totals from summaries."""
        solved = [partition for partition in every if "t" in partition]
        intervals = any("until" in partition["columns"] for partition in solved)
        if intervals and all(BY_STEP in partition for partition in solved):
            # Each interval of all partitions is one time step.
            intervals, every = False, [partition | partition.get(BY_STEP, {}) for partition in every]
        cost = sum((FlowCost(**partition["cost"]) for partition in every), FlowCost())
        return cls([partition for partition in every if "t" in partition], cost, intervals)

    @property
    def crowd(self) -> int:
        """Return an upper bound of the number of people, as `Flows.crowd`."""
        return sum(partition["crowd"] for partition in self.partitions)

    @property
    def trials(self) -> list[RiskEstimate]:
        """Return the merged result of each attack."""
        return merge_risk_estimates([[RiskEstimate(**trial) for trial in p["trials"]] for p in self.partitions])

    def facts(self, method: Method, params: Params) -> dict[str, Any]:
        """Return what the manifest says of the method's diagnostics in all steps."""
        known = [p for p in self.partitions if p["figures"] is not None]
        rows = [row for p in known for row in zip(p["t"], p["figures"], strict=True)]
        return summarize_facts([figures for _, figures in sorted(rows, key=lambda row: row[0])], method, params)

    def solution(self, spec: RunSpec) -> Solution:
        """Return the release as the spine sees it; its rows are elsewhere."""
        return Solution(self.facts(spec.method, spec.params), self.cost.numbers(spec.k), self.cost.lines())

    def steps_table(self, tz: str) -> pa.Table:
        """Return the table of time steps."""
        rows = sorted((row for partition in self.partitions for row in partition["steps"]), key=lambda row: row[0] or 0)
        names = ("t", "until", "published", "suppressed") if self.has_intervals else STEP_COLUMNS
        columns = dict(zip(names, zip(*rows, strict=True) if rows else ((),) * len(names), strict=True))

        def made(name: str, values: Sequence[int | None]) -> Any:
            if name not in ("t", "until"):
                return pa.array(values, pa.int64())
            if None in values:
                return pa.nulls(len(values), pa.timestamp("ms", tz="UTC"))
            return time_column(np.array(values, np.int64), tz, as_text=False)

        return pa.table({name: made(name, values) for name, values in columns.items()})


def summarize_facts(rows: Sequence[Sequence[float]], method: Method, params: Params) -> dict[str, Any]:
    """Return what the manifest says of diagnostics, a row for each step or partition, in their order."""
    summarize = method.summarize_diagnostics
    if summarize is None or not rows:
        return {}
    facts: dict[str, Any] = summarize_figures(np.array(rows, np.float64), lambda known: summarize(params, known))
    return facts


def merge_findings(guarantees: Sequence[Guarantee], findings: Sequence[Sequence[dict[str, Any]]]) -> Findings:
    """Merge the findings of each guarantee over all partitions: counts as the guarantee declares, then one sentence."""
    return [
        (guarantee, guarantee.merge_findings([Finding.from_json(of_partition[i]) for of_partition in findings]))
        for i, guarantee in enumerate(guarantees)
    ]


class AreasOfPartitions:
    """The areas that partitions name, each once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, bool]] = {}

    def add(self, areas: Any) -> None:
        """Add the columns of areas of a partition; raise if another partition defines one differently."""
        columns = (areas[name].to_pylist() for name in ("area", "tiles", "drawn"))
        for name, tiles, drawn in zip(*columns, strict=True):
            known, was_drawn = self._known.get(name, (tiles, False))
            if known != tiles:
                raise GuaranteeViolatedError("two areas have one name, so nothing was published.")
            self._known[name] = tiles, drawn or was_drawn

    def merged(self, zones: Zones) -> tuple[Areas, Mask]:
        """Return the areas of all partitions, sorted by name; and which are drawn."""
        names = sorted(self._known)
        tiles = [np.frombuffer(self._known[name][0], np.int32) for name in names]
        offsets = np.cumsum([0, *map(len, tiles)])
        flat = np.concatenate([np.zeros(0, np.int32), *tiles])
        drawn = np.array([self._known[name][1] for name in names], np.bool_)
        return Areas(zones, np.array(names, dtype=object), offsets, flat), drawn


def even_partitions(sizes: Ints, slots: int) -> list[list[int]]:
    """Put time steps 0, 1, … into partitions of about one size: small enough for one task, and some for each slot."""
    return split_by_size(sizes.tolist(), int(max(1, min(PARTITION_ROWS, sizes.sum() // (PARTITIONS_PER_SLOT * slots)))))


def split_by_size(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Split numbers 0, 1, … into runs whose sizes add up to `most` at most, unless one alone is larger."""
    partitions: list[list[int]] = []
    room = 0
    for number, size in enumerate(sizes):
        if not partitions or size > room:
            partitions.append([])
            room = most
        partitions[-1].append(number)
        room -= size
    return partitions

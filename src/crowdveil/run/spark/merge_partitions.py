"""What all parts tell, put together: findings, attacks, costs, facts, and the small tables of a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.attacks.risk import RiskEstimate, merge_risk_estimates
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.times import time_column
from crowdveil.method import Method
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.release import Areas
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.report.cost_summary import FlowCost
from crowdveil.solve.od.step_solver import summarize_figures

PART_ROWS, PARTS_A_SLOT = 2_000_000, 4
"""Rows that a part of time steps has at most, unless one alone has more; and parts that each slot of a cluster gets at least."""
ROW, AREA, TOLD = "row", "area", "told"
"""The kinds of what a part gives: rows of the release, its areas, and one line of JSON that tells what came of it."""


@dataclass(frozen=True)
class Gathered:
    """What is told of all parts. Their steps may lie between one another, so that what has an order is sorted by time.

    Attributes
    ----------
    parts
        Those with flows.
    cost
        What is published of the data, and what of it is in parts whose weights are rounded to nothing.
    """

    parts: Sequence[dict[str, Any]]
    cost: FlowCost

    @classmethod
    def of(cls, lines: Sequence[str]) -> Gathered:
        """From the lines of JSON, in whatever order they came."""
        parts = [json.loads(line) for line in lines]
        return cls(
            [part for part in parts if "t" in part], sum((FlowCost(**part["cost"]) for part in parts), FlowCost())
        )

    @property
    def crowd(self) -> int:
        """An upper bound of the people, as `Flows.crowd`."""
        return sum(part["crowd"] for part in self.parts)

    def checked(self, guarantees: Sequence[Guarantee]) -> list[tuple[Guarantee, Finding]]:
        """What came of each guarantee in all parts."""
        return checked_parts(guarantees, [part["findings"] for part in self.parts])

    @property
    def trials(self) -> list[RiskEstimate]:
        """What came of each attack."""
        return merge_risk_estimates(
            [([RiskEstimate(**trial) for trial in part["trials"]], part["cost"]["volume"]) for part in self.parts]
        )

    def facts(self, method: Method, params: Params) -> dict[str, Any]:
        """What the manifest says of the figures of all steps."""
        rows = [row for part in self.parts if part["figures"] is not None
                for row in zip(part["t"], part["figures"], strict=True)]  # fmt: skip
        return facts_of([figures for _, figures in sorted(rows, key=lambda row: row[0])], method, params)

    def steps_table(self, tz: str) -> pa.Table:
        """The table of time steps."""
        rows = sorted((row for part in self.parts for row in part["steps"]), key=lambda row: row[0] or 0)
        t, published, suppressed = zip(*rows, strict=True) if rows else ((), (), ())
        times: Any = pa.nulls(len(rows), pa.timestamp("ms", tz="UTC"))
        if None not in t:
            times = time_column(np.array(t, np.int64), tz, as_text=False)
        return pa.table(
            {"t": times, "published": pa.array(published, pa.int64()), "suppressed": pa.array(suppressed, pa.int64())}
        )


def facts_of(rows: Sequence[Sequence[float]], method: Method, params: Params) -> dict[str, Any]:
    """What the manifest says of figures, a row for each step or part, in their order."""
    if method.summarize_diagnostics is None or not rows:
        return {}
    tell = method.summarize_diagnostics
    facts: dict[str, Any] = summarize_figures(np.array(rows, np.float64), lambda known: tell(params, known))
    return facts


def checked_parts(
    guarantees: Sequence[Guarantee], findings: Sequence[Sequence[dict[str, Any]]]
) -> list[tuple[Guarantee, Finding]]:
    """Merge the findings of each guarantee over all partitions: counts as the guarantee declares, then one sentence."""
    return [
        (guarantee, guarantee.merge_findings([Finding.from_json(of_part[i]) for of_part in findings]))
        for i, guarantee in enumerate(guarantees)
    ]


def areas_of(table: pa.Table, zones: Zones) -> tuple[Areas, Mask]:
    """The areas of all parts, each once, in order of their names; and which are drawn."""
    table = table.sort_by("area")
    tiles = [np.frombuffer(held, np.int32) for held in table["tiles"].to_pylist()]
    offsets = np.cumsum([0, *map(len, tiles)])
    names = np.array(table["area"].to_pylist(), dtype=object)
    areas = Areas(zones, names, offsets, np.concatenate([np.zeros(0, np.int32), *tiles]))
    return areas, np.array(table["drawn"].to_pylist(), np.bool_)


def even_parts(sizes: Ints, slots: int) -> list[list[int]]:
    """Time steps 0, 1, … by their sizes in parts of about one size: small enough for one task, and some for each slot."""
    return in_parts(sizes.tolist(), int(max(1, min(PART_ROWS, sizes.sum() // (PARTS_A_SLOT * slots)))))


def in_parts(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Numbers 0, 1, … in runs whose sizes add up to `most` at most, unless one alone is larger."""
    parts: list[list[int]] = []
    room = 0
    for number, size in enumerate(sizes):
        if not parts or size > room:
            parts.append([])
            room = most
        parts[-1].append(number)
        room -= size
    return parts

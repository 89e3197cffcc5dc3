"""Results of all partitions merged: findings, attacks, costs, facts, and the small tables of a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from crowdveil.guarantees import Finding, Guarantee
from crowdveil.methods.base import Method
from crowdveil.params import Params
from crowdveil.run.stages import Findings, Guarantees
from crowdveil.solve.od.step_solver import summarize_figures

ROW, AREA, SUMMARY = "row", "area", "summary"
"""Kinds of a partition's results: rows of the release, its areas, and a summary as one line of JSON."""


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

"""Describe OD matrices before anonymization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crowdveil.comparison.description import Description, K, describe_flows
from crowdveil.errors import CrowdveilError
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.progress import Progress, Stage, no_progress
from crowdveil.reading import FlowReading, read
from crowdveil.verbs.compare import compare
from crowdveil.verbs.opened import visible

SAMPLE = 6
"""Number of matrices on which k and a budget are suggested."""
BUDGETS = ("5%", "10%", "20%")


@visible
def describe(
    data: Any,
    k: int | Sequence[int] = K,
    *,
    suggest: bool = True,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> Description:
    """Describe trips or flows: tiles, time steps, flows, trips, density, and what of them is in flows of at least k.

    With `suggest`, joined time steps and tiles are tried too, and `joint` runs with several k and budgets on a sample of the
    matrices. `.lines()` is the text, `.table` (Arrow) has the figures of each time step, `.write(path)` and `.plot(path)` write
    them. Input `options` are those of flows. Numbers are exact and confidential.

    >>> crowdveil.describe("trips.parquet", [6, 10], zones="zones.geojson").pooled["flows_k6"]  # doctest: +SKIP
    """
    stage("reading")
    flows: Flows = read(Flows, data, FlowReading.checked(options), notes if notes is not None else ReadNotes())
    stage("describing")
    found = describe_flows(flows, [k] if isinstance(k, int) else k, suggest=suggest)
    if not suggest or (flows.origin_tree is None and not flows.zones.located):
        return found
    stage("trying k and budgets")
    try:
        tried = compare(
            flows, ["joint"], k=[max(value, 2) for value in found.k], suppress=BUDGETS, sample=SAMPLE, notes=ReadNotes(),
            progress=progress, stage=lambda name: None,
        )  # fmt: skip
    except CrowdveilError:  # fewer people than k, or a method that cannot run: the description is right all the same
        return found
    return replace(found, suggestion=tried.recommendation())

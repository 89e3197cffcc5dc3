"""The Python API: the names of the command line, with underscores."""

from __future__ import annotations

from crowdveil.api.analyze import (
    analyze,
    check_outputs,
    land_use,
    profiles,
    quadtree_heatmap,
    reconstruct,
    topic_number,
    topics,
)
from crowdveil.api.attack import attack
from crowdveil.api.compare import compare, compare_inputs, sweep, sweep_trajectories
from crowdveil.api.derive import derive
from crowdveil.api.describe import describe
from crowdveil.api.ledger import (
    ledger_add,
    ledger_check,
    ledger_explain,
    ledger_init,
    ledger_list,
    ledger_retire,
    ledger_verify,
)
from crowdveil.api.measure import measure
from crowdveil.api.release import anonymize, methods, verify
from crowdveil.api.show import plot, write_report

__all__ = [
    "analyze",
    "anonymize",
    "attack",
    "check_outputs",
    "compare",
    "compare_inputs",
    "derive",
    "describe",
    "land_use",
    "ledger_add",
    "ledger_check",
    "ledger_explain",
    "ledger_init",
    "ledger_list",
    "ledger_retire",
    "ledger_verify",
    "measure",
    "methods",
    "plot",
    "profiles",
    "quadtree_heatmap",
    "reconstruct",
    "sweep",
    "sweep_trajectories",
    "topic_number",
    "topics",
    "verify",
    "write_report",
]

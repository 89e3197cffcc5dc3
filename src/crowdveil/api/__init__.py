"""The Python API: the names of the command line, with underscores."""

from __future__ import annotations

from crowdveil.api.analyze import analyze, check_outputs, land_use, profiles, quadtree_heatmap, reconstruct, topics
from crowdveil.api.attack import attack
from crowdveil.api.compare import compare, sweep
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
from crowdveil.api.show import PLOTS, ZONE_PLOTS, plot, plot_zone, write_report

__all__ = [
    "PLOTS",
    "ZONE_PLOTS",
    "analyze",
    "anonymize",
    "attack",
    "check_outputs",
    "compare",
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
    "plot_zone",
    "profiles",
    "quadtree_heatmap",
    "reconstruct",
    "sweep",
    "topics",
    "verify",
    "write_report",
]

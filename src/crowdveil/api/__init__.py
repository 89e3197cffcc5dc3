"""The door for Python: the same names as on the command line, with underscores."""

from __future__ import annotations

from crowdveil.api.analysing import analyse, check_outputs, land_use, profiles, quadtree_heatmap, reconstruct, topics
from crowdveil.api.attacking import attack
from crowdveil.api.comparing import compare, sweep
from crowdveil.api.measuring import measure
from crowdveil.api.releasing import anonymize, verify
from crowdveil.api.showing import PLOTS, plot, write_report

__all__ = [
    "PLOTS",
    "analyse",
    "anonymize",
    "attack",
    "check_outputs",
    "compare",
    "land_use",
    "measure",
    "plot",
    "profiles",
    "quadtree_heatmap",
    "reconstruct",
    "sweep",
    "topics",
    "verify",
    "write_report",
]

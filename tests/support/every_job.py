"""Run every registered kind and name as a job, in one process: what the service does in one process each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.model.flows import Flows
from crowdveil.registry import find_measure, find_method
from crowdveil.server.workers import job
from crowdveil.verbs.table import VERBS

FLOWS, TRACKS = "trips.parquet", "trajectories.parquet"
_GIVEN = {"k": 3, "tz": "UTC", "min_k": 3, "rows": 2, "columns": 2}


class Runs:
    """Jobs on a small city whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ends = folder, dict[str, str]()

    def run(self, kind: str, name: str, files: dict[str, Path], **parameters: Any) -> Path:
        """Run a job, note how it ended, and return the folder of its result."""
        place = self.folder / "jobs" / f"{kind}-{name}-{len(self.ends)}"
        inputs, run = place / "inputs", place / "run"
        inputs.mkdir(parents=True)
        run.mkdir()
        if missing := [file.name for file in files.values() if not file.exists()]:
            self.ends[f"{kind} {name}"] = f"lacks {missing}"
            return run
        for field, file in files.items():
            shutil.copyfile(file, inputs / f"{field}{file.suffix}")
        known = {option for model in VERBS[kind].models(name) for option in model.model_fields}
        asked = {
            "kind": kind, "name": name, "files": {field: f"{field}{file.suffix}" for field, file in files.items()},
            "parameters": {n: v for n, v in _GIVEN.items() if n in known} | parameters, "limits": {}, "ledger": None,
            "inputs": str(inputs), "run": str(run),
        }  # fmt: skip
        try:
            job.work(asked)
            end = "done"
        except CrowdveilError as error:
            end = f"refused: {error}"
        except Exception as error:
            end = f"{type(error).__name__}: {error}"
        self.ends[f"{kind} {name}" + (f" {parameters['format']}" if "format" in parameters else "")] = end
        return run


def work(_asked: dict[str, Any]) -> dict[str, str]:
    """Run all of them on the city in the current folder; how each ended."""
    folder = Path.cwd()
    runs, zones = Runs(folder), folder / "zones.geojson"
    data = {True: {"data": folder / FLOWS, "zones": zones}, False: {"data": folder / TRACKS}}
    for name in VERBS["anonymize"].names():
        runs.run("anonymize", name, data[find_method(name).takes is Flows])
    flows = runs.run("anonymize", "joint", data[True], step="1h", tz="UTC", k=3) / "release.zip"
    tracks = runs.run("anonymize", "microaggregation", data[False]) / "release.zip"
    originals = {True: {"original": folder / FLOWS, "zones": zones, "release": flows},
                 False: {"original": folder / TRACKS, "release": tracks}}  # fmt: skip
    for of_flows, files in originals.items():
        runs.run("measure", "all", files, format="json" if of_flows else "csv")
        for name in VERBS["measure"].names()[1:]:
            if (find_measure(name).takes is Flows) == of_flows:
                runs.run("measure", name, files)
    for name in VERBS["analyze"].names():
        needs = VERBS["analyze"].fields(name)
        runs.run("analyze", name, {"release": flows, "zones": zones} if "release" in needs else data[False])
    attacked = {
        "trajectories": {"data": folder / TRACKS},
        "release": {"data": flows},
        "releases": {"data": flows, "release": flows},
    }
    for name in VERBS["attack"].names():
        runs.run("attack", name, attacked[VERBS["attack"].about(name).get("takes", "trajectories")])
    runs.run("filter", "trajectories", {"data": folder / TRACKS}, filters=[{"min_locations": 2}])
    return runs.ends

"""Every registered kind and name runs confined: no library opens what the sandbox forbids."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crowdveil.cli.demo import make_city
from crowdveil.server.workers import sandbox
from crowdveil.server.workers.sandbox import BUBBLEWRAP, LANDLOCK, Bounds, run_sandboxed
from crowdveil.verbs.table import VERBS

SUPPORT = Path(__file__).parents[1] / "support"
_OFFERED = {BUBBLEWRAP: sandbox.confinement() == BUBBLEWRAP, LANDLOCK: sandbox.landlock.is_offered()}


@pytest.mark.slow
@pytest.mark.parametrize("how", [BUBBLEWRAP, LANDLOCK])
def test_every_job_runs_confined(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _OFFERED[how]:
        pytest.skip(f"no {how} here")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    make_city(tmp_path, 0, 36, 300, 3_000, 120, 1)
    answer = run_sandboxed("every_job", {}, tmp_path, Bounds(4 << 30, 1 << 33), 1200, how=how)
    assert answer is not None and "result" in answer, answer
    ends = answer["result"]
    faults = {job: end for job, end in ends.items() if end != "done" and not end.startswith("refused")}
    assert not faults, json.dumps(faults, indent=1)
    refused = [job for job, end in ends.items() if end != "done"]
    every = {f"{kind.verb} {name}" for kind in VERBS.values() for name in kind.names()}
    assert every <= {" ".join(job.split()[:2]) for job in ends}
    assert len(refused) < len(ends) / 4, json.dumps({job: ends[job] for job in refused}, indent=1)
    done = set(ends) - set(refused)
    assert {"measure all csv", "measure propensity-score", "analyze land-use"} <= done, ends

"""Extensions of each kind in a package of its own: found, listed and run like ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "example_package"

SCRIPT = """
import numpy as np, crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import ParameterError
from crowdveil.registry import all_analyses, all_aggregations, all_distances, all_measures
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid

movers = make_movers(street_grid(1, side=8), 30, seed=2)
crowdveil.write_trajectories(movers, "movers.csv")
assert "end-points" in all_distances() and "first-member" in all_aggregations()
assert "mean-shift" in all_measures() and "busiest-areas" in all_analyses()
made = crowdveil.anonymize("movers.csv", "out", method="microaggregation", k=3, distance="end-points", aggregation="first-member",
                           clustering="by-start", pairing="pairing.csv")
assert all(finding.outcome.value != "violated" for _, finding in crowdveil.verify("out"))
lost = crowdveil.measure("movers.csv", "out", ["mean-shift", "rmse:distance=end-points"], pairing="pairing.csv")
assert lost["mean-shift"].pooled >= 0
try:
    crowdveil.anonymize("movers.csv", "no", method="microaggregation", clustering="magic")
except ParameterError as error:
    assert "'mdav', 'pivots' or 'by-start'" in str(error), error
else:
    raise AssertionError
cli(["filter", "movers.csv", "--max-points", "40", "-o", "short.csv"], standalone_mode=False)
open("flows.csv", "w").write("origin,destination,volume\\na,b,30\\nb,a,20\\n")
crowdveil.anonymize("flows.csv", "flows", method="suppression", k=5)
cli(["analyze", "busiest-areas", "flows", "--most", "1", "-o", "busiest.csv"], standalone_mode=False)
assert open("busiest.csv").read().splitlines() == ["area,trips", "a,30"]
point = '<trkpt lat="48.{}" lon="2.3"><time>2026-03-02T08:0{}:00Z</time></trkpt>'
track = "<trk><trkseg>" + "".join(point.format(80 + i, i) for i in range(5)) + "</trkseg></trk>"
open("walks.gpx", "w").write(f'<gpx xmlns="http://www.topografix.com/GPX/1/1">{3 * track}</gpx>')
walks = crowdveil.read_trajectories("walks.gpx")
assert len(walks) == 3 and walks.points == 15
cli(["anonymize", "microaggregation", "walks.gpx", "--k", "3", "-o", "walks"], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example package can be imported."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-build-isolation", "--no-index", "--target", str(target), str(PACKAGE)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(target)}


@pytest.mark.slow
def test_an_extension_of_each_kind_works(installed: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=installed, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "max_points 40: removed" in done.stdout and "a  30" in done.stdout

"""The description of OD matrices: figures by hand, by a plain count, and of the published benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil
from crowdveil.comparison import description
from crowdveil.comparison.description import Coarser, Description, areas_of_size, describe_flows
from crowdveil.errors import ParameterError
from crowdveil.experiments.profiles import PROFILES, make_profile
from crowdveil.io.flows import with_tree
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.testing import flows as any_flows


@settings(max_examples=tries(40), deadline=None)
@given(any_flows(), st.lists(st.integers(1, 30), min_size=1, max_size=3))
def test_shares_are_those_of_a_plain_count(flows: Any, ks: list[int]) -> None:
    if len(flows) == 0 or flows.total == 0:
        return
    found = describe_flows(flows, ks, suggest=False)
    for k in set(ks):
        of_step, trips_of_step = [], []
        for step in range(flows.steps):
            rows = range(int(flows.offsets[step]), int(flows.offsets[step + 1]))
            enough = [i for i in rows if flows.people[i] >= k]
            trips = sum(int(flows.volume[i]) for i in rows)
            of_step.append(len(enough) / max(len(rows), 1))
            trips_of_step.append(sum(int(flows.volume[i]) for i in enough) / max(trips, 1))
        np.testing.assert_allclose(found.by_step[f"flows_k{k}"], of_step)
        np.testing.assert_allclose(found.by_step[f"trips_k{k}"], trips_of_step)
        enough = [i for i in range(len(flows)) if flows.people[i] >= k]
        assert found.pooled[f"flows_k{k}"] == pytest.approx(len(enough) / len(flows))
        assert found.pooled[f"trips_k{k}"] == pytest.approx(sum(int(flows.volume[i]) for i in enough) / flows.total)
    assert found.pooled["density"] == pytest.approx(len(flows) / (flows.steps * len(flows.zones) ** 2))


def test_the_table_of_the_benchmark_comes_out_for_its_profiles() -> None:
    flows = make_profile("nyc", np.random.default_rng(1), 3)
    mean = describe_flows(flows, [10], suggest=False).as_json()["mean"]
    profile = PROFILES["nyc"]
    assert mean["flows"] == pytest.approx(3058, rel=0.06) and mean["density"] == pytest.approx(0.044, rel=0.06)
    assert mean["flows_k10"] == pytest.approx(profile.big_flows, abs=0.005)
    assert mean["trips_k10"] == pytest.approx(profile.big_volume, abs=0.03)


def test_joined_steps_and_tiles_are_counted_as_one() -> None:
    flows = with_tree(make_profile("nyc", np.random.default_rng(2), 4), "ward")
    found = {(c.what, c.joined): c for c in describe_flows(flows, [10]).coarser}
    one = found["time steps", 1]
    assert one.exact and one.shares == pytest.approx(found["tiles", 1].shares)
    tree = flows.origin_tree
    assert tree is not None
    area = areas_of_size(tree, 4)
    sizes = np.bincount(area)
    assert sizes.max() <= 4 and sizes[sizes > 0].min() >= 1
    joined: dict[tuple[int, int, int], list[int]] = {}
    step = np.repeat(np.arange(flows.steps), np.diff(flows.offsets))
    for s, o, d, p, v in zip(step, flows.origin, flows.destination, flows.people, flows.volume, strict=True):
        entry = joined.setdefault((int(s), int(area[o]), int(area[d])), [0, 0])
        entry[0], entry[1] = entry[0] + int(p), entry[1] + int(v)
    share = sum(v for p, v in joined.values() if p >= 10) / flows.total
    assert found["tiles", 4].shares == pytest.approx((share,))
    shares = [found["time steps", n].shares[0] for n in (1, 2)]
    assert shares[0] <= shares[1]


def test_the_advice_has_the_share_of_the_table() -> None:
    flows = make_profile("nyc", np.random.default_rng(2), 1)
    tried = (Coarser("tiles", 1, (0.2,), True), Coarser("tiles", 2, (0.61,), False), Coarser("tiles", 4, (0.8,), False))
    lines = Description(flows, (10,), tried).lines()
    assert lines[-1] == "2 tiles joined have at most 61.0 % of the trips in flows of 10; see --zones."


@pytest.mark.parametrize("steps", [1, 3])
def test_a_picture_by_time_step_is_drawn_where_there_are_several(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    figures: list[Any] = []

    def kept(*size: float) -> Any:
        figures.append(new_figure(*size))
        return figures[-1]

    monkeypatch.setattr(description, "new_figure", kept)
    flows = make_profile("nyc", np.random.default_rng(1), steps)
    describe_flows(flows, [6, 10], suggest=False).plot(tmp_path / "d.png")
    assert len(figures[0].axes) == min(steps, 2)


def test_the_command_the_files_and_python_say_the_same(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("zones.csv").write_text("id,lon,lat\na,2.0,48.0\nb,2.1,48.0\nc,2.2,48.0\n")
    Path("flows.csv").write_text("origin,destination,volume\na,b,30\na,c,7\nb,c,5\nc,c,2\n")
    ran = command("describe", "flows.csv", "--zones", "zones.csv", "--k", "6,10", "-o", "d.json", "--plot", "d.png")
    assert ran.code == 0, ran.err
    assert "flows of at least 6" in ran.out and "confidential" in ran.out and "Take k" in ran.out
    content = json.loads(Path("d.json").read_text())
    assert content["all"]["flows_k6"] == 0.5 and content["all"]["trips_k10"] == pytest.approx(30 / 44)
    assert content["tiles"] == 3 and content["all"]["density"] == pytest.approx(4 / 9)
    found = crowdveil.describe("flows.csv", [6, 10], zones="zones.csv", suggest=False)
    assert found.pooled == content["all"]
    assert Path("d.png").read_bytes().startswith(b"\x89PNG")
    bare = command("describe", "flows.csv", "--no-suggest", "--json")
    assert json.loads(bare.out)["all"]["trips_k6"] == pytest.approx(37 / 44)
    assert command("describe", "flows.csv", "--k", "six").code == 2
    with pytest.raises(ParameterError, match="at least 1"):
        crowdveil.describe("flows.csv", [0])

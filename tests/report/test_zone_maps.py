"""Maps of one zone: its numbers against a plain reconstruction, and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.errors import ParameterError
from crowdveil.io.zones import read_zones
from crowdveil.report.zone_maps import released_trips
from crowdveil.run.releases import open_release


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    Path("zones.csv").write_text(
        "id,lon,lat\n" + "".join(f"z{i},{2 + i % 4 / 50},{48 + i // 4 / 50}\n" for i in range(12))
    )
    lines = [f"z{o},z{d},{rng.integers(1, 9)}" for o in range(12) for d in range(12) if rng.random() < 0.6]
    Path("flows.csv").write_text("origin,destination,volume\n" + "\n".join(lines) + "\n")
    crowdveil.anonymize("joint", "flows.csv", "out", k=8, zones="zones.csv", attack=False, report=False)
    return tmp_path


@pytest.mark.parametrize("direction", ["destinations", "origins"])
def test_trips_are_those_of_the_reconstruction(made: Path, direction: Any) -> None:
    zones = read_zones("zones.csv")
    _, written = open_release(Path("out"))
    areas = {f["properties"]["area"]: f["properties"]["tiles"] for f in written.features}
    own = "z5"
    wanted: dict[str, float] = {}
    for row in written.data.to_pylist():
        near, far = (
            areas[row[f"{e}_area"]]
            for e in (("origin", "destination") if direction == "destinations" else ("destination", "origin"))
        )
        if own in near:
            for tile in far:
                wanted[tile] = wanted.get(tile, 0.0) + row["volume"] / len(near) / len(far)
    found = released_trips(written, zones, own, direction)
    assert wanted and {zones.ids[i]: found[i] for i in range(12) if np.isfinite(found[i])} == pytest.approx(wanted)


def test_the_command_draws_before_and_after(command: Any, made: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ["plot", "destinations", "out", "--zone", "z5", "--zones", "zones.csv", "-o"]
    ran = command(*arguments, "one.png")
    assert ran.code == 0 and "original" not in ran.out, ran.err
    ran = command(*arguments, "two.svg", "--original", "flows.csv")
    assert ran.code == 0 and "do not publish" in ran.out, ran.err
    assert "original: confidential" in Path("two.svg").read_text() or Path("two.svg").stat().st_size > 5000
    crowdveil.plot_zone("origins", "out", "z5", "three.png", zones="zones.csv")
    assert Path("one.png").read_bytes().startswith(b"\x89PNG") and Path("three.png").exists()
    assert "wanted one zone" in command("plot", "destinations", "out", "--zones", "zones.csv", "-o", "x.png").sentence
    assert "needs the zones" in command("plot", "origins", "out", "--zone", "z5", "-o", "x.png").sentence
    assert "leave them out" in command("plot", "flows", "out", "--zones", "zones.csv", "-o", "x.png").sentence
    with pytest.raises(ParameterError, match="no zone"):
        crowdveil.plot_zone("origins", "out", "nowhere", "x.png", zones="zones.csv")
    assert not Path("x.png").exists()

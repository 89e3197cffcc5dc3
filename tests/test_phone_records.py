"""An operator's phone records end to end: from events at antennas to trips, a release, and its analyses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

PEOPLE, K = 150, 5
MONDAY = 1772409600
"""2026-03-02, UTC."""
ANTENNAS = [(f"a{i}", 2.30 + 0.01 * (i % 4), 48.80 + 0.01 * (i // 4)) for i in range(12)]
ZONES = ("--zones", "voronoi:antennas.csv")


def _events() -> list[tuple[str, int, int]]:
    """Return person, time and antenna: everybody goes from a home to a work in the center and back, on five days."""
    rng = np.random.default_rng(1)
    events = []
    for person in range(PEOPLE):
        home, work = int(rng.choice([0, 1, 2, 3, 8, 9, 10, 11])), int(rng.choice([5, 6]))
        for day in range(5):
            morning, evening = (MONDAY + 86_400 * day + 3600 * hour for hour in (8, 17))
            for start, places in ((morning, (home, home, work)), (evening, (work, home))):
                times = start + np.sort(rng.choice(3600, len(places), replace=False))
                events += [(f"p{person}", int(t), place) for t, place in zip(times, places, strict=True)]
    return events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names, lon, lat = (list(column) for column in zip(*ANTENNAS, strict=True))
    pacsv.write_csv(pa.table({"antenna": names, "lon": lon, "lat": lat}), "antennas.csv")
    user, time, place = (list(column) for column in zip(*_events(), strict=True))
    table = {"user": user, "timestamp": time, "lon": [lon[i] for i in place], "lat": [lat[i] for i in place]}
    pq.write_table(pa.table(table), "events.parquet")
    return tmp_path


def _antenna(lon: float, lat: float) -> str:
    return min(ANTENNAS, key=lambda antenna: abs(antenna[1] - lon) + abs(antenna[2] - lat))[0]


def _plain_trips() -> Counter[tuple[str, str, str]]:
    """Return person, origin and destination of each step from one antenna to another."""
    found: Counter[tuple[str, str, str]] = Counter()
    last: dict[str, int] = {}
    for person, _, place in sorted(_events(), key=lambda event: (event[0], event[1])):
        if last.get(person, place) != place:
            found[person, ANTENNAS[last[person]][0], ANTENNAS[place][0]] += 1
        last[person] = place
    return found


@pytest.mark.slow
def test_from_events_at_antennas_to_analyses(folder: Path, command: Any) -> None:
    def run(*arguments: object) -> str:
        ran = command(*arguments)
        assert ran.code == 0, ran.err
        out: str = ran.out
        return out

    run("trips", "events.parquet", "--by", "transitions", *ZONES, "-o", "trips.parquet")
    trips = pq.read_table("trips.parquet").to_pydict()
    ends = [
        [_antenna(*at) for at in zip(trips[f"{end}_lon"], trips[f"{end}_lat"], strict=True)]
        for end in ("origin", "destination")
    ]
    assert Counter(zip(trips["user_id"], *ends, strict=True)) == _plain_trips()

    run("anonymize", "joint", "trips.parquet", *ZONES, "--step", "1h", "-k", K, "--suppress", "10%", "--format", "csv",
        "--no-attack", "-o", "release")  # fmt: skip
    assert "violated" not in run("verify", "release")
    manifest = json.loads((folder / "release" / "manifest.json").read_text())
    assert manifest["method"]["parameters"]["k"] == K and "p0" not in (folder / "release" / "flows.csv").read_text()

    run("analyze", "profiles", "release", *ZONES, "-o", "profiles.csv")
    run("analyze", "land-use", "release", *ZONES, "--clusters", 2, "--least-trips", 0, "-o", "land-use.csv")
    run("analyze", "topics", "release", *ZONES, "--topics", 2, "--documents", "day", "-o", "topics.csv")
    for name in ("profiles", "land-use", "topics"):
        assert pacsv.read_csv(f"{name}.csv").num_rows

    # Homes and places of work are told apart from the published flows alone.
    groups = pacsv.read_csv("land-use.csv").to_pydict()
    cluster = dict(zip(groups["zone"], groups["cluster"], strict=True))
    works = {cluster.pop(zone) for zone in ("a5", "a6")}
    assert len(works) == 1 and cluster and not works & set(cluster.values())

"""Names of uploads and results, and a database that is removed while the service runs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from serving import Within, opened

from crowdveil.server.app import make_app
from crowdveil.server.queue.database import DatabaseUnavailableError, open_database
from crowdveil.server.queue.files import safe_name
from crowdveil.server.queue.store import Store
from crowdveil.server.service import Service

ZONES = '{"type": "FeatureCollection", "features": []}'


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return opened(tmp_path / "data")


def test_two_files_of_one_name_are_both_kept(service: Service) -> None:
    files = {"data": ("zones.csv", "origin,destination\na,a\n"), "zones": ("zones.csv", "id,lon,lat\na,1,1\n")}
    answer = Within(make_app(service)).post(
        "/methods/joint/jobs", files=files, data={"parameters": json.dumps({"k": 2})}
    )
    assert answer.status_code == 202, answer.text
    names = answer.json()["files"]
    assert names["data"] == "zones.csv" and names["zones"] != names["data"]
    for field, name in names.items():
        stored = (service.files.inputs(answer.json()["id"]) / name).read_text()
        assert stored == files[field][1]


def test_no_name_is_given_twice() -> None:
    taken: list[str] = []
    for given in ("a.csv", "a.csv", "data.csv", "A.CSV", "ä/../b.csv", "b.csv"):
        name = safe_name(given, "data", (".csv",), tuple(taken))
        assert name is not None and name.lower() not in [other.lower() for other in taken]
        taken.append(name)


def test_a_database_that_is_removed_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    path.touch()
    store = Store(open_database(f"sqlite:///{path}"))
    store.say("anna", "did something")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup")) as backup:
        source.backup(backup)
    path.unlink()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailableError):
            store.say("anna", "did more")
        assert not path.exists()
    for beside in tmp_path.glob("jobs.sqlite-*"):
        beside.unlink()
    (tmp_path / "backup").rename(path)
    assert store.counts() == {}
    store.say("anna", "goes on")

"""Sources of tokens: every release of one is audited against the ledger of its source, which no route gives out."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from serving import Within, cabs, opened, post, put

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.ledger.entries import entries
from crowdveil.ledger.store import Ledger
from crowdveil.server.app import make_app
from crowdveil.server.service import Service
from crowdveil.server.sources import ledger_of, make_ledgers
from crowdveil.server.workers.worker import Worker

JOBS = "/methods/suppression/jobs"
BARE = {"attack": False, "report": False, "tz": "UTC", "k": 10}


def trips(erased: int = 0) -> str:
    """Twenty people travel in the first hour, three of others in the second."""
    rows = [(f"1970-01-01T00:00:{i:02}", i) for i in range(20)] + [(f"1970-01-01T01:00:0{i}", 20 + i) for i in range(3)]
    return "origin,destination,time,user_id\n" + "".join(f"n,s,{t},{person}\n" for t, person in rows[erased:])


@dataclass
class Town:
    """A service with tokens for one source, for two, and for none."""

    service: Service
    app: Any
    tokens: dict[str, Within]

    def run(self, who: str, parameters: dict[str, Any], path: str = JOBS, data: str = "") -> dict[str, Any]:
        """Send a job, run it, and return how it ended."""
        job = put(self.tokens[who], path, {"data": ("trips.csv", data or trips())}, parameters)
        Worker(self.service.store, self.service.files).work(once=True)
        ended: dict[str, Any] = self.tokens[who].get(f"/jobs/{job}").json()
        return ended

    def ledger(self, source: str) -> Ledger:
        return Ledger(ledger_of(self.service.files.root, source))


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with opened(tmp_path / "data") as service:
        app = make_app(service, [add_routes])
        make_ledgers(service.files.root, ("buses", "trams"))
        sources = {"anna": ("buses",), "bert": ("buses", "trams"), "carl": ()}
        tokens = {
            name: Within(app, Authorization=f"Bearer {service.tokens.create(name, sources=of)}")
            for name, of in sources.items()
        }
        yield Town(service, app, tokens)


def test_a_job_is_audited_against_the_ledger_of_its_source(town: Town) -> None:
    first = town.run("anna", BARE | {"step": "1h"})
    assert first["state"] == "done" and first["parameters"]["source"] == "buses", first["error"]
    assert any("ledger: no earlier release" in line for line in first["summary"]["lines"])
    refused = town.run("anna", BARE | {"step": "1d"})
    assert refused["state"] == "failed" and refused["error"]["code"] == "guarantee_violated"
    for words in ("fewer than 10 people", "volume 23", "volume 20", "leaves 3 people", first["id"]):
        assert words in refused["error"]["message"], words
    assert town.tokens["anna"].get(f"/jobs/{refused['id']}/result").status_code == 422
    assert [(entry.name, entry.state) for entry in entries(town.ledger("buses"))] == [(first["id"], "published")]
    # Another source is another ledger, and a token without one is not audited.
    assert town.run("bert", BARE | {"step": "1d", "source": "trams"})["state"] == "done"
    assert town.run("carl", BARE | {"step": "1d"})["state"] == "done"
    assert town.run("bert", BARE | {"step": "1d", "source": "buses"})["state"] == "failed"


def test_a_token_uses_its_own_sources_alone(town: Town) -> None:
    for who, parameters, words in (
        ("anna", {"source": "trams"}, "not for this source"),
        ("carl", {"source": "buses"}, "not for this source"),
        ("bert", {}, "name one of buses, trams"),
        ("bert", {"source": "../jobs"}, "not for this source"),
        ("carl", {"keep_unchanged": True}, "has no source"),
    ):
        answer = post(town.tokens[who], JOBS, {"data": ("trips.csv", trips())}, BARE | parameters)
        assert answer.status_code == 422 and words in answer.json()["error"]["message"], answer.text
    crossed = post(town.tokens["anna"], "/methods/glove/jobs", {"data": ("trips.csv", trips())}, {})
    assert crossed.status_code == 422 and "overlap" in crossed.json()["error"]["message"]
    assert town.tokens["bert"].get("/form").json()["sources"] == ["buses", "trams"]


def test_nothing_of_a_ledger_is_given_out(town: Town) -> None:
    job = town.run("anna", BARE | {"step": "1h"})
    packed = town.tokens["anna"].get(f"/jobs/{job['id']}/result").content
    secret = town.ledger("buses").key
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    assert set(held) == {"flows.csv", "steps.csv", "areas.geojson", "crosswalk.csv", "manifest.json"}
    assert json.loads(held["manifest.json"])["ledger"]["entry"] == 1
    listed = [file["name"] for file in town.tokens["anna"].get(f"/jobs/{job['id']}/files").json()["files"]]
    everything = b"".join(held.values()) + town.tokens["anna"].get(f"/jobs/{job['id']}").content
    assert secret not in everything and secret.hex().encode() not in everything and "records.parquet" not in listed
    for name in ("key", "ledger.jsonl", "records.parquet", "..%2f..%2f..%2fledgers%2fbuses%2fkey"):
        answer = town.tokens["anna"].get(f"/jobs/{job['id']}/files/{name}")
        assert answer.status_code in (404, 422) and secret.hex() not in answer.text
    for path in ledger_of(town.service.files.root, "buses").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_lost_ledger_is_not_made_again_by_a_job(town: Town) -> None:
    shutil.rmtree(ledger_of(town.service.files.root, "buses"))
    lost = town.run("anna", BARE | {"step": "1h"})
    assert lost["state"] == "failed" and "ledger of the source buses is missing" in lost["error"]["message"]


def test_heat_maps_are_audited_too(town: Town) -> None:
    path, cells = "/analyses/quadtree-heatmap/jobs", cabs(people=40, points=8)
    assert town.run("anna", {"min_k": 5}, path, cells)["state"] == "done"
    assert [entry.kind for entry in entries(town.ledger("buses"))] == ["locations"]
    one = post(town.tokens["anna"], path, {"data": ("cabs.csv", cells)}, {"format": "png"})
    assert one.status_code == 422 and "recorded with its manifest" in one.json()["error"]["message"]


def test_the_commands_of_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "data")
    for arguments, said in (
        (["server", "token", "create", "anna", "--source", "buses", "--data-dir", folder], "cv_"),
        (["server", "token", "list", "--data-dir", folder], "audited for buses"),
        (["ledger", "list", f"{folder}/ledgers/buses"], "no entries"),
    ):
        cli.main(arguments, standalone_mode=False)
        assert said in capsys.readouterr().out
    with pytest.raises(crowdveil.CrowdveilError, match="lower-case letters"):
        cli.main(["server", "token", "create", "bert", "--source", "../x", "--data-dir", folder], standalone_mode=False)

"""Sources of tokens: every release of one is audited against the ledger of its source, whoever runs it and whatever is killed."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import CHROMIUM, Visit, chromium
from serving import Running, Within, asking, cabs, ended, kill, post, put, until, warm_up

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import CrowdveilError
from crowdveil.ledger.entries import entries
from crowdveil.ledger.recording import verify_ledger
from crowdveil.ledger.store import Ledger
from crowdveil.server.service import Service
from crowdveil.server.sources import ledger_of, make_ledgers
from crowdveil.server.workers.worker import Worker

JOBS = "/methods/suppression/jobs"
BARE = {"attack": False, "report": False, "tz": "UTC", "k": 10}
SOURCES = ("killed-job", "killed-server", "pairs", "page", "terminal")


def trips(first: int = 0) -> str:
    """Twenty people travel in the first hour, three of others in the second: hours and a day leave three people."""
    rows = [(f"1970-01-01T00:00:{i:02}", i) for i in range(20)] + [(f"1970-01-01T01:00:0{i}", 20 + i) for i in range(3)]
    return "origin,destination,time,user_id\n" + "".join(f"n,s,{t},{first + person}\n" for t, person in rows)


@dataclass
class Town:
    """A service with tokens for one source, for two, and for none."""

    service: Service
    tokens: dict[str, Within]

    def run(self, who: str, parameters: dict[str, Any], path: str = JOBS, data: str = "") -> dict[str, Any]:
        """Send a job, run it, and return how it ended."""
        warm_up()  # otherwise each job compiles kernels of its own
        job = put(self.tokens[who], path, {"data": ("trips.csv", data or trips())}, parameters)
        Worker(self.service.store, self.service.files).work(once=True)
        ended: dict[str, Any] = self.tokens[who].get(f"/jobs/{job}").json()
        return ended

    def ledger(self, source: str) -> Ledger:
        return Ledger(ledger_of(self.service.files.root, source))


@pytest.fixture
def town(service: Service) -> Town:
    make_ledgers(service.files.root, ("buses", "trams"))
    sources: dict[str, tuple[str, ...]] = {"anna": ("buses",), "bert": ("buses", "trams"), "carl": ()}
    return Town(service, {name: asking(service, name, sources=of) for name, of in sources.items()})


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
        ("bert", {}, "Name one of buses, trams"),
        ("bert", {"source": "../jobs"}, "not for this source"),
        ("carl", {"keep_unchanged": True}, "the token has none"),
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
    assert one.status_code == 422 and "needs its manifest" in one.json()["error"]["message"]


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


# Several workers


@pytest.fixture(scope="module")
def served(running: Running) -> Running:
    """The service of all tests, with a token for each source."""
    for source in SOURCES:
        running.make_token(source, sources=(source,))
    running.make_token("two sources", sources=("pairs", "page"))
    make_ledgers(running.folder, SOURCES)
    return running


def ledger(served: Running, source: str) -> Ledger:
    return Ledger(ledger_of(served.folder, source))


def send(served: Running, who: str, step: str, data: str = "") -> str:
    with served.client(who) as client:
        return put(client, JOBS, {"data": ("trips.csv", data or trips())}, BARE | {"step": step})


def at_audit(client: httpx.Client, *jobs: str) -> bool:
    """Whether all jobs wait for the ledger, or have ended, which they do not while it is held."""
    found = [client.get(f"/jobs/{job}").json() for job in jobs]
    return all(
        (job.get("progress") or {}).get("stage") in ("anonymizing", "auditing") or job["state"] == "done"
        for job in found
    )


def test_two_workers_at_once_are_serialized(served: Running) -> None:
    """Each of two releases passes alone, and both together leave three people: one of them must see the other."""
    held = ledger(served, "pairs")
    with served.client("pairs") as client:
        with held.locked():  # until both are at their audit
            jobs = [send(served, "pairs", step) for step in ("1h", "1d")]
            until(lambda: at_audit(client, *jobs))
        found = [ended(client, job) for job in jobs]
    assert sorted(job["state"] for job in found) == ["done", "failed"]
    (refused,) = [job for job in found if job["state"] == "failed"]
    assert refused["error"]["code"] == "guarantee_violated" and "leaves 3 people" in refused["error"]["message"]
    assert [entry.state for entry in entries(held)] == ["published"]
    assert verify_ledger(held)


@pytest.mark.parametrize("who", ["job", "server"])
def test_a_kill_during_the_audit_leaves_a_valid_ledger(served: Running, who: str) -> None:
    """The lock of a killed process is free, and the next run is audited against all that was recorded."""
    held = ledger(served, source := f"killed-{who}")
    people = trips()
    before = len(entries(held))
    with held.locked(), served.client(source) as client:
        job = send(served, source, "1h", people)
        until(lambda: at_audit(client, job))
        running = served.job_processes()
        assert running, "a job is a process of its own"
        if who == "job":
            for process in running:
                kill(process)
        else:
            served.kill()
            served.start()
    assert verify_ledger(held) and len(entries(held)) <= before + 1  # see below
    with served.client(source) as client:
        first = ended(client, job)
        if first["state"] != "done":  # what kills a job is not tried again
            assert "signal 9" in json.dumps(first), first
            job = send(served, source, "1h", people)
            assert ended(client, job)["state"] == "done"
        refused = ended(client, send(served, source, "1d", people))
    assert refused["state"] == "failed" and "leaves 3 people" in refused["error"]["message"]
    # A process of the killed job may take the lock that is released here before it ends itself: its entry then stays in the
    # ledger, and later releases are audited against it too.
    *killed, last = [entry.state for entry in entries(held)][before:]
    assert last == "published" and set(killed) <= {"prepared", "published"} and len(killed) <= 1
    assert verify_ledger(held)


def test_the_source_on_the_command_line(
    served: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips.csv").write_text(trips())
    monkeypatch.setenv("CROWDVEIL_TOKEN", served.tokens["terminal"])

    def run(source: str, step: str) -> None:
        options = ["--server", served.url, "--source", source, "--no-attack", "--no-report", "--tz", "UTC"]
        arguments = ["suppression", str(tmp_path / "trips.csv"), "-k", "10", "--step", step, "-o", str(tmp_path / step)]
        cli.main(["anonymize", *arguments, *options], standalone_mode=False)

    run("terminal", "1h")
    assert "no earlier release" in capsys.readouterr().out and (tmp_path / "1h" / "manifest.json").exists()
    with pytest.raises(CrowdveilError, match="leaves 3 people") as refused:
        run("terminal", "1d")
    assert refused.value.exit_code == 1 and not (tmp_path / "1d").exists()
    with pytest.raises(CrowdveilError, match="not for this source"):
        run("pairs", "2h")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_source_on_the_page(served: Running, tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api")
    (tmp_path / "trips.csv").write_text(trips())

    def prepared(browser: Any, who: str, step: str) -> Visit:
        visit = Visit(browser, served.url)
        visit.sign_in(served.tokens[who])
        visit.page.wait_for_selector("#data")
        visit.choose(tmp_path / "trips.csv", ".fine")
        visit.page.fill("#f-step", step)
        visit.page.select_option("#method", "suppression")
        return visit

    with chromium() as browser:
        with prepared(browser, "page", "1h") as visit:
            said = visit.page.inner_text("section[aria-labelledby=s-run]")
            assert "against the earlier releases in the ledger of page." in said
            visit.page.click("button[type=submit]")
            visit.page.wait_for_selector(".verdict")
            assert visit.wrong == []
        with prepared(browser, "two sources", "1d") as visit:
            said = visit.page.inner_text("section[aria-labelledby=s-run]")
            assert "in the ledger of its source" in said
            visit.page.select_option("#f-source", "page")
            visit.page.click("button[type=submit]")
            visit.page.wait_for_selector("text=leaves 3 people")
            assert visit.wrong == []
    assert [entry.state for entry in entries(ledger(served, "page"))] == ["published"]

"""A source of several workers: audits wait for each other, a killed worker leaves a valid ledger; the page and `--source`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import CHROMIUM, Visit, chromium
from serving import Running, ended, kill, put, until

from crowdveil.cli.main import cli
from crowdveil.errors import CrowdveilError
from crowdveil.ledger.entries import entries
from crowdveil.ledger.recording import verify_ledger
from crowdveil.ledger.store import Ledger
from crowdveil.server.sources import ledger_of, make_ledgers

JOBS = "/methods/suppression/jobs"
SOURCES = ("killed-job", "killed-server", "pairs", "page", "terminal")


def trips(first: int = 0) -> str:
    """Twenty people travel in the first hour, three of others in the second: hours and a day leave three people."""
    rows = [(f"1970-01-01T00:00:{i:02}", i) for i in range(20)] + [(f"1970-01-01T01:00:0{i}", 20 + i) for i in range(3)]
    return "origin,destination,time,user_id\n" + "".join(f"n,s,{t},{first + person}\n" for t, person in rows)


@pytest.fixture(scope="module")
def service(running: Running) -> Running:
    """The service of all tests, with a token for each source."""
    for source in SOURCES:
        running.make_token(source, sources=(source,))
    running.make_token("two sources", sources=("pairs", "page"))
    make_ledgers(running.folder, SOURCES)
    return running


def ledger(service: Running, source: str) -> Ledger:
    return Ledger(ledger_of(service.folder, source))


def send(service: Running, who: str, step: str, data: str = "") -> str:
    values = {"attack": False, "report": False, "tz": "UTC", "k": 10, "step": step}
    with service.client(who) as client:
        return put(client, JOBS, {"data": ("trips.csv", data or trips())}, values)


def at_audit(client: httpx.Client, *jobs: str) -> bool:
    """Whether all jobs wait for the ledger, or have ended, which they do not while it is held."""
    found = [client.get(f"/jobs/{job}").json() for job in jobs]
    return all(
        (job.get("progress") or {}).get("stage") in ("anonymizing", "auditing") or job["state"] == "done"
        for job in found
    )


def test_two_workers_at_once_are_serialized(service: Running) -> None:
    """Each of two releases passes alone, and both together leave three people: one of them must see the other."""
    held = ledger(service, "pairs")
    with service.client("pairs") as client:
        with held.locked():  # until both are at their audit
            jobs = [send(service, "pairs", step) for step in ("1h", "1d")]
            until(lambda: at_audit(client, *jobs))
        found = [ended(client, job) for job in jobs]
    assert sorted(job["state"] for job in found) == ["done", "failed"]
    (refused,) = [job for job in found if job["state"] == "failed"]
    assert refused["error"]["code"] == "guarantee_violated" and "leaves 3 people" in refused["error"]["message"]
    assert [entry.state for entry in entries(held)] == ["published"]
    assert verify_ledger(held)


@pytest.mark.parametrize("who", ["job", "server"])
def test_a_kill_during_the_audit_leaves_a_valid_ledger(service: Running, who: str) -> None:
    """The lock of a killed process is free, and the next run is audited against all that was recorded."""
    held = ledger(service, source := f"killed-{who}")
    people = trips()
    before = len(entries(held))
    with held.locked(), service.client(source) as client:
        job = send(service, source, "1h", people)
        until(lambda: at_audit(client, job))
        running = service.job_processes()
        assert running, "a job is a process of its own"
        if who == "job":
            for process in running:
                kill(process)
        else:
            service.kill()
            service.start()
    assert verify_ledger(held) and len(entries(held)) <= before + 1  # see below
    with service.client(source) as client:
        first = ended(client, job)
        if first["state"] != "done":  # what kills a job is not tried again
            assert "signal 9" in json.dumps(first), first
            job = send(service, source, "1h", people)
            assert ended(client, job)["state"] == "done"
        refused = ended(client, send(service, source, "1d", people))
    assert refused["state"] == "failed" and "leaves 3 people" in refused["error"]["message"]
    # A process of the killed job may take the lock that is released here before it ends itself: its entry then stays in the
    # ledger, and later releases are audited against it too.
    *killed, last = [entry.state for entry in entries(held)][before:]
    assert last == "published" and set(killed) <= {"prepared", "published"} and len(killed) <= 1
    assert verify_ledger(held)


def test_the_source_on_the_command_line(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips.csv").write_text(trips())
    monkeypatch.setenv("CROWDVEIL_TOKEN", service.tokens["terminal"])

    def run(source: str, step: str) -> None:
        options = ["--server", service.url, "--source", source, "--no-attack", "--no-report", "--tz", "UTC"]
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
def test_the_source_on_the_page(service: Running, tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api")
    (tmp_path / "trips.csv").write_text(trips())

    def prepared(browser: Any, who: str, step: str) -> Visit:
        visit = Visit(browser, service.url)
        visit.sign_in(service.tokens[who])
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
    assert [entry.state for entry in entries(ledger(service, "page"))] == ["published"]

"""Four eyes from end to end: from the command line, and on the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, Visit, chromium
from serving import Running, cabs, ended, put

from conftest import Ran

pytestmark = pytest.mark.slow
GENERALIZE = "/methods/simple-generalization/jobs"
Command = Callable[..., Ran]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = Running(tmp_path_factory.mktemp("office"), "--four-eyes")
    service.make_token("anna")
    service.make_token("rita", scopes=("review",))
    service.start()
    yield service
    service.stop()


def test_from_the_command_line(
    office: Running, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROWDVEIL_SERVER", office.url)
    (tmp_path / "cabs.csv").write_text(cabs())

    def anna(*args: object) -> Ran:
        monkeypatch.setenv("CROWDVEIL_TOKEN", office.tokens["anna"])
        return command(*args)

    def rita(*args: object) -> Ran:
        monkeypatch.setenv("CROWDVEIL_TOKEN", office.tokens["rita"])
        return command("server", "review", *args)

    ran = anna("anonymize", "simple-generalization", tmp_path / "cabs.csv", "-o", tmp_path / "out")
    assert ran.code == 2 and "the job is done and awaiting review" in ran.err and not (tmp_path / "out").exists()
    listed = rita("list").out
    job = listed.partition(":")[0]
    assert listed.startswith(f"{job}: anonymize simple-generalization of anna, done 20")
    shown = anna("server", "jobs", job).out
    assert f"{job}: done, awaiting review (" in shown and "must approve it" in shown
    assert "The token lacks the scope review" in anna("server", "review", "list").err
    assert rita("report", job, "-o", tmp_path / "report.html").code == 0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert rita("approve", job, "--comment", "as agreed").out == f"{job}: approved\n"
    assert rita("reject", job).code == 2 and rita("list").out == "no result awaits review.\n"
    assert "done, approved" in anna("server", "jobs", job).out
    assert anna("server", "jobs", job, "-o", tmp_path / "out").code == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["method"]["name"] == "simple-generalization"
    anna("anonymize", "simple-generalization", tmp_path / "cabs.csv", "-o", tmp_path / "other")
    second = rita("list").out.partition(":")[0]
    assert rita("reject", second, "--comment", "Not this area.").code == 0
    refused = anna("server", "jobs", second, "-o", tmp_path / "other")
    assert refused.code == 2 and "was rejected in its review (Not this area)" in refused.err
    assert "rejected by rita: Not this area." in anna("server", "jobs", second).out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    pytest.importorskip("playwright.sync_api")
    with chromium() as started:
        yield started


def test_on_the_page(browser: Any, office: Running) -> None:
    with office.client() as client:
        job = put(client, GENERALIZE, {"data": ("cabs.csv", cabs())})
        assert ended(client, job)["state"] == "done"
    with Visit(browser, office.url) as anna, Visit(browser, office.url) as rita:
        anna.sign_in(office.tokens["anna"])
        anna.page.wait_for_selector("#data")
        anna.page.goto(f"{office.url}/#/jobs/{job}")
        anna.page.wait_for_selector(".badge.awaiting")
        anna.page.wait_for_selector(".verdict")
        assert anna.page.locator("button:has-text('Download the release')").count() == 0
        rita.sign_in(office.tokens["rita"])
        rita.page.click(f"a[href='#/reviews/{job}']")
        rita.page.wait_for_selector("iframe")
        rita.page.fill("#comment", "as agreed")
        rita.page.click("button:has-text('Approve')")
        rita.page.wait_for_selector(".badge.approved")
        anna.page.reload()
        anna.page.wait_for_selector(".badge.approved")
        anna.page.wait_for_selector("button:has-text('Download the release')")
        assert "as agreed" in anna.page.inner_text("#main")
        assert anna.wrong == [] and rita.wrong == []

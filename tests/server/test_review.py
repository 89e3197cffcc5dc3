"""Four eyes: no route gives data out before another token approved the report, and every decision is in the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, Visit, chromium
from serving import Running, Within, asking, cabs, ended, job_in, opened, put, token_id

from conftest import Ran
from crowdveil.server.queue.store import NewJob, new_id
from crowdveil.server.service import Service

DATA = "lat,lon\n1,2\n"
SEED = 770077
GENERALIZE = "/methods/simple-generalization/jobs"
Command = Callable[..., Ran]


@dataclass(frozen=True)
class Office:
    """A service with a submitter, two reviewers, and an admin."""

    service: Service
    anna: Within
    rita: Within
    both: Within
    root: Within

    def job(self, owner: str = "anna", *, review: bool = True) -> str:
        """A finished job."""
        return job_in(self.service, token_id(self.service, owner), "done", DATA, name="secret-name.csv", review=review)

    def log(self, job: str) -> list[tuple[str | None, str]]:
        lines = [line for line in self.service.store.log() if line["job"] == job and "result" in line["what"]]
        return [(self.service.tokens.name_of(line["who"]), line["what"]) for line in lines]


@pytest.fixture(params=[True, False])
def four_eyes(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def office(database_url: str, tmp_path: Path, four_eyes: bool) -> Iterator[Office]:
    scopes = {"anna": ("submit", "read"), "rita": ("review",), "both": ("submit", "read", "review"), "root": ("admin",)}
    with opened(tmp_path / "data", database_url, four_eyes=four_eyes) as service:
        yield Office(service, *(asking(service, name, scopes=may) for name, may in scopes.items()))


def guarded(who: Within, job: str) -> list[tuple[int, str]]:
    """What every route that could give data answers."""
    paths = (f"/jobs/{job}/result", f"/jobs/{job}/files/t.csv", f"/task/?task_id={job}")
    return [((answer := who.get(path)).status_code, answer.text) for path in paths]


def decide(who: Within, job: str, decision: str, comment: str = "") -> Any:
    return who.post(f"/reviews/{job}", json={"decision": decision, "comment": comment})


def test_nothing_is_given_out_before_it_is_approved(office: Office) -> None:
    job = office.job()  # sent under four eyes, whatever the server is started with now
    assert office.anna.get(f"/jobs/{job}").json()["review"] == {
        "state": "awaiting", "by": None, "at": None, "comment": None,
    }  # fmt: skip
    for status, text in guarded(office.anna, job):
        assert DATA not in text
        assert status == 403 or json.loads(text)["status"] == "NOT_AVAILABLE"
    # What is to be approved can be seen by both sides.
    for seen in (office.anna.get(f"/jobs/{job}/report"), office.rita.get(f"/reviews/{job}/report")):
        assert seen.status_code == 200 and "t.csv" in seen.text
    assert office.anna.get(f"/jobs/{job}/files").status_code == 200
    assert office.anna.get(f"/jobs/{job}/files/manifest.json").status_code == 200
    (waiting,) = office.rita.get("/reviews").json()["reviews"]
    assert waiting["id"] == job and waiting["submitter"] == "anna"
    assert str(SEED) not in json.dumps(waiting) and "secret-name" not in json.dumps(waiting)
    # The reviewer sees the report, and neither data nor job.
    assert office.rita.get(f"/jobs/{job}").status_code == 403
    decided = decide(office.rita, job, "approve", "k is high enough.")
    assert decided.status_code == 200 and decided.json()["review"]["state"] == "approved"
    assert all(status == 200 and "NOT_AVAILABLE" not in text for status, text in guarded(office.anna, job))
    review = office.anna.get(f"/jobs/{job}").json()["review"]
    assert (review["state"], review["by"], review["comment"]) == ("approved", "rita", "k is high enough.")
    assert office.rita.get("/reviews").json() == {"reviews": []}
    assert ("rita", "approved a result") in office.log(job)


@pytest.mark.parametrize("name", ["manifest.json", "report.html"])
def test_a_result_of_one_file_is_no_report_whatever_its_name(office: Office, name: str) -> None:
    service, job = office.service, new_id()
    service.files.receive(job)
    service.files.accept(job)
    anna = token_id(service, "anna")
    assert service.store.add(NewJob(job, anna, "measure", "E", {"result_name": name}, {}, review=True), 9)
    held = service.store.claim("w", 600)
    assert held is not None and held.lease is not None
    service.files.run(job, held.lease).mkdir()
    (service.files.run(job, held.lease) / "E.json").write_text(DATA)
    about = {"name": "E.json", "bytes": len(DATA), "sha256": "00", "media_type": "application/json"}
    assert service.store.finish(held, about | {"lease": held.lease})
    answer = office.anna.get(f"/jobs/{job}/files/{name}")
    assert answer.status_code == 403 and DATA not in answer.text
    assert decide(office.rita, job, "approve").status_code == 200
    assert office.anna.get(f"/jobs/{job}/files/{name}").text == DATA


def test_a_rejected_result_stays_where_it_is(office: Office) -> None:
    job = office.job()
    assert decide(office.rita, job, "reject", "too small an area").status_code == 200
    for status, text in guarded(office.anna, job):
        assert DATA not in text and (status == 403 or "rejected in its review" in text)
    again = decide(office.both, job, "approve")
    assert again.status_code == 409 and again.json()["error"]["code"] == "decided"
    assert office.anna.get(f"/jobs/{job}").json()["review"]["comment"] == "too small an area"
    assert office.log(job) == [("rita", "rejected a result")]
    assert office.anna.request("DELETE", f"/jobs/{job}").json()["state"] == "expired"


def test_nobody_approves_a_result_of_their_own(office: Office) -> None:
    job = office.job("both")
    refused = decide(office.both, job, "approve")
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "own_job"
    # Nor does a token that was made for the jobs of that one.
    second = asking(office.service, "second", scopes=("review",), jobs_of="both")
    assert decide(second, job, "approve").status_code == 403 and second.get("/reviews").json() == {"reviews": []}
    whose = office.service.store.get(job)
    assert whose is not None
    assert not office.service.store.decide(job, "x", whose.owner, approved=True, comment="")
    for other in (office.anna, office.root):
        assert decide(other, job, "approve").json()["error"]["code"] == "no_scope"
    assert all(status == 403 or "NOT_AVAILABLE" in text for status, text in guarded(office.both, job))


def test_jobs_that_were_sent_before(office: Office, four_eyes: bool) -> None:
    """They need a review where the server asks for one now, and none otherwise."""
    job = office.job(review=False)
    assert (office.anna.get(f"/jobs/{job}/result").status_code == 403) == four_eyes
    assert bool(office.rita.get("/reviews").json()["reviews"]) == four_eyes
    assert (office.rita.get(f"/reviews/{job}/report").status_code == 404) != four_eyes
    assert (decide(office.rita, job, "approve").status_code == 404) != four_eyes


def test_jobs_are_sent_to_be_reviewed(office: Office, four_eyes: bool) -> None:
    job = put(office.anna, "/methods/simple-generalization/jobs", {"data": ("a.csv", cabs())})
    found = office.service.store.get(job)
    assert found is not None and found.review == ("awaiting" if four_eyes else None)
    assert decide(office.rita, job, "approve").status_code == 404  # it is not done
    session = office.rita.get("/session").json()
    assert session["scopes"] == ["review"] and session["four_eyes"] == four_eyes


ODD = [{}, {"decision": "maybe"}, {"decision": "approve", "x": 1}, [], {"decision": "approve", "comment": "x" * 2001}]


def test_odd_decisions_are_refused(office: Office) -> None:
    job = office.job()
    for body in ODD:
        answer = office.rita.post(f"/reviews/{job}", json=body)
        assert answer.status_code == 422 and answer.json()["error"]["message"].endswith(".")
    assert office.anna.get(f"/jobs/{job}").json()["review"]["state"] == "awaiting"


def test_admins_list_and_revoke_tokens(office: Office) -> None:
    listed = office.root.get("/tokens").json()["tokens"]
    assert [token["name"] for token in listed] == ["anna", "rita", "both", "root"]
    assert "hash" not in json.dumps(listed) and listed[1]["scopes"] == ["review"]
    assert office.root.request("DELETE", "/tokens/anna").status_code == 200
    assert office.anna.get("/jobs").status_code == 401
    assert office.root.request("DELETE", "/tokens/anna").status_code == 404
    last = next(line for line in office.service.store.log() if line["what"] == "revoked the token anna")
    assert office.service.tokens.name_of(last["who"]) == "root"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = Running(tmp_path_factory.mktemp("office"), "--four-eyes")
    service.make_token("anna")
    service.make_token("rita", scopes=("review",))
    service.start()
    yield service
    service.stop()


@pytest.mark.slow
def test_from_the_command_line(
    served: Running, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROWDVEIL_SERVER", served.url)
    (tmp_path / "cabs.csv").write_text(cabs())

    def anna(*args: object) -> Ran:
        monkeypatch.setenv("CROWDVEIL_TOKEN", served.tokens["anna"])
        return command(*args)

    def rita(*args: object) -> Ran:
        monkeypatch.setenv("CROWDVEIL_TOKEN", served.tokens["rita"])
        return command("server", "review", *args)

    ran = anna("anonymize", "simple-generalization", tmp_path / "cabs.csv", "-o", tmp_path / "out")
    assert ran.code == 2 and "the job is done and awaits review" in ran.err and not (tmp_path / "out").exists()
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


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_on_the_page(served: Running) -> None:
    pytest.importorskip("playwright.sync_api")
    with served.client() as client:
        job = put(client, GENERALIZE, {"data": ("cabs.csv", cabs())})
        assert ended(client, job)["state"] == "done"
    with chromium() as browser, Visit(browser, served.url) as anna, Visit(browser, served.url) as rita:
        anna.sign_in(served.tokens["anna"])
        anna.page.wait_for_selector("#data")
        anna.page.goto(f"{served.url}/#/jobs/{job}")
        anna.page.wait_for_selector(".badge.awaiting")
        anna.page.wait_for_selector(".verdict")
        assert anna.page.locator("button:has-text('Download the release')").count() == 0
        rita.page.on("dialog", lambda dialog: dialog.accept())  # the page asks before a decision
        rita.sign_in(served.tokens["rita"])
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

"""Four eyes: no route gives data out before another token approved the report, and every decision is in the log."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from serving import Within, cabs, opened, put

from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.server.app import make_app
from crowdveil.server.queue.store import NewJob, new_id
from crowdveil.server.service import Service

DATA = "lat,lon\n1,2\n"
SEED = 918273


@dataclass(frozen=True)
class Office:
    """A service with a submitter, two reviewers, and an admin."""

    service: Service
    app: Any
    anna: Within
    rita: Within
    both: Within
    root: Within

    def job(self, owner: str = "anna", *, review: bool = True) -> str:
        """A finished job."""
        store, files, job = self.service.store, self.service.files, new_id()
        files.receive(job)
        files.accept(job)
        whose = next(row["id"] for row in self.service.tokens.all() if row["name"] == owner)
        new = NewJob(job, whose, "anonymize", "swapmob", {"seed": SEED}, {"data": "secret-name.csv"}, review=review)
        assert store.add(new, 1000)
        held = store.claim("w", 600)
        assert held is not None and held.id == job
        run = files.run(job, held.lease or "")
        run.mkdir()
        with zipfile.ZipFile(run / "release.zip", "w") as archive:
            archive.writestr("manifest.json", json.dumps({"files": {"data": {"name": "t.csv"}}}))
            archive.writestr("t.csv", DATA)
        (run / "private.html").write_text(DATA)
        size = (run / "release.zip").stat().st_size
        about = {"name": "release.zip", "bytes": size, "sha256": "00", "media_type": "application/zip"}
        assert store.finish(held, about | {"lease": held.lease})
        return job

    def log(self, job: str) -> list[tuple[str | None, str]]:
        return [
            (self.service.tokens.name_of(line["who"]), line["what"])
            for line in self.service.store.log()
            if line["job"] == job and "result" in line["what"]
        ]


@pytest.fixture(params=[True, False])
def four_eyes(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def office(database_url: str, tmp_path: Path, four_eyes: bool) -> Iterator[Office]:
    with opened(tmp_path / "data", database_url, four_eyes=four_eyes) as service:
        app = make_app(service, [add_routes])
        scopes = {
            "anna": ("submit", "read"),
            "rita": ("review",),
            "both": ("submit", "read", "review"),
            "root": ("admin",),
        }
        made = [Within(app, Authorization=f"Bearer {service.tokens.create(n, scopes=s)}") for n, s in scopes.items()]
        yield Office(service, app, *made)


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
        assert DATA not in text and "1,2" not in text
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
    token = office.service.tokens.create("second", scopes=("review",), jobs_of="both")
    second = Within(office.app, Authorization=f"Bearer {token}")
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


@pytest.mark.parametrize("body", ODD)
def test_odd_decisions_are_refused(office: Office, body: Any) -> None:
    job = office.job()
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

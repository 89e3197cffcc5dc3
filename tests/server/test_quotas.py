"""What one token may take: requests, previews, room on the disk; each refused early, and with a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Within, cabs, post, put

from crowdveil.server.answers import ApiError
from crowdveil.server.app import make_app
from crowdveil.server.quotas import Previews, Rates
from crowdveil.server.settings import Service, Settings
from crowdveil.server.tokens import Caller, Limits

GENERALIZE = "/methods/simple-generalization/jobs"
MIB = b"lat,lon\n" + b"1,2,3,4\n" * ((1 << 20) // 8)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Settings(tmp_path, disk_bytes=4 << 20).open() as opened:
        yield opened


def asking(service: Service, name: str, **limits: Any) -> Within:
    return Within(make_app(service), Authorization=f"Bearer {service.tokens.create(name, **limits)}")


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert error["message"].endswith(".")
    return answer.status_code, error["code"], error["message"]


def test_a_bucket_is_emptied_and_filled_again() -> None:
    at = [0.0]
    rates, who = Rates(lambda: at[0]), Caller("a", "a", Limits(max_requests=6))
    for _ in range(6):
        rates.check(who)
    with pytest.raises(ApiError, match="at most 6 requests a minute; wait 10 seconds") as refused:
        rates.check(who)
    assert refused.value.status == 429 and refused.value.headers == {"Retry_After": "10"}
    rates.check(Caller("b", "b", Limits(max_requests=1)))  # another's is its own
    at[0] = 10.0
    rates.check(who)
    with pytest.raises(ApiError):
        rates.check(who)
    at[0] = 1000.0  # never more than a minute's worth
    for _ in range(6):
        rates.check(who)
    with pytest.raises(ApiError):
        rates.check(who)
    for _ in range(100):
        rates.check(Caller("c", "c", Limits(max_requests=0)))


def test_too_many_requests_say_when_to_try_again(service: Service) -> None:
    anna, bert = asking(service, "anna", max_requests=2), asking(service, "bert")
    assert [anna.get("/jobs").status_code for _ in range(3)] == [200, 200, 429]
    refused = anna.get("/jobs")
    assert refused.headers["retry-after"] == "30" and error_of(refused)[1] == "too_many_requests"
    assert bert.get("/jobs").status_code == 200


def test_each_token_has_its_places_for_previews_and_all_share_some() -> None:
    async def tried() -> None:
        previews = Previews(1)
        anna, bert = Caller("a", "a", Limits(max_previews=1)), Caller("b", "b", Limits(max_previews=1))
        async with previews.place(anna), previews.turn():
            with pytest.raises(ApiError, match="at most 1 files to look at at a time"):
                async with previews.place(anna):
                    pass
            waiting = asyncio.ensure_future(_turn(previews, bert))
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        async with previews.place(anna):
            pass

    asyncio.run(tried())


async def _turn(previews: Previews, who: Caller) -> None:
    async with previews.place(who), previews.turn():
        pass


def test_a_preview_is_refused_before_it_is_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = asking(service, "anna", max_previews=1)
    caller = service.tokens.all()[0]["id"]
    monkeypatch.setitem(service.previews._held, caller, 1)
    assert error_of(anna.post("/preview", files={"data": ("a.csv", cabs())}))[:2] == (429, "too_many")
    assert list(service.files.incoming.iterdir()) == []


def test_the_files_of_a_token_have_a_limit(service: Service) -> None:
    anna, bert = asking(service, "anna", max_disk_mib=2), asking(service, "bert")
    job = put(anna, GENERALIZE, {"data": ("a.csv", MIB)})
    assert service.store.disk() >= 1 << 20
    refused = post(anna, GENERALIZE, {"data": ("a.csv", MIB)})
    assert error_of(refused) == (
        429, "no_space", "the files of your jobs may take 2 MiB; remove results that you do not need.",
    ) and refused.headers["retry-after"] == "60"  # fmt: skip
    assert error_of(post(anna, GENERALIZE, {"data": ("a.csv", MIB * 3)}))[:2] == (413, "too_large")
    put(bert, GENERALIZE, {"data": ("a.csv", MIB)})
    assert list(service.files.incoming.iterdir()) == []
    anna.request("DELETE", f"/jobs/{job}")
    put(anna, GENERALIZE, {"data": ("a.csv", MIB)})


def test_all_files_together_have_a_limit(service: Service) -> None:
    bert = asking(service, "bert")
    put(bert, GENERALIZE, {"data": ("a.csv", MIB * 3)})
    for path in (GENERALIZE, "/preview"):
        assert error_of(bert.post(path, files={"data": ("a.csv", MIB * 2)}))[:2] == (507, "no_space")
    assert list(service.files.incoming.iterdir()) == [] and len(list(service.files.jobs.iterdir())) == 1


def test_a_limit_holds_where_no_length_is_declared(service: Service) -> None:
    anna = asking(service, "anna", max_disk_mib=1)
    request = httpx.Request("POST", "http://x", files={"data": ("a.csv", MIB * 2)})
    kind = request.headers["content-type"]
    body = request.read()
    came = [0]

    async def pieces() -> Any:
        for start in range(0, len(body), 1 << 16):
            came[0] += 1
            yield body[start : start + (1 << 16)]

    answer = anna.post(GENERALIZE, content=pieces(), headers={"Content-Type": kind})
    assert error_of(answer)[:2] == (413, "too_large")
    assert list(service.files.incoming.iterdir()) == [] and list(service.files.jobs.iterdir()) == []
    assert service.quota._coming == {}  # nothing is counted any more


def test_uploads_that_come_at_once_are_counted_together(service: Service) -> None:
    who = Caller("a", "a", Limits(max_disk_mib=2))
    disk = service.quota
    with disk.upload(who, (0, 0), str(1 << 20)), pytest.raises(ApiError, match="may take 2 MiB"):
        disk.upload(who, (0, 0), str((1 << 20) + 1)).__enter__()
    with service.quota.upload(who, (0, 0), str(2 << 20)):
        pass

"""The page of the service in a real browser, as a person without a terminal uses it.

Skipped where Playwright or Chromium is missing; the check of accessibility also needs axe-core (make web).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from browsing import AXE, CHROMIUM, Visit, chromium
from serving import Running, cabs, ended, opened, put, until

import crowdveil
from crowdveil.errors import as_json
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
SETTLED = "() => !document.querySelector('#why').textContent"
"""Nothing keeps the job from being sent."""
OPEN_ALL = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"
MAPS = ".linked canvas"
PICTURES = "() => [...document.querySelectorAll('.linked canvas')].map((c) => c.toDataURL())"
COLORS = """(canvas) => new Set(new Uint32Array(
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with room for larger files."""
    service = Running(tmp_path_factory.mktemp("busy"))
    for name in ("anna", "bert"):
        service.make_token(name)
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def jobs(busy: Running, files: Path) -> tuple[str, str]:
    """Two jobs of anna that are done: flows with different k."""
    given = {name: (path, (files / path).read_bytes()) for name, path in
             (("data", "trips.csv"), ("zones", "zones.geojson"))}  # fmt: skip
    columns = {"origin": "enters", "destination": "leaves", "time": "left", "user": "card", "step": "12h"}
    with busy.client() as anna:
        one, other = (put(anna, "/methods/joint/jobs", given, {**columns, "k": k, "attack": False}) for k in (5, 15))
        assert all(ended(anna, job)["state"] == "done" for job in (one, other))
    return one, other


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files as people have them: with columns of their own names."""
    folder = tmp_path_factory.mktemp("files")
    town = City.make(1, 36, 300)
    crowdveil.write_zones(town.zones, folder / "zones.geojson")
    write_trips(town, folder / "trips.parquet", 4000, 1, seed=1)
    write_trajectories(town, folder / "drives.parquet", 60, 1, seed=1)
    trips, drives = pq.read_table(folder / "trips.parquet"), pq.read_table(folder / "drives.parquet")
    pacsv.write_csv(trips, folder / "plain.csv")
    pacsv.write_csv(trips.rename_columns(["card", "left", "enters", "leaves"]), folder / "trips.csv")
    pq.write_table(drives.rename_columns(["north", "east", "moment", "ride", "driver"]), folder / "drives.parquet")
    good = "a,b,2026-03-02 08:00\n"
    (folder / "bad.csv").write_text(f"origin,destination,time\n{good}a,,2026-03-02 08:10\na,b,soon\n{20 * good}")
    (folder / "slow.csv").write_text(cabs(2500, 60))
    return folder


def inside(browser: Any, service: Running, who: str = "anna", at: str = "", **how: Any) -> Visit:
    """A visit with a token, at an address of the page."""
    visit = Visit(browser, service.url, **how)
    visit.sign_in(service.tokens[who])
    visit.page.wait_for_selector("#data")
    if at:
        go(visit, at)
    return visit


def go(visit: Visit, at: str) -> None:
    """Go to an address of the page."""
    visit.page.evaluate("where => { location.hash = where }", at)


def named(visit: Visit, **roles: str) -> None:
    """Say what columns mean."""
    for column, role in roles.items():
        visit.page.select_option(f'select[aria-label="{column} means"]', role)


def run(visit: Visit) -> str:
    """Run what was prepared and wait for the result; return the job's id."""
    visit.page.click("button[type=submit]")
    visit.page.wait_for_selector(".progress progress, .verdict")
    visit.page.wait_for_selector(".verdict")
    return str(visit.page.evaluate("location.hash.split('/').pop()"))


def fetched(visit: Visit, button: str, folder: Path) -> Path:
    """A file that a button downloads."""
    with visit.page.expect_download() as coming:
        visit.page.click(button)
    path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


def colors_on_map(visit: Visit) -> int:
    """Count the colors on the map of the report."""
    return int(visit.frame().locator("#canvas").evaluate(COLORS))


def test_a_user_signs_in_and_has_a_file_inspected(browser: Any, running: Running, tmp_path: Path) -> None:
    """The short one, which `make test` runs."""
    (tmp_path / "cabs.csv").write_text(cabs())
    with inside(browser, running) as visit:
        visit.choose(tmp_path / "cabs.csv", ".fine")
        page = visit.page
        assert page.is_checked("input[name=takes][value=trajectories]")
        assert page.input_value('select[aria-label="lat means"]') == "lat"
        assert page.locator(".crowd .presets button").all_inner_texts() == ["CNIL 10", "INSEE 11", "MDS 10", "ACRO 10"]
        kept = "[sessionStorage.length, localStorage.length, document.cookie.length]"
        assert page.evaluate(kept) == [1, 0, 0], "the token is in this tab alone"
        page.click("text=Sign out")
        page.wait_for_selector("#token")
        assert page.evaluate(kept) == [0, 0, 0] and visit.wrong == []


@pytest.mark.slow
def test_the_whole_job_for_trips(browser: Any, busy: Running, files: Path, tmp_path: Path) -> None:
    sent = list[str]()
    with inside(browser, busy, timezone_id="Europe/Paris") as visit:
        page = visit.page
        page.on("request", lambda request: sent.append(request.method) if "/uploads" in request.url else None)
        visit.choose([files / "trips.csv", files / "zones.geojson"])
        assert "columns origin and destination" in visit.message()
        named(visit, enters="origin", leaves="destination", left="time", card="user")
        page.wait_for_selector(".fine")
        page.wait_for_function("() => document.querySelector('.findings').textContent.includes('k counts people')")
        assert page.is_visible("#f-suppress") and not page.is_visible("#f-max_area_km2"), "what matters most is shown"
        page.fill("#f-step", "all")
        page.select_option("#method", "suppression")
        page.click("button:has-text('INSEE')")
        assert page.input_value("#f-k") == "11" and "households" in page.inner_text(".sources")
        job = run(visit)
        verdict = page.inner_text(".verdict")
        assert "guarantees verified on these files" in verdict and "at least 11 people" in verdict
        assert colors_on_map(visit) > 3 and sent == ["POST", "POST"], "each file is sent once"
        archive = fetched(visit, "button:has-text('Download the release')", tmp_path)
        zipfile.ZipFile(archive).extractall(tmp_path / "out")
        assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "out"))
        page.click("role=tab[name='Measures']")
        assert "Suppressed volume" in page.inner_text("[role=tabpanel]")
        page.click("role=tab[name='Files']")
        manifest = fetched(visit, "button:has-text('Download manifest.json')", tmp_path)
        assert manifest.read_bytes() == (tmp_path / "out" / "manifest.json").read_bytes()
        with busy.client() as anna:
            asked = anna.get(f"/jobs/{job}").json()["parameters"]
        assert asked == {
            "origin": "enters", "destination": "leaves", "time": "left", "user": "card", "step": "all", "k": 11,
            "tz": "Europe/Paris", "format": "csv",
        }  # fmt: skip
        uploads = list((busy.folder / "uploads").glob("*/*"))
        page.click("text=Sign out")
        page.wait_for_selector("#token")
        until(lambda: not any(upload.exists() for upload in uploads))
        assert visit.wrong == []


@pytest.mark.slow
def test_options_are_typed_as_on_the_command_line(browser: Any, busy: Running, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("a,b,c,d\n" + "2.35,48.85,2.36,48.86\n" * 12)
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(tmp_path / "trips.csv")
        page.check("input[name=takes][value=flows]")
        named(visit, a="origin_lon", b="origin_lat", c="destination_lon", d="destination_lat")
        page.get_by_label("Zones, made by the service").first.fill("grid:500m")
        page.wait_for_selector(".fine")
        page.wait_for_function(SETTLED)
        assert page.input_value("#f-suppress") == "10%"
        page.fill("#f-suppress", "10")
        page.wait_for_selector(".message #m-suppress")
        assert "10% or 0.1" in visit.message() and "500trips" in visit.message()
        sent = list[str]()
        page.on("request", lambda request: sent.append(request.post_data or "") if "/preview" in request.url else None)
        page.fill("#m-suppress", "3trips")
        page.wait_for_function(SETTLED)
        assert '"origin":"a,b"' in sent[-1] and '"destination":"c,d"' in sent[-1] and '"zones":"grid:500m"' in sent[-1]
        assert '"suppress":"3trips"' in sent[-1] and visit.wrong == []


@pytest.mark.slow
def test_the_whole_job_for_trajectories_and_two_side_by_side(
    browser: Any, busy: Running, files: Path, tmp_path: Path, command: Any
) -> None:
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(files / "drives.parquet")
        page.check("input[name=takes][value=trajectories]")
        named(visit, north="lat", east="lon", moment="time", ride="trajectory", driver="user")
        page.wait_for_selector(".fine")
        one = run(visit)
        assert colors_on_map(visit) > 3
        nothing_foreign_runs(visit, busy)
        archive = fetched(visit, "button:has-text('Download the release')", tmp_path)
        zipfile.ZipFile(archive).extractall(tmp_path / "out")
        assert command("verify", tmp_path / "out").code == 0
        page.click("button:has-text('Change something and run again')")
        page.wait_for_selector(".fine")
        page.click("button:has-text('CNIL')")
        other = run(visit)
        page.click("nav >> text=Jobs")
        for job in (one, other):
            page.check(f".jobs li:has(a[href='#/jobs/{job}']) input")
        page.click("button:has-text('Compare two results')")
        page.wait_for_selector(".two")
        assert page.locator(".two tr.differs th").all_inner_texts().count("Smallest group (k)") == 1
        assert "What differs: Smallest group (k)" in page.inner_text("main")
        assert page.locator(".two .wins").count() > 0, "the better one is marked"
        check_linked_maps(page)


def nothing_foreign_runs(visit: Visit, service: Running) -> None:
    """Neither the page nor the frame of the report runs a script of others, and the frame asks for nothing."""
    frame = visit.frame()
    assert frame.evaluate("self.origin") == "null" and visit.wrong == []
    inject = """() => {
        const script = document.createElement("script");
        script.textContent = "document.documentElement.dataset.foreign = 1";
        document.body.append(script);
        return document.documentElement.dataset.foreign ?? null;
    }"""
    ask = """async (url) => { try { await fetch(url); return "answered"; } catch { return "refused"; } }"""
    assert visit.page.evaluate(inject) is None and frame.evaluate(inject) is None
    assert frame.evaluate(ask, f"{service.url}/door") == "refused"
    assert visit.page.evaluate(ask, service.url.replace("127.0.0.1", "localhost") + "/auth") == "refused"
    assert visit.page.evaluate(ask, f"{service.url}/door") == "answered"


def check_linked_maps(page: Any) -> None:
    """Move one map: both show another section, and show all again by the button."""
    page.wait_for_selector(f"{MAPS}[data-painted]")
    page.wait_for_function(f"() => new Set(({PICTURES})()).size === 2")
    page.locator(MAPS).first.focus()
    settled(page)
    before = page.evaluate(PICTURES)
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    changed(page, before, [True, True])
    page.click("button:has-text('Show all')")
    changed(page, before, [False, False])


def changed(page: Any, before: list[str], which: list[bool]) -> list[str]:
    """Wait until some of the maps differ from earlier pictures, and the others do not; return the pictures."""
    now = f"({PICTURES})().map((one, n) => one !== was[n])"
    page.wait_for_function(f"([was, which]) => {now}.every((one, n) => one === which[n])", arg=[before, which])
    settled(page)
    return list(page.evaluate(PICTURES))


def settled(page: Any) -> None:
    """Wait until the maps look the same twice."""
    page.wait_for_function(f"""async () => {{
        const one = JSON.stringify(({PICTURES})());
        await new Promise((then) => setTimeout(then, 300));
        return one === JSON.stringify(({PICTURES})());
    }}""")


def slide(page: Any, label: str, value: int) -> str:
    """Move a slider of the maps; return what stands next to it."""
    page.locator(f".tools label:has-text('{label}') input").evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )
    return str(page.inner_text(f".tools label:has-text('{label}') output"))


@pytest.mark.slow
def test_two_releases_of_flows_on_linked_maps(browser: Any, busy: Running, jobs: tuple[str, str]) -> None:
    with inside(browser, busy, at=f"/compare/{jobs[0]}/{jobs[1]}") as visit:
        page = visit.page
        page.wait_for_selector(".two")
        assert "better" in page.inner_text(".two tr:has-text('Published flows') td:nth-child(2)"), "more rows"
        assert "worse" in page.inner_text(".two tr:has-text('Mean tiles of an area') td:nth-child(3)"), "larger areas"
        check_linked_maps(page)
        all_times = page.evaluate(PICTURES)
        legend = page.locator(".linked .legend li").all_inner_texts()
        smallest, *_ = sizes = [int(text.split()[0].replace(",", "")) for text in legend if text.endswith(" trips")]
        assert sizes == sorted(sizes) and smallest >= 5, "a legend has no flow of fewer than k"
        first = page.locator(".linked figure .hint").first.inner_text()
        assert slide(page, "Time", 1) != "all times"
        of_one_step = changed(page, all_times, [True, True])
        assert page.locator(".linked figure .hint").first.inner_text() != first
        assert int(slide(page, "Show flows of at least", 1).split()[0]) >= 5, "no value of the slider is below k"
        assert "trips" in slide(page, "Show flows of at least", 90)
        changed(page, of_one_step, [True, True])
        slide(page, "Show flows of at least", 0)
        slide(page, "Time", 0)
        changed(page, all_times, [False, False])
        page.set_viewport_size({"width": 390, "height": 800})  # the maps stay on the same section
        settled(page)
        assert min(canvas.evaluate(COLORS) for canvas in page.locator(MAPS).all()) > 3
        assert page.evaluate("document.documentElement.scrollWidth") <= 390 and visit.wrong == []


@pytest.mark.slow
def test_what_is_wrong_is_said_where_it_is_seen(browser: Any, busy: Running, files: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "few.csv").write_text(cabs(2))
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(tmp_path / "empty.csv", "[role=alert]")
        assert visit.message() == "empty.csv: the file is empty. Expected a header and at least one row."
        page.click("text=Choose another")
        visit.choose(files / "bad.csv")
        rows = page.locator(".problem li").all_inner_texts()
        assert rows == ["1 row names no zone in column destination", "1 row has no usable time in column time"]
        assert "“Leave out rows" in page.inner_text(".problem")
        page.wait_for_function("() => document.querySelector('#why').textContent.includes('rows cannot be used')")
        assert page.is_disabled("button[type=submit]")
        page.check("#m-drop_invalid")
        assert "are left out" in page.inner_text(".problem")
        page.wait_for_selector("#m-zones")  # the method needs positions, and the control for them is at the message
        assert page.is_disabled("button[type=submit]") and "need the positions of the zones" in page.inner_text("form")
        page.select_option("#method", "suppression")
        page.wait_for_function("() => !document.querySelector('button[type=submit]').disabled")
        page.click("text=Choose another")
        visit.choose(tmp_path / "few.csv", ".fine")
        page.fill("#f-k", "9")
        page.wait_for_selector("#m-k")
        assert (
            visit.message()
            == "Smallest group (k): Expected at most the people in the data, 2, got 9. Choose a smaller k."
        )
        assert page.is_disabled("button[type=submit]")
        page.fill("#m-k", "1")  # the control at the message is that of the form
        page.wait_for_function("() => document.querySelector('.message').textContent.includes('at least 2')")
        assert page.input_value("#f-k") == "1" and page.is_disabled("button[type=submit]")
        page.fill("#m-k", "2")
        page.wait_for_function(SETTLED)
        page.fill("#f-k", "1")  # at once, before a preview
        page.click("button[type=submit]")
        assert page.evaluate("document.activeElement.id") == "f-k" and page.locator(".progress").count() == 0
        page.fill("#f-k", "2")
        assert not page.is_disabled("button[type=submit]")
        assert [w for w in visit.wrong if "422" not in w] == [], "the browser itself notes that an answer was an error"


@pytest.mark.slow
def test_a_date_format_is_chosen_by_an_example_and_previewed(browser: Any, busy: Running, tmp_path: Path) -> None:
    rows = "".join(f"a,b,0{i % 9 + 1}/0{i % 7 + 1}/2026 08:{i:02d}\n" for i in range(40))
    (tmp_path / "dates.csv").write_text("origin,destination,time\n" + rows)
    with inside(browser, busy) as visit:
        visit.choose(tmp_path / "dates.csv", ".message .times")
        assert "Name the form of the times with “Date and time format”" in visit.message()
        visit.page.locator(".message button:has-text('31/12/2026 23:59')").first.click()
        visit.page.wait_for_selector(".fine")
        visit.page.evaluate(OPEN_ALL)
        read = visit.page.locator(".times td.yes").all_inner_texts()
        assert read == [f"{day} 2026, 08:0{n}:00" for n, day in enumerate(
            ["Thu 1 Jan", "Mon 2 Feb", "Tue 3 Mar", "Sat 4 Apr", "Tue 5 May"])]  # fmt: skip
        assert visit.wrong == []


@pytest.mark.slow
def test_a_running_job_is_cancelled(browser: Any, busy: Running, files: Path) -> None:
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(files / "slow.csv", ".fine")
        page.select_option("#f-distance", "dtw")
        page.click("button[type=submit]")
        page.wait_for_selector(".stages .now")
        page.click("button:has-text('Cancel')")
        page.wait_for_selector(".badge.cancelled")
        job = page.evaluate("location.hash.split('/').pop()")
        assert "files were removed" in page.inner_text("main") and visit.wrong == []
        with busy.client() as anna:
            assert anna.get(f"/jobs/{job}").json()["state"] == "cancelled"


@pytest.mark.slow
def test_of_a_large_table_only_the_beginning_is_looked_at(browser: Any, busy: Running, tmp_path: Path) -> None:
    rows = "".join(f"a{i % 7},b{i % 5},2026-03-02 0{i % 9}:10:00,{i}\n" for i in range(10_000))
    (tmp_path / "large.csv").write_text("origin,destination,time,user_id\n" + rows * 80)
    with inside(browser, busy) as visit:
        visit.choose(tmp_path / "large.csv", ".fine")
        trips = visit.page.locator(".tiles div:has(dt:text-is('trips')) dd").inner_text()
        assert 100_000 < int(trips.replace(",", "")) < 800_000
        assert "preview is of its first 20 MB" in visit.page.inner_text(".findings") and visit.wrong == []


@pytest.mark.slow
def test_what_takes_too_long_to_be_looked_at_can_be_run(browser: Any, busy: Running, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("origin,destination\n" + "a,b\n" * 12)
    late = json.dumps({"error": as_json("too_long", "The preview takes too long.")})
    with inside(browser, busy) as visit:
        visit.page.route("**/preview", lambda route: route.fulfill(status=422, body=late))
        visit.choose(tmp_path / "few.csv", "[role=alert]")
        assert visit.message() == "The preview takes too long."
        visit.page.select_option("#method", "suppression")
        visit.page.fill("#f-k", "13")
        visit.page.click("button[type=submit]")
        visit.page.wait_for_selector(".badge.failed")
        assert "at most the trips in the data, 12, got 13" in visit.message()
        visit.page.click("text=Back to the form")
        visit.page.fill("#m-k", "10")  # the message of the job is at the button, with the control that it names
        assert visit.page.input_value("#f-k") == "10"


@pytest.mark.slow
def test_a_seed_is_not_shown_again(browser: Any, busy: Running, files: Path) -> None:
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(files / "plain.csv")
        page.select_option("#method", "laplace")
        page.wait_for_selector(".message:has-text('Expected zones')")
        assert page.is_disabled("button[type=submit]"), "zones that are found would show which ones have trips"
        page.set_input_files("#m-zones", files / "zones.geojson")
        page.wait_for_function(SETTLED)
        page.evaluate(OPEN_ALL)
        assert page.input_value("#f-seed") == "" and page.locator(".crowd").count() == 0
        page.fill("#f-seed", "77123")
        job = run(visit)
        with busy.client() as anna:
            assert "seed" not in anna.get(f"/jobs/{job}").json()["parameters"]
        assert "77123" not in page.inner_text("main") and visit.wrong == []


@pytest.mark.slow
def test_enter_while_the_file_is_read_again_is_not_lost(browser: Any, busy: Running, tmp_path: Path) -> None:
    (tmp_path / "cabs.csv").write_text(cabs())
    held, starts = list[Any](), "The job starts when the file has been read."
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(tmp_path / "cabs.csv", ".fine")
        page.wait_for_function(SETTLED)
        page.route("**/preview", lambda route: held.append(route))
        page.select_option("#method", "simple-generalization")  # another preview begins, and does not end
        page.wait_for_function("() => document.querySelector('#why').textContent.includes('being read again')")
        page.locator("#f-tz").press("Enter")
        page.wait_for_selector(f"text={starts}")
        page.click("button:has-text('Stop')")
        assert page.locator(f"text={starts}").count() == 0 and page.locator(".progress").count() == 0
        page.select_option("#method", "microaggregation")
        page.fill("#f-k", "99")
        page.locator("#f-k").press("Enter")
        page.wait_for_selector(f"text={starts}")
        seen = len(held)
        until(lambda: page.wait_for_timeout(100) is None and len(held) > seen)
        held[-1].continue_()  # and says that k is too large
        page.unroute("**/preview")
        page.wait_for_selector("#why[role=alert]")
        assert "See the message above" in page.inner_text("#why") and page.locator(".progress").count() == 0
        page.fill("#m-k", "4")
        assert page.locator("#why[role=alert]").count() == 0
        page.click("summary:has-text('More parameters')")
        page.fill("#f-improve", "1")
        page.locator("#m-k").press("Enter")
        page.wait_for_selector(".verdict")
        assert "at least 3 others" in page.inner_text(".verdict") and visit.wrong == []
        page.click("button:has-text('Change something and run again')")
        page.wait_for_selector("#f-improve")  # what was set is not folded away
        assert page.input_value("#f-improve") == "1" and not page.is_visible("#f-seed")


@pytest.mark.slow
def test_who_may_not_come_in_sees_nothing(browser: Any, busy: Running, jobs: tuple[str, str]) -> None:
    with Visit(browser, busy.url) as visit:
        visit.sign_in("cv_guess")
        visit.page.wait_for_selector("[role=alert]")
        assert visit.message() == "The token is unknown or revoked. Ask the operator of the server for one."
        assert visit.page.evaluate("sessionStorage.length") == 0 and visit.page.locator("nav").count() == 0
        assert {w for w in visit.wrong if "401" not in w} == set()
    with inside(browser, busy, "bert") as visit:
        for address in (f"/jobs/{jobs[0]}", f"/compare/{jobs[0]}/{jobs[1]}"):
            go(visit, address)
            visit.page.wait_for_selector("[role=alert]")
            assert visit.message() == "There is no such job."
        visit.page.click("nav >> text=Jobs")
        visit.page.wait_for_selector("text=There are none yet")
        assert {w for w in visit.wrong if "404" not in w} == set()


@pytest.mark.slow
def test_a_token_that_is_revoked_ends_the_visit(browser: Any, busy: Running) -> None:

    busy.make_token("cleo")
    with inside(browser, busy, "cleo") as visit:
        with opened(busy.folder) as service:
            service.tokens.revoke("cleo")
        visit.page.click("nav >> text=Jobs")
        visit.page.wait_for_selector("#token")
        assert visit.page.evaluate("sessionStorage.length") == 0


@pytest.mark.slow
def test_files_are_dropped_and_a_job_is_run_by_keyboard_alone(
    browser: Any, busy: Running, files: Path, tmp_path: Path
) -> None:
    with inside(browser, busy) as visit:
        page = visit.page
        content = (files / "zones.geojson").read_text()
        given = page.evaluate_handle(
            """([name, content]) => {
                const all = new DataTransfer();
                all.items.add(new File(["origin,destination\\nr1c1,r2c2\\n"], "few.csv"));
                all.items.add(new File([content], name));
                return all;
            }""",
            ["zones.geojson", content],
        )
        page.dispatch_event(".drop", "drop", {"dataTransfer": given})
        page.wait_for_selector(".fine")
        assert "zones.geojson" in page.inner_text("#s-read ~ .fields")
        page.focus("text=Choose another")
        page.keyboard.press("Enter")
        page.focus("#data")
        visit.choose([files / "plain.csv", files / "zones.geojson"], ".fine")
        page.focus("#f-k")
        page.keyboard.press("Enter")  # as in any form
        page.wait_for_selector(".verdict")
        assert page.evaluate("document.activeElement.tagName") == "H1", "a new page takes the focus"
        page.focus("#tab-report")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "tab-measures" and visit.wrong == []


def tour(visit: Visit, service: Running, files: Path, jobs: tuple[str, str]) -> Iterator[str]:
    """Every page there is, one after the other."""
    page = visit.page
    page.wait_for_selector("#token")
    yield "sign in"
    page.click("button:has-text('Sign in')")
    page.wait_for_selector("[role=alert]")
    yield "sign in, refused"
    visit.sign_in(service.tokens["anna"])
    page.wait_for_selector("#data")
    yield "start"
    visit.choose(files / "bad.csv", ".problem")
    yield "problems"
    page.check("#m-drop_invalid")
    yield "problems settled"
    page.click("text=Choose another")
    visit.choose([files / "plain.csv", files / "zones.geojson"], ".fine")
    page.evaluate(OPEN_ALL)
    yield "form"
    with service.client() as anna:
        job = anna.get(f"/jobs/{jobs[0]}").json()
    running = {**job, "state": "running", "progress": {"stage": "anonymizing", "done": 3, "total": 9}}
    page.route("**/jobs/running", lambda route: route.fulfill(json=running))
    go(visit, "/jobs/running")
    page.wait_for_selector(".stages .now")
    yield "running"
    go(visit, f"/jobs/{jobs[0]}")
    page.wait_for_selector("[role=tab]")
    for name in page.locator("[role=tab]").all_inner_texts():
        page.click(f"role=tab[name='{name}']")
        if page.locator("iframe, .waiting").count():
            visit.frame()
        yield f"result: {name}"
    go(visit, "/jobs/nothing")
    page.wait_for_selector("text=To your jobs")
    yield "no job"
    page.click("nav >> text=Jobs")
    page.wait_for_selector(".jobs")
    yield "jobs"
    go(visit, f"/compare/{jobs[0]}/{jobs[1]}")
    page.wait_for_selector(f"{MAPS}[data-painted]")
    yield "compare"


@pytest.mark.slow
@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make web)")
def test_everybody_can_use_every_page(browser: Any, busy: Running, files: Path, jobs: tuple[str, str]) -> None:
    """In light and in dark colors, and on a phone, where no page and no table is wider than the screen."""
    beyond = """() => [...document.querySelectorAll("html, td")]
        .filter((e) => e.getBoundingClientRect().right > 360).map((e) => e.outerHTML.slice(0, 99))"""
    with Visit(browser, busy.url, bypass_csp=True) as visit:
        wrong = dict[str, Any]()
        for name in tour(visit, busy, files, jobs):
            for scheme in ("light", "dark"):
                visit.page.emulate_media(color_scheme=scheme)
                wrong[f"{name}, {scheme}"] = visit.violations()
            visit.page.set_viewport_size({"width": 360, "height": 740})
            wrong[f"{name}, phone"] = visit.page.evaluate(beyond)
            visit.page.set_viewport_size({"width": 1100, "height": 800})
        assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.slow
def test_with_no_auth_nobody_signs_in(browser: Any, tmp_path: Path) -> None:
    service = Running(tmp_path, "--no-auth", workers=1)
    service.start()
    try:
        with Visit(browser, service.url) as visit:
            visit.page.wait_for_selector("#data")
            assert visit.page.locator("#token").count() == 0 and visit.page.locator("text=Sign out").count() == 0
            assert visit.wrong == []
    finally:
        service.stop()

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
from serving import BARE, Running, cabs, ended, opened, put, until

import crowdveil
from crowdveil.errors import as_json
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
DARK_AND_LIGHT = pytest.mark.parametrize("look", ["light", "dark"])


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


def inside(browser: Any, service: Running, who: str = "anna", **how: Any) -> Visit:
    """A visit with a token."""
    visit = Visit(browser, service.url, **how)
    visit.sign_in(service.tokens[who])
    visit.page.wait_for_selector("#data")
    return visit


def named(visit: Visit, **roles: str) -> None:
    """Say what columns mean."""
    for column, role in roles.items():
        visit.page.select_option(f'select[aria-label="{column} means"]', role)


def run(visit: Visit) -> str:
    """Run what was prepared, watch how far it is, and wait for the result; the job's id."""
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


def drawn(visit: Visit) -> int:
    """How many colors are on the map."""
    frame = visit.frame()
    return int(
        frame.evaluate("""() => {
        const canvas = document.getElementById("canvas");
        const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size;
    }""")
    )


def test_a_user_signs_in_and_has_a_file_inspected(browser: Any, running: Running, tmp_path: Path) -> None:
    """The short one, which `make test` runs."""
    (tmp_path / "cabs.csv").write_text(cabs())
    with inside(browser, running) as visit:
        visit.choose(tmp_path / "cabs.csv", ".fine")
        assert visit.page.is_checked("input[name=takes][value=trajectories]")
        assert visit.page.input_value('select[aria-label="lat means"]') == "lat"
        assert visit.page.locator(".crowd .presets button").all_inner_texts() == [
            "CNIL 10",
            "INSEE 11",
            "MDS 10",
            "ACRO 10",
        ]
        kept = "[sessionStorage.length, localStorage.length, document.cookie.length]"
        assert visit.page.evaluate(kept) == [1, 0, 0], "the token is in this tab alone"
        visit.page.click("text=Sign out")
        visit.page.wait_for_selector("#token")
        assert visit.page.evaluate(kept) == [0, 0, 0]
        assert visit.wrong == []


@pytest.mark.slow
def test_the_whole_job_for_trips(browser: Any, busy: Running, files: Path, tmp_path: Path) -> None:
    with inside(browser, busy, timezone_id="Europe/Paris") as visit:
        page = visit.page
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
        assert "guarantees verified on these files" in page.inner_text(
            ".verdict"
        ) and "at least 11 people" in page.inner_text(".verdict")
        assert drawn(visit) > 3
        archive = fetched(visit, "button:has-text('Download the release')", tmp_path)
        zipfile.ZipFile(archive).extractall(tmp_path / "out")
        assert not any(finding.violated for _, finding in crowdveil.verify(tmp_path / "out"))
        page.click("role=tab[name='Measures']")
        assert "Suppressed volume" in page.inner_text("[role=tabpanel]")
        page.click("role=tab[name='Files']")
        assert (
            fetched(visit, "button:has-text('Download manifest.json')", tmp_path).read_bytes()
            == (tmp_path / "out" / "manifest.json").read_bytes()
        )
        with busy.client() as anna:
            asked = anna.get(f"/jobs/{job}").json()["parameters"]
        assert asked == {
            "origin": "enters", "destination": "leaves", "time": "left", "user": "card", "step": "all", "k": 11,
            "tz": "Europe/Paris", "format": "csv",
        }  # fmt: skip
        assert visit.wrong == []


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
        assert drawn(visit) > 3
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
        assert page.locator(".two .wins").count() > 0, "the better one is marked"
        check_linked_maps(page, lists=0)
        assert visit.wrong == []


MAPS = ".linked canvas"
"""The maps of two results that are compared, and of their difference."""
PICTURES = "() => [...document.querySelectorAll('.linked canvas')].map((c) => c.toDataURL())"
COLORS = """() => [...document.querySelectorAll('.linked canvas')].map((c) => new Set(new Uint32Array(
    c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"""


def check_linked_maps(page: Any, lists: int) -> None:
    """Move one map: both show another section, and show all again by the button."""
    page.wait_for_selector(f"{MAPS}[data-painted]")
    assert page.locator(".linked ol").count() == lists, "only flows have a list of the largest ones"
    page.wait_for_function(f"() => new Set(({PICTURES})()).size === 2")
    page.locator(MAPS).first.focus()
    settled(page, PICTURES)
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
    settled(page, PICTURES)
    return list(page.evaluate(PICTURES))


def slide(page: Any, label: str, value: int) -> str:
    """Move a slider of the maps; return what stands next to it."""
    page.locator(f".tools label:has-text('{label}') input").evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }", value
    )
    return str(page.inner_text(f".tools label:has-text('{label}') output"))


def settled(page: Any, expression: str) -> None:
    """Wait until an expression comes to the same twice."""
    page.wait_for_function(f"""async () => {{
        const one = JSON.stringify(({expression})());
        await new Promise((then) => setTimeout(then, 300));
        return one === JSON.stringify(({expression})());
    }}""")


@pytest.mark.slow
def test_two_releases_of_flows_on_linked_maps(browser: Any, busy: Running, files: Path) -> None:
    columns = {
        "origin": "enters",
        "destination": "leaves",
        "time": "left",
        "user": "card",
        "step": "12h",
        "attack": False,
    }
    given = {
        "data": ("trips.csv", (files / "trips.csv").read_bytes()),
        "zones": ("zones.geojson", (files / "zones.geojson").read_bytes()),
    }
    with busy.client() as anna:
        jobs = [put(anna, "/methods/joint/jobs", given, {**columns, "k": k}) for k in (5, 15)]
        assert all(ended(anna, job)["state"] == "done" for job in jobs)
    with inside(browser, busy) as visit:
        page = visit.page
        page.evaluate("where => { location.hash = where }", f"/compare/{jobs[0]}/{jobs[1]}")
        page.wait_for_selector(".two")
        assert "better" in page.inner_text(".two tr:has-text('Published flows') td:nth-child(2)"), "more rows"
        assert "worse" in page.inner_text(".two tr:has-text('Mean tiles of an area') td:nth-child(3)"), "larger areas"
        check_linked_maps(page, lists=2)
        all_times = page.evaluate(PICTURES)
        largest = [page.locator(".linked ol").nth(n).locator("li").first.inner_text() for n in (0, 1)]
        trips = [int(text.split(": ")[1].split()[0].replace(",", "")) for text in largest]
        assert " → " in largest[0], "areas have names"
        assert f"{max(trips):,} trips" in page.inner_text(".linked .legend >> nth=0"), "one scale for both maps"
        sizes = [
            text for text in page.locator(".linked .legend >> nth=0 >> li").all_inner_texts() if text.endswith(" trips")
        ]
        assert int(sizes[0].split()[0].replace(",", "")) >= 5, "a legend has no flow of fewer than k"
        first = page.locator(".linked figure .hint").first.inner_text()
        assert slide(page, "Time", 1) != "all times"
        of_one_step = changed(page, all_times, [True, True])
        assert page.locator(".linked figure .hint").first.inner_text() != first
        assert "trips" in slide(page, "Show flows of at least", 90)
        changed(page, of_one_step, [True, True])
        slide(page, "Show flows of at least", 0)
        slide(page, "Time", 0)
        changed(page, all_times, [False, False])
        page.set_viewport_size(
            {"width": 390, "height": 800}
        )  # a phone that is turned: the maps stay on the same section
        settled(page, PICTURES)
        assert min(page.evaluate(COLORS)) > 3 and page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visit.wrong == []


@pytest.mark.slow
def test_what_is_wrong_is_said_where_it_is_seen(browser: Any, busy: Running, files: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "few.csv").write_text(cabs(2))
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(tmp_path / "empty.csv", "[role=alert]")
        assert visit.message() == "empty.csv: the file is empty; wanted a header and at least one row."
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
            == "Smallest group (k): wanted at most the people in the data, 2, but got 9; choose a smaller k."
        )
        assert page.is_disabled("button[type=submit]")
        page.fill("#m-k", "1")  # the control at the message is that of the form
        page.wait_for_function("() => document.querySelector('.message').textContent.includes('at least 2')")
        assert page.input_value("#f-k") == "1" and page.is_disabled("button[type=submit]")
        page.fill("#m-k", "2")
        page.wait_for_function("() => !document.querySelector('#why').textContent")
        page.fill("#f-k", "1")  # at once, before a preview
        page.click("button[type=submit]")
        assert page.evaluate("document.activeElement.id") == "f-k" and page.locator(".progress").count() == 0
        page.fill("#f-k", "2")
        run(visit)
        assert [w for w in visit.wrong if "422" not in w] == [], "the browser itself notes that an answer was an error"


@pytest.mark.slow
def test_a_date_format_is_chosen_by_an_example_and_previewed(browser: Any, busy: Running, tmp_path: Path) -> None:
    rows = "".join(f"a,b,0{i % 9 + 1}/0{i % 7 + 1}/2026 08:{i:02d}\n" for i in range(40))
    (tmp_path / "dates.csv").write_text("origin,destination,time\n" + rows)
    with inside(browser, busy) as visit:
        visit.choose(tmp_path / "dates.csv", ".message .times")
        assert "could begin with the day or with the month" in visit.message()
        visit.page.locator(".message button:has-text('31/12/2026 23:59')").first.click()
        visit.page.wait_for_selector(".fine")
        visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        read = visit.page.locator(".times td.yes").all_inner_texts()
        assert read == [f"{day} 2026, 08:0{n}:00" for n, day in enumerate(
            ["Thu 1 Jan", "Mon 2 Feb", "Tue 3 Mar", "Sat 4 Apr", "Tue 5 May"])]  # fmt: skip
        assert visit.wrong == []


@pytest.mark.slow
def test_a_file_is_sent_once(browser: Any, busy: Running, tmp_path: Path) -> None:
    (tmp_path / "cabs.csv").write_text(cabs(300, 60))
    sent = list[str]()
    with inside(browser, busy) as visit:
        visit.page.on("request", lambda request: sent.append(request.method) if "/uploads" in request.url else None)
        visit.choose(tmp_path / "cabs.csv", ".fine")
        visit.page.select_option("#method", "simple-generalization")
        visit.page.wait_for_function("() => !document.querySelector('.status').textContent")
        run(visit)
        assert sent == ["POST"]
        upload = next((busy.folder / "uploads").glob("*/*"))
        visit.page.click("text=Sign out")
        visit.page.wait_for_selector("#token")
        until(lambda: not upload.exists())


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
        assert "at most the trips in the data, 12, but got 13" in visit.message()
        visit.page.click("text=Back to the form")
        visit.page.fill("#m-k", "10")  # the message of the job is at the button, with the control that it names
        run(visit)
        assert "at least 10 trips" in visit.page.inner_text(".verdict")


@pytest.mark.slow
def test_a_seed_is_not_needed_and_not_shown_again(browser: Any, busy: Running, files: Path) -> None:
    with inside(browser, busy) as visit:
        visit.choose(files / "bad.csv", ".problem")
        visit.page.check("#m-drop_invalid")
        visit.page.select_option("#method", "laplace")
        visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert visit.page.input_value("#f-seed") == "" and visit.page.locator(".crowd").count() == 0
        for seed in ("", "77123"):
            visit.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            visit.page.fill("#f-seed", seed)
            job = run(visit)
            with busy.client() as anna:
                assert "seed" not in anna.get(f"/jobs/{job}").json()["parameters"]
            assert "77123" not in visit.page.inner_text("main")
            visit.page.click("button:has-text('Change something and run again')")
            visit.page.wait_for_selector(".problem")
        assert visit.wrong == []


@pytest.mark.slow
def test_enter_while_the_file_is_read_again_is_not_lost(browser: Any, busy: Running, tmp_path: Path) -> None:
    (tmp_path / "cabs.csv").write_text(cabs())
    held, starts = list[Any](), "The job starts when the file has been read."
    with inside(browser, busy) as visit:
        page = visit.page
        visit.choose(tmp_path / "cabs.csv", ".fine")
        page.wait_for_function("() => !document.querySelector('#why').textContent")
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
def test_who_may_not_come_in_sees_nothing(browser: Any, busy: Running) -> None:
    with busy.client() as anna:
        job = put(anna, "/methods/simple-generalization/jobs", {"data": ("cabs.csv", cabs())}, BARE)
        assert ended(anna, job)["state"] == "done"
    with Visit(browser, busy.url) as visit:
        visit.sign_in("cv_guess")
        visit.page.wait_for_selector("[role=alert]")
        assert visit.message() == "The token is unknown or revoked. Ask the operator of the server for one."
        assert visit.page.evaluate("sessionStorage.length") == 0 and visit.page.locator("nav").count() == 0
        assert {w for w in visit.wrong if "401" not in w} == set()
    with inside(browser, busy, "bert") as visit:
        for address in (f"/jobs/{job}", f"/compare/{job}/{job}"):
            visit.page.evaluate("where => { location.hash = where }", address)
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
def test_nothing_foreign_runs_on_the_page_or_in_the_frame(browser: Any, busy: Running, files: Path) -> None:
    with inside(browser, busy) as visit:
        visit.choose(files / "drives.parquet", ".findings")
        visit.page.check("input[name=takes][value=trajectories]")
        named(visit, north="lat", east="lon", moment="time", ride="trajectory", driver="user")
        visit.page.wait_for_selector(".fine")
        run(visit)
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
        assert frame.evaluate(ask, f"{busy.url}/door") == "refused"
        assert visit.page.evaluate(ask, busy.url.replace("127.0.0.1", "localhost") + "/auth") == "refused"
        assert visit.page.evaluate(ask, f"{busy.url}/door") == "answered"


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
        visit.choose(files / "plain.csv")
        page.wait_for_selector(".fine")
        page.focus("#f-k")
        page.keyboard.press("Enter")  # as in any form
        page.wait_for_selector(".verdict")
        assert page.evaluate("document.activeElement.tagName") == "H1", "a new page takes the focus"
        page.focus("#tab-report")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "tab-measures" and visit.wrong == []


def tour(visit: Visit, service: Running, files: Path) -> Iterator[str]:
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
    visit.choose([files / "plain.csv", files / "zones.geojson"])
    page.wait_for_selector(".fine")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    yield "form"
    page.click("button[type=submit]")
    page.wait_for_selector(".progress progress, .verdict")
    yield "running"
    page.wait_for_selector("[role=tab]")
    for name in page.locator("[role=tab]").all_inner_texts():
        page.click(f"role=tab[name='{name}']")
        if page.locator("iframe, .waiting").count():
            visit.frame()
        yield f"result: {name}"
    one = page.evaluate("location.hash.split('/').pop()")
    page.evaluate("location.hash = '/jobs/nothing'")
    page.wait_for_selector("text=To your jobs")
    yield "no job"
    page.click("nav >> text=Jobs")
    page.wait_for_selector(".jobs")
    yield "jobs"
    page.evaluate("one => { location.hash = `/compare/${one}/${one}` }", one)
    page.wait_for_selector(f"{MAPS}[data-painted]")
    yield "compare"


@pytest.mark.slow
@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make web)")
@DARK_AND_LIGHT
def test_everybody_can_use_every_page(browser: Any, busy: Running, files: Path, look: str) -> None:
    with Visit(browser, busy.url, color_scheme=look, bypass_csp=True) as visit:
        grave = {name: found for name in tour(visit, busy, files) if (found := visit.violations())}
        assert grave == {}


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(browser: Any, busy: Running, files: Path) -> None:
    with Visit(browser, busy.url, viewport={"width": 360, "height": 740}) as visit:
        for name in tour(visit, busy, files):
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360, name


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

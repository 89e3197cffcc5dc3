"""The page of a report in a real browser: nothing is asked for, nothing fails, everybody can use it.

Skipped where Playwright or Chromium is missing; the check of accessibility also needs axe-core (make web).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from browsing import AXE, CHROMIUM, chromium

import crowdveil
from crowdveil.synth.city import City
from crowdveil.synth.trajectories import write_trajectories
from crowdveil.synth.trips import write_trips

pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")]
KINDS = ["flows", "tracks", "nothing"]
SLOW_MS = 30_000
"""A busy machine may take long; what is tested is what happens, not when."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    town = City.make(1, 36, 300)
    zones, trips, drives = folder / "zones.geojson", folder / "trips.parquet", folder / "drives.parquet"
    crowdveil.write_zones(town.zones, zones)
    write_trips(town, trips, 4000, 1, seed=1)
    write_trajectories(town, drives, 60, 1, seed=1)
    crowdveil.anonymize(trips, folder / "flows", method="suppression", zones=zones, k=5)
    crowdveil.anonymize(drives, folder / "tracks", method="simple-generalization")
    few = pa.table({"origin": ["a"] * 5 + ["b"] * 4, "destination": ["b"] * 5 + ["a"] * 4})
    crowdveil.anonymize(few, folder / "nothing", method="suppression", k=6)
    return {k: folder / k / "report.html" for k in KINDS}


class Opened:
    """A page, and what went wrong on it."""

    def __init__(self, browser: Any, file: Path, **how: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **how})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW_MS)
        self.wrong: list[str] = []
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda asked: None if asked.url == file.as_uri() else self.wrong.append(asked.url))
        self.page.goto(file.as_uri())
        if self.page.query_selector("#live") and how.get("java_script_enabled", True):
            self.page.wait_for_selector("canvas[data-painted]")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def changed(self, seen: set[bytes], what: str) -> None:
        """Wait until the map shows what it has not shown before."""
        for _ in range(SLOW_MS // 100):
            now = self.pixels()
            if now not in seen:
                seen.add(now)
                return
            self.page.wait_for_timeout(100)
        pytest.fail(f"the map did not change: {what}")

    def pixels(self) -> bytes:
        """What is on the map."""
        return bytes(self.page.evaluate("() => document.getElementById('canvas').toDataURL()"), "ascii")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_it_opens_without_a_request_or_an_error(browser: Any, pages: dict[str, Path], kind: str, look: str) -> None:
    width = 360 if look == "phone" else 1100
    how = {"viewport": {"width": width, "height": 740}, "color_scheme": "dark" if look == "dark" else "light"}
    with Opened(browser, pages[kind], **how) as opened:
        assert opened.wrong == []
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width, "no sideways scrolling"
        assert opened.page.inner_text("h1") and len(opened.page.query_selector_all("article")) == 3


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make web)")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("look", ["light", "dark"])
def test_everybody_can_use_it(browser: Any, pages: dict[str, Path], kind: str, look: str) -> None:
    with Opened(browser, pages[kind], color_scheme=look, bypass_csp=True) as opened:
        opened.page.add_script_tag(path=str(AXE))
        found = opened.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
        grave = [
            (f["id"], [n["html"][:120] for n in f["nodes"]][:3])
            for f in found
            if f["impact"] in ("serious", "critical")
        ]
        assert grave == []


def test_sliders_choices_and_keys_change_the_map(browser: Any, pages: dict[str, Path]) -> None:
    with Opened(browser, pages["flows"]) as opened:
        page, seen = opened.page, {opened.pixels()}
        page.wait_for_selector("#step-out")
        for what, act in {
            "time": lambda: page.fill("#step", "9"),
            "threshold": lambda: page.fill("#step", "0") or page.fill("#least", "70"),
            "color": lambda: page.select_option("#shade", "trips"),
            "zoom": lambda: page.focus("#canvas") or page.keyboard.press("+"),
            "move": lambda: page.keyboard.press("ArrowLeft"),
            "zone": lambda: page.select_option("#zone-choice", index=1),
        }.items():
            act()
            opened.changed(seen, what)
        assert "trips leave" in page.inner_text("#profile") and page.query_selector("#profile svg polyline")
        assert page.query_selector_all("#legend li") and opened.wrong == []
        assert page.get_attribute("#step", "aria-valuetext") == page.inner_text("#step-out") == "all time steps"


def test_a_click_on_the_map_chooses_the_zone(browser: Any, pages: dict[str, Path]) -> None:
    with Opened(browser, pages["flows"]) as opened:
        opened.page.locator("#canvas").scroll_into_view_if_needed()
        box = opened.page.query_selector("#canvas").bounding_box()
        opened.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        opened.page.wait_for_selector("#profile p")
        assert opened.page.input_value("#zone-choice") != "" and opened.wrong == []


@pytest.mark.parametrize("look", ["lines", "points"])
def test_paths_and_points_of_trajectories(browser: Any, pages: dict[str, Path], look: str) -> None:
    with Opened(browser, pages["tracks"]) as opened:
        seen = {opened.pixels()}
        opened.page.select_option("#shade", look)
        opened.changed(seen, look)
        assert "trajectories" in opened.page.inner_text("#status") and opened.wrong == []


@pytest.mark.parametrize("kind", ["flows", "tracks"])
def test_without_scripts_and_in_print_the_pictures_are_there(browser: Any, pages: dict[str, Path], kind: str) -> None:
    with Opened(browser, pages[kind], java_script_enabled=False) as opened:
        assert not opened.page.is_visible("#live") and opened.page.is_visible("svg.map")
    with Opened(browser, pages[kind]) as opened:
        opened.page.emulate_media(media="print")
        assert not opened.page.is_visible("#live") and opened.page.is_visible("svg.map")
        assert len(opened.page.pdf()) > 10_000


def test_the_time_slider_works_for_every_color_or_says_why_not(browser: Any, pages: dict[str, Path]) -> None:
    with Opened(browser, pages["flows"]) as opened:
        page, seen = opened.page, {opened.pixels()}
        assert page.eval_on_selector_all("#shade option", "all => all.map((o) => o.value)") == [
            "",
            "trips",
            "unpublished",
        ], "every area is one tile, so that a map of sizes would have one color"
        page.select_option("#shade", "trips")
        opened.changed(seen, "colored by trips")
        before = page.inner_text("#legend")
        page.evaluate(
            "() => { const s = document.getElementById('step'); s.value = 9; s.dispatchEvent(new Event('input')); }"
        )
        opened.changed(seen, "trips of one time step")
        assert page.inner_text("#legend") != before and page.is_enabled("#step")
        page.select_option("#shade", "unpublished")
        opened.changed(seen, "colored by share of time steps")
        assert page.is_disabled("#step") and "share is of all" in page.inner_text("#step-out")
        page.select_option("#shade", "")
        assert page.is_enabled("#step") and "share" not in page.inner_text("#step-out")


@pytest.mark.parametrize("kind", ["flows", "tracks"])
def test_the_first_page_is_one_sheet_and_outcomes_are_never_cut_off(
    browser: Any, pages: dict[str, Path], kind: str
) -> None:
    with Opened(browser, pages[kind], viewport={"width": 688, "height": 1001}) as opened:
        opened.page.emulate_media(media="print")  # A4 without its margins, at 96 dots an inch
        assert opened.page.evaluate("() => document.getElementById('summary').getBoundingClientRect().height") < 1001
    with Opened(browser, pages[kind], viewport={"width": 360, "height": 740}) as opened:
        far = "() => [...document.querySelectorAll('.outcomes b, td[data-label]')].map((e) => e.getBoundingClientRect().right)"
        right = opened.page.evaluate(far)
        assert right and max(right) <= 360

"""Chromium for tests of pages: what goes wrong on a page, and whether everybody can use it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SLOW_MS = 60_000
"""A busy machine may take long; what is tested is what happens, not when."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Visit:
    """A visit to a service by one person; keeps what went wrong, and what was asked of others."""

    def __init__(self, browser: Any, url: str, **how: Any) -> None:
        self.url, self.wrong = url, list[str]()
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **how})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW_MS)
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)
        self.page.goto(url)

    def _logged(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.text} ({message.location.get('url', '')})")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((f"{self.url}/", "blob:", "data:")):
            self.wrong.append(f"asked {request.url}")

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def sign_in(self, token: str) -> None:
        """Come in."""
        self.page.fill("#token", token)
        self.page.click("button:has-text('Sign in')")

    def choose(self, path: Path | list[Path], waits_for: str = ".findings") -> None:
        """Choose files by the button, and wait until they were looked at."""
        self.page.set_input_files("#data", path)
        self.page.wait_for_selector(waits_for)

    def message(self) -> str:
        """The sentence of the first alert."""
        return str(self.page.locator("[role=alert]").first.inner_text())

    def frame(self, which: int = 0) -> Any:
        """The report in a frame, once its map is drawn; what is out of sight is not drawn."""
        frame = self.page.locator("iframe").nth(which)
        frame.scroll_into_view_if_needed()
        frame.content_frame.locator("canvas[data-painted]").wait_for(state="attached")
        return frame.element_handle().content_frame()

    def violations(self) -> list[Any]:
        """What axe finds; the page must have been opened with its policy put aside."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.add_script_tag(path=str(AXE))
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations'], iframes: false})")[
            "violations"
        ]
        return [(f["id"], [n["html"][:120] for n in f["nodes"]][:3]) for f in found]

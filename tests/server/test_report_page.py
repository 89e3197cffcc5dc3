"""The report of a job in a real browser, under the policy of the header and its own; skipped where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import CHROMIUM, chromium
from serving import Running, cabs, ended, put

pytestmark = pytest.mark.slow

pytest.importorskip("playwright.sync_api")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_script_of_a_report_runs_and_no_other(running: Running) -> None:
    with running.client() as anna:
        job = put(anna, "/methods/simple-generalization/jobs", {"data": ("cabs.csv", cabs())})
        assert ended(anna, job)["state"] == "done"
    wrong: list[str] = []
    address = f"{running.url}/jobs/{job}/report"

    def said(message: Any) -> None:
        if message.type in ("error", "warning"):
            wrong.append(message.text)

    def asked(request: Any) -> None:
        if request.url != address:
            wrong.append(request.url)

    with chromium() as browser:
        page = browser.new_page(extra_http_headers={"Authorization": f"Bearer {running.tokens['anna']}"})
        page.set_default_timeout(30_000)
        page.on("console", said)
        page.on("request", asked)
        page.goto(address)
        page.wait_for_selector("canvas[data-painted]")
        # No origin, so that the page can speak for nobody; and no script that was not in it.
        assert page.evaluate("self.origin") == "null" and wrong == []
        page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "document.documentElement.dataset.foreign = 1";
            document.body.append(script);
        }""")
        assert page.evaluate("document.documentElement.dataset.foreign") is None
        assert wrong and all("Content Security Policy" in sentence for sentence in wrong)

"""The page of the service in Firefox: sign in, a file, two jobs, and their comparison; skipped where Firefox is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from firefox import FIREFOX, firefox
from serving import Running, cabs, free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox here")]
PAINTED = "document.querySelector('iframe') !== null"


def test_a_job_in_firefox(running: Running, tmp_path: Path) -> None:
    (tmp_path / "cabs.csv").write_text(cabs())
    with firefox(tmp_path / "profile", free_port()) as page:
        page.open(running.url)
        page.fill("#token", running.tokens["anna"])
        page.click("button", "Sign in")
        page.wait_for("document.querySelector('#data') !== null")
        page.choose("#data", tmp_path / "cabs.csv")
        page.wait_for("document.querySelector('.fine') !== null")
        assert page.run("document.querySelector('input[name=takes]:checked').value") == "trajectories"
        for k in ("5", "6"):
            page.fill("#f-k", k)
            page.click("button[type=submit]")
            page.wait_for("document.querySelector('.verdict') !== null")
            assert f"at least {int(k) - 1} others" in page.run("document.querySelector('.verdict').textContent")
            page.wait_for(PAINTED)
            page.click("button", "Change something and run again")
            page.wait_for("document.querySelector('.fine') !== null")
        page.click("nav a", "Jobs")
        page.wait_for("document.querySelectorAll('.jobs input').length >= 2")
        page.run("[...document.querySelectorAll('.jobs input')].slice(0, 2).forEach((box) => box.click())")
        page.click("button", "Compare two results")
        page.wait_for("document.querySelectorAll('.linked canvas[data-painted]').length === 2")
        colors = """[...document.querySelectorAll('.linked canvas')].map((c) => new Set(new Uint32Array(
            c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"""
        assert min(page.run(colors)[:2]) > 2, "the maps are drawn"
        assert page.run("document.documentElement.scrollWidth") <= 1100
        assert page.errors == []
        page.click("button", "Sign out")
        page.wait_for("document.querySelector('#token') !== null")

"""The result page of the service with 100,000 published flows between 10,000 areas, in Chromium.

Prints when the first map is drawn after the page of the job was asked for, and how long frames take while the map is dragged;
last the time to the first map over that of the same report opened as a file.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _bench import SMALL, say

SIDE, FLOWS, STEPS, DRAGS = 100, 100_000, 24, 60
_FRAMES = """(ms) => new Promise((done) => {
    const took = []; let last = performance.now(); const begin = last;
    const step = (now) => {
        took.push(now - last); last = now;
        now - begin < ms ? requestAnimationFrame(step) : done(took.slice(1));
    };
    requestAnimationFrame(step);
})"""


def make(folder: Path, flows: int) -> None:
    """Zones of a grid, and flows between them that all have a crowd."""
    from synthetic import grid_frame

    import crowdveil
    from crowdveil.model.tessellation import grid_zones

    rng = np.random.default_rng(1)
    column, row = np.meshgrid(np.arange(SIDE, dtype=np.int32), np.arange(SIDE, dtype=np.int32))
    zones = grid_zones(grid_frame(np.array([2.0, 2.6]), np.array([48.5, 49.0]), 400.0), column.ravel(), row.ravel())
    crowdveil.write_zones(zones, folder / "zones.geojson")
    cells = np.unique(rng.integers(0, STEPS * SIDE**4, flows + 1000))[:flows]  # each pair of zones once in a step
    step, origin, destination = np.unravel_index(cells, (STEPS, SIDE * SIDE, SIDE * SIDE))
    hour, volume = (
        pa.array(1_767_225_600 + 3600 * step, pa.timestamp("s")),
        (10 / (rng.random(flows) + 0.001)).astype(np.int64) + 2,
    )
    names = np.asarray(zones.ids)
    table = pa.table(
        {"origin": names[origin], "destination": names[destination], "time": hour, "volume": volume, "people": volume}
    )
    pq.write_table(table, folder / "flows.parquet")


def first_map(page: Any, address: str, framed: bool) -> float:
    """Seconds until the first map is drawn."""
    begin = time.perf_counter()
    page.goto(address)
    if framed:
        page.wait_for_selector("iframe")
        page.locator("iframe").scroll_into_view_if_needed()
        page.frame_locator("iframe").locator("canvas[data-painted]").wait_for(state="attached")
    else:
        page.wait_for_selector("canvas[data-painted]", state="attached")
    return time.perf_counter() - begin


def drag(page: Any) -> list[float]:
    """How long frames took while the map was dragged, in milliseconds."""
    frame, canvas = page.frames[-1], page.frame_locator("iframe").locator("#canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + min(box["height"], 200) / 2
    frame.evaluate(f"() => {{ window.took = ({_FRAMES})(2500); }}")
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(DRAGS):
        page.mouse.move(x + 2 * i, y + i % 7)
        page.wait_for_timeout(25)
    page.mouse.up()
    return list(frame.evaluate("() => window.took"))


def main() -> None:
    from browsing import chromium
    from serving import Running, ended, put

    flows = FLOWS // 10 if SMALL else FLOWS
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make(folder, flows)
        service = Running(folder / "service", "--no-auth", workers=1)
        service.start()
        try:
            with service.client() as client:
                files = {
                    n: (f.name, f.read_bytes())
                    for n, f in {"data": folder / "flows.parquet", "zones": folder / "zones.geojson"}.items()
                }
                job = put(client, "/methods/suppression/jobs", files, {"k": 2, "attack": False})
                done = ended(client, job, 600)
                if done["state"] != "done":
                    raise SystemExit(done["error"]["message"])
                (folder / "report.html").write_bytes(client.get(f"/jobs/{job}/report").content)
            with chromium() as browser:
                page = browser.new_page(viewport={"width": 1200, "height": 1000})
                page.set_default_timeout(120_000)
                shown = first_map(page, f"{service.url}/#/jobs/{job}", True)
                frames = sorted(drag(page))
                alone = first_map(browser.new_page(), (folder / "report.html").as_uri(), False)
        finally:
            service.stop()
    say("first_map", shown, "s")
    say("frame_median", frames[len(frames) // 2], "ms")
    say("frame_worst", frames[-1], "ms")
    say("first_map_of_the_file", alone, "s")
    say("ratio", shown / alone)


if __name__ == "__main__":
    main()

"""Every kind of picture on a small release: what covers what, one scale, and what is confidential."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import slow_param
from manifests import manifest_of

import crowdveil
from crowdveil.errors import CrowdveilError, InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.report.plots import flow_panels
from crowdveil.report.plots.drawing import Drawing, shorten
from crowdveil.report.plots.kinds import KINDS
from crowdveil.run import pictures
from crowdveil.run.releases import sound_release

matplotlib = pytest.importorskip("matplotlib")
SIDE = 4
OPTIONS: dict[str, dict[str, Any]] = {
    "destinations": {"zone": "z5"}, "flows": {"top": 20}, "loss": {"measures": "E,S,t-closeness"},
}  # fmt: skip
NEED_ZONES = ("destinations", "tree", "coarsening")
OF_RELEASES = [name for name, kind in KINDS.items() if kind.releases != "no"]
OF_ORIGINALS = [name for name, kind in KINDS.items() if kind.original != "no"]


def _square(i: int) -> dict[str, Any]:
    x, y = 2 + i % SIDE / 50, 48 + i // SIDE / 50
    ring = [[x, y], [x + 0.02, y], [x + 0.02, y + 0.02], [x, y + 0.02], [x, y]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "properties": {"id": f"z{i}"}, "geometry": geometry}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with flows on four days with a day without data between them, trajectories, and a release of each."""
    folder = tmp_path_factory.mktemp("made")
    n, rng = SIDE * SIDE, np.random.default_rng(3)
    zones = {"type": "FeatureCollection", "features": [_square(i) for i in range(n)]}
    (folder / "zones.geojson").write_text(json.dumps(zones))
    rows = [
        f"2024-03-0{day},z{o},z{d},{rng.integers(1, 40)}"
        for day in (4, 5, 6, 8) for o in range(n) for d in range(n) if rng.random() < 0.5
    ]  # fmt: skip
    (folder / "flows.csv").write_text("time,origin,destination,volume\n" + "\n".join(rows) + "\n")
    options: dict[str, Any] = {"zones": folder / "zones.geojson", "step": "1d", "attack": False, "report": False}
    for name, k in (("out", 30), ("other", 60)):
        crowdveil.anonymize(folder / "flows.csv", folder / name, method="joint", k=k, **options)
    points = ["lat,lon,timestamp,trajectory_id"]
    for i in range(30):
        start = rng.uniform(0, 0.05, 2)
        points += [f"{48 + start[0] + s / 100:.6f},{2 + start[1]:.6f},{60 * s},{i}" for s in range(4 + i % 3)]
    (folder / "cabs.csv").write_text("\n".join(points) + "\n")
    crowdveil.anonymize(
        folder / "cabs.csv", folder / "cabs", method="microaggregation", k=3, attack=False, report=False
    )  # fmt: skip
    return folder


def call(kind: str, folder: Path, *, original: bool) -> dict[str, Any]:
    """Return the arguments of a picture of the small data."""
    record = KINDS[kind]
    flows = record.data != "trajectories"
    release: Any = None if record.releases == "no" else folder / ("out" if flows else "cabs")
    if kind == "loss" and not original:
        return {"kind": kind, "release": release}
    options = dict(OPTIONS.get(kind, {}))
    data = folder / ("flows.csv" if flows else "cabs.csv")
    if (original and flows) or kind in NEED_ZONES:
        options["zones"] = folder / "zones.geojson"
    return {"kind": kind, "release": release, "original": data if original else None, **options}


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[Drawing]:
    """Return the layouts that are saved."""
    seen: list[Drawing] = []
    save = Drawing.save

    def kept(self: Drawing, file: Any, kind: str) -> None:
        seen.append(self)
        save(self, file, kind)

    monkeypatch.setattr(Drawing, "save", kept)
    return seen


def test_what_is_defined_for_no_release_has_no_axis(made: Path, layouts: list[Drawing], tmp_path: Path) -> None:
    wanted = "E,confidence-width,generalization-by-duration"
    given = call("loss", made, original=True) | {"output": tmp_path / "confidential.png", "measures": wanted}
    crowdveil.plot(**given)
    texts = [text.get_text() for text in drawn_texts(layouts[-1].figure)]
    assert any("reconstruction error" in text for text in texts) and "undefined" not in texts
    assert not any("confidence bounds" in text for text in texts), "only noise has them"


def drawn_texts(figure: Any) -> list[Any]:
    """Return the texts that are drawn: titles, labels, legends, and ticks inside of their axes."""
    texts = list(figure.texts)
    for axis in figure.axes:
        texts += [*axis.texts, axis.title, axis._left_title]
        for side in (axis.xaxis, axis.yaxis) if axis.axison else ():
            low, high = sorted(side.get_view_interval())
            texts += [side.label, *(t.label1 for t in side.get_major_ticks() if low <= t.get_loc() <= high)]
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


CASES = [
    *((kind, False) for kind in OF_RELEASES),
    ("tree", False),
    *((slow_param if kind in OF_RELEASES else pytest.param)(kind, True) for kind in OF_ORIGINALS),
]
"""Every kind once in `make test`; those of releases also of originals in `make test-all`."""


@pytest.mark.parametrize(("kind", "original"), CASES)
def test_nothing_covers_anything_and_a_picture_of_a_release_is_made_from_its_files_alone(
    made: Path, layouts: list[Drawing], monkeypatch: pytest.MonkeyPatch, kind: str, original: bool
) -> None:
    """Where there is no original, reading one fails, and no text of the picture is a mark."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the original was read")

    if not original and kind != "tree":
        monkeypatch.setattr(pictures, "read", refuse)
    picture = crowdveil.plot(**call(kind, made, original=original))
    assert picture.content.startswith(b"\x89PNG") and picture.confidential == original
    assert original == (b"CONFIDENTIAL" in picture.content)
    assert original == ("CONFIDENTIAL" in layouts[0].figure.get_suptitle())
    with matplotlib.rc_context(
        {"text.hinting": "force_autohint"}
    ):  # the default, which tests do without for their speed
        _check_layout(layouts[0])


def _check_layout(shown: Drawing) -> None:
    """Check that legends cover no panel, and that texts are inside of the picture and cover no other text."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = shown.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    panels = [panel.get_window_extent(renderer) for panel in shown.panels]
    for legend in figure.legends:
        assert not any(panel.padded(-2).overlaps(legend.get_window_extent(renderer)) for panel in panels)
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in drawn_texts(figure)]
    whole = figure.bbox.padded(2)
    for text, box in boxes:
        assert box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y0 >= whole.y0 and box.y1 <= whole.y1, text
    for (a, one), (b, other) in combinations(boxes, 2):
        assert not one.padded(-2).overlaps(other.padded(-2)), (a, b)


@pytest.mark.parametrize("kind", OF_ORIGINALS)
def test_a_picture_of_the_original_says_so(made: Path, tmp_path: Path, command: Any, kind: str) -> None:
    given = call(kind, made, original=True)
    arguments = ["plot", kind, *([given["release"]] if given["release"] else []), "--original", given["original"]]
    for name in set(given) - {"kind", "release", "original"}:
        arguments += [f"--{name}", given[name]]
    ran = command(*arguments, "-o", tmp_path / "open.png")
    assert ran.code == 2 and "open-confidential.png" in ran.sentence and not list(tmp_path.iterdir())
    inside = made / "out" / "x-confidential.png"
    ran = command(*arguments, "-o", inside)
    assert ran.code == 2 and "must not be in a release" in ran.sentence and not inside.exists()
    target = tmp_path / "x-confidential.png"
    ran = command(*arguments, "-o", target)
    assert ran.code == 0 and "do not publish it" in ran.out, ran.err
    assert b"CONFIDENTIAL" in target.read_bytes()[:400], "the title in the file"
    assert target.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["flows", "matrix"])
def test_a_picture_has_equal_bytes_each_time(made: Path, kind: str) -> None:
    one, other = (crowdveil.plot(**call(kind, made, original=False)).content for _ in range(2))
    assert one == other


def test_a_saved_picture_is_checked_too(made: Path, tmp_path: Path) -> None:
    picture = crowdveil.plot(**call("heatmap", made, original=True))
    assert "confidential" in repr(picture)
    with pytest.raises(CrowdveilError, match="confidential"):
        picture.save(tmp_path / "heat.png")
    assert picture.save(tmp_path / "heat-confidential.png").exists()


def test_a_mark_that_is_missing_stops_the_picture(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crowdveil.run import pictures

    draw = pictures.draw_paths

    def unmarked(panels: Any, zoom: Any) -> Any:
        from dataclasses import replace

        return draw([replace(panel, confidential=False) for panel in panels], zoom)

    monkeypatch.setattr(pictures, "draw_paths", unmarked)
    with pytest.raises(RuntimeError, match="mark"):
        crowdveil.plot(**call("paths", made, original=True))


def test_several_releases_have_one_scale_and_one_threshold(made: Path, layouts: list[Drawing]) -> None:
    from matplotlib.patches import FancyArrowPatch

    data = {"original": made / "flows.csv", "zones": made / "zones.geojson"}
    crowdveil.plot("flows", [made / "out", made / "other"], top=20, **data)
    look: dict[int, set[Any]] = {}
    for panel in layouts[0].panels:
        arrows = [patch for patch in panel.patches if isinstance(patch, FancyArrowPatch)]
        assert arrows
        for arrow in arrows:
            look.setdefault(round(vars(arrow.get_arrowstyle())["tail_width"] * 100), set()).add(
                tuple(arrow.get_facecolor())
            )
    assert max(map(len, look.values())) == 1, "equal widths have equal colors in all panels"
    assert len({tuple(axis.get_xlim()) for axis in layouts[0].panels}) == 1


def test_a_day_without_data_is_a_gap(made: Path, layouts: list[Drawing]) -> None:
    crowdveil.plot("profiles", made / "out", zone="z5" if _published(made, "z5") else ())
    lines = [line for axis in layouts[0].panels for line in axis.lines if len(line.get_ydata()) == 5]
    assert lines and all(np.isnan(line.get_ydata()[3]) for line in lines), "7 March has no data"


def _published(made: Path, area: str) -> bool:
    return area in {f["properties"]["area"] for f in sound_release(made / "out")[1].features}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("flows",), "Expected a release, or the original"),
        (("flows", "cabs"), "Expected a release of flows"),
        (("coarsening", "out", "--original", "flows.csv"), "No such option"),
        (("chord", "out"), "there is no plot chord"),
        (("destinations", "out", "--zone", "z5"), "needs the zones"),
        (("destinations", "out", "--zone", "nowhere", "--zones", "zones.geojson"), "no such zone"),
        (("flows", "out", "--zoom", "3,2,1"), "west,south,east,north"),
        (("flows", "out", "--at", "2031-01-01"), "no flow in this time step"),
        (("flows", "out", "out", "out", "out"), "at most 3"),
        (("flows", "other", "--original", "wrong.csv", "--zones", "zones.geojson"), "made from other data"),
    ],
)
def test_bad_input_is_one_sentence(
    made: Path, monkeypatch: pytest.MonkeyPatch, command: Any, arguments: Any, message: str
) -> None:
    monkeypatch.chdir(made)
    rows = (made / "flows.csv").read_text().splitlines()
    (made / "wrong.csv").write_text("\n".join([rows[0], *(row.rsplit(",", 1)[0] + ",41" for row in rows[1:])]) + "\n")
    ran = command("plot", *arguments, "-o", "x-confidential.png")
    assert ran.code == 2 and message in ran.err, ran.err
    assert not Path("x-confidential.png").exists()


def test_titles_of_several_releases_list_what_differs() -> None:
    both = [
        manifest_of({"name": "joint", "parameters": {"k": k, "suppress": share}}, k=k, step_seconds=step)
        for k, share, step in ((10, 0.1, 3600), (10, 0.05, 86400))
    ]
    assert [flow_panels.release_title(one, both) for one in both] == [
        "release: joint, k = 10, suppress = 10%, step = 1 h",
        "release: joint, k = 10, suppress = 5%, step = 24 h",
    ]
    assert flow_panels.release_title(both[0], both[:1]) == "release: joint, k = 10"


def test_kinds_from_python(made: Path) -> None:
    manifest, written = sound_release(made / "out")
    picture = pictures.draw_picture("matrix", [(manifest, written)], None, {}, ReadNotes(), form="svg")
    assert picture._repr_svg_() is not None and picture._repr_png_() is None
    with pytest.raises(CrowdveilError, match="Expected one of"):
        crowdveil.plot("pie", made / "out")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Astoria", "Astoria"),
        ("Van Cortlandt Village + 12", "Van Cortlandt Vi… + 12"),
        ("Central Harlem North + 3", "Central Harlem No… + 3"),
        ("Long Island City/Hunters Point", "Long Island City/Hunt…"),
    ],
)
def test_a_label_on_a_map_keeps_the_zone_and_the_number_of_others(name: str, shown: str) -> None:
    assert shorten(name) == shown and len(shown) <= 22


@pytest.mark.parametrize("zones", [True, False])
def test_a_legend_has_the_numbers_of_its_map(
    made: Path, layouts: list[Drawing], monkeypatch: pytest.MonkeyPatch, zones: bool
) -> None:
    """Where nearly all zones are merged with many others, classes are of their own values."""
    from crowdveil.report.plots import flow_maps

    monkeypatch.setattr(
        flow_maps,
        "merged_with",
        lambda panel, end: np.linspace(100, 300, len(panel.tile_names)) + 50 * (end == "origin"),
    )
    crowdveil.plot("coarsening", made / "out", **({"zones": made / "zones.geojson"} if zones else {}))
    labels = [text.get_text() for legend in layouts[0].figure.legends for text in legend.texts]
    numbers = [float(part) for label in labels for part in label.removesuffix(" and more").split("–") if part.isdigit()]
    assert numbers and min(numbers) >= 100 and max(numbers) <= 350


def test_a_profile_needs_several_time_steps(made: Path, tmp_path: Path) -> None:
    one = crowdveil.anonymize(
        made / "flows.csv",
        tmp_path / "one",
        method="suppression",
        zones=made / "zones.geojson",
        step="all",
        k=5,
        report=False,
    )
    with pytest.raises(InputError, match="has one time step"):
        one.plot.profiles()

"""Measures of flows by their definitions, on dense matrices; and made-up releases of any boxes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, REPORTED, FlowRelease

Box = tuple[tuple[int, ...], tuple[int, ...]]


def dense(data: Flows, step: int) -> np.ndarray:
    matrix = np.zeros((len(data.zones), len(data.zones)))
    rows = slice(data.offsets[step], data.offsets[step + 1])
    matrix[data.origin[rows], data.destination[rows]] = data.volume[rows]
    return matrix


def rebuilt(data: Flows, release: FlowRelease, step: int) -> np.ndarray:
    """Every row spread evenly over its cells, the rest 0."""
    matrix = np.zeros((len(data.zones), len(data.zones)))
    for row in rows_of(data, release, step):
        o, d = tiles(release, release.origin[row]), tiles(release, release.destination[row])
        matrix[np.ix_(o, d)] += release.volume[row] / (len(o) * len(d))
    return matrix


def rows_of(data: Flows, release: FlowRelease, step: int) -> list[int]:
    return [row for row in range(len(release)) if release.t[release.step[row]] == data.t[step]]


def tiles(release: FlowRelease, area: int) -> np.ndarray:
    return release.areas.tiles[release.areas.offsets[area] : release.areas.offsets[area + 1]]


def row_by_search(data: Flows, release: FlowRelease) -> list[int]:
    found = []
    for step, o, d in zip(data.step, data.origin, data.destination, strict=True):
        holds = [
            row
            for row in rows_of(data, release, step)
            if o in tiles(release, release.origin[row]) and d in tiles(release, release.destination[row])
        ]
        assert len(holds) <= 1
        found.append(holds[0] if holds else -1)
    return found


@st.composite
def releases(draw: st.DrawFn, data: Flows) -> FlowRelease:
    """A release of boxes that share no cell, of areas that may be any sets of tiles; some steps are left out whole."""
    everything = tuple(range(len(data.zones)))
    kept = draw(st.lists(st.booleans(), min_size=data.steps, max_size=data.steps))
    rows: list[tuple[int, Box, int]] = []
    for step in range(data.steps):
        matrix = dense(data, step)
        for box in draw(boxes((everything, everything))) if kept[step] else ():
            volume = int(matrix[np.ix_(*box)].sum())
            if volume and draw(st.integers(0, 3)):
                rows.append((step, box, volume))
    # A step without rows may be listed or not: files leave it out, methods keep it.
    listed = sorted({step for step, _, _ in rows} | {s for s in range(data.steps) if draw(st.booleans())})
    order = draw(st.permutations(range(len(rows))))
    rows = sorted((rows[i] for i in order), key=lambda row: row[0])
    areas = sorted({area for _, box, _ in rows for area in box}, key=lambda a: draw(st.integers(0, 9)))
    return _release(data, rows, listed, areas, [draw(st.sampled_from([PUBLISHED, REPORTED])) for _ in rows])


@st.composite
def overlapping_releases(draw: st.DrawFn, data: Flows) -> FlowRelease:
    """A release of boxes that may share cells, with any volumes."""
    some = st.sets(st.sampled_from(range(len(data.zones))), min_size=1).map(lambda held: tuple(sorted(held)))
    row = st.tuples(st.integers(0, data.steps - 1), st.tuples(some, some), st.integers(1, 30))
    rows = sorted(draw(st.lists(row, max_size=12)), key=lambda row: row[0])
    areas = sorted({area for _, box, _ in rows for area in box})
    return _release(data, rows, list(range(data.steps)), areas, [PUBLISHED] * len(rows))


@st.composite
def boxes(draw: st.DrawFn, box: Box) -> list[Box]:
    """A partition of a box: cut at either end into any two sets of tiles, again and again."""
    side = draw(st.integers(-1, 1))
    if side < 0 or len(box[side]) < 2:
        return [box]
    mixed = draw(st.permutations(box[side]))
    cut = draw(st.integers(1, len(mixed) - 1))
    parts = [tuple(mixed[:cut]), tuple(mixed[cut:])]
    halves: list[Box] = [(box[0], part) if side else (part, box[1]) for part in parts]
    return [found for half in halves for found in draw(boxes(half))]


def _release(
    data: Flows, rows: list[tuple[int, Box, int]], listed: list[int], areas: list[tuple[int, ...]], state: list[int]
) -> FlowRelease:
    number = {area: i for i, area in enumerate(areas)}
    volume = np.array([v for _, _, v in rows], np.int64)
    return FlowRelease(
        areas=Areas(
            data.zones,
            np.array([f"a{i}" for i in range(len(areas))], dtype=object),
            np.cumsum([0, *(len(a) for a in areas)]),
            np.array([tile for a in areas for tile in a], np.int32),
        ),
        t=data.t[listed],
        offsets=np.array([sum(s < step for s, _, _ in rows) for step in [*listed, data.steps]]),
        origin=np.array([number[box[0]] for _, box, _ in rows], np.int32),
        destination=np.array([number[box[1]] for _, box, _ in rows], np.int32),
        volume=volume,
        people=volume,
        state=np.array(state, np.uint8),
        suppressed=np.full(len(listed), NOT_GIVEN),
        k_unit="trips",
        step_s=data.step_s,
    )

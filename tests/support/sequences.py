"""Random sequences of releases of a few trips, and what an adversary derives from all that were published."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from plain_ledger import derivable
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import crowdveil
from crowdveil.errors import CrowdveilError
from crowdveil.model.arrays import Ints

K = 3
HOUR, DAY = 3600, 86400
STEPS = {"1h": HOUR, "2h": 2 * HOUR, "1d": DAY, "all": None}
MOST_ATOMS = 12


class Trip(NamedTuple):
    """A trip: its number, which no input has, its person, its ends, and its time."""

    number: int
    person: int
    origin: int
    destination: int
    time: int


class Made(NamedTuple):
    """A published release: the row of each trip, -1 where there is none, and the numbers of people of its rows, if given.

    `boxes` has the trips and the volume of each box.
    """

    row: dict[int, int]
    people: list[int]
    exact: bool
    boxes: dict[Any, tuple[list[int], int]]


def random_trips(rng: np.random.Generator, first: int, n: int) -> list[Trip]:
    who = rng.integers(0, max(4, n), n)
    ends = rng.integers(0, 2, (n, 2))
    times = rng.choice([0, HOUR, 5 * HOUR, DAY], n) + rng.integers(0, HOUR, n)
    return [
        Trip(first + i, int(w), int(o), int(d), int(t))
        for i, (w, (o, d), t) in enumerate(zip(who, ends, times, strict=True))
    ]


def random_input(rng: np.random.Generator, trips: list[Trip]) -> list[Trip]:
    """Return the same trips, a part, earlier ones without late ones, or corrected ones."""
    kind = rng.choice(["same", "day", "hours", "zone", "late", "corrected"])
    if kind == "day":
        return [trip for trip in trips if trip.time < DAY]
    if kind == "hours":
        return [trip for trip in trips if trip.time % DAY < 2 * HOUR]
    if kind == "zone":
        return [trip for trip in trips if trip.origin == 0]
    if kind == "late":
        return trips[: -int(rng.integers(1, 6))]
    if kind == "corrected":
        kept = [trip for trip in trips if rng.random() > 0.1]
        return kept + random_trips(rng, 1000 + int(rng.integers(10**6)), int(rng.integers(0, 4)))
    return trips


def table_of(trips: list[Trip], people: bool, form: str) -> pa.Table:
    time = np.array([trip.time for trip in trips], np.int64)
    shown = time // 60 * 60 if form == "minutes" else time
    text = [f"{trip.origin}" for trip in trips], [f"{trip.destination}" for trip in trips]
    columns = {
        "origin": [f"z{o}" for o in text[0]], "destination": [f"z{d}" for d in text[1]],
        "from_district": [f"d{o}" for o in text[0]], "to_district": ["d"] * len(trips),
        "departure": pa.array(shown * 1_000_000, pa.timestamp("us")),
        "arrival": pa.array((shown + 1800) * 1_000_000, pa.timestamp("us")),
    }  # fmt: skip
    return pa.table(columns | ({"user_id": [f"Person {trip.person}" for trip in trips]} if people else {}))


def random_sequences(seed: int, wanted: int, folder: Path) -> Iterator[tuple[dict[int, Trip], list[Made], bool]]:
    """Yield sequences of two to five accepted releases of one ledger: all trips, the releases, and whether people are known."""
    rng = np.random.default_rng(seed)
    number = 0
    while wanted:
        number += 1
        here = folder / str(number)
        ledger, people = crowdveil.ledger_init(here / "ledger"), bool(rng.random() < 0.5)
        trips, known, made = random_trips(rng, 0, int(rng.integers(10, 40))), dict[int, Trip](), list[Made]()
        for i in range(int(rng.integers(3, 7))):
            given = random_input(rng, trips)
            found = _attempt(rng, given, here, i, ledger, people, made) if given else None
            if found is not None and len(made) < 5:
                made.append(found)
                known |= {trip.number: trip for trip in given}
        if len(made) >= 2:
            wanted -= 1
            yield known, made, people


def _attempt(
    rng: np.random.Generator, given: list[Trip], here: Path, i: int, ledger: Path, people: bool, made: list[Made]
) -> Made | None:
    form = "minutes" if i and rng.random() < 0.1 else "seconds"
    districts, arrival = bool(i and rng.random() < 0.2), bool(i and rng.random() < 0.2)
    step, tz = str(rng.choice(list(STEPS))), "Asia/Tokyo" if i and rng.random() < 0.2 else "UTC"
    names = ("from_district", "to_district") if districts else ("origin", "destination")
    try:
        crowdveil.anonymize(
            table_of(given, people, form), here / str(i), method="suppression", k=K, step=step, tz=tz, origin=names[0],
            destination=names[1], time="arrival" if arrival else "departure", ledger=ledger, attack=False, report=False,
            keep_unchanged=(keeps := bool(rng.random() < 0.2)),
        )  # fmt: skip
    except CrowdveilError:
        return None
    later = 1800 if arrival else 0
    return _read(here / str(i), given, districts, later, STEPS[step], tz, form == "minutes", made, keeps)


def _read(
    folder: Path,
    given: list[Trip],
    districts: bool,
    later: int,
    step: int | None,
    tz: str,
    minutes: bool,
    made: list[Made],
    keeps: bool,
) -> Made:
    flows, steps = pq.read_table(folder / "flows.parquet").to_pylist(), pq.read_table(folder / "steps.parquet")
    number = {(_seconds(row["t"]), row["origin_area"], row["destination_area"]): i for i, row in enumerate(flows)}
    totals = {_seconds(row["t"]): len(flows) + i for i, row in enumerate(steps.to_pylist()) if row["suppressed"]}
    row = {}
    for trip in given:
        ends = (f"d{trip.origin}", "d") if districts else (f"z{trip.origin}", f"z{trip.destination}")
        wall = (trip.time // 60 * 60 if minutes else trip.time) + later
        offset = 9 * HOUR if tz == "Asia/Tokyo" else 0
        t = None if step is None else wall // step * step - offset
        row[trip.number] = number.get((t, *ends), totals.get(t, -1))
    counted = "people" in (flows[0] if flows else {})
    people = [one["people"] for one in flows] if counted else []
    boxes = {}
    for (t, *ends), i in number.items():
        inside, volume = [n for n, own in row.items() if own == i], flows[i]["volume"]
        box = (t, None if t is None else t + (step or 0), *ends)
        earlier = [one.boxes[box][0] for one in made[::-1] if box in one.boxes and one.boxes[box][1] == volume]
        # It keeps the value, and so the trips, of an earlier release; its own trips may be as many by chance.
        if len(inside) != volume or (keeps and earlier and len({*inside} ^ {*earlier[0]}) < K):
            inside = earlier[0]
            row = {n: -1 if own == i else own for n, own in row.items()} | dict.fromkeys(inside, i)
        boxes[box] = inside, volume
    return Made(row, people, counted and any(p != K for p in people), boxes)


def _seconds(t: Any) -> int | None:
    return None if t is None else int(t.astimezone(ZoneInfo("UTC")).timestamp())


class Attacked(NamedTuple):
    """Trips with the same rows in all releases are an atom: the rows of each, its trips, and its people."""

    atoms: Ints
    trips: list[list[Trip]]


def components(known: dict[int, Trip], made: list[Made]) -> Iterator[Attacked]:
    """Yield the atoms of each component of rows: sets in one component can be derived without the others."""
    rows = {n: tuple(release.row.get(n, -1) for release in made) for n in known}
    atoms = sorted({row for row in rows.values() if max(row) >= 0})
    if not atoms:
        return
    table, ends = np.array(atoms, np.int64), list[tuple[int, int]]()
    named: dict[tuple[int, int], int] = {}
    for i, atom in enumerate(atoms):
        for release, row in enumerate(atom):
            if row >= 0:
                ends.append((i, named.setdefault((release, row), len(atoms) + len(named))))
    size = len(atoms) + len(named)
    tail, head = np.array(ends).T
    label = connected_components(coo_array((np.ones(len(ends)), (tail, head)), (size, size)), directed=False)[1]
    for one in np.unique(label[: len(atoms)]):
        mine = np.flatnonzero(label[: len(atoms)] == one)
        yield Attacked(table[mine], [[known[n] for n in known if rows[n] == atoms[i]] for i in mine.tolist()])


def smallest_derivable(found: Attacked, people: bool) -> int | None:
    """Return the fewest people (or trips) of a set whose volume is a combination of volumes; None with too many atoms."""
    if len(found.atoms) > MOST_ATOMS:
        return None
    inside = derivable(found.atoms)
    if not people:
        return int((inside @ np.array([len(trips) for trips in found.trips])).min(initial=K))
    who = [{trip.person for trip in trips} for trips in found.trips]
    groups = (set[int]().union(*(w for w, i in zip(who, chosen, strict=True) if i)) for chosen in inside)
    return min((len(group) for group in groups), default=K)


def group_bounds(found: Attacked, made: list[Made], k: int) -> Iterator[tuple[int, int]]:
    """Yield the narrowest bounds of people in two rows at once, and in one but not in another, from all published numbers.

    An unknown is the number of people who were in exactly some atoms, and the trips of each atom. The adversary knows which atoms
    have trips.
    """
    n = len(found.atoms)
    types = ((np.arange(1, 2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)
    width = len(types) + n
    lines, low, high = list[Any](), list[float](), list[float]()

    def add(of_type: Any, of_atom: Any, least: float, most: float) -> None:
        lines.append(np.concatenate([of_type, of_atom]))
        low.append(least)
        high.append(most)

    hits = []
    for release, one in enumerate(made):
        for row in np.unique(found.atoms[:, release]).tolist():
            if row < 0:
                continue
            atoms = found.atoms[:, release] == row
            hit = types @ atoms > 0
            volume = sum(len(trips) for trips, i in zip(found.trips, atoms, strict=True) if i)
            add(np.zeros(len(types)), atoms, volume, volume)
            if row < len(one.people):
                hits.append(hit)
                least = one.people[row]
                add(hit, np.zeros(n), least, least + k - 1 if one.exact else np.inf)
    for atom in range(n):
        own = np.zeros(n)
        own[atom] = -1
        add(types[:, atom], own, -np.inf, 0)  # each person in it has a trip
        add(types[:, atom], np.zeros(n), 1, np.inf)
    constraint = LinearConstraint(np.array(lines), low, high)
    for first, second in combinations(hits, 2):
        for group in (first & second, first & ~second, second & ~first):
            goal = np.concatenate([group, np.zeros(n)]).astype(float)
            ends = [milp(sign * goal, constraints=constraint, integrality=np.ones(width)) for sign in (1, -1)]
            if ends[0].status == 0:
                yield round(ends[0].fun), 10**9 if ends[1].status else round(-ends[1].fun)

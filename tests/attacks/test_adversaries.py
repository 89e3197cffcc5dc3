"""The eight adversaries: scikit-mobility's own example, what was worked out by hand, and plain twins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plain_attacks as plain
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from small_worlds import TOY, published, walk, world

from crowdveil.attacks.adversary_view import AttackScenario, cut
from crowdveil.attacks.base import Risk
from crowdveil.engine.progress import no_progress
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_attack

KNOWING = ["location", "sequence", "time", "unique-location", "frequency", "probability", "proportion"]


def attacked(name: str, scene: AttackScenario | Trajectories, **parameters: Any) -> Risk:
    attack = find_attack(name)
    scene = scene if isinstance(scene, AttackScenario) else AttackScenario(scene)
    found: Risk = attack.run(scene, attack.params.checked(parameters), no_progress)
    return found


def risks(name: str, **parameters: Any) -> list[float]:
    return [round(float(r), 6) for r in attacked(name, world(TOY), **parameters).risk]


# What scikit-mobility's documentation says of its example, person by person.
@pytest.mark.parametrize(("name", "parameters", "one_over"), [
    ("location", {"knowledge": 2}, [3, 2, 3, 3, 4, 4, 2]),
    ("location", {"knowledge": 3}, [2, 1, 2, 3, 3, 4, 1]),
    ("sequence", {"knowledge": 2}, [2, 2, 1, 2, 1, 3, 2]),
    ("sequence", {"knowledge": 3}, [1, 1, 1, 1, 1, 3, 1]),
    ("time", {"knowledge": 2, "time_precision": "month"}, [3, 2, 3, 3, 4, 4, 2]),
    ("time", {"knowledge": 3, "time_precision": "month"}, [2, 1, 2, 3, 3, 4, 1]),
    ("unique-location", {"knowledge": 2}, [3, 4, 3, 3, 4, 4, 4]),
    ("unique-location", {"knowledge": 3}, [2, 3, 2, 3, 3, 4, 4]),
    ("frequency", {"knowledge": 2}, [3, 1, 3, 3, 3, 3, 1]),
    ("frequency", {"knowledge": 2, "tolerance": 0.5}, [3, 1, 3, 3, 4, 4, 1]),
    ("frequency", {"knowledge": 3, "tolerance": 0.5}, [2, 1, 2, 3, 3, 4, 1]),
    ("probability", {"knowledge": 2}, [2, 1, 2, 1, 1, 1, 1]),
    ("probability", {"knowledge": 2, "tolerance": 0.5}, [3, 2, 3, 3, 4, 1, 1]),
    ("probability", {"knowledge": 3, "tolerance": 0.5}, [2, 1, 2, 3, 3, 1, 1]),
    ("proportion", {"knowledge": 2}, [3, 1, 3, 3, 3, 3, 1]),
    ("proportion", {"knowledge": 2, "tolerance": 0.5}, [3, 4, 3, 3, 3, 3, 4]),
    ("proportion", {"knowledge": 3, "tolerance": 0.5}, [2, 3, 2, 3, 3, 3, 4]),
    ("home-work", {"visited": "least"}, [4, 4, 4, 4, 1, 1, 1]),
])  # fmt: skip
def test_scikit_mobility_s_example(name: str, parameters: dict[str, Any], one_over: list[int]) -> None:
    assert risks(name, **parameters) == [round(1 / n, 6) for n in one_over]


def test_hours_are_hours() -> None:
    """scikit-mobility's hours are days: with two known places its figures are the same for both, with one they are not.

    By hour B at 9 on the 3rd is the first person's alone, B at 8 the third's, D at 12 on the 4th the fourth's. By day, B on the
    3rd is the first's and the third's, A then the first's and the second's, C on the 4th the fourth's and the fifth's. A and B
    on the 4th are the second's and the sixth's either way; A and D on the 5th are one person's each.
    """
    assert risks("time", knowledge=2) == risks("time", knowledge=2, time_precision="day") == [1, 1, 1, 1, 1, 0.5, 1]
    assert risks("time", knowledge=1) == [1, 0.5, 1, 1, 1, 0.333333, 1]
    assert risks("time", knowledge=1, time_precision="day") == [0.5, 0.5, 0.5, 0.5, 1, 0.333333, 1]


def test_home_and_work_by_hand() -> None:
    """Most visited, of equals the southern (B, C, D, A): BC, A with B, BC, BC, CD, BA, AD."""
    assert risks("home-work") == [round(1 / n, 6) for n in (3, 2, 3, 3, 1, 2, 1)]


def test_a_single_location_is_searched_among_two() -> None:
    risk = attacked("home-work", world([walk("AAA"), walk("ABAB"), walk("BB"), walk("CC")]))
    assert risk.group_size.tolist() == [2, 1, 2, 1]


def test_a_location_that_is_known_twice_is_two_records() -> None:
    """Of A, B, B two may be known: A and B lead to two people, B and B to three, and all of it would lead to one."""
    data = world([walk("ABB"), walk("AB"), walk("BB"), walk("BB")])
    assert attacked("location", data, knowledge=2).group_size.tolist() == [2, 2, 3, 3]
    assert attacked("location", data, knowledge=3).group_size.tolist() == [1, 2, 3, 3]


def test_locations_are_tiles_where_a_tile_size_is_given() -> None:
    """B and C are 5.6 km apart, and a point some meters from C is at the same place by tiles of a kilometer."""
    data = world([walk("B"), walk("C"), walk("B")])
    near = replace(data, lat=data.lat + np.array([0.0, 0.0, 1e-5]))
    assert attacked("location", near).group_size.tolist() == [1, 1, 1]
    assert attacked("location", near, tile_m=1000.0).group_size.tolist() == [2, 1, 2]
    scene = AttackScenario(data, published([walk("B"), walk("B")], [0, 2]), "trajectories")
    assert attacked("location", scene, tile_m=1000.0).group_size.tolist() == [2, 0, 2]


def test_people_are_linked_where_the_release_links_them() -> None:
    """Both trajectories of the first person are published under one new number: A and D are at two people then, not at one."""
    data = world([walk("AB"), walk("CD"), walk("AD")], [0, 0, 1])
    linked = replace(published([walk("AD"), walk("CD"), walk("AB")], [2, 1, 0]), person=np.array([2, 1, 1]))
    found = attacked("location", AttackScenario(data, linked, "people"), knowledge=2)
    assert found.group_size.tolist() == [1, 2] and found.units == "people"
    assert attacked("location", AttackScenario(data, linked, "trajectories"), knowledge=2).group_size.tolist() == [
        1,
        1,
        1,
    ]


def test_times_are_cut_on_the_calendar() -> None:
    t = np.array(["1969-12-31T23:59:59", "1970-01-01T00:00:00", "2011-11-01", "2011-01-11"], "M8[s]").astype(np.int64)
    assert cut(t, "year").tolist() == [-1, 0, 41, 41] and cut(t, "month").tolist() == [-1, 0, 502, 492]
    assert cut(t, "day")[:2].tolist() == [-1, 0] and cut(t, "second").tolist() == t.tolist()


WALKS = st.lists(
    st.lists(st.tuples(st.sampled_from("BCDAE"), st.integers(0, 3)), min_size=1, max_size=6), min_size=1, max_size=6
)


def _units(walks: Any) -> list[Any]:
    return [sorted(((p, h * 3600) for p, h in w), key=lambda r: r[1]) for w in walks]


def _plain_units(walks: Any) -> list[Any]:
    """Places as numbers from south to north, so that they sort as they do on the map."""
    return [[("BCDAEFGH".index(p), t // 3600) for p, t in w] for w in walks]


def _joined(walks: list[Any], person: list[int]) -> tuple[list[Any], list[int]]:
    people = sorted(set(person))
    joined = [[r for w, p in zip(walks, person, strict=True) if p == who for r in w] for who in people]
    return [sorted(w, key=lambda r: r[1]) for w in joined], people


@pytest.mark.parametrize("name", KNOWING)
@settings(max_examples=tries(60), deadline=None)
@given(draw=st.data())
def test_the_original_as_plain_loops_find_it(name: str, draw: st.DataObject) -> None:
    walks = _units(draw.draw(WALKS))
    person = [draw.draw(st.integers(0, i)) for i in range(len(walks))]
    person = [sorted(set(person)).index(p) for p in person]
    h, units = draw.draw(st.integers(1, 4)), draw.draw(st.sampled_from(["people", "trajectories"]))
    tolerance = {"tolerance": draw.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))} if name in KNOWING[4:] else {}
    found = attacked(name, AttackScenario(world(walks, person), units=units), knowledge=h, **tolerance)
    plain_walks = _plain_units(walks)
    targets, labels = _joined(plain_walks, person) if units == "people" else (plain_walks, person)
    crowds = plain.crowds(name, targets, targets, labels, labels, h, **tolerance)
    assert found.risk.tolist() == [plain.risk(c) for c in crowds]
    assert found.exact and found.average.exact
    mean = np.mean([np.mean([1 / n for n in c]) for c in crowds])
    assert found.average.value == pytest.approx(mean)


@pytest.mark.parametrize("name", KNOWING)
@settings(max_examples=tries(60), deadline=None)
@given(draw=st.data())
def test_the_release_as_plain_loops_find_it(name: str, draw: st.DataObject) -> None:
    walks, released = _units(draw.draw(WALKS)), _units(draw.draw(WALKS))
    person = [draw.draw(st.integers(0, i)) for i in range(len(walks))]
    source = [draw.draw(st.integers(0, len(walks) - 1)) for _ in released] if draw.draw(st.booleans()) else None
    h = draw.draw(st.integers(1, 4))
    tolerance = {"tolerance": draw.draw(st.sampled_from([0.0, 0.25, 0.5]))} if name in KNOWING[4:] else {}
    scene = AttackScenario(world(walks, person), published(released, source), units="trajectories")
    found = attacked(name, scene, knowledge=h, **tolerance)
    labels = list(range(len(released))) if source is None else [person[s] for s in source]
    wanted = [None] * len(walks) if source is None else person
    known, candidates = _plain_units(walks), _plain_units(released)
    worst = plain.crowds(name, known, candidates, labels, wanted, h, **tolerance, fewest=1)
    assert found.risk.tolist() == [plain.risk(c) for c in worst] and found.paired == (source is not None)
    exactly = plain.crowds(name, known, candidates, labels, wanted, h, **tolerance)
    assert found.average.value == pytest.approx(np.mean([np.mean([1 / n if n else 0 for n in c]) for c in exactly]))


@settings(max_examples=tries(60), deadline=None)
@given(walks=WALKS, released=WALKS, visited=st.sampled_from(["most", "least"]))
def test_home_and_work_as_plain_loops_find_it(walks: Any, released: Any, visited: str) -> None:
    walks, released = _units(walks), _units(released)
    source = [i % len(walks) for i in range(len(released))]
    known, candidates, own = _plain_units(walks), _plain_units(released), list(range(len(walks)))
    before = attacked("home-work", world(walks), visited=visited)
    assert before.group_size.tolist() == plain.home_work(known, known, own, own, visited)
    after = attacked(
        "home-work", AttackScenario(world(walks), published(released, source), "trajectories"), visited=visited
    )
    assert after.group_size.tolist() == plain.home_work(known, candidates, source, own, visited)

"""The adversaries of scikit-mobility by their definitions, word for word and slowly; written from its texts and formulas.

A unit is a list of records (place, time) in order of time. Each adversary has what may be known of a unit, and whether what is
known matches one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Any

Record = tuple[Hashable, Hashable]
Unit = Sequence[Record]


def places(unit: Unit) -> list[Any]:
    return [place for place, _ in unit]


def at_least(known: Sequence[Any], there: Sequence[Any]) -> bool:
    held = Counter(there)
    return all(held[what] >= times for what, times in Counter(known).items())


def in_order(known: Sequence[Any], there: Sequence[Any]) -> bool:
    """Whether the known ones are a subsequence."""
    rest = iter(there)
    return all(what in rest for what in known)


def close(known: float, there: float, tolerance: float) -> bool:
    return there - there * tolerance <= known <= there + there * tolerance


def vector(unit: Unit, shares: bool = False) -> list[tuple[Any, float]]:
    """The different places with how often, or with which share of all records, rising by place."""
    held = Counter(places(unit))
    return [(place, held[place] / len(unit) if shares else held[place]) for place in sorted(held)]


def with_values(known: Sequence[tuple[Any, float]], there: Sequence[tuple[Any, float]], tolerance: float) -> bool:
    held = dict(there)
    return all(place in held and close(value, held[place], tolerance) for place, value in known)


def in_proportion(known: Sequence[tuple[Any, float]], there: Sequence[tuple[Any, float]], tolerance: float) -> bool:
    held = dict(there)
    if any(place not in held for place, _ in known):
        return False
    most, greatest = max(value for _, value in known), max(held[place] for place, _ in known)
    return all(close(value / most, held[place] / greatest, tolerance) for place, value in known)


def two(unit: Unit, visited: str) -> list[Any]:
    """The two most or least visited places; of equally visited ones the lower."""
    sign = -1 if visited == "most" else 1
    return [place for place, _ in sorted(vector(unit), key=lambda pair: (sign * pair[1], pair[0]))[:2]]


Matches = Callable[[Any, Any], bool]
See = Callable[[Unit], list[Any]]


def adversary(name: str, tolerance: float = 0.0) -> tuple[See, Matches]:
    """What is seen of a unit, of which some is known, and how what is known is matched with what is seen of another."""
    seen: dict[str, tuple[See, Matches]] = {
        "location": (places, at_least),
        "sequence": (places, in_order),
        "time": (list, at_least),
        "unique-location": (lambda unit: [place for place, _ in vector(unit)], at_least),
        "frequency": (vector, lambda known, there: with_values(known, there, tolerance)),
        "probability": (lambda unit: vector(unit, True), lambda known, there: with_values(known, there, tolerance)),
        "proportion": (vector, lambda known, there: in_proportion(known, there, tolerance)),
    }
    return seen[name]


def crowds(
    name: str, targets: Sequence[Unit], candidates: Sequence[Unit], labels: Sequence[int], wanted: Sequence[int | None],
    knowledge: int, tolerance: float = 0.0, fewest: int | None = None,
) -> list[list[int]]:  # fmt: skip
    """The crowd of every choice of what is known, for each target: how many labels match, 0 if the wanted one does not.

    Choices are of `knowledge` records (all, of a target with fewer); with `fewest`, of so many up to `knowledge`.
    """
    see, matches = adversary(name, tolerance)
    views = [see(unit) for unit in candidates]
    found = []
    for target, whose in zip(targets, wanted, strict=True):
        of_target = see(target)
        sizes = range(min(fewest or knowledge, len(of_target)), min(knowledge, len(of_target)) + 1)
        found.append([])
        for known in (choice for size in sizes for choice in combinations(of_target, size)):
            crowd = {label for view, label in zip(views, labels, strict=True) if matches(known, view)}
            found[-1].append(len(crowd) if whose is None or whose in crowd else 0)
    return found


def home_work(targets: Sequence[Unit], candidates: Sequence[Unit], labels: Sequence[int], wanted: Sequence[int | None],
              visited: str) -> list[int]:  # fmt: skip
    """The group of each target: all people who have both of its places among their own two."""
    found = []
    for target, whose in zip(targets, wanted, strict=True):
        known = two(target, visited)
        crowd = {label for unit, label in zip(candidates, labels, strict=True) if set(known) <= set(two(unit, visited))}
        found.append(len(crowd) if whose is None or whose in crowd else 0)
    return found


def risk(crowd: Sequence[int]) -> float:
    """That of the worst choice."""
    return max((1 / n for n in crowd if n), default=0.0)

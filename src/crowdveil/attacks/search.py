"""Search the worst and the average combination of background knowledge, for every adversary with a few known locations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from crowdveil import engine
from crowdveil.attacks.adversary_view import AdversaryView, Units
from crowdveil.attacks.base import AdversaryParams, Interval, KnowledgeParams, Risk
from crowdveil.engine.progress import Progress
from crowdveil.kernels.background_knowledge import (
    AT_LEAST,
    IN_ORDER,
    PROPORTION,
    WITHIN,
    Candidates,
    crowds_of,
    smallest_crowds,
)
from crowdveil.model.arrays import Floats, Ints, row_slices, take_slices

CHUNK = 256
"""Individuals of a task, at most."""
MatchKind = Literal["at-least", "within", "proportion", "in-order"]
KnownValues = Literal["records", "counts", "shares"]


@dataclass(frozen=True)
class MatchRule:
    """The rule that matches known locations.

    Attributes
    ----------
    kind
        at-least: each location at least as often as known; within: with its value up to the tolerance; proportion: with
        values in the same proportions; in-order: one after the other.
    by
        The known values: single records, or distinct locations with their visits, or with their share of all visits.
    """

    kind: MatchKind
    by: KnownValues = "records"
    tolerance: float = 0.0


def search_risk(
    units: Units, view: AdversaryView, params: KnowledgeParams, rule: MatchRule, progress: Progress
) -> Risk:
    """Return the risk of each individual by the worst combination, and the average over random individuals and combinations."""
    rng = np.random.default_rng(params.seed)
    tried = draw_targets(len(view.targets), params, rng)
    group_size, exact = _worst(view, tried, params, rule, progress)
    average = _average(view, params, rule, rng)
    return Risk(units, tried, len(view.targets), group_size, exact, average, view.paired)


def _worst(
    view: AdversaryView, tried: Ints, params: KnowledgeParams, rule: MatchRule, progress: Progress
) -> tuple[Ints, bool]:
    """Return the smallest group of each individual by the worst combination, and whether all combinations were tried."""
    search = _search(view, params, rule)
    # Small tasks, so that one long task does not delay the end.
    size = min(CHUNK, max(1, -(-len(tried) // 16)))
    parts = [tried[low : low + size] for low in range(0, len(tried), size)]
    found = engine.current().map(lambda i: search(parts[i]), len(parts), progress)
    group_size = np.concatenate([np.zeros(0, np.int64), *(f[0] for f in found)])
    return group_size, all(bool(f[1].all()) for f in found)


def draw_targets(n: int, params: AdversaryParams, rng: np.random.Generator) -> Ints:
    """Return the individuals to attack of n, rising."""
    if params.people is None or params.people >= n:
        return np.arange(n)
    return np.sort(rng.permutation(n)[: params.people])


def _search(view: AdversaryView, params: KnowledgeParams, rule: MatchRule) -> Callable[[Ints], engine.Arrays]:
    """Return the search for the worst combination, as a task on some individuals."""
    kind, h = _kind(rule), params.knowledge
    in_order = rule.kind == "in-order"
    offsets, location, value, of_candidates = _known(view, rule) if in_order else _profiles(view, rule)
    if rule.kind == "at-least":  # as often as it may be known
        times = np.minimum(value, h if rule.by == "records" else 1).astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(times)])[offsets]
        location, value = np.repeat(location, times), np.repeat(value, times)
    candidates = _candidates(view, of_candidates)
    # Known records of the original may be missing in a release: then fewer of them may match.
    fewest = 1 if view.released else h

    def search(units: Ints) -> engine.Arrays:
        rows, new = take_slices(offsets, units)
        return smallest_crowds(
            kind, rule.tolerance, fewest, h, params.max_combinations, new, location[rows], value[rows], view.wanted[units],
            candidates,
        )  # fmt: skip

    return search


def _kind(rule: MatchRule) -> int:
    return {"at-least": AT_LEAST, "within": WITHIN, "proportion": PROPORTION, "in-order": IN_ORDER}[rule.kind]


def _candidates(view: AdversaryView, value: Floats) -> Candidates:
    index, labels = view.candidates.index, max(view.candidates.labels, view.targets.labels)
    return Candidates(
        index.location_offsets, index.unit, value, index.first, index.position, view.candidates.label, labels
    )


Known = tuple[Ints, Ints, Floats, Floats]
"""Offsets of targets, their locations and values of these, and the values of candidates in the order of the index."""


def _known(view: AdversaryView, rule: MatchRule) -> Known:
    """Return what can be known of targets: their records, which have no values, or their distinct locations."""
    if rule.by != "records":
        return _profiles(view, rule)
    offsets, location = view.targets.offsets, view.targets.location
    return offsets, location, np.zeros(len(location)), view.candidates.index.count.astype(np.float64)


def _profiles(view: AdversaryView, rule: MatchRule) -> Known:
    """Return the distinct locations of targets with their values, and the values of candidates."""
    index = view.candidates.index
    offsets, location, count = view.targets.profiles
    if rule.by != "shares":
        return offsets, location, count.astype(np.float64), index.count.astype(np.float64)
    return (
        offsets,
        location,
        view.targets.share(row_slices(offsets), count),
        view.candidates.share(index.unit, index.count),
    )


def _average(view: AdversaryView, params: KnowledgeParams, rule: MatchRule, rng: np.random.Generator) -> Interval:
    """Return the mean over individuals, and over all combinations of each, of the re-identification probability."""
    if not len(view.targets):
        return Interval.known(0.0)
    every = _known(view, rule)
    lengths = np.diff(every[0])
    known = np.minimum(lengths, params.knowledge)
    choices = []
    if len(lengths) <= params.samples:
        choices = [comb(n, m) for n, m in zip(lengths.tolist(), known.tolist(), strict=True)]
    exact = 0 < sum(choices) <= params.samples
    if exact:
        unit = np.repeat(np.arange(len(lengths)), choices)
        rows = [c for n, m in zip(lengths.tolist(), known.tolist(), strict=True) for c in combinations(range(n), m)]
    else:
        unit = rng.integers(0, len(lengths), params.samples)
        rows = _random_choices(lengths[unit], params.knowledge, rng)
    risk = _risk_of_choices(view, rule, unit, rows, every)
    if not exact:
        return Interval.of_sample(risk)
    weight = 1 / (np.array(choices, np.float64)[unit] * len(lengths))
    return Interval.known(float((risk * weight).sum()))


def _random_choices(lengths: Ints, knowledge: int, rng: np.random.Generator) -> list[list[int]]:
    """Return distinct records of each of some individuals, rising, all combinations equally likely (Floyd, on all rows)."""
    known = np.minimum(lengths, knowledge)
    chosen = np.full((len(lengths), knowledge), -1, np.int64)
    for j in range(knowledge):
        top = lengths - known + j
        pick = rng.integers(0, np.maximum(top, 0) + 1)
        pick = np.where((chosen == pick[:, None]).any(axis=1), top, pick)
        chosen[:, j] = np.where(j < known, pick, np.iinfo(np.int64).max)
    chosen.sort(axis=1)
    return [row[:m].tolist() for row, m in zip(chosen, known.tolist(), strict=True)]


def _risk_of_choices(
    view: AdversaryView, rule: MatchRule, unit: Ints, rows: Sequence[Sequence[int]], known: Known
) -> Floats:
    """Return the re-identification probability of combinations: `rows` of the known records of individual `unit`."""
    offsets, location, value, of_candidates = known
    lengths = np.array([len(choice) for choice in rows], np.int64)
    picked = np.array([r for choice in rows for r in choice], np.int64) + np.repeat(offsets[:-1][unit], lengths)
    sizes = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    group_size = crowds_of(
        _kind(rule), rule.tolerance, sizes, location[picked], value[picked], view.wanted[unit],
        _candidates(view, of_candidates),
    )  # fmt: skip
    risk: Floats = np.zeros(len(group_size))
    np.divide(1.0, group_size, out=risk, where=group_size > 0)
    return risk

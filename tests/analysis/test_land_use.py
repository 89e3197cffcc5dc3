"""Groups of zones and topics of hours, on a made-up city where it is known what they are."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.analysis.land_use import Clustering, ReferenceMap, _matched
from crowdveil.errors import InputError, MissingExtraError, ParameterError
from crowdveil.model.areas import Areas
from crowdveil.model.flows import Flows
from crowdveil.model.release import NOT_GIVEN, PUBLISHED, FlowRelease
from crowdveil.model.zones import Zones

MONDAY = 1_767_571_200
HOMES, WORK, BARS = range(6), range(6, 10), range(10, 12)
KIND = np.array([0] * 6 + [1] * 4 + [2] * 2)


def adjusted_rand_score(*labels: object) -> float:
    """That of scikit-learn, which takes a second to load: not while tests are collected, by every worker."""
    from sklearn import metrics

    return float(metrics.adjusted_rand_score(*labels))


def town(seed: int = 0, scale: float = 1.0) -> Flows:
    """Two weeks: from homes to work at 8, back at 17, to bars on Friday and Saturday evening and back at night."""
    rng = np.random.default_rng(seed)
    rows = []
    for hour in range(24 * 14):
        day, at = hour // 24 % 7, hour % 24
        legs = []
        if day < 5:
            legs += [(HOMES, WORK)] * (at in (7, 8)) + [(WORK, HOMES)] * (at in (17, 18))
        if day in (4, 5):
            legs += [(HOMES, BARS)] * (at == 21) + [(BARS, HOMES)] * (at == 23)
        rows += [(hour, o, d, int(v)) for a, b in legs for o in a for d in b if (v := rng.poisson(30 * scale))]
    hour, o, d, v = (np.array(column) for column in zip(*rows, strict=True))
    zones = Zones.from_ids([f"z{i}" for i in range(12)])
    return Flows.from_rows(zones, MONDAY + 3600 * hour, o.astype(np.int32), d.astype(np.int32), v, step_s=3600)


def as_release(flows: Flows) -> FlowRelease:
    areas = Areas.of_tiles(flows.zones, np.arange(len(flows.zones), dtype=np.int32))
    return FlowRelease(
        areas, flows.t, flows.offsets, flows.origin, flows.destination, flows.volume, flows.people,
        np.full(len(flows), PUBLISHED), np.full(flows.steps, NOT_GIVEN), "trips", 3600,
    )  # fmt: skip


def test_homes_work_and_bars_are_distinguished() -> None:
    found = crowdveil.land_use(as_release(town()))
    assert found.released.count == 3  # by the silhouette
    assert adjusted_rand_score(KIND, found.released.cluster) == 1.0
    assert [found.released.zones_in(g) for g in range(3)] == [6, 4, 2]  # the largest group is the first
    assert found.clusters["z0"] == 1 and found.clusters["z11"] == 3
    lines = "\n".join(found.lines())
    assert "12 zones in 3 groups" in lines and "0 zones with fewer than 20" in lines
    typical = found.released.typical
    assert typical.sum(axis=1) == pytest.approx(np.ones(3))
    assert np.argmax(typical[1]) % 168 % 24 in (7, 8, 17, 18)


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.integers(0, 3)), min_size=1, max_size=12))
def test_a_known_map_is_compared_over_zones_with_a_class(zones: list[tuple[str | None, int]]) -> None:
    labels, cluster = np.array([a for a, _ in zones], dtype=object), np.array([c for _, c in zones])
    known = [(a, c) for a, c in zones if a is not None]
    if not known:
        with pytest.raises(InputError, match="no zone that is grouped has a class"):
            ReferenceMap.of(labels, cluster)
        return
    found = ReferenceMap.of(labels, cluster)
    assert found.agreement == pytest.approx(adjusted_rand_score([a for a, _ in known], [c for _, c in known]))
    for i, name in enumerate(found.classes):
        for j, group in enumerate(found.groups):
            assert found.counts[i, j] == sum((a, c + 1) == (name, group) for a, c in known)
    assert found.without_class == len(zones) - len(known)


def test_groups_are_compared_with_a_known_map(tmp_path: Path) -> None:
    uses = ["home"] * 6 + ["work"] * 4 + ["", "night"]
    (tmp_path / "uses.csv").write_text("id,use\n" + "".join(f"z{i},{use}\n" for i, use in enumerate(uses)))
    release = as_release(town())
    found = crowdveil.land_use(release, zones=tmp_path / "uses.csv", zone_id="id", reference="use")
    assert found.reference is not None and found.reference.agreement == 1 and found.reference.without_class == 1
    assert found.reference.counts.tolist() == [[6, 0, 0], [0, 0, 1], [0, 4, 0]]
    assert "adjusted Rand index) 1.000; 1 zone without a class" in found.lines()[-1]
    assert found.about()["reference"]["classes"] == ["home", "night", "work"]
    with pytest.raises(InputError, match="no column color for reference"):
        crowdveil.land_use(release, zones=tmp_path / "uses.csv", reference="color")
    with pytest.raises(InputError, match="Expected a file of zones with this column"):
        crowdveil.land_use(release, reference="use")
    with pytest.raises(ParameterError, match="only land-use"):
        crowdveil.topics(release, zones=tmp_path / "uses.csv", reference="use")


def test_the_original_in_the_same_way_agrees_with_itself() -> None:
    data = town()
    found = crowdveil.land_use(as_release(data), original=data, most_clusters=4)
    assert found.agreement == found.agreement_same_number == 1.0
    assert found.original is not None and found.original.cluster.tolist() == found.released.cluster.tolist()
    assert found.table().column_names == ["zone", "cluster", "trips_a_day", "original_cluster"]


def test_what_was_lost_is_seen() -> None:
    """A release in which work and bars are one area has them in one group, and agrees less."""
    data = town()
    areas = Areas(data.zones, np.array([*data.zones.ids[:6], "rest"], dtype=object), np.array([0, 1, 2, 3, 4, 5, 6, 12]),
                  np.arange(12, dtype=np.int32))  # fmt: skip
    blurred = replace(
        as_release(data), areas=areas, origin=np.minimum(data.origin, 6), destination=np.minimum(data.destination, 6)
    )
    found = crowdveil.land_use(blurred, original=data, most_clusters=4)
    assert found.released.count == 2 and found.original is not None and found.original.count == 3
    assert 0 < found.agreement < 1
    # Groups of the original have the numbers of those that they share most zones with.
    assert found.original.cluster[:6].tolist() == found.released.cluster[:6].tolist()


def test_only_zones_with_enough_trips_in_both_are_grouped() -> None:
    data = town()
    of_z0 = (data.origin == 0) | (data.destination == 0)
    thin = as_release(data.where(~of_z0 | (np.cumsum(of_z0) % 40 == 0)))
    found = crowdveil.land_use(thin, original=data, most_clusters=3)
    assert 0 not in found.grouped and len(found.grouped) == 11
    assert "1 zone with fewer than 20 trips a day not grouped" in found.lines()[0]


def test_the_same_seed_gives_the_same_groups_and_a_number_is_a_number() -> None:
    data = as_release(town(seed=5))
    first, again = (crowdveil.land_use(data, seed=3, clusters=4) for _ in range(2))
    assert first.released.cluster.tolist() == again.released.cluster.tolist() and first.released.count == 4
    assert list(crowdveil.land_use(data, least_clusters=3, most_clusters=5).released.silhouette) == [3, 4, 5]


def test_groups_are_matched_by_the_zones_that_they_share() -> None:
    shape = np.eye(6)
    ours = Clustering(np.array([0, 0, 1, 1, 2, 2]), shape, {})
    turned = Clustering(np.array([2, 2, 0, 0, 1, 1]), shape, {})
    assert _matched(turned, ours).cluster.tolist() == [0, 0, 1, 1, 2, 2]
    fewer = Clustering(np.array([0, 0, 0, 0, 1, 1]), shape, {})
    assert _matched(fewer, ours).cluster.tolist() in ([0, 0, 0, 0, 2, 2], [1, 1, 1, 1, 2, 2])
    assert _matched(ours, fewer).cluster.tolist() in ([0, 0, 2, 2, 1, 1], [2, 2, 0, 0, 1, 1])


def test_too_few_zones_and_wrong_numbers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    data = as_release(town())
    with pytest.raises(InputError, match=r"Expected more than 2 zones .* trips a day, got 0. Lower least_trips="):
        crowdveil.land_use(data, least_trips=1e6)
    with pytest.raises(ParameterError, match="most_clusters of least_clusters or more"):
        crowdveil.land_use(data, least_clusters=5, most_clusters=3)
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(MissingExtraError, match=r"crowdveil\[analysis\]"):
        crowdveil.land_use(data)


def test_topics_are_the_ways_that_the_town_was_made_of() -> None:
    found = crowdveil.topics(as_release(town()), topics=3)
    assert found.hours.sum(axis=1) == pytest.approx(np.ones(len(found.hours)))
    assert found.flows.sum(axis=1) == pytest.approx(np.ones(3)) and found.covered == pytest.approx(1)
    assert np.all(np.diff(found.share) <= 0) and found.share.sum() == pytest.approx(1)
    # Work and home are the two large ones, each with its own hours and its own direction.
    slots, by_slot = found.by_slot()
    for hour, ends in ((8, (HOMES, WORK)), (17, (WORK, HOMES))):
        topic = int(np.nanargmax(by_slot[hour]))
        assert by_slot[hour, topic] > 0.95
        for o, d, _ in found.main_flows(topic, 5):
            assert o in ends[0] and d in ends[1]
    assert np.isnan(by_slot[3]).all() and slots.name(3) == "Monday 03:00"  # nobody travels at three
    again = crowdveil.topics(as_release(town()), topics=3)
    assert again.hours.tolist() == found.hours.tolist()


def test_words_and_documents_can_be_others() -> None:
    data = as_release(town())
    steps = crowdveil.topics(data, topics=2, documents="step", words="areas", flows=3)
    assert len(steps.documents) == len(data.t) and steps.table().column_names[2] == "t"
    table = steps.table().to_pylist()
    assert sum(row["what"] == "flows" for row in table) == 6 and table[0]["origin"] is None
    few = crowdveil.topics(data, topics=2, documents="day", most_flows=10)
    assert len(few.origin) == 10 and 0 < few.covered < 0.5 and "10 flows with" in few.lines()[0]
    many = crowdveil.topics(as_release(town(scale=3)), topics=12)
    assert len(many) < 12 and f"{12 - len(many)} of 12 topics are empty and left out" in many.lines()[-1]


def test_topics_of_nothing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = town()
    with pytest.raises(InputError, match="at least two hours"):
        crowdveil.topics(as_release(data.at_steps(np.array([0]))))
    with pytest.raises(InputError, match="need time steps"):
        crowdveil.topics(replace(as_release(data), step_s=None), documents="step")
    with pytest.raises(InputError, match="25,200 seconds"):  # before anything is written
        crowdveil.topics(replace(as_release(data), step_s=7 * 3600), documents="step")
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(MissingExtraError, match="finding topics"):
        crowdveil.topics(as_release(data))

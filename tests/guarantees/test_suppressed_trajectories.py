"""The suppression budget of trajectories: the checker goes red where too many are missing, or too few people's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import SuppressedTrajectories, guarantee_from_manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.run import pipeline, releases
from crowdveil.solve.trajectory import microaggregation

TABLES_ONLY = {"attack": False, "report": False}
BUDGET = SuppressedTrajectories(suppress=0.2, k=2, k_unit="people")


def _original(person: list[int]) -> Trajectories:
    n = len(person)
    lon = np.arange(n) * 0.001
    people = np.array([f"p{p}" for p in range(max(person) + 1)], dtype=object)
    return Trajectories(lon, np.zeros(n), np.zeros(n), np.arange(n + 1), np.arange(n), np.array(person), people)


def _written(n: int) -> WrittenRelease:
    table = pa.table(
        {
            "lat": pa.array([0.0] * n),
            "lon": pa.array([0.0] * n),
            "timestamp": pa.array([0] * n, pa.timestamp("s")),
            "published_id": pa.array(range(1, n + 1), pa.int64()),
        }
    )
    return WrittenRelease(Path("out"), table, None, [])


def test_the_budget_counts_what_is_missing_of_the_original() -> None:
    original = _original(list(range(10)))
    assert BUDGET.check(_written(8)).outcome == "not checked"
    assert BUDGET.check_with_trajectories(_written(8), original, np.arange(8)).holds
    assert BUDGET.check_with_trajectories(_written(10), original, np.arange(10)).holds
    over = BUDGET.check_with_trajectories(_written(7), original, np.arange(7))
    assert over.violated and over.detail == "too many are suppressed."
    # Without the originals of the written ones the number alone is known.
    assert BUDGET.check_with_trajectories(_written(8), original, None).outcome == "not checked"
    assert BUDGET.check_with_trajectories(_written(7), original, None).violated
    assert guarantee_from_manifest(BUDGET.name, BUDGET.model_dump(mode="json")) == BUDGET


def test_one_absent_person_is_a_violation() -> None:
    """An adversary who misses a single person in a release knows that theirs is the suppressed trajectory."""
    original = _original(list(range(10)))
    one = BUDGET.check_with_trajectories(_written(9), original, np.arange(9))
    assert one.violated and one.detail == "no more than allowed are suppressed; they are of fewer than 2."
    twice = _original([*range(8), 8, 8])
    assert BUDGET.check_with_trajectories(_written(8), twice, np.arange(8)).violated
    counted = SuppressedTrajectories(suppress=0.2, k=2, k_unit="trajectories")
    assert counted.check_with_trajectories(_written(8), twice, np.arange(8)).holds


@pytest.mark.parametrize("source", [np.zeros(8, np.int64), np.arange(7)])
def test_a_source_that_is_not_one_original_each_is_a_violation(source: np.ndarray) -> None:
    finding = BUDGET.check_with_trajectories(_written(8), _original(list(range(10))), source)
    assert finding.violated and "number of trajectories in the files" in finding.detail


def _walks() -> Trajectories:
    """Twenty people in pairs, and two far from all."""
    lon = np.repeat(np.concatenate([np.arange(20) // 2 * 0.01, [0.5, 0.9]]), 2)
    n = 22
    people = np.array([f"p{p}" for p in range(n)], dtype=object)
    return Trajectories(
        lon, np.zeros(2 * n), np.tile([0, 60], n), np.arange(0, 2 * n + 1, 2), np.arange(n), np.arange(n), people
    )


def test_a_run_states_and_verifies_the_budget(tmp_path: Path) -> None:
    data = _walks()
    result = pipeline.run(
        pipeline.Request("microaggregation", data, tmp_path / "out", {"k": 2, "suppress": "10%"}, options=TABLES_ONLY)
    )
    (entry,) = [g for g in result.manifest["guarantees"] if g["name"] == BUDGET.name]
    assert entry["outcome"] == "holds" and entry["parameters"] == {"suppress": 0.1, "k": 2, "k_unit": "people"}
    assert entry["statement"] == "At most 10 % of the trajectories are suppressed: none, or those of at least 2 people."
    assert result.manifest["cost"]["suppressed_trajectories_percent"] == 10  # in steps of 10 %: 2 of 22 people
    assert len(result.release) == 20
    releases.verify(tmp_path / "out")


def test_a_method_that_suppresses_a_single_person_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(
        data: Trajectories, groups: microaggregation.PublishedGroups, share: float, weight: float = 0.0
    ) -> microaggregation.PublishedGroups:
        made, members, offsets = groups
        return microaggregation.PublishedGroups(made, members[1:], np.concatenate([[0], offsets[1:] - 1]))

    data = _walks()
    monkeypatch.setattr(microaggregation, "without_outliers", broken)
    parameters = {"k": 2, "suppress": "10%", "count_trajectories": False}
    with pytest.raises(GuaranteeViolatedError, match=r"suppressed-trajectories|trajectory-k-anonymity"):
        pipeline.run(pipeline.Request("microaggregation", data, tmp_path / "out", parameters, options=TABLES_ONLY))
    assert not (tmp_path / "out").exists()

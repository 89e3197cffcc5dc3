"""Short runs of the long checks in serving_checks.py; benchmarks/service.py runs them whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import serving_checks as checks
from serving import Running, cabs
from serving_hostile import hostile


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service of our own, that may be killed and filled."""
    service = Running(tmp_path_factory.mktemp("roomy"))
    service.make_token("anna")
    service.start()
    yield service
    service.stop()


@pytest.mark.filterwarnings("ignore:Unsupported geometry")  # GDAL's own
def test_no_broken_file_meets_a_fault_of_ours() -> None:
    ends = checks.performed(60, seed=5)
    assert ends["InputError"] > 30


@pytest.mark.slow
def test_broken_files_end_in_a_sentence_and_leave_nothing(roomy: Running) -> None:
    assert checks.fuzz(roomy, 16, seed=11)["202"] > 5


@pytest.mark.slow
def test_many_clients_at_once(roomy: Running) -> None:
    assert checks.load(roomy, jobs=12, clients=6)["jobs"] == 12


@pytest.mark.slow
def test_a_full_queue_of_one_does_not_hold_up_another(roomy: Running) -> None:
    assert checks.fair(roomy, queued=12)["jobs before it"] <= 4


@pytest.mark.slow
def test_nothing_is_lost_where_workers_and_the_server_are_killed(roomy: Running) -> None:
    ran = checks.killing(roomy, jobs=6, every_s=1.0, seed=2)
    assert ran["jobs"] == 6 and ran["runs"] >= 6


@pytest.mark.slow
def test_an_upload_is_not_held_in_memory(roomy: Running, tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    block = cabs(5000, 5)
    with file.open("w") as written:
        while written.tell() < 96 << 20:
            written.write(block)
    assert checks.upload(roomy, file)["MiB grown"] < 30


@pytest.mark.slow
def test_the_description_of_the_api_holds_and_nothing_is_a_fault(running: Running) -> None:
    checks.described(running, examples=1, seed=1, phases="fuzzing")


@pytest.mark.slow
def test_hostile_files_open_nothing_and_ask_nobody(tmp_path: Path) -> None:
    service = Running(tmp_path / "data")
    service.make_token("anna")
    seen = hostile(service, 36, seed=3)
    assert seen["202"] > 10

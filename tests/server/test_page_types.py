"""The page's types and the description of the API come from the models of answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowdveil.server import page_types
from crowdveil.server.kinds import KINDS
from crowdveil.server.page_types import main
from crowdveil.server.queue.job import STATES
from crowdveil.server.views import JobView


def test_the_types_of_the_page_are_up_to_date(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["--check"]) == 0
    monkeypatch.setattr(page_types, "TARGET", tmp_path / "views.ts")
    assert main(["--check"]) == 1
    assert main([]) == 0 and main(["--check"]) == 0


def test_the_model_names_every_state_and_kind() -> None:
    fields = JobView.model_json_schema()["properties"]
    assert fields["state"]["enum"] == list(STATES)
    assert sorted(fields["kind"]["enum"]) == sorted(KINDS)

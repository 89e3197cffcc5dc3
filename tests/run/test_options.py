"""Options of a run are declared once, and every interface has them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from run_files import read_run_file

import crowdveil
from crowdveil.cli.draw import draw
from crowdveil.errors import ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.run import pipeline
from crowdveil.run.options import EngineOptions, ReleaseOptions, RunOptions
from crowdveil.verbs.anonymize import VERB, JobOptions

GIVEN: dict[str, Any] = {
    "seed": 5, "format": "csv", "export": "omx", "attack": False, "report": False, "title": "Taxis",
    "purpose": "research", "recipient": "everyone", "overwrite": True,
    "pairing": "pairs.csv", "ledger": "ledger", "keep_unchanged": True, "independent": True, "engine": "spark",
    "master": "yarn", "table": "delta",
}  # fmt: skip


def test_this_test_gives_every_option_another_value_than_its_default() -> None:
    assert {*GIVEN} == {*RunOptions.model_fields} == {*ReleaseOptions.model_fields, *EngineOptions.model_fields} | {
        "overwrite", "pairing", "ledger", "keep_unchanged",
        "independent"}  # fmt: skip
    assert all(getattr(RunOptions(), name) != value for name, value in GIVEN.items())


@pytest.mark.parametrize(
    ("method", "others"),
    [("joint", ("pairing",)), ("swapmob", ("ledger", "keep_unchanged", "independent"))],
)
def test_the_command_line_has_them(method: str, others: tuple[str, ...]) -> None:
    group = draw(VERB)
    assert isinstance(group, click.Group)
    command = group.get_command(click.Context(group), method)
    assert command is not None
    options = {o for param in command.params for o in (*param.opts, *param.secondary_opts)}
    assert {f"--{name.replace('_', '-')}" for name in GIVEN if name not in others} <= options
    assert (
        not any(f"--{other.replace('_', '-')}" in options for other in others)
        and {"--no-attack", "--no-report"} <= options
    )


def test_python_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[pipeline.Request] = []

    def run(request: pipeline.Request, progress: Any, stage: Any) -> Any:
        asked.append(request)
        return SimpleNamespace(notes=ReadNotes())

    monkeypatch.setattr(pipeline, "run", run)
    crowdveil.anonymize("a.csv", "out", method="joint", k=7, step="1h", **GIVEN)
    assert (asked[0].parameters, asked[0].reading, asked[0].options) == ({"k": 7}, {"step": "1h"}, GIVEN)


def test_run_files_have_them(tmp_path: Path) -> None:
    content = {"method": "joint", "input": "a.csv", "output": "out"}
    (tmp_path / "run.json").write_text(json.dumps(content | GIVEN))
    found = read_run_file(tmp_path / "run.json")
    assert found.options | {"overwrite": found.overwrite} == GIVEN
    for name in GIVEN:
        (tmp_path / "run.json").write_text(json.dumps(content | {name: {"a": 1}}))
        with pytest.raises(ParameterError, match=rf"run\.json: {name}: Expected"):
            read_run_file(tmp_path / "run.json")


def test_the_service_has_those_that_mean_something_there() -> None:
    own = {"data_name"}
    assert {*JobOptions.model_fields} == {*ReleaseOptions.model_fields} | own
    for name in ReleaseOptions.model_fields:
        assert JobOptions.model_fields[name].description == RunOptions.model_fields[name].description

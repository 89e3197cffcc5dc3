"""What a new user meets: short options, other spellings, misspelt names, the note about compilation, and `warmup`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from manifests import manifest_of

import crowdveil
from crowdveil.cli import console
from crowdveil.cli.main import COMMANDS
from crowdveil.errors import InputError, ParameterError
from crowdveil.io.manifest import read_manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.kernels import _jit
from crowdveil.registry import find_measure, find_method
from crowdveil.run.result import Result


def test_k_has_a_short_option(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("origin,destination,volume\n" + "".join(f"a,b{i},30\n" for i in range(5)))
    ran = command("anonymize", "suppression", tmp_path / "flows.csv", "-k", 20, "-o", tmp_path / "out", "--no-report")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["method"]["parameters"]["k"] == 20


def test_the_help_of_a_method_fits_three_screens(command: Callable[..., Any]) -> None:
    shown = command("anonymize", "joint", "--help").out
    groups = [line for line in shown.splitlines() if line and line[0].isalpha() and line.endswith(":")]
    assert groups == ["Options:", "Method:", "Input:", "Output:", "Run:"] and len(shown.splitlines()) <= 150
    first = shown[shown.index("Options:") : shown.index("Method:")]
    names = re.findall(r"^  (?:-\w, )?--([a-z]+) ", first, re.MULTILINE)
    assert names == ["k", "suppress", "zones", "step", "tz", "output"]


def test_without_a_method_the_data_decide(command: Callable[..., Any], tmp_path: Path) -> None:
    trips = "origin,destination,volume\n" + "".join(f"a,b{i},30\n" for i in range(3))
    points = "x,y,timestamp,trajectory_id\n" + "".join(f"2.3,48.8,{60 * i},{i // 3}\n" for i in range(12))
    zones = tmp_path / "zones.csv"
    zones.write_text("zone_id,lon,lat\na,2,48\n" + "".join(f"b{i},2.{i},49\n" for i in range(3)))
    for name, content, method in (("trips.csv", trips, "joint"), ("points.csv", points, "microaggregation")):
        (tmp_path / name).write_text(content)
        for arguments in ((tmp_path / name, "-k", 2), ("--no-attack", "-k", 2, tmp_path / name)):
            given = (*arguments, *(("--zones", zones) if method == "joint" else ()))
            ran = command("anonymize", *given, "-o", tmp_path / "out", "--overwrite", "--no-report")
            assert ran.code == 0 and f"note: the method is {method}, " in ran.err
            assert json.loads((tmp_path / "out" / "manifest.json").read_text())["method"]["name"] == method
        made = crowdveil.anonymize(tmp_path / name, k=2, report=False, zones=zones if method == "joint" else None)
        assert made.manifest["method"]["name"] == method
    assert "crowdveil anonymize auto [OPTIONS] INPUT" in command("anonymize", tmp_path / name, "--help").out


def test_a_step_is_text_or_a_length_of_time(tmp_path: Path) -> None:
    trips = pa.table(
        {"origin": ["a"] * 6, "destination": ["b"] * 6, "time": [f"2020-01-01T08:{i}0:00" for i in range(6)]}
    )
    for step in ("2h", timedelta(hours=2), pd.Timedelta("2h")):
        made = crowdveil.anonymize(trips, method="suppression", k=3, step=step, report=False, attack=False)
        assert made.manifest["step_seconds"] == 7200
    with pytest.raises(ParameterError, match="step: Expected a length of time"):
        crowdveil.anonymize(trips, step=timedelta(microseconds=5))


@pytest.mark.parametrize("spelled", ["anonymise", "analyse"])
def test_british_spellings_are_accepted(command: Callable[..., Any], spelled: str) -> None:
    ran = command(spelled, "--help")
    assert ran.code == 0 and "Examples:" in ran.out


@pytest.mark.parametrize(
    ("arguments", "near"),
    [(("anonymize", "jont", "x"), "joint"), (("compar", "x"), "compare"), (("anonymze",), "anonymize")],
)
def test_a_misspelt_name_gets_a_suggestion(command: Callable[..., Any], arguments: tuple[str, ...], near: str) -> None:
    ran = command(*arguments)
    assert ran.code == 2 and ran.sentence.endswith(f"Did you mean {near}?")


def test_records_are_suggested_only_where_near() -> None:
    with pytest.raises(ParameterError, match=r"there is no method Joints. Did you mean joint\?"):
        find_method("Joints")
    with pytest.raises(ParameterError, match="Known are generalization, "):
        find_measure("zzz")


@pytest.mark.parametrize("name", ["nowhere", "nowhere.csv"])
def test_a_missing_release_is_missing(command: Callable[..., Any], tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="there is no such file or folder"):
        read_manifest(tmp_path / name)
    (tmp_path / "cabs.csv").write_text("lat,lon,timestamp,trajectory_id\n48,2,100,1\n")
    (tmp_path / "measures.json").write_text(
        json.dumps({"original_dataset": str(tmp_path / "cabs.csv"), "anonymized_dataset": str(tmp_path / name),
                    "measures": [{"name": "Rsme", "params": {}}]})
    )  # fmt: skip
    assert "there is no such file or folder" in command("measure", "-f", tmp_path / "measures.json").sentence


def test_every_guarantee_is_shown_with_its_outcome() -> None:
    guarantees = [
        {"name": "flow-k-anonymity", "statement": "Rows have k people.", "kind": "privacy", "outcome": "holds"},
        {"name": "true-volumes", "statement": "Volumes are true.", "kind": "structure", "outcome": "not checked"},
    ]
    rest = {"parameters": {}, "checked": "", "with_original": False}
    manifest = manifest_of(guarantees=[entry | rest for entry in guarantees])
    lines = Result("out", manifest, None, ReadNotes(), []).lines()
    assert lines[:2] == ["  holds        Rows have k people.", "  not checked  Volumes are true."]


def test_the_first_run_says_why_it_takes_longer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jit, "CACHE", tmp_path)
    console.show_if_compiling()
    assert capsys.readouterr().err == "", "no person reads it"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    console.show_if_compiling()
    assert "Compiling for this machine" in capsys.readouterr().err
    (tmp_path / "kernel").touch()
    console.show_if_compiling()
    assert capsys.readouterr().err == ""


def test_warmup_compiles_a_method(command: Callable[..., Any]) -> None:
    ran = command("server", "warmup", "suppression")
    assert ran.code == 0 and "compiled the kernels of 1 method" in ran.out, ran.err
    assert "Did you mean suppression?" in command("server", "warmup", "supression").sentence


def test_every_command_is_in_the_help(command: Callable[..., Any]) -> None:
    said = command("--help").out
    assert all(f"  {name} " in said for name in COMMANDS)

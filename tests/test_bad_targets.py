"""Targets that cannot be written, or hold something else: one sentence, exit code 2, nothing changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bad_input import (
    POINTS,
    TRIPS,
    Command,
    anonymized,
    edited,
    refused,
    released,
)


def test_a_folder_that_exists_is_not_replaced(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "out").mkdir()
    (here / "out" / "diary.txt").write_text("mine")
    assert "exists" in refused(command, here, *anonymized("points.csv"))
    assert "no release" in refused(command, here, *anonymized("points.csv", "--overwrite"))


def test_a_release_is_replaced_only_when_asked(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    released(command, *anonymized("points.csv"))
    assert "--overwrite" in refused(command, here, *anonymized("points.csv"))
    (here / "points.csv").write_text(edited(POINTS, 1, 0, "north"))
    refused(command, here, *anonymized("points.csv", "--overwrite"))
    (here / "points.csv").write_text("\n".join(POINTS.splitlines()[:3]) + "\n")
    _, table = released(command, *anonymized("points.csv", "--overwrite"))
    assert len(table) == 2
    assert sorted(p.name for p in here.iterdir()) == ["out", "points.csv"]


def test_an_output_that_is_a_file_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "trips.csv").write_text(TRIPS)
    (here / "out").write_text("mine")
    assert "file" in refused(command, here, *anonymized("points.csv", "--overwrite"))
    (here / "folder").mkdir()
    assert "folder" in refused(command, here, "flows", "trips.csv", "-o", "folder", "--overwrite")
    (here / "out.csv").write_text("mine")
    assert "exists" in refused(command, here, "flows", "trips.csv", "-o", "out.csv")


@pytest.mark.parametrize("target", ["/dev/null/out", "/proc/crowdveil/out", "points.csv/out"])
def test_a_place_that_cannot_be_written_is_refused(target: str, here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    sentence = refused(command, here, "anonymize", "simple-generalization", "points.csv", "-o", target)
    assert "cannot be written" in sentence
    assert target in sentence


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(here: Path, command: Command) -> None:
    (here / "points.csv").write_text(POINTS)
    (here / "closed").mkdir(mode=0o555)
    sentence = refused(command, here, "anonymize", "simple-generalization", "points.csv", "-o", "closed/out")
    assert "cannot be written (Permission denied)" in sentence

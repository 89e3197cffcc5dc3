"""docs/coverage.md: every command on it runs, in the order of the page."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parent.parent / "docs/coverage.md"
FILES = {
    "run.json": {"method": "SimpleGeneralization", "input_file": "cabs.parquet", "output_folder": "out/files"},
    "measures.json": {
        "original_dataset": "cabs.parquet",
        "anonymized_dataset": "out/files/cabs_anonymized/cabs_anonymized.csv",
        "measures": [{"name": "TrajectoriesRemoved"}],
    },
    "analysis.json": {
        "method": "QuadTreeHeatMap",
        "input_file": "cabs.parquet",
        "output_folder": "out/files",
        "main_output_file": "map.json",
        "params": {"min_k": 3},
    },
}
TABLES = {"pois.csv": "lon,lat,category\n2.33,48.84,shop\n2.34,48.85,school\n2.36,48.86,clinic\n2.37,48.84,shop\n"}
"""Made by `printf` on the page."""
NOT_RUN = {"crowdveil serve", "crowdveil measure"}
"""Named in a sentence, without arguments."""


def commands() -> list[list[str]]:
    """Return the commands of the page in its order: lines of blocks, and code in tables."""
    found = re.findall(r"^(crowdveil .+)$|`(crowdveil [^`]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    texts = [line or code for line, code in found]
    return [shlex.split(text)[1:] for text in texts if text not in NOT_RUN]


def test_the_page_names_every_paper_and_many_commands() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [f"## 00{i}: " in text for i in range(5)] == [True] * 5 and len(commands()) > 40
    assert "Mondrian tries" in text  # the departure that changes its results


@pytest.mark.slow
def test_every_command_of_the_page_runs(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("matplotlib", "sklearn", "h3"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    for name, content in FILES.items():
        Path(name).write_text(json.dumps(content))
    for name, text in TABLES.items():
        Path(name).write_text(text)
    failed = [(arguments, ran.err[-300:]) for arguments in commands() if (ran := command(*arguments)).code != 0]
    assert not failed, failed

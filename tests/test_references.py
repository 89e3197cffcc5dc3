"""References to options inside messages are rendered wherever people read them."""

from __future__ import annotations

import re
from pathlib import Path

import crowdveil


def test_no_reference_reaches_a_release(tmp_path: Path) -> None:
    rows = [f"a,b,2026-01-01T08:{i:02}:00,p{i}" for i in range(12)]
    (tmp_path / "trips.csv").write_text("\n".join(["origin,destination,departure,user_id", *rows]) + "\n")
    result = crowdveil.anonymize(tmp_path / "trips.csv", tmp_path / "out", method="suppression", k=2)
    assert any("departure is taken as time (name another with time)" in note for note in result.notes.messages)
    for path in (tmp_path / "out").iterdir():
        text = path.read_bytes().decode("utf-8", errors="ignore") + str(result.notes.sentences())
        assert not re.search(r"(Option|Name)\(name=|PosixPath\(", text), path.name

"""A release of trajectories that lies on a cluster, checked there from the files alone, in the pieces that guarantees allow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, Option
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.io.values import one_array
from crowdveil.io.written import WrittenRelease
from crowdveil.progress import Progress, no_progress
from crowdveil.run.verification import check

PIECE_POINTS = 1_000_000
"""Points that are looked at together, about so many."""
_PLACED = ("file", "at")


@dataclass(frozen=True)
class CheckedPiece:
    """Checks some whole trajectories; it knows guarantees and files, and nothing of methods.

    Attributes
    ----------
    guarantees
        What is checked.
    features
        The areas, as in the GeoJSON, without outlines.
    """

    guarantees: tuple[Guarantee, ...]
    features: list[dict[str, Any]]
    schema = pa.schema([("told", pa.string()), ("file", pa.string()), ("first", pa.int64()), ("last", pa.int64())])

    def __call__(self, piece: pa.Table) -> pa.Table:
        """One line: what came of each guarantee; and which numbers trajectories have here."""
        rows = piece.sort_by([(name, "ascending") for name in _PLACED])
        number = one_array(rows["trajectory_id"])
        first, last = pc.min(number).as_py(), pc.max(number).as_py()
        plain = rows.drop_columns([name for name in (*_PLACED, "piece") if name in rows.column_names])
        # A run is numbered from 1 here; that runs follow one another is looked at where all are known. Pieces that are no
        # runs are gathered from anywhere: their numbers mean nothing there.
        place = plain.column_names.index("trajectory_id")
        if first is not None:
            plain = plain.set_column(place, "trajectory_id", pc.subtract(number, first - 1))
        written = WrittenRelease(Path("the piece"), plain, None, self.features)
        told = json.dumps([finding.as_json() for _, finding in check(written, self.guarantees)])
        made = [[told], [rows["file"][0].as_py()], [first], [last]]
        return pa.table([pa.array(m, f.type) for m, f in zip(made, self.schema, strict=True)], schema=self.schema)


def refuse_whole(guarantees: Sequence[Guarantee], folder: str) -> None:
    """Raise if a guarantee cannot be looked at in pieces."""
    whole = [guarantee.name for guarantee in guarantees if guarantee.pieces == "none"]
    if whole:
        raise InputError(
            folder,
            f"the guarantee {whole[0]} is looked at in all trajectories at once, which is done without Spark; leave "
            f"{Option('engine')} out.",
        )


def check_tracks_there(
    engine: SparkEngine, data: str, features: list[dict[str, Any]], guarantees: Sequence[Guarantee],
    progress: Progress = no_progress,
) -> list[tuple[Guarantee, Finding]]:  # fmt: skip
    """What came of each guarantee on the files of a release of trajectories."""
    refuse_whole(guarantees, data)
    plain = [{"properties": feature["properties"]} for feature in features]
    rows = engine.read(data)
    if "user_id" in rows.columns:
        raise InputError(
            data,
            f"its trajectories are linked by people, which is verified without Spark; leave {Option('engine')} out.",
        )
    rows = rows.selectExpr("*", "_metadata.file_path AS file", "_metadata.row_index AS at")
    found: dict[int, Finding] = {}
    for kind, make in (("runs", _runs), ("equal", _equal)):
        which = [i for i, guarantee in enumerate(guarantees) if guarantee.pieces == kind]
        if not which:
            continue
        function = CheckedPiece(tuple(guarantees[i] for i in which), plain)
        pieces, number = make(engine, rows)
        told = engine.gather(engine.map_groups(pieces, "piece", function, CheckedPiece.schema, number), progress)
        findings = [json.loads(line) for line in told["told"].to_pylist()]
        if not findings:  # nothing is published
            nothing = WrittenRelease(Path("nothing"), _empty(engine, data), None, plain)
            findings = [[finding.as_json() for _, finding in check(nothing, function.guarantees)]]
        for place, i in enumerate(which):
            found[i] = guarantees[i].merged([Finding.from_json(of_piece[place]) for of_piece in findings])
            if guarantees[i].name == "well-formed-trajectories" and not _follow(told):
                found[i] = guarantees[i].judged(True, {"not_numbered": 1})
    return [(guarantee, found[i]) for i, guarantee in enumerate(guarantees)]


def _empty(engine: SparkEngine, data: str) -> pa.Table:
    table: pa.Table = engine.schema(engine.read(data)).empty_table()
    return table


def _runs(engine: SparkEngine, rows: Frame) -> tuple[Frame, int]:
    """Each file by itself."""
    files = engine.gather(engine.sql("SELECT DISTINCT file FROM {rows}", rows=rows))
    return engine.sql("SELECT *, file AS piece FROM {rows}", rows=rows), len(files)


def _equal(engine: SparkEngine, rows: Frame) -> tuple[Frame, int]:
    """By first time and length, which equal trajectories share."""
    points = engine.gather(engine.sql("SELECT count(*) AS n FROM {rows}", rows=rows))["n"][0].as_py()
    pieces = max(points // PIECE_POINTS, engine.slots)
    tracks = engine.sql(
        f"SELECT trajectory_id, pmod(xxhash64(min(timestamp), count(*)), {pieces}) AS piece FROM {{rows}} GROUP BY trajectory_id",
        rows=rows,
    )
    keyed = engine.sql(
        "SELECT r.*, t.piece FROM {rows} r JOIN {tracks} t USING (trajectory_id)", rows=rows, tracks=tracks
    )
    return keyed, pieces


def _follow(told: pa.Table) -> bool:
    """Whether the numbers of each file begin behind those of the file before."""
    table = told.sort_by("file")
    if table["first"].null_count:
        return False
    first, last = (table[name].to_numpy() for name in ("first", "last"))
    return bool(np.array_equal(first, np.append(0, last)[:-1] + 1))

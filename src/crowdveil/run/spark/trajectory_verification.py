"""Verification of released trajectories on a cluster, from the files alone, in the partitions that guarantees allow."""

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
from crowdveil.io.written_release import WrittenRelease
from crowdveil.progress import Progress, no_progress
from crowdveil.run.verification import check

PARTITION_POINTS = 1_000_000
"""Points that are checked together, approximately."""
_PLACED = ("file", "at")


@dataclass(frozen=True)
class TrajectoryPartitionCheck:
    """Checks a partition of whole trajectories; it uses guarantees and files, and nothing of methods.

    Attributes
    ----------
    guarantees
        What is checked.
    features
        The areas, as in the GeoJSON, without outlines.
    """

    guarantees: tuple[Guarantee, ...]
    features: list[dict[str, Any]]
    schema = pa.schema([("findings", pa.string()), ("file", pa.string()), ("first", pa.int64()), ("last", pa.int64())])

    def __call__(self, partition: pa.Table) -> pa.Table:
        """Return the findings as one row, with the file and the numbers of trajectories here."""
        rows = partition.sort_by([(name, "ascending") for name in _PLACED])
        number = one_array(rows["published_id"])
        first, last = pc.min(number).as_py(), pc.max(number).as_py()
        plain = rows.drop_columns([name for name in (*_PLACED, "partition_id") if name in rows.column_names])
        # Files are numbered from 1 here; that their numbers are consecutive is checked where all are known. Partitions of
        # equal trajectories come from many files: their numbers mean nothing.
        place = plain.column_names.index("published_id")
        if first is not None:
            plain = plain.set_column(place, "published_id", pc.subtract(number, first - 1))
        written = WrittenRelease(Path("the partition"), plain, None, self.features)
        findings = json.dumps([finding.as_json() for _, finding in check(written, self.guarantees)])
        return pa.table([[findings], [rows["file"][0].as_py()], [first], [last]], schema=self.schema)


def refuse_global_guarantees(guarantees: Sequence[Guarantee], folder: str) -> None:
    """Raise if a guarantee cannot be checked in partitions."""
    whole = [guarantee.name for guarantee in guarantees if guarantee.splitting == "none"]
    if whole:
        raise InputError(
            folder,
            f"the guarantee {whole[0]} is checked on all trajectories at once, which is done without Spark. Leave "
            f"{Option('engine')} out.",
        )


def check_trajectories(
    engine: SparkEngine, data: str, features: list[dict[str, Any]], guarantees: Sequence[Guarantee],
    progress: Progress = no_progress,
) -> list[tuple[Guarantee, Finding]]:  # fmt: skip
    """Check each guarantee on the files of released trajectories."""
    refuse_global_guarantees(guarantees, data)
    rows = engine.read(data)
    columns = engine.schema(rows)
    if "user_id" in columns.names:
        raise InputError(
            data,
            f"its trajectories are linked by people, which is verified without Spark. Leave {Option('engine')} out.",
        )
    rows = rows.selectExpr("*", "_metadata.file_path AS file", "_metadata.row_index AS at")
    found: dict[int, Finding] = {}
    for kind, make in (("runs", _runs), ("equal", _equal)):
        which = [i for i, guarantee in enumerate(guarantees) if guarantee.splitting == kind]
        if not which:
            continue
        function = TrajectoryPartitionCheck(tuple(guarantees[i] for i in which), without_outlines(features))
        keyed, number = make(engine, rows)
        checked = engine.gather(engine.map_groups(keyed, "partition_id", function, function.schema, number), progress)
        findings = [json.loads(line) for line in checked["findings"].to_pylist()]
        if not findings:  # nothing is published
            nothing = WrittenRelease(Path("nothing"), columns.empty_table(), None, features)
            findings = [[finding.as_json() for _, finding in check(nothing, function.guarantees)]]
        for place, i in enumerate(which):
            found[i] = guarantees[i].merge_findings(
                [Finding.from_json(of_partition[place]) for of_partition in findings]
            )
            if guarantees[i].name == "well-formed-trajectories" and not _consecutive(checked):
                found[i] = guarantees[i].make_finding(True, {"not_numbered": 1})
    return [(guarantee, found[i]) for i, guarantee in enumerate(guarantees)]


def _runs(engine: SparkEngine, rows: Frame) -> tuple[Frame, int]:
    """Make each file a partition."""
    files = engine.gather(engine.sql("SELECT DISTINCT file FROM {rows}", rows=rows))
    return engine.sql("SELECT *, file AS partition_id FROM {rows}", rows=rows), len(files)


def _equal(engine: SparkEngine, rows: Frame) -> tuple[Frame, int]:
    """Make partitions by first time and length, which equal trajectories share."""
    points = engine.gather(engine.sql("SELECT count(*) AS n FROM {rows}", rows=rows))["n"][0].as_py()
    partitions = max(points // PARTITION_POINTS, engine.slots)
    tracks = engine.sql(
        f"SELECT published_id, pmod(xxhash64(min(timestamp), count(*)), {partitions}) AS partition_id FROM {{rows}} "
        "GROUP BY published_id",
        rows=rows,
    )
    keyed = engine.sql(
        "SELECT r.*, t.partition_id FROM {rows} r JOIN {tracks} t USING (published_id)", rows=rows, tracks=tracks
    )
    return keyed, partitions


def _consecutive(checked: pa.Table) -> bool:
    """Return whether the numbers of each file begin behind those of the file before."""
    table = checked.sort_by("file")
    if table["first"].null_count:
        return False
    first, last = (table[name].to_numpy() for name in ("first", "last"))
    return bool(np.array_equal(first, np.append(0, last)[:-1] + 1))


def without_outlines(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return areas with their properties alone."""
    return [{"properties": feature["properties"]} for feature in features]

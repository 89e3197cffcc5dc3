"""Part files of a release on a cluster's file system, with plain names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.engine.packing import unpacked
from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.io.atomic import scratch_folder
from crowdveil.io.tables import COMPRESSION
from crowdveil.progress import Progress
from crowdveil.run.spark.trip_rows import record_batch

PARQUET_END = b"PAR1"
"""The last bytes of every Parquet file."""


@dataclass(frozen=True)
class ParquetMaker:
    """Makes one Parquet file of the packed rows of a task, without its last bytes; sent to executors.

    Spark writes times as instants alone. Arrow also writes their zone, and the files are then as those of one machine.

    Attributes
    ----------
    packed
        Columns of the packed rows.
    rows
        Columns of the file.
    """

    packed: pa.Schema
    rows: pa.Schema
    schema = pa.schema([("content", pa.binary())])

    def __call__(self, chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the file, also where there is no row."""
        held = pa.BufferOutputStream()
        with pq.ParquetWriter(held, self.rows, compression=COMPRESSION) as writer:
            for chunk in chunks:
                writer.write_table(unpacked(chunk["packed"], self.packed).select(self.rows.names).cast(self.rows))
        yield record_batch([[held.getvalue().to_pybytes().removesuffix(PARQUET_END)]], self.schema)


def write_parquet_files(
    engine: SparkEngine, packs: Frame, maker: ParquetMaker, folder: str, progress: Progress
) -> None:
    """Write packed rows as a folder of Parquet files, in the order of the frame's partitions."""
    made = engine.map_rows(packs, maker, ParquetMaker.schema)
    engine.write_contents(made, folder, PARQUET_END.decode(), progress)
    for name, size, _ in engine.files.listed(folder):
        if not size:  # a task without rows may write nothing at all
            engine.files.remove(f"{folder}/{name}")
    _rename(engine, folder)
    if not engine.files.names(folder):
        with scratch_folder() as here:
            empty = Path(here) / "part.parquet"
            pq.write_table(maker.rows.empty_table(), empty, compression=COMPRESSION)
            engine.files.put(empty, f"{folder}/part-00000.parquet")


def write_part_files(engine: SparkEngine, rows: Frame, folder: str, progress: Progress) -> None:
    """Write rows as a folder of part files with plain names, in the order of the frame's partitions."""
    engine.write(rows, folder, progress=progress)
    _rename(engine, folder)


def _rename(engine: SparkEngine, folder: str) -> None:
    files = engine.files
    for name, _, _ in files.listed(folder):
        if name.startswith((".", "_")):
            files.remove(f"{folder}/{name}")
    for number, name in enumerate(files.names(folder)):
        files.move(f"{folder}/{name}", f"{folder}/part-{number:05}.parquet")
